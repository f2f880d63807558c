"""beltrami tune: interrupted and resumed it repeats no trial, and leaves a recipe for train."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from pathlib import Path

import pytest

from beltrami.cli import main
from beltrami.lab.executor import Executor, Finished, JobReport, Local, OnEpoch
from beltrami.lab.study.record import read_records
from beltrami.lab.tune.scheduler import TrialWorker
from beltrami.lab.tune.search import Search

HELD = [
    "train.epochs=12",
    "scheme.kind=constant",
    "scheme.kind=constant",
    "scheme.solver=rk4",
    "scheme.dt=1",
    "scheme.time=2",
    "model.feat=8",
    "diffusivity.width=16",
]
SHORT = [word for setting in HELD for word in ("--set", setting)]
TINY = ["digits", "--trials", "6", "--splits", "1", *SHORT]


class BreakableWorker(TrialWorker):
    """Runs trials, of which some fail, and one is interrupted by Ctrl-C."""

    def __init__(self, search: Search, *, interrupt: int | None, broken: Sequence[int]) -> None:
        super().__init__(search, "cpu")
        self.interrupt, self.broken = interrupt, broken

    def run(self, job: int, on_epoch: OnEpoch) -> Generator[JobReport | Finished, None, None]:
        if job == self.interrupt:
            raise KeyboardInterrupt
        if job in self.broken:
            yield Finished("the loss became nan", clean=False)
        else:
            yield from super().run(job, on_epoch)


def local(*, interrupt: int | None = None, broken: Sequence[int] = ()) -> Callable[..., Executor]:
    """Run trials one after the other in this process, in place of Ray."""
    return lambda verb, worker, *_, **__: Local(BreakableWorker(worker.search, interrupt=interrupt, broken=broken))


def beltrami(monkeypatch: pytest.MonkeyPatch, *arguments: str, make: Callable[..., Executor] | None = None) -> int:
    """The exit code of the command in this process."""
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.delenv("BELTRAMI_TRACEBACK", raising=False)
    monkeypatch.setattr(sys, "argv", ["beltrami", *arguments])
    with monkeypatch.context() as patch:
        if make is not None:
            patch.setattr("beltrami.cli.study_tune.ray_executor", make)
        with pytest.raises(SystemExit) as end:
            main()
    return int(end.value.code or 0)


@pytest.mark.slow
def test_a_search_interrupted_and_resumed_leaves_a_recipe_for_train(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out, trials = ["--out", str(tmp_path)], tmp_path / "trials.jsonl"
    assert beltrami(monkeypatch, "tune", *TINY, *out, make=local(interrupt=3, broken=[1])) == 130
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "1/6 trial 0: validation" in captured.err
    assert "2/6 trial 1: failed: the loss became nan" in captured.err
    last = captured.err.splitlines()[-1]
    assert last.startswith(f"beltrami: interrupted with 2 trials in {trials}: go on with `beltrami tune digits")
    assert last.endswith("--resume`.")
    assert not (tmp_path / "best.json").exists()

    assert beltrami(monkeypatch, "tune", *TINY, *out, make=local()) == 2
    assert "is not empty: go on with it by `--resume`" in capsys.readouterr().err
    assert beltrami(monkeypatch, "tune", *TINY, *out, "--resume", make=local(broken=[4])) == 0
    captured = capsys.readouterr()
    assert re.findall(r"^\d/4 trial (\d):", captured.err, flags=re.MULTILINE) == ["1", "3", "4", "5"]
    records = read_records(trials)
    assert [record.method for record in records] == ["0", "1", "2", "1", "3", "4", "5"]
    stopped = sum(bool(record.extra["stopped"]) for record in records)
    assert f"6 configurations tried, {stopped} stopped early, 1 failed" in captured.out

    judged = {record.method: record.number("validation") or 0 for record in records if record.error is None}
    best = json.loads((tmp_path / "best.json").read_text())
    assert (best["recipe"], best["tried"]) == ("blend-tuned", 6)
    leader = max(judged, key=lambda name: judged[name])
    assert captured.out.startswith(f"validation {judged[leader]:.2f}%  (trial {leader})")

    train = ["train", "digits", "--recipe", str(tmp_path / "best.json"), "--out", str(tmp_path / "run")]
    assert beltrami(monkeypatch, *train) == 0
    assert re.search(r"configurations tried +6, on validation", capsys.readouterr().out)
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["recipe"] == "blend-tuned"
    assert result["val_accuracy"] == pytest.approx(judged[leader], abs=1e-3)
    assert json.loads((tmp_path / "run" / "config.json").read_text()) == best

    more = [word if word != "6" else "7" for word in TINY]
    assert beltrami(monkeypatch, "tune", *more, *out, "--resume", "--seed", "1", make=local()) == 1
    assert "of another search: go on with the dataset, recipe" in capsys.readouterr().err
    assert beltrami(monkeypatch, "tune", *more, *out, "--resume", make=local()) == 0
    assert [record.method for record in read_records(trials)][7:] == ["4", "6"]
    assert json.loads((tmp_path / "best.json").read_text())["tried"] == 7


def test_a_search_without_any_result_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["--out", str(tmp_path)]
    assert beltrami(monkeypatch, "tune", "digits", "--trials", "2", *SHORT, *out, make=local(broken=[0, 1])) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "none of the 2 trials has a result; the last failed: the loss became nan" in captured.err
    assert not (tmp_path / "best.json").exists()


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (["digitz"], r"unknown dataset 'digitz': did you mean 'digits'\?"),
        (["digits", "--recipe", "blnd"], r"unknown recipe 'blnd': did you mean 'blend'\?"),
        (["digits", "--splits", "0"], r"`splits` and `inits` of at least 1; got 0"),
        (["digits", "--set", "train.epoch=1"], r"unknown setting 'train.epoch'"),
        (["digits", "--device", "cuda:1"], r"`--device` of a trial is cpu or cuda, and Ray chooses which GPU"),
        (["digits", "--gpus-per-trial", "0.5"], r"`--gpus-per-trial 0.5` and `--device cpu` contradict each other"),
        (["digits", "--cpus-per-trial", "0"], r"a trial needs `--cpus-per-trial` above 0"),
        (["digits", "--device", "cuda", "--address", "x", "--gpus-per-trial", "0"], r"contradict each other"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_usage_is_refused_in_one_line(
    arguments: list[str],
    match: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert beltrami(monkeypatch, "tune", *arguments, "--trials", "3", "--out", str(tmp_path / "out")) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert re.search(match, captured.err), captured.err
    assert not (tmp_path / "out").exists()


def test_help_names_the_options(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert beltrami(monkeypatch, "tune", "--help") == 0
    out = capsys.readouterr().out
    options = ("trials", "recipe", "protocol", "splits", "seed", "set", "device", "gpus-per-trial", "cpus-per-trial")
    for option in (*options, "address", "resume", "out"):
        assert f"--{option}" in out


def test_zero_trials_are_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert beltrami(monkeypatch, "tune", "digits", "--trials", "0") == 2
    assert "`--trials` needs at least 1; got 0" in capsys.readouterr().err


def test_a_missing_ray_is_an_error_that_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert beltrami(monkeypatch, "tune", *TINY, "--out", str(tmp_path / "out")) == 2
    captured = capsys.readouterr()
    assert re.fullmatch(
        r"beltrami: `beltrami tune` needs Ray \(.*\): `pip install 'beltrami\[tune\]'`\.\n", captured.err
    )


def alive(folder: str) -> list[str]:
    """Return the processes whose command line names a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if folder in path.read_bytes().decode(errors="replace"):
                found.append(path.parent.name)
        except OSError:
            pass  # it is gone
    return found


