"""A cluster is started, joined or missed, and leaves nothing behind; here without starting Ray."""

import socket
from pathlib import Path
from typing import Any

import pytest

from beltrami.errors import DataError
from beltrami.lab.resources import Resources

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")]
SHARE = Resources("batch", "cuda", cpus=2.0, gpus=0.5)


@pytest.fixture
def module() -> Any:
    pytest.importorskip("ray")
    from beltrami.lab import ray_cluster as cluster

    return cluster


def test_a_cluster_that_is_not_there_is_missed_at_once(module: Any) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with (
            pytest.raises(DataError, match=rf"no Ray cluster answers at '{address}' .*: check `--address`"),
            module.Cluster(SHARE, address=address),
        ):
            raise AssertionError("there is nothing to enter")


def test_room_is_counted_machine_by_machine(
    module: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    machines = [(True, {"CPU": 3.0, "GPU": 1.0}), (True, {"CPU": 8.0, "GPU": 1.0}), (False, {"CPU": 8.0, "GPU": 8.0})]
    nodes = [{"Alive": alive, "Resources": held} for alive, held in machines]
    ended: list[bool] = []
    monkeypatch.setattr(module.Cluster, "_start", lambda self: None)
    monkeypatch.setattr(module.ray, "nodes", lambda: nodes)
    monkeypatch.setattr(module.ray, "shutdown", lambda: ended.append(True))
    with module.Cluster(SHARE) as cluster:
        folder: Path = cluster.folder
        assert folder.is_dir()
        assert cluster.room() == 1 + 2
        nodes.append(nodes[0])  # one more has joined
        assert cluster.room() == 1 + 2 + 1
        print("a process died")  # as Ray tells it
    assert not folder.exists()
    assert ended == [True]
    print("a table")
    assert capsys.readouterr() == ("a table\n", "a process died\n")
    with (
        pytest.raises(ValueError, match=r"`--gpus-per-batch` asks for 2, but no machine of Ray has more than 1 GPUs"),
        module.Cluster(Resources("batch", "cuda", cpus=1.0, gpus=2.0)),
    ):
        raise AssertionError("there is nothing to enter")
    assert ended == [True] * 2


def test_what_is_told_to_nobody_stays_so(module: Any) -> None:
    assert module.QUIET["RAY_USAGE_STATS_ENABLED"] == "0"
