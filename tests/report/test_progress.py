"""Progress is live on a terminal, and plain lines or nothing elsewhere."""

import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from study_records import a_record

from beltrami.lab.study.record import Record
from beltrami.lab.tune.search import TrialProgress, search_for
from beltrami.report.progress import RunCounter, display, epoch_callback
from beltrami.report.study_terminal import describe_run, describe_trial, print_search
from beltrami.train import Epoch, ValidationScore

SEARCH = search_for("digits", "blend", splits=1)

EPOCH = Epoch(1, (0,), (0.5,), (ValidationScore(0.9, -0.4, 2.0),), (ValidationScore(0.95, -0.3, 4.0),), 16, 2)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")


def trial(number: int, validation: float, *, stopped: bool = False) -> Record:
    progress = TrialProgress((validation,) * 10, 2.0, None if stopped else validation)
    return SEARCH.record(number, progress, stopped=stopped)


FAILED = SEARCH.record(3, TrialProgress(), error="the loss became nan [inf]")


def test_without_a_terminal_short_work_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    with display("cora / ppr") as shown:
        shown.update("ind.cora.x", 10, 100)
        shown.update("PPR", 100, None)
    with display() as shown:
        epoch_callback(shown, 2, title="toy")(EPOCH)
    assert capsys.readouterr() == ("", "")


def test_without_a_terminal_long_work_is_a_line_from_time_to_time(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("beltrami.report.progress.FIRST_LINE", 0.02)
    monkeypatch.setattr("beltrami.report.progress.BETWEEN_LINES", 0.02)
    said = ""
    with display("cora / ppr") as shown:
        shows: dict[str, Callable[[], None]] = {
            "cora / ppr (0 s)\n": lambda: None,
            "PPR: 100/2,485 (0 s)\n": lambda: shown.update("PPR", 100, 2485),
            "training [x] (0 s)\n": lambda: shown.status("training [x]"),
        }
        for expected, show in shows.items():
            show()
            until = time.monotonic() + 10
            while expected not in said and time.monotonic() < until:
                time.sleep(0.01)
                said += capsys.readouterr().err
            assert expected in said
    with display("cora / ppr", quiet=True):
        time.sleep(0.1)
    assert "cora / ppr" not in capsys.readouterr().err


@pytest.mark.usefixtures("terminal")
def test_a_terminal_shows_downloads_pieces_of_work_and_epochs(capsys: pytest.CaptureFixture[str]) -> None:
    with display("cora / ppr") as shown:
        shown.update("ind.cora.x", 10, None)
        shown.update("ind.cora.x", 2000, 4000)
    with display() as shown:
        epoch_callback(shown, 2, title="toy")(EPOCH)
    out, err = capsys.readouterr()
    assert out == ""
    for text in ("cora / ppr", "ind.cora.x", "2,000/4,000", "loss 0.500  val 90.0  best 95.0 at t = 4.00  f 16"):
        assert text in err


def test_without_a_terminal_every_run_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    with display() as shown:
        watch = RunCounter(shown, 2, "random", describe_run)
        watch.status("blend on digits")
        watch.end(a_record(accuracy=84.25))
        watch.note("one by one, since [x] fails")
        watch.end(a_record(accuracy=None, seed=1))
    first, note, second = capsys.readouterr().err.splitlines()
    assert first.startswith("1/2 blend on digits, split 0, seed 0: test 84.25% (about ")
    assert note == "one by one, since [x] fails"
    assert second.startswith("2/2 blend on digits, split 0, seed 1: failed: the loss became nan (in ")


@pytest.mark.usefixtures("terminal")
def test_a_terminal_shows_what_is_running_and_prints_only_errors(capsys: pytest.CaptureFixture[str]) -> None:
    with display() as shown:
        watch = RunCounter(shown, 3, "digits", describe_trial)
        watch.status("2 running, best 91.25% (trial 2)")
        watch.end(trial(2, 91.25))
        watch.end(FAILED)
        (task,) = watch.display.bars.tasks
        assert task.completed == 2
        assert task.fields["state"].startswith("2/3 2 running, best 91.25% (trial 2)  about ")
    err = capsys.readouterr().err
    assert "trial 3: failed: the loss became nan [inf]" in err
    assert "validation 91.25%, in" not in err


def test_time_left_is_estimated_from_the_runs_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 10.0, 20.0, 6000.0])
    with display() as shown:
        monkeypatch.setattr("beltrami.report.progress.time", SimpleNamespace(monotonic=lambda: next(clock)))
        counter = RunCounter(shown, 3, "random", describe_run)
        left = []
        for seed in range(3):
            counter.end(a_record(seed=seed))
            left.append(counter.left)
    assert left == ["about 20 s left", "about 10 s left", "in 1.7 h"]


def test_a_trial_is_described_by_its_end() -> None:
    assert describe_trial(trial(1, 80.0)) == "trial 1: validation 80.00%, in 10 epochs, 2.0 s"
    assert describe_trial(trial(1, 80.0, stopped=True)) == "trial 1: validation 80.00%, stopped after 10 epochs, 2.0 s"
    assert describe_trial(FAILED) == "trial 3: failed: the loss became nan [inf]"


def test_the_best_trials_and_the_recipe_are_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    records = [trial(0, 80.0), trial(1, 85.0), trial(2, 70.0, stopped=True), FAILED]
    best = SEARCH.best(records)
    assert best is not None
    print_search(SEARCH, records, best, path=Path("here/best.json"))
    out = capsys.readouterr().out
    assert out.startswith("validation 85.00%  (trial 1)\nthe recipe as it stands: 80.00%  (trial 0)\n")
    assert "4 configurations tried, 1 stopped early, 1 failed" in out
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line}
    assert rows["trial"] == ["1", "0", "2"]
    assert rows["train.lr"] == [str(SEARCH.config(number).train.lr) for number in (1, 0, 2)]
    assert out.splitlines()[-1] == "train it: beltrami train digits --recipe here/best.json"
