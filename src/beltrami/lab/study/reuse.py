"""Borrow: runs that another study in the same folder has made already."""

from collections.abc import Sequence
from dataclasses import replace

from beltrami.lab.study.catalogue import STUDIES
from beltrami.lab.study.plan import PlannedRun
from beltrami.lab.study.record import Record
from beltrami.lab.study.record_log import RecordLog, read_folder
from beltrami.lab.study.study import Study


def reuse(study: Study, tasks: Sequence[PlannedRun], ledger: RecordLog) -> int:
    """Copy into the ledger what other studies found for the very same runs; how many there were.

    The same run is one whose whole configuration is the same, seeds included, and with which the same was done.
    """
    known = {line.key: line for line in _elsewhere(study, ledger) if line.error is None}
    wanted = [task for task in tasks if task.identity not in ledger.done() and task.identity[1] in known]
    for task in wanted:
        ledger.append(replace(known[task.identity[1]], study=study.name, row=task.row))
    return len(wanted)


def _elsewhere(study: Study, ledger: RecordLog) -> list[Record]:
    kin = {name for name, other in STUDIES.items() if type(other.work) is type(study.work)} - {study.name}
    return [line for name, lines in read_folder(ledger.path.parent).items() if name in kin for line in lines]
