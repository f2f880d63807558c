"""The launcher goes on without workers that were killed and ends with the error of one that failed, here or on Ray."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import typer
from safetensors.torch import load_file
from shell import Beltrami

from beltrami.cli import launcher
from beltrami.cli.launcher import LAUNCHED, LOST, Ending, LaunchedWorker, Starter, launch, reported_once
from beltrami.cli.ray_workers import GONE, RayStarter, RemoteProcess
from beltrami.distributed.workers import WorkerLost, Workers, find_interface
from beltrami.errors import DataError, Interrupted

KILLED = Ending.of(-9)
QUICK = ("train", "digits", "--set", "train.epochs=2", "--set", "scheme.time=1")


class FakeWorker(LaunchedWorker):
    """A worker that has ended, or with None runs until it is told to stop."""

    def __init__(self, ending: Ending | None) -> None:
        self.ending, self.killed = ending, False

    def poll(self) -> Ending | None:
        return self.ending

    def terminate(self) -> None:
        self.ending = Ending(143)

    def kill(self) -> None:
        self.killed = True


class FakeStarter(Starter):
    """Starts fake workers, with given endings in each round."""

    patience = 0.02

    def __init__(self, *rounds: Sequence[Ending | None]) -> None:
        self.rounds, self.words = list(rounds), [list[str]()]
        self.workers: list[FakeWorker] = []

    def start(self, words: Sequence[str], count: int) -> Sequence[LaunchedWorker]:
        started = [FakeWorker(ending) for ending in self.rounds.pop(0)]
        assert len(started) == count
        self.words.append(list(words))
        self.workers += started
        return started


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "GRACE", 0.02)
    monkeypatch.setattr(launcher, "POLL", 0.001)
    monkeypatch.setattr(sys, "argv", ["beltrami", "train", "--force"])


def test_those_that_are_left_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    done, gone = Ending(0), Ending(-9, GONE)
    starter = FakeStarter([Ending(LOST), None, KILLED, gone], [gone, Ending(LOST)], [done])
    launch(4, starter)
    assert starter.words[1:] == [["train", "--force"], ["train", "--resume"], ["train", "--resume"]]
    assert all(worker.killed for worker in starter.workers)
    first, second = capsys.readouterr().err.splitlines()
    assert first == "beltrami: worker 2 ended by SIGKILL; going on from the last checkpoint with 2 workers."
    assert second == f"beltrami: worker 0 ended by {GONE}; going on from the last checkpoint with 1 worker."


@pytest.mark.parametrize(
    ("endings", "message"),
    [
        ([KILLED, KILLED], "worker 0 ended by SIGKILL, and none is left"),
        ([Ending(LOST), None], "the workers lost each other, but none was killed"),
    ],
)
def test_workers_that_cannot_go_on_are_an_error(endings: list[Ending | None], message: str) -> None:
    starter = FakeStarter(endings)
    with pytest.raises(DataError, match=message):
        launch(2, starter)
    assert all(worker.killed for worker in starter.workers)


def test_an_error_elsewhere_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as end:
        launch(3, FakeStarter([Ending(LOST), Ending(2, "worker 1 failed: no file."), Ending(2, "worker 2 failed: no")]))
    assert end.value.exit_code == 2
    assert capsys.readouterr().err == "beltrami: worker 1 failed: no file.\n"


@pytest.mark.parametrize("rank", ["0", "1"])
def test_the_first_worker_reports_an_error_of_all(rank: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", rank)
    expected = ValueError if rank == "0" else typer.Exit
    with pytest.raises(expected), reported_once(), Workers().together():
        raise ValueError("the parts do not cover the nodes")
    with pytest.raises(ValueError, match="mine alone"), reported_once():
        raise ValueError("mine alone")
    with pytest.raises(Interrupted if rank == "0" else typer.Exit), reported_once():
        raise Interrupted("stopped.", code=130)


def test_the_launcher_reports_a_lost_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WorkerLost), reported_once():
        raise WorkerLost("lost")
    monkeypatch.setenv(LAUNCHED, "1")
    with pytest.raises(typer.Exit) as end, reported_once():
        raise WorkerLost("lost")
    assert end.value.exit_code == LOST


def test_an_interrupt_stops_all_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("beltrami.cli.launcher.time.sleep", interrupt)
    starter = FakeStarter([None, None])
    with pytest.raises(typer.Exit) as end:
        launch(2, starter)
    assert end.value.exit_code == 143
    assert all(worker.killed for worker in starter.workers)


@pytest.mark.slow
def test_a_remote_process_returns_its_code_and_its_last_line(tmp_path: Path) -> None:
    code, last = RemoteProcess().run(["train", "--timeout", "5m"], {}, str(tmp_path / "missing"))
    assert code == 2
    assert last.startswith("beltrami: `--timeout` is for several workers")


@pytest.mark.parametrize(
    ("device", "machines", "message"),
    [
        (
            "cpu",
            [{"CPU": 1.0, "node:here": 1.0}],
            "room for 1 workers of 1 CPUs and 0 GPUs beside the one on this mach",
        ),
        ("cuda", [{"CPU": 8.0, "GPU": 2.0, "node:here": 1.0}], "room for 1 workers of 1 CPUs and 1 GPUs beside"),
        (
            "cuda",
            [{"CPU": 8.0, "node:here": 1.0}, {"GPU": 8.0, "CPU": 8.0}],
            "this machine has no GPU in the Ray clust",
        ),
    ],
)
def test_a_cluster_without_room_is_refused(
    device: str, machines: list[dict[str, float]], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setattr("beltrami.cli.ray_workers.machines", lambda: machines)
    with pytest.raises(ValueError, match=message):
        RayStarter(None, device).check_room(2, "node:here")
    RayStarter(None, "cpu").check_room(1, "node:here")


@pytest.mark.parametrize(
    ("options", "variables", "message"),
    [
        (("--address", "auto"), {}, "`--address` is for several workers: add `--workers`"),
        (("--address", "auto"), {"RANK": "0"}, "`--address` starts processes, and torchrun has started them"),
        (("--address", "ray://a:1", "--workers", "2"), {}, "is for clients outside a cluster"),
        (("--address", "auto", "--workers", "2", "--check"), {}, "`--workers` is for training"),
    ],
)
def test_addresses_that_do_not_fit_are_refused(
    options: tuple[str, ...],
    variables: dict[str, str],
    message: str,
    beltrami: Beltrami,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    outcome = beltrami("train", "digits", *options)
    assert outcome.code == 2
    assert message in outcome.err


def test_a_missing_ray_is_one_line(beltrami: Beltrami, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    outcome = beltrami("train", "digits", "--workers", "2", "--address", "local")
    assert outcome.code == 2
    assert outcome.err.startswith("beltrami: `beltrami train --address` needs Ray (")


def test_gloo_uses_the_loopback_on_this_machine_and_its_own_choice_elsewhere() -> None:
    loop = find_interface("127.0.0.1")
    assert loop is not None
    assert loop.startswith("lo")
    assert find_interface("no.such.host.invalid") is None


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning")
def test_workers_on_ray_have_the_bits_of_one(
    beltrami: Beltrami, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    assert beltrami(*QUICK, "--parts", "8", "--out", str(tmp_path / "one")).code == 0
    torch.set_num_threads(threads)
    outcome = beltrami(*QUICK, "--workers", "2", "--address", "local", "--out", str(tmp_path / "two"))
    assert outcome.code == 0, outcome.err

    def trained(name: str) -> tuple[list[Any], dict[str, torch.Tensor]]:
        epochs = (tmp_path / name / "epochs.jsonl").read_text().splitlines()
        return [json.loads(line) for line in epochs], load_file(tmp_path / name / "model.safetensors")

    (epochs, weights), (same_epochs, same_weights) = trained("one"), trained("two")
    assert epochs == same_epochs
    assert weights.keys() == same_weights.keys()
    assert all(torch.equal(tensor, same_weights[name]) for name, tensor in weights.items())
