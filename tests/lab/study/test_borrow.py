"""Runs that another study made are copied: the very same ones, once, and those that ended well."""

from dataclasses import replace
from pathlib import Path

from beltrami.lab.study import STUDIES, PlannedRun, Record, RecordLog, pending, plan, reuse
from beltrami.lab.study.work import Done

SETTINGS = ["train.epochs=2"]


def planned(study: str, *, splits: int, methods: list[str] | None = None) -> list[PlannedRun]:
    return plan(STUDIES[study], datasets=["digits"], methods=methods or ["uniform"], splits=splits, settings=SETTINGS)


def found(task: PlannedRun, accuracy: float | None) -> Record:
    result = {"test_accuracy": accuracy, "split": {"hash": "h"}, "device": "cpu", "versions": {"torch": "2"}}
    return task.line("it broke" if accuracy is None else Done(result))


def test_what_another_study_found_is_copied_and_the_rest_is_left_to_do(tmp_path: Path) -> None:
    with RecordLog(tmp_path / "random.jsonl", resume=False) as other:
        for task, accuracy in zip(planned("random", splits=3), (80.0, None, 82.0), strict=True):
            other.append(found(task, accuracy))
    tasks = planned("attention", splits=4)
    with RecordLog(tmp_path / "attention.jsonl", resume=False) as ledger:
        assert reuse(STUDIES["attention"], tasks, ledger) == 2
        assert [(line.study, line.row, line.split_seed, line.number("test_accuracy")) for line in ledger.lines] == [
            ("attention", "uniform", 0, 80.0),
            ("attention", "uniform", 2, 82.0),
        ]
        assert [task.config.seed for task in pending(tasks, ledger)] == [1, 3]
        assert reuse(STUDIES["attention"], tasks, ledger) == 0


def test_a_row_of_another_name_is_the_same_run_where_its_settings_are(tmp_path: Path) -> None:
    with RecordLog(tmp_path / "random.jsonl", resume=False) as other:
        (task,) = planned("random", splits=1, methods=["blend"])
        other.append(found(task, 90.0))
    tasks = planned("positions", splits=1, methods=["without", "ppr"])  # digits has no positions
    with RecordLog(tmp_path / "positions.jsonl", resume=False) as ledger:
        assert reuse(STUDIES["positions"], tasks, ledger) == 1
        assert [line.row for line in ledger.lines] == ["without"]


def test_a_study_that_does_other_work_lends_nothing(tmp_path: Path) -> None:
    tasks = planned("random", splits=1)
    with RecordLog(tmp_path / "time.jsonl", resume=False) as other:
        other.append(replace(found(tasks[0], 90.0), study="time"))
    with RecordLog(tmp_path / "random.jsonl", resume=False) as ledger:
        assert reuse(STUDIES["random"], tasks, ledger) == 0
