"""Runs on the command line: folders, locks, interrupts, --resume to the same bits, and files that belong together."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from own_graph import two_groups
from safetensors.torch import load_file
from shell import Beltrami, one_thread
from torch import equal

from beltrami.run_folder import run_folder
from beltrami.train import Checkpoints

QUICK = ("train", "digits", "--set", "train.epochs=4", "--set", "train.patience=4")
DISTURBED = ("train", "digits", "--set", "train.epochs=20", "--set", "train.patience=20", "--checkpoint", "5")


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def weights_equal(one: Path, other: Path) -> bool:
    first, second = load_file(one / "model.safetensors"), load_file(other / "model.safetensors")
    return first.keys() == second.keys() and all(equal(tensor, second[name]) for name, tensor in first.items())


def facts_of(folder: Path) -> dict[str, Any]:
    """The result of a run without its times."""
    facts = json.loads((folder / "result.json").read_text())
    return {name: value for name, value in facts.items() if name != "train_seconds"}


@pytest.fixture
def stop_at(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Send this process a signal after an epoch of the training."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell in the background ignores

    def arrange(number: int, epoch: int, times: int = 1) -> None:
        after = Checkpoints.after

        def then(self: Checkpoints, told: Any, fitting: Any) -> None:
            if told.number == epoch:
                for _ in range(times):
                    signal.raise_signal(number)
            after(self, told, fitting)

        monkeypatch.setattr(Checkpoints, "after", then)

    yield arrange
    signal.signal(signal.SIGINT, before)


@pytest.mark.slow
def test_a_second_run_has_a_folder_of_its_own(beltrami: Beltrami) -> None:
    assert "saved in runs/digits-blend-0\n" in beltrami(*QUICK).out
    before = files_of(Path("runs/digits-blend-0"))
    assert "saved in runs/digits-blend-0-2\n" in beltrami(*QUICK, "--set", "train.lr=0.02").out
    assert files_of(Path("runs/digits-blend-0")) == before
    assert sorted(before) == ["config.json", "epochs.jsonl", "model.safetensors", "result.json"]


@pytest.mark.slow
def test_a_finished_run_is_replaced_by_force_alone(beltrami: Beltrami) -> None:
    beltrami(*QUICK, "--out", "a")
    before = files_of(Path("a"))
    refused = beltrami(*QUICK, "--out", "a", "--set", "train.lr=0.02")
    assert refused.code == 2
    assert "a holds a finished run: replace it with `--force`" in refused.err
    assert files_of(Path("a")) == before
    assert beltrami(*QUICK, "--out", "a", "--set", "train.lr=0.02", "--force").code == 0
    assert files_of(Path("a")).keys() == before.keys()
    assert files_of(Path("a"))["config.json"] != before["config.json"]


@pytest.mark.slow
def test_a_folder_has_one_writer(beltrami: Beltrami) -> None:
    with run_folder(Path("a"), "a"):
        refused = beltrami(*QUICK, "--out", "a")
        assert refused.code == 1
        assert "another process is writing to a" in refused.err
    with run_folder(None, "digits-blend-0") as taken:
        assert taken == Path("runs/digits-blend-0")
        assert "saved in runs/digits-blend-0-2\n" in beltrami(*QUICK).out


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_keeps_the_best_so_far_and_says_how_to_go_on(
    beltrami: Beltrami, stop_at: Any, monkeypatch: pytest.MonkeyPatch, number: int, code: int
) -> None:
    with monkeypatch.context():
        stop_at(number, 3)
        stopped = beltrami(*QUICK, "--out", "a")
    assert stopped.code == code
    assert "stopping after this epoch; once more to stop at once" in stopped.err
    assert re.search(r"stopped after epoch 3, with a validation accuracy of \d+\.\d% at best", stopped.err)
    command = re.search(r"Go on with `beltrami (.*)`", stopped.err)
    assert command is not None
    assert sorted(files_of(Path("a"))) == ["checkpoint.safetensors", "epochs.jsonl"]
    refused = beltrami(*QUICK, "--out", "a")
    assert refused.code == 2
    assert "a holds an unfinished run: go on with `--resume`, begin anew with `--force`" in refused.err
    monkeypatch.undo()


@pytest.mark.slow
def test_a_run_that_was_stopped_goes_on_to_the_same_bits(
    beltrami: Beltrami, stop_at: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    beltrami(*QUICK, "--out", "whole")
    stop_at(signal.SIGINT, 2)
    assert beltrami(*QUICK, "--out", "a").code == 130
    after = Checkpoints.after
    monkeypatch.setattr(Checkpoints, "after", lambda self, epoch, fitting: None)
    other = beltrami(*QUICK, "--set", "train.lr=0.02", "--out", "a", "--resume")
    assert other.code == 1
    assert "the unfinished run in a has other settings (train.lr)" in other.err
    assert beltrami(*QUICK, "--out", "a", "--resume").code == 0
    assert files_of(Path("a")).keys() == files_of(Path("whole")).keys()
    assert weights_equal(Path("a"), Path("whole"))
    assert facts_of(Path("a")) == facts_of(Path("whole"))
    assert (Path("a") / "epochs.jsonl").read_text() == (Path("whole") / "epochs.jsonl").read_text()
    again = beltrami(*QUICK, "--out", "a", "--resume", "--json")
    assert json.loads(again.out)["epochs"] == 4
    monkeypatch.setattr(Checkpoints, "after", after)


@pytest.mark.slow
def test_resume_finds_the_run_with_the_same_settings(beltrami: Beltrami, stop_at: Any) -> None:
    beltrami(*QUICK)
    stop_at(signal.SIGINT, 2)
    other = (*QUICK, "--set", "train.lr=0.02")
    assert beltrami(*other).code == 130
    assert "checkpoint.safetensors" in files_of(Path("runs/digits-blend-0-2"))
    finished = beltrami(*other, "--resume")  # begins after epoch 2
    assert "saved in runs/digits-blend-0-2\n" in finished.out
    assert "saved in runs/digits-blend-0\n" in beltrami(*QUICK, "--resume").out


def test_options_that_exclude_each_other_are_refused(beltrami: Beltrami) -> None:
    assert "give one of them" in beltrami(*QUICK, "--resume", "--force").err
    assert "give one of them" in beltrami(*QUICK, "--quiet", "--json").err
    assert "`--checkpoint` takes a time such as" in beltrami(*QUICK, "--checkpoint", "often").err
    assert "at least one epoch" in beltrami(*QUICK, "--checkpoint", "0").err


@pytest.mark.slow
def test_a_quiet_run_prints_nothing_and_json_is_the_result(beltrami: Beltrami) -> None:
    quiet = beltrami(*QUICK, "--quiet", "--out", "a")
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")
    told = beltrami(*QUICK, "--json", "--out", "b")
    assert json.loads(told.out) == json.loads(Path("b/result.json").read_text())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_files_of_two_runs_are_not_mixed(beltrami: Beltrami, name: str) -> None:
    beltrami(*QUICK, "--out", "a")
    beltrami(*QUICK, "--out", "b", "--seed", "1")
    Path("a", name).write_bytes(Path("b", name).read_bytes())
    refused = beltrami("evaluate", "a")
    assert refused.code == 1
    assert f"a/{name} has changed since the run was saved: the files of a run belong together" in refused.err
    Path("a", name).unlink()
    assert f"a/{name} is missing" in beltrami("evaluate", "a").err


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "beltrami", *arguments]


@pytest.mark.slow
def test_a_full_disk_leaves_the_finished_run_or_none(tmp_path: Path, beltrami: Beltrami) -> None:
    beltrami(*QUICK, "--out", "mix")
    other = command(*QUICK, "--out", "mix", "--force", "--set", "train.lr=0.02")
    limited = subprocess.run(
        ["bash", "-c", 'ulimit -f 8; exec "$@"', "bash", *other], capture_output=True, text=True, check=False
    )
    assert limited.returncode == 1
    assert re.search(r"mix/\S+ cannot be written \(File too large\): make room", limited.stderr), limited.stderr
    refused = beltrami("evaluate", "mix")
    assert refused.code == 1
    assert "no result file" in refused.err


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_bits(tmp_path: Path, beltrami: Beltrami) -> None:
    killed = subprocess.Popen(command(*DISTURBED, "--out", "a", "--quiet"), env={**os.environ, "OMP_NUM_THREADS": "1"})
    end = time.monotonic() + 60
    while not Path("a/checkpoint.safetensors").exists() and time.monotonic() < end:
        time.sleep(0.01)
    killed.kill()
    killed.wait()
    assert "result.json" not in files_of(Path("a"))
    with one_thread():
        assert beltrami(*DISTURBED, "--out", "whole").code == 0
        assert beltrami(*DISTURBED, "--out", "a", "--resume").code == 0
    assert weights_equal(Path("a"), Path("whole"))
    assert facts_of(Path("a")) == facts_of(Path("whole"))
    assert sorted(files_of(Path("a"))) == sorted(files_of(Path("whole")))


def test_check_prints_what_a_run_would_need_and_trains_nothing(beltrami: Beltrami) -> None:
    told = beltrami("train", "digits", "--check")
    assert told.code == 0
    assert re.search(r"dataset +digits: 1,797 nodes", told.out)
    assert re.search(r"memory +about \S+ MiB, and", told.out)
    assert not Path("runs").exists()
    assert "more than" in beltrami("train", "digits", "--check", "--recipe", "gcn", "--set", "model.depth=9999").err


@pytest.mark.slow
def test_without_a_terminal_progress_is_lines(beltrami: Beltrami, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("beltrami.report.progress.FIRST_LINE", 0.01)
    monkeypatch.setattr("beltrami.report.progress.BETWEEN_LINES", 0.01)
    told = beltrami(*QUICK, "--out", "a").err.splitlines()
    found = [re.fullmatch(r"digits / blend, epoch: (\d)/4 +loss \d.* \(\d+ s\)", line) for line in told]
    numbers = [int(match[1]) for match in found if match]
    assert len(numbers) > 1
    assert numbers == sorted(numbers)


def test_a_clock_that_is_set_back_does_not_matter() -> None:
    """Times between two moments are measured by clocks that never go back, and no file is judged by its date."""
    clocks = re.compile(r"\btime\.time\(|datetime(?! import timedelta$)|st_mtime|getmtime", re.MULTILINE)
    for path in (Path(__file__).parents[1] / "src").rglob("*.py"):
        assert not clocks.search(path.read_text()), path


@pytest.mark.slow
def test_a_selection_that_is_interrupted_says_how_to_go_on(
    beltrami: Beltrami, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    two_groups().write(tmp_path / "my")

    def interrupt(*arguments: Any, **named: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("beltrami.auto.selection.train_member", interrupt)
    stopped = beltrami("train", "my", "--out", "run")
    assert stopped.code == 130
    assert "interrupted; nothing is trained. Go on with `beltrami train my --out run --resume`." in stopped.err
    assert beltrami("train", "my", "--out", "run", "--fast").code == 0
    assert "run holds a finished run" in beltrami("train", "my", "--out", "run", "--fast").err
    assert "the run in run is finished" in beltrami("train", "my", "--out", "run", "--fast", "--resume").err
    Path("run/model-0.safetensors").write_bytes(b"")
    assert "has changed since the run was saved" in beltrami("predict", "run", "--out", "p.csv").err


@pytest.mark.slow
def test_a_replacement_that_was_stopped_is_not_taken_for_the_run_that_it_replaces(
    beltrami: Beltrami, stop_at: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = (*QUICK, "--set", "train.lr=0.02", "--out", "a")
    beltrami(*QUICK, "--out", "a")
    before = facts_of(Path("a"))
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "after", Checkpoints.after)
        stop_at(signal.SIGINT, 2)
        assert beltrami(*other, "--force").code == 130
    assert facts_of(Path("a")) == before
    assert beltrami(*other, "--resume").code == 0
    assert json.loads(Path("a/config.json").read_text())["train"]["lr"] == 0.02
    assert facts_of(Path("a")) != before
    assert "checkpoint.safetensors" not in files_of(Path("a"))


@pytest.mark.parametrize(
    "option", [("--resume",), ("--json",), ("--checkpoint", "5"), ("--log", "l.jsonl"), ("--compare", "2")]
)
def test_options_that_a_check_would_ignore_are_refused(beltrami: Beltrami, option: tuple[str, ...]) -> None:
    refused = beltrami("train", "digits", "--check", *option)
    assert refused.code == 2
    assert f"`{option[0]}` is for training, and `--check` trains nothing" in refused.err


def test_the_recipe_auto_has_no_interval_of_checkpoints(beltrami: Beltrami) -> None:
    assert "`--checkpoint` is for a single recipe" in beltrami("train", "--recipe", "auto", "--checkpoint", "5").err
