"""A search as a person sees it."""

import io
from pathlib import Path

import pytest
from rich.console import Console
from rich.progress import Progress as Bar

from beltrami.lab.study import Record
from beltrami.lab.tune import Progress, search_for
from beltrami.report.study.watch import Pace
from beltrami.report.tune import Live, Plain, found, outcome

SEARCH = search_for("digits", "blend", splits=1)


def over(number: int, validation: float, *, stopped: bool = False) -> Record:
    return SEARCH.line(number, Progress((validation,) * 10, 2.0, None if stopped else validation), stopped=stopped)


FAILED = SEARCH.line(3, Progress(), error="the loss became nan [inf]")


def test_an_outcome_is_told_in_words() -> None:
    assert outcome(over(1, 80.0)) == "validation 80.00%, in 10 epochs, 2.0 s"
    assert outcome(over(1, 80.0, stopped=True)) == "validation 80.00%, stopped after 10 epochs, 2.0 s"
    assert outcome(FAILED) == "failed: the loss became nan [inf]"


def test_where_nobody_watches_there_is_a_line_a_trial() -> None:
    text = io.StringIO()
    watch = Plain(2, Console(file=text, width=40))
    watch.epoch(2, None)
    watch.end(over(1, 80.0))
    watch.end(FAILED)
    first, second = text.getvalue().splitlines()
    assert first.startswith("1/2 trial 1: validation 80.00%, in 10 epochs, 2.0 s (about ")
    assert second.startswith("2/2 trial 3: failed: the loss became nan [inf] (in ")


def test_a_bar_says_how_many_go_on_and_which_leads() -> None:
    text = io.StringIO()
    with Bar(console=Console(file=text, width=120), auto_refresh=False) as bar:
        watch = Live(bar, bar.add_task("digits", total=3, state=""), Pace(3))
        watch.epoch(2, None)
        assert bar.tasks[0].fields["state"].startswith("2 going")
        watch.end(FAILED)
        watch.epoch(1, over(2, 91.25))
        assert "1 going, best 91.25% (trial 2)" in bar.tasks[0].fields["state"]
        assert bar.tasks[0].completed == 1
    assert "trial 3: the loss became nan [inf]" in text.getvalue()


def test_what_was_found_stands_beside_the_recipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    lines = [over(0, 80.0), over(1, 85.0), over(2, 70.0, stopped=True), FAILED]
    best = SEARCH.best(lines)
    assert best is not None
    found(SEARCH, lines, best, path=Path("here/best.json"))
    out = capsys.readouterr().out
    assert out.startswith("validation 85.00%  (trial 1)\nthe recipe as it stands: 80.00%  (trial 0)\n")
    assert "4 configurations tried, 1 stopped early, 1 failed" in out
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line}
    assert rows["trial"] == ["1", "0", "2"]
    assert rows["train.lr"] == [str(SEARCH.trial(number).config.train.lr) for number in (1, 0, 2)]
    assert out.splitlines()[-1] == "train it: beltrami train digits --recipe here/best.json"