def trials_running(folder: Path) -> list[str]:
    """Return the processes of Ray that run trials and have a folder in their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            command, environment = (path / "cmdline").read_bytes(), (path / "environ").read_bytes()
            if b"ray::WorkerProcess" in command and str(folder).encode() in environment:
                found.append(path.name)
        except OSError:
            pass  # it is gone
    return found


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").exists(), reason="looks for processes under /proc")
def test_a_search_on_ray_is_interrupted_and_resumed_and_nothing_is_left(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    folder, trials = tmp_path / "r", tmp_path / "r" / "trials.jsonl"
    scratch = Path("/tmp") / f"bt{os.getpid()}"  # Ray's sockets need a short path
    scratch.mkdir()
    environment = {**os.environ, "TMPDIR": str(scratch), "OMP_NUM_THREADS": "1"}
    arguments = ["digits", "--trials", "2", "--splits", "1", *SHORT, "--out", str(folder), "--resume"]
    command = [sys.executable, "-m", "beltrami", "tune", *arguments]

    def hear_interrupts() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # which a shell in the background ignores

    def start() -> "subprocess.Popen[bytes]":
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, preexec_fn=hear_interrupts)

    def wait(process: "subprocess.Popen[bytes]", condition: Callable[[], bool]) -> None:
        end = time.monotonic() + 240
        while not condition():
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.05)

    try:
        interrupted = start()
        wait(interrupted, lambda: bool(trials_running(scratch)))
        interrupted.send_signal(signal.SIGINT)
        out, err = interrupted.communicate(timeout=120)
        assert (interrupted.returncode, out) == (130, b"")
        assert err.decode().splitlines()[-1].startswith("beltrami: interrupted with ")
        whole = start()
        out, err = whole.communicate(timeout=240)
        assert whole.returncode == 0, err.decode()
        assert b"2 configurations tried" in out
        assert all(
            re.match(r"(\d/\d trial \d: validation |digits / blend: \d/\d )", record)
            for record in err.decode().splitlines()
        ), err.decode()
        assert sorted(record.method for record in read_records(trials)) == ["0", "1"]
        end = time.monotonic() + 30
        while alive(str(scratch)) and time.monotonic() < end:
            time.sleep(0.1)
        assert alive(str(scratch)) == []
        assert list(scratch.glob("beltrami-*")) == []
    finally:
        shutil.rmtree(scratch)
