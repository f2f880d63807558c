"""Edges sorted on the disk are those sorted in memory, whatever the budget; failures leave nothing behind."""

import errno
import os
import signal
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch

from beltrami.data.graph_folder import GraphFolder, is_graph_folder
from beltrami.errors import DataError
from beltrami.external.edge_sort import new_graph_folder
from beltrami.external.record_sort import RecordSorter
from beltrami.graph import Edges
from beltrami.stencil import Symmetric


@pytest.mark.parametrize("memory", [1, 3000, 10**8], ids=lambda memory: f"{memory} bytes")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("nodes", [1, 7, 200])
def test_the_graph_is_that_of_the_stencil_symmetric(tmp_path: Path, nodes: int, weighted: bool, memory: int) -> None:
    """Repeated edges, in one direction or both, count once with the largest weight; self-loops are edges here."""
    random = np.random.default_rng(nodes)
    j, i = random.integers(nodes, size=(2, 600))
    weight = random.random(600).astype(np.float32) + 0.1 if weighted else None
    with new_graph_folder(tmp_path / "graph", num_nodes=nodes, weighted=weighted, memory=memory) as sorter:
        for part in np.split(np.arange(600), [1, 300, 300, 499]):
            sorter.add_both(j[part], i[part], None if weight is None else weight[part])
    folder = GraphFolder.open(tmp_path / "graph")
    folder.verify()
    given = None if weight is None else torch.from_numpy(weight)
    expected = Symmetric().rewire(Edges.build(torch.from_numpy(np.stack((j, i))), num_nodes=nodes, weight=given))
    assert torch.equal(folder.edges().edge_index, expected.edge_index)
    if expected.weight is not None:
        assert np.array_equal(folder.weight, expected.weight.numpy())  # type: ignore[arg-type]
    assert [path.name for path in tmp_path.iterdir()] == ["graph"]  # no temporary files are left


def test_directed_edges_are_those_of_build(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    keys = random.choice(50 * 50, 600, replace=False)
    j, i = keys // 50, keys % 50
    with new_graph_folder(tmp_path / "graph", num_nodes=50, memory=500) as sorter:
        sorter.add(j, i)
    expected = Edges.build(torch.from_numpy(np.stack((j, i))), num_nodes=50)
    assert torch.equal(GraphFolder.open(tmp_path / "graph").edges().edge_index, expected.edge_index)


def test_a_graph_without_edges_is_written(tmp_path: Path) -> None:
    with new_graph_folder(tmp_path / "graph", num_nodes=3, memory=100):
        pass
    assert GraphFolder.open(tmp_path / "graph").ptr.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("high", [1, 2**20, 2**64])
def test_records_come_back_sorted_with_their_values(tmp_path: Path, high: int) -> None:
    random = np.random.default_rng(1)
    key = random.integers(high, size=700, dtype=np.uint64, endpoint=False) if high < 2**64 else _wide(random)
    sorter = RecordSorter(tmp_path / "s", high=high, payload=[("place", np.int32)], memory=2000)
    sorter.add(key, place=np.arange(700, dtype=np.int32))
    blocks = list(sorter.blocks())
    records = np.concatenate(blocks)
    assert max(map(len, blocks)) <= sorter.limit < 700
    assert np.array_equal(records["key"], np.sort(key))
    assert np.array_equal(np.sort(records["place"]), np.arange(700))
    assert np.array_equal(key[records["place"]], records["key"])
    assert not list((tmp_path / "s").iterdir())


def _wide(random: np.random.Generator) -> np.ndarray:
    return random.integers(2**64 - 1, size=700, dtype=np.uint64, endpoint=True)


def test_nodes_outside_the_graph_and_missing_weights_are_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(ValueError, match="`i` must hold node numbers from 0 to 3"),
        new_graph_folder(tmp_path / "graph", num_nodes=4, memory=100) as sorter,
    ):
        sorter.add(np.array([1]), np.array([4]))
    with (
        pytest.raises(ValueError, match="`weight` must be given for a weighted graph"),
        new_graph_folder(tmp_path / "graph", num_nodes=4, weighted=True, memory=100) as sorter,
    ):
        sorter.add(np.array([1]), np.array([2]))
    assert not is_graph_folder(tmp_path / "graph")


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("mine")
    with pytest.raises(DataError, match="is not empty"), new_graph_folder(tmp_path, num_nodes=4, memory=100):
        pass


def test_a_full_disk_is_one_sentence_and_leaves_no_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int, offset: int, length: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with (
        pytest.raises(OSError, match=r"cannot be written to .*No space left on device\): make room"),
        new_graph_folder(tmp_path / "graph", num_nodes=4, memory=100) as sorter,
    ):
        sorter.add(np.array([1]), np.array([2]))
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_while_sorting_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sorter = RecordSorter(tmp_path / "s", high=1, memory=1000)
    monkeypatch.setattr(sorter, "_path", lambda bucket: Path("/dev/full"))
    with pytest.raises(OSError, match=r"is full \(No space left on device\): make room"):
        sorter.add(np.zeros(3, np.uint64))


KILLED = """
import sys, time
import numpy as np
from pathlib import Path
from beltrami.external.edge_sort import new_graph_folder
with new_graph_folder(Path(sys.argv[1]), num_nodes=4, memory=100) as sorter:
    sorter.add(np.array([1]), np.array([2]))
    print("added", flush=True)
    time.sleep(60)
"""


@pytest.mark.slow
def test_a_killed_conversion_leaves_no_graph(tmp_path: Path) -> None:
    arguments = [sys.executable, "-c", KILLED, str(tmp_path / "graph")]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "added\n"
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not (tmp_path / "graph").exists()


@pytest.mark.slow
def test_full_buckets_are_sorted_and_written_within_the_budget(tmp_path: Path) -> None:
    """Half of the buckets have just fewer records than may be in memory. The smaller of two peaks is taken, since the
    interpreter may enlarge its table of interned strings, by megabytes, in one of them."""
    random, n, memory, peaks = np.random.default_rng(0), 100_000, 2**22, list[int]()
    limit = RecordSorter(tmp_path / "records", high=n**2, memory=memory).limit
    for name in ("first", "second"):
        with new_graph_folder(tmp_path / name, num_nodes=n, memory=memory) as sorter:
            for _ in range(32):
                sorter.add_both(*random.integers(n, size=(2, limit)))
            tracemalloc.start()
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert min(peaks) < memory
