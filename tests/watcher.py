"""Who looks on while a study is conducted, in tests."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from beltrami.experiment.study import Line, Task


@dataclass
class Seen:
    """Who only takes notes."""

    sizes: list[int] = field(default_factory=list)
    ended: list[Line] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def begin(self, tasks: Sequence[Task]) -> None:
        self.sizes.append(len(tasks))

    def epoch(self, number: int, going: int) -> None:
        pass

    def end(self, line: Line) -> None:
        self.ended.append(line)

    def fall_back(self, tasks: Sequence[Task], why: str) -> None:
        self.notes.append(why)
