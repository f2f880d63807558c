"""Who looks on while a study is conducted, in tests."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from beltrami.lab.study import PlannedRun, Record


@dataclass
class Seen:
    """Who only takes notes."""

    sizes: list[int] = field(default_factory=list)
    ended: list[Record] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def begin(self, tasks: Sequence[PlannedRun]) -> None:
        self.sizes.append(len(tasks))

    def epoch(self, number: int, going: int) -> None:
        pass

    def end(self, line: Record) -> None:
        self.ended.append(line)

    def fall_back(self, tasks: Sequence[PlannedRun], why: str) -> None:
        self.notes.append(why)
