"""A share fits as often as machines have room for it, and one that never fits is refused."""

import os
from pathlib import Path

import pytest
import torch

from beltrami.lab.resources import Resources, WorkerEnvironment

NOTHING: dict[str, float] = {}


@pytest.mark.parametrize(
    ("cpus", "gpus", "held", "times"),
    [
        (1.0, 0.0, {"CPU": 4.0}, 4),
        (3.0, 0.0, {"CPU": 4.0, "GPU": 8.0}, 1),
        (0.1, 0.0, {"CPU": 0.3}, 3),  # where 0.3 / 0.1 < 3
        (8.0, 0.0, {"CPU": 4.0}, 0),
        (1.0, 1.0, {"CPU": 16.0, "GPU": 2.0}, 2),
        (1.0, 0.25, {"CPU": 16.0, "GPU": 2.0}, 8),
        (1.0, 0.6, {"CPU": 16.0, "GPU": 2.0}, 2),  # not three: a share is of one GPU
        (4.0, 0.25, {"CPU": 16.0, "GPU": 2.0}, 4),
        (1.0, 2.0, {"CPU": 16.0, "GPU": 5.0}, 2),
        (1.0, 0.5, {"CPU": 16.0}, 0),
        (1.0, 0.0, NOTHING, 0),
    ],
)
def test_a_share_fits_as_often_as_there_is_room(cpus: float, gpus: float, held: dict[str, float], times: int) -> None:
    assert Resources("batch", "cuda" if gpus else "cpu", cpus, gpus).times_in(held) == times


def test_what_is_not_said_is_one_of_each() -> None:
    assert Resources.asked("trial", device="cpu", cpus=None, gpus=None) == Resources("trial", "cpu", 1.0, 0.0)
    assert Resources.asked("trial", device="cuda", cpus=None, gpus=None) == Resources("trial", "cuda", 1.0, 1.0)
    assert Resources.asked("trial", device="cuda", cpus=0.5, gpus=0.2) == Resources("trial", "cuda", 0.5, 0.2)


@pytest.mark.parametrize(
    ("device", "cpus", "gpus", "match"),
    [
        ("cuda:1", 1.0, 1.0, r"`--device` of a batch is cpu or cuda, and Ray chooses which GPU; got 'cuda:1'"),
        ("cpu", 0.0, 0.0, r"a batch needs `--cpus-per-batch` above 0"),
        ("cuda", 1.0, -1.0, r"no negative share of GPUs; got 1, -1"),
        ("cpu", 1.0, 0.5, r"`--gpus-per-batch 0.5` and `--device cpu` contradict each other"),
        ("cuda", 1.0, 0.0, r"`--gpus-per-batch 0` and `--device cuda` contradict each other"),
    ],
)
def test_shares_that_make_no_sense_are_refused(device: str, cpus: float, gpus: float, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        Resources("batch", device, cpus, gpus)


def test_a_share_that_no_machine_has_is_refused() -> None:
    share = Resources("batch", "cuda", cpus=4.0, gpus=1.0)
    share.check([{"CPU": 1.0}, {"CPU": 4.0, "GPU": 1.0}])
    with pytest.raises(ValueError, match=r"`--cpus-per-batch` asks for 4, but no machine of Ray has more than 3 CPUs"):
        share.check([{"CPU": 3.0, "GPU": 1.0}, {"CPU": 3.0}])
    with pytest.raises(ValueError, match=r"`--gpus-per-batch` asks for 1, but no machine of Ray has more than 0 GPUs"):
        share.check([{"CPU": 4.0}])
    with pytest.raises(ValueError, match=r"no machine of Ray has 4 CPUs and 1 GPUs for a batch"):
        share.check([{"CPU": 4.0}, {"CPU": 2.0, "GPU": 1.0}])


def test_surroundings_are_those_of_the_process_that_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BELTRAMI_DATA", "graphs")
    monkeypatch.setenv("BELTRAMI_CACHE", "")
    share = Resources("batch", "cpu", cpus=2.5, gpus=0.0)
    assert share.surroundings() == WorkerEnvironment({"BELTRAMI_DATA": str(tmp_path / "graphs")}, threads=2)
    assert Resources("batch", "cpu", cpus=0.5, gpus=0.0).surroundings().threads == 1
    threads = torch.get_num_threads()
    try:
        share.surroundings().enter()
        assert torch.get_num_threads() == 2
        assert os.environ["BELTRAMI_DATA"] == str(tmp_path / "graphs")
    finally:
        torch.set_num_threads(threads)
