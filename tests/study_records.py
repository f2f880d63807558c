"""Records of studies, made by hand."""

from dataclasses import dataclass, field
from typing import Any

from beltrami.lab.study.record import Record


def a_record(method: str = "blend", accuracy: float | None = 80.0, **given: Any) -> Record:
    """Return a record of the study ``random`` on digits; without an accuracy, of a run that failed."""
    values: dict[str, Any] = {"study": "random", "dataset": "digits", "split_seed": 0, "seed": 0, "setup": "s", **given}
    split = {"protocol": "digl", "seed": values["split_seed"], "hash": f"hash {values['split_seed']}"}
    result = {"test_accuracy": accuracy, "split": split, "device": "cpu", "versions": {"torch": "2"}}
    values.setdefault("key", f"{values['dataset']} {values['split_seed']} {values['seed']}")
    values.setdefault("result", None if accuracy is None else result)
    values.setdefault("error", "the loss became nan" if accuracy is None else None)
    return Record(method=method, **values)


@dataclass
class Seen:
    """A watch of a study or a search that keeps what it is told."""

    states: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    ended: list[Record] = field(default_factory=list)

    def status(self, text: str) -> None:
        self.states.append(text)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def end(self, record: Record) -> None:
        self.ended.append(record)
