"""Studies: the paper's tables, measured again. A study is data, its runs leave records, tables come from records."""

from beltrami.lab.study.planning import Comparison, PlannedRun, Study, plan, ratio
from beltrami.lab.study.record import Record, RecordLog, latest, read_folder, read_records
from beltrami.lab.study.runner import BatchWorker, batch_size, local_executor, pending, reuse, run_study
from beltrami.lab.study.studies import STUDIES, study_named
from beltrami.lab.study.summary import Cell, Sample, Table, tabulate

__all__ = [
    "STUDIES",
    "study_named",
    "Study",
    "Comparison",
    "ratio",
    "PlannedRun",
    "plan",
    "reuse",
    "pending",
    "BatchWorker",
    "batch_size",
    "local_executor",
    "run_study",
    "Record",
    "RecordLog",
    "latest",
    "read_records",
    "read_folder",
    "Table",
    "Cell",
    "Sample",
    "tabulate",
]
