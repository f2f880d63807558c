"""Resources fit as often as machines have room for them, and a cluster that is missing is an error at once."""

import os
import socket

import pytest
from counting_worker import CountingWorker

from beltrami.cli.study_run import ray_executor
from beltrami.errors import DataError
from beltrami.lab.ray_cluster import QUIET, Ray, Resources

NOTHING: dict[str, float] = {}
HALF = Resources("batch", "cuda", cpus=2.0, gpus=0.5)


@pytest.mark.parametrize(
    ("cpus", "gpus", "machine", "jobs"),
    [
        (1.0, 0.0, {"CPU": 4.0}, 4),
        (3.0, 0.0, {"CPU": 4.0, "GPU": 8.0}, 1),
        (0.1, 0.0, {"CPU": 0.3}, 3),  # where 0.3 / 0.1 < 3
        (8.0, 0.0, {"CPU": 4.0}, 0),
        (1.0, 0.25, {"CPU": 16.0, "GPU": 2.0}, 8),
        (1.0, 0.6, {"CPU": 16.0, "GPU": 2.0}, 2),  # not three: a job's share is of one GPU
        (4.0, 0.25, {"CPU": 16.0, "GPU": 2.0}, 4),
        (1.0, 2.0, {"CPU": 16.0, "GPU": 5.0}, 2),
        (1.0, 0.5, {"CPU": 16.0}, 0),
        (1.0, 0.0, NOTHING, 0),
    ],
)
def test_jobs_fit_on_a_machine_as_often_as_there_is_room(
    cpus: float, gpus: float, machine: dict[str, float], jobs: int
) -> None:
    assert Resources("batch", "cuda" if gpus else "cpu", cpus, gpus).jobs_on(machine) == jobs


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_defaults_are_one_core_and_one_gpu() -> None:
    pytest.importorskip("ray")
    for device, cpus, gpus, expected in (
        ("cpu", None, None, (1.0, 0.0)),
        ("cuda", None, None, (1.0, 1.0)),
        ("cuda", 0.5, 0.2, (0.5, 0.2)),
    ):
        executor = ray_executor("tune", CountingWorker(), "trial", device, cpus=cpus, gpus=gpus, address="auto")
        assert isinstance(executor, Ray)
        assert executor.resources == Resources("trial", device, *expected)


@pytest.mark.parametrize(
    ("device", "cpus", "gpus", "match"),
    [
        ("cuda:1", 1.0, 1.0, r"`--device` of a batch is cpu or cuda, and Ray chooses which GPU; got 'cuda:1'"),
        ("cpu", 0.0, 0.0, r"a batch needs `--cpus-per-batch` above 0"),
        ("cuda", 1.0, -1.0, r"`--gpus-per-batch` of at least 0; got 1, -1"),
        ("cpu", 1.0, 0.5, r"`--gpus-per-batch 0.5` and `--device cpu` contradict each other"),
        ("cuda", 1.0, 0.0, r"`--gpus-per-batch 0` and `--device cuda` contradict each other"),
    ],
)
def test_contradictory_resources_are_refused(device: str, cpus: float, gpus: float, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        Resources("batch", device, cpus, gpus)


def test_resources_that_no_machine_has_are_refused() -> None:
    resources = Resources("batch", "cuda", cpus=4.0, gpus=1.0)
    resources.check([{"CPU": 1.0}, {"CPU": 4.0, "GPU": 1.0}])
    with pytest.raises(ValueError, match=r"1 GPUs for a batch \(but 3 and 0, 3 and 1\): lower `--cpus"):
        resources.check([{"CPU": 3.0, "GPU": 1.0}, {"CPU": 3.0}])
    for machines in ([{"CPU": 4.0}], [{"CPU": 4.0}, {"CPU": 2.0, "GPU": 1.0}]):
        with pytest.raises(ValueError, match=r"no machine of Ray has 4 CPUs and 1 GPUs for a batch"):
            resources.check(machines)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_a_cluster_that_does_not_answer_is_an_error_at_once() -> None:
    pytest.importorskip("ray")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with (
            pytest.raises(DataError, match=rf"no Ray cluster answers at '{address}' .*: check `--address`"),
            Ray(CountingWorker(), HALF, address=address),
        ):
            raise AssertionError("it was entered")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_capacity_is_counted_by_machine_and_nothing_is_left_behind(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ray = pytest.importorskip("ray")
    machines = [(True, {"CPU": 3.0, "GPU": 1.0}), (True, {"CPU": 8.0, "GPU": 1.0}), (False, {"CPU": 8.0, "GPU": 8.0})]
    nodes = [{"Alive": alive, "Resources": machine} for alive, machine in machines]
    ended: list[bool] = []
    folders: list[str] = []
    monkeypatch.setattr("beltrami.lab.ray_cluster._connect", lambda address, folder: folders.append(folder))
    monkeypatch.setattr(ray, "nodes", lambda: nodes)
    monkeypatch.setattr(ray, "shutdown", lambda: ended.append(True))
    with Ray(CountingWorker(), HALF) as cluster:
        assert os.path.isdir(folders[0])
        assert cluster.capacity() == 1 + 2
        nodes.append(nodes[0])  # one more machine has joined
        assert cluster.capacity() == 1 + 2 + 1
        print("a process died")  # as Ray prints it
    assert not os.path.exists(folders[0])
    assert ended == [True]
    print("a table")
    assert capsys.readouterr() == ("a table\n", "a process died\n")
    with (
        pytest.raises(ValueError, match=r"no machine of Ray has 1 CPUs and 2 GPUs for a batch"),
        Ray(CountingWorker(), Resources("batch", "cuda", cpus=1.0, gpus=2.0)),
    ):
        raise AssertionError("it was entered")
    assert ended == [True] * 2


def test_ray_sends_no_usage_statistics() -> None:
    assert QUIET["RAY_USAGE_STATS_ENABLED"] == "0"
