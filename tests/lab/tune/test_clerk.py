"""The books of a search: who goes on, and one line for each trial however it ends."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from beltrami.lab.study import Record, RecordLog, read_lines
from beltrami.lab.tune import Progress, Scheduler, search_for

SEARCH = search_for("digits", "blend", splits=1, settings=["train.epochs=25"])


@dataclass
class Seen:
    """Who only takes notes."""

    going: list[int] = field(default_factory=list)
    ended: list[Record] = field(default_factory=list)

    def epoch(self, going: int, best: Record | None) -> None:
        self.going.append(going)

    def end(self, line: Record) -> None:
        self.ended.append(line)


def train(clerk: Scheduler, number: int, level: float, *, epochs: int = 25) -> None:
    """A trial whose validation is ``level`` throughout, as an engine would run it."""
    clerk.begin(number)
    for epoch in range(1, epochs + 1):
        if not clerk.hear(number, Progress((level,) * epoch, epoch / 10)):
            break
    else:
        clerk.hear(number, Progress((level,) * epochs, epochs / 10, level))
    clerk.end(number)


def brief(line: Record) -> tuple[str, int, bool, str | None]:
    return line.row, len(line.also["by_epoch"]), line.also["stopped"], line.error


def test_weak_trials_are_stopped_at_milestones_and_strong_ones_reach_their_end(tmp_path: Path) -> None:
    seen = Seen()
    with RecordLog(tmp_path / "t.jsonl", resume=False) as ledger:
        clerk = Scheduler(SEARCH, ledger, seen)
        for number, level in enumerate((80.0, 70.0, 90.0, 85.0, 75.0)):
            train(clerk, number, level)
    lines = read_lines(tmp_path / "t.jsonl")
    # at epoch 10: 80 is first; 70 < 80; 90 >= 75; 85 >= 80; 75 < 82.5. At 20: 80; 90 >= 80; 85 >= 85
    assert [brief(line) for line in lines] == [
        ("0", 25, False, None),
        ("1", 10, True, None),
        ("2", 25, False, None),
        ("3", 25, False, None),
        ("4", 10, True, None),
    ]
    assert seen.ended == lines
    assert [line.number("validation") for line in lines] == [80.0, 70.0, 90.0, 85.0, 75.0]
    assert set(seen.going) == {1}


@pytest.mark.parametrize("cut", range(6))
def test_a_search_that_was_interrupted_decides_as_one_that_was_not(tmp_path: Path, cut: int) -> None:
    levels = (80.0, 70.0, 90.0, 85.0, 75.0)
    for name, pieces in (("whole", [range(5)]), ("cut", [range(cut), range(cut, 5)])):
        for numbers in pieces:
            with RecordLog(tmp_path / name, resume=True) as ledger:
                assert SEARCH.pending(5, ledger.lines)[: len(numbers)] == list(numbers)
                clerk = Scheduler(SEARCH, ledger, Seen())
                for number in numbers:
                    train(clerk, number, levels[number])
                clerk.begin(4)  # under way when it ended: leaves nothing
                clerk.hear(4, Progress((99.0,) * 10))
    assert read_lines(tmp_path / "cut") == read_lines(tmp_path / "whole")


def test_trials_that_fail_or_are_ended_leave_their_error_and_no_mark(tmp_path: Path) -> None:
    with RecordLog(tmp_path / "t.jsonl", resume=False) as ledger:
        clerk = Scheduler(SEARCH, ledger, Seen())
        clerk.begin(0)
        clerk.hear(0, Progress((99.0,) * 10, 1.0))
        clerk.fail(0, "the loss became nan")
        clerk.end(0)
        clerk.begin(1)
        clerk.end(1)
        clerk.fail(2, "its process died")  # before it began
        clerk.end(2)
        assert [brief(line) for line in ledger.lines] == [
            ("0", 10, False, "the loss became nan"),
            ("1", 0, False, "the trial was ended from outside after 0 epochs"),
            ("2", 0, False, "its process died"),
        ]
        train(clerk, 0, 50.0)
        assert brief(ledger.runs()[0]) == ("0", 10, True, None)  # below what it had before it failed
    with RecordLog(tmp_path / "t.jsonl", resume=True) as ledger:
        clerk = Scheduler(SEARCH, ledger, Seen())
        train(clerk, 3, 60.0)
        assert brief(ledger.lines[-1]) == ("3", 25, False, None)  # 60 >= 50: what a failed trial had is forgotten
