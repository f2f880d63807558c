"""Two processes train to the bits of one, fail with one sentence each, and a killed worker changes no result."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import parted_worker
import pytest
import torch
from parted_worker import KINDS
from safetensors.torch import load_file
from shell import Beltrami, one_thread

from beltrami.distributed import Workers, join_workers
from beltrami.errors import DataError

ROOT = Path(__file__).parents[2]
QUICK = ("train", "digits", "--set", "train.epochs=8", "--set", "scheme.time=1", "--checkpoint", "2")
MEETINGS = 8  # of the processes of parted_worker.py, at least
Found = dict[str, Any]


def free_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


def run_worker(count: int, folder: Path) -> list[Found]:
    """Return what each of the processes found."""
    paths = [os.fspath(ROOT / name) for name in ("src", "tests")]
    ports = ",".join(free_port() for _ in range(MEETINGS))
    shared = {"MASTER_ADDR": "127.0.0.1", "PORTS": ports, "WORLD_SIZE": str(count), "OMP_NUM_THREADS": "1"}
    environment = {**os.environ, **shared, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, os.fspath(ROOT / "tests" / "parted_worker.py")]
    processes = [
        subprocess.Popen([*command, str(folder / f"{rank}.json")], env={**environment, "RANK": str(rank)})
        for rank in range(count)
    ]
    assert [process.wait(timeout=300) for process in processes] == [0] * count
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(count)]


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> list[Found]:
    return run_worker(2, tmp_path_factory.mktemp("workers"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_two_processes_have_the_bits_of_one_and_the_numbers_of_the_whole_model(kind: str, two: list[Found]) -> None:
    with one_thread():
        one, whole = parted_worker.train(kind), parted_worker.train(kind, parted=False)
    assert two[0][kind] == two[1][kind] == one
    assert one["losses"] == pytest.approx(whole["losses"], rel=1e-9)
    assert one["weights"] == pytest.approx(whole["weights"], rel=1e-6, abs=1e-8)


@pytest.mark.slow
def test_workers_fail_together_with_one_sentence(two: list[Found]) -> None:
    first, second = two[0]["refusals"], two[1]["refusals"]
    assert first["disk"] == "DataError: worker 1 failed: [Errno 28] No space left on device"
    assert second["disk"] == "OSError: [Errno 28] No space left on device"
    for found in (first, second):
        assert "worker 0 has settings 0 and worker 1 has 1" in str(found["settings"])
        assert str(found["versions"]).startswith("ValueError: worker 0 has versions beltrami 0.0, torch")
        assert str(found["solve"]).startswith("NotFinite: ")
        assert found["file"] == ""


@pytest.mark.slow
def test_a_missing_worker_is_an_error_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}.items():
        monkeypatch.setenv(name, value)
    start = time.monotonic()
    with (
        pytest.raises(DataError, match="did not meet all 2 workers at"),
        join_workers(timeout=0.5),
    ):
        pass
    assert time.monotonic() - start < 30


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"RANK": "x", "WORLD_SIZE": "2"}, "RANK must be a number"),
        ({"RANK": "2", "WORLD_SIZE": "2", "MASTER_ADDR": "a", "MASTER_PORT": "1"}, "RANK=2 is not below WORLD_SIZE=2"),
        ({"RANK": "0", "WORLD_SIZE": "2"}, "MASTER_ADDR is not set"),
    ],
)
def test_variables_that_do_not_fit_are_refused(
    variables: dict[str, str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=message), join_workers():
        pass


def test_units_are_shared_out_in_order() -> None:
    for size in (1, 2, 3, 5):
        owned = [list(Workers(rank, size).owned(5)) for rank in range(size)]
        assert [unit for each in owned for unit in each] == list(range(5))
        assert max(map(len, owned)) - min(map(len, owned)) <= 1


def test_one_process_needs_no_others() -> None:
    with join_workers() as workers:
        assert workers == Workers()
    assert workers.share("text") == ["text"]
    with pytest.raises(ValueError, match="here"), workers.together():
        raise ValueError("here")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--workers", "2", "--compare", "2"), "`--compare` trains in one process"),
        (("--timeout", "5m"), "`--timeout` is for several workers"),
        (("--parts", "2", "--timeout", "x"), "`--timeout` takes a time"),
        (("--parts", "many"), "`--parts` takes a number of parts or a file"),
        (("--parts", "2", "--workers", "3"), "`--workers 3` needs at least as many parts; got `--parts 2`"),
        (("--workers", "2", "--check"), "`--workers` is for training"),
        (("--parts", "2", "--recipe", "gcn"), "several workers do not support another model"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    options: tuple[str, ...], message: str, beltrami: Beltrami, tmp_path: Path
) -> None:
    out = () if "--check" in options else ("--out", str(tmp_path / "run"))
    outcome = beltrami("train", "digits", *options, *out)
    assert outcome.code == 2
    assert message in outcome.err


@pytest.mark.slow
def test_a_killed_worker_changes_no_result(beltrami: Beltrami, tmp_path: Path) -> None:
    with one_thread():
        assert beltrami(*QUICK, "--parts", "8", "--out", str(tmp_path / "one")).code == 0
    environment = {**os.environ, "PYTHONPATH": os.fspath(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "beltrami", *QUICK, "--workers", "2", "--out", str(tmp_path / "two")]
    launcher = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "two" / "checkpoint.safetensors").exists():
        assert launcher.poll() is None
        time.sleep(0.01)
    workers = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split()
    os.kill(int(workers[1]), signal.SIGKILL)
    _, err = launcher.communicate(timeout=300)
    assert launcher.returncode == 0, err
    assert "worker 1 ended by SIGKILL; going on from the last checkpoint with 1 worker." in err
    one, two = (load_file(tmp_path / name / "model.safetensors") for name in ("one", "two"))
    assert one.keys() == two.keys()
    assert all(torch.equal(tensor, two[name]) for name, tensor in one.items())
    numbers = [json.loads((tmp_path / name / "result.json").read_text()) for name in ("one", "two")]
    for name in ("val_accuracy", "test_accuracy", "best_epoch", "best_time", "epochs", "evaluations"):
        assert numbers[0][name] == numbers[1][name]
    assert not (tmp_path / "two" / "checkpoint.safetensors").exists()
