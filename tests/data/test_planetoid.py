"""Planetoid's files are read as published, and no code in their pickles runs."""

import hashlib
import pickle
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from beltrami.data import load
from beltrami.data.planetoid import read_planetoid
from beltrami.errors import DataError

CLASSES = np.eye(2, dtype=np.int32)


class Trap:
    """An object whose pickle creates a file when it is opened."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return open, (str(self.path), "w")


def old_pickle(value: object) -> bytes:
    """Return a pickle with the module names of Python 2."""
    data = pickle.dumps(value, protocol=3)
    for now, then in ((b"scipy.sparse._csr", b"scipy.sparse.csr"), (b"numpy._core", b"numpy.core")):
        data = data.replace(now, then)
    return data


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four nodes of ``allx``, of which two train; three test nodes at 6, 4 and 7; index 5 is missing."""
    graph = defaultdict(list, {0: [1, 1, 0], 1: [2], 6: [0, 4], 7: [3]})
    parts = {
        "y": CLASSES[[0, 1]],
        "ally": CLASSES[[0, 1, 1, 0]],
        "ty": CLASSES[[1, 0, 1]],
        "allx": csr_matrix(np.array([[1, 0], [0, 2], [3, 0], [0, 4]], dtype=np.float32)),
        "tx": csr_matrix(np.array([[6, 6], [0, 5], [7, 0]], dtype=np.float32)),
        "graph": graph,
    }
    for part, value in parts.items():
        (tmp_path / f"ind.cora.{part}").write_bytes(old_pickle(value))
    (tmp_path / "ind.cora.test.index").write_text("6\n4\n7\n")
    return tmp_path


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def test_planetoid_nodes_are_in_the_published_order(folder: Path) -> None:
    data = read_planetoid(folder, name="cora", digests=digests(folder))
    assert data.x.tolist() == [[1, 0], [0, 2], [3, 0], [0, 4], [0, 5], [0, 0], [6, 6], [7, 0]]
    assert data.y.tolist() == [0, 1, 1, 0, 0, 0, 1, 1]
    once = [(int(j), int(i)) for j, i in data.edge_index.T if j < i]
    assert once == [(0, 1), (0, 6), (1, 2), (3, 7), (4, 6)]
    assert data.published is not None
    assert data.published.train.nonzero().ravel().tolist() == [0, 1]
    assert data.published.val.nonzero().ravel().tolist() == [2, 3]
    assert data.published.test.nonzero().ravel().tolist() == [4, 6, 7]


def test_altered_file_is_refused_before_it_is_opened(folder: Path, tmp_path: Path) -> None:
    known = digests(folder)
    (folder / "ind.cora.graph").write_bytes(pickle.dumps(Trap(tmp_path / "opened"), protocol=2))
    with pytest.raises(DataError, match=r"ind\.cora\.graph is corrupt or not the published file.*delete it"):
        read_planetoid(folder, name="cora", digests=known)
    assert not (tmp_path / "opened").exists()


def test_pickled_code_never_runs_even_under_a_known_digest(folder: Path, tmp_path: Path) -> None:
    (folder / "ind.cora.graph").write_bytes(pickle.dumps(Trap(tmp_path / "opened"), protocol=2))
    with pytest.raises(DataError, match=r"is corrupt or not the published file.*needs .*open"):
        read_planetoid(folder, name="cora", digests=digests(folder))
    assert not (tmp_path / "opened").exists()


def test_load_refuses_altered_files(empty_house: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = tmp_path / "Cora" / "raw"
    raw.mkdir(parents=True)
    for part in ("y", "tx", "ty", "allx", "ally", "graph", "test.index"):
        (raw / f"ind.cora.{part}").write_bytes(pickle.dumps(Trap(tmp_path / "opened"), protocol=2))
    monkeypatch.setenv("BELTRAMI_DATA", str(tmp_path))
    with pytest.raises(DataError, match="point BELTRAMI_DATA at a folder"):
        load("cora")
    assert not (tmp_path / "opened").exists()


def test_truncated_and_missing_files_are_refused(folder: Path) -> None:
    graph = folder / "ind.cora.graph"
    whole, known = graph.read_bytes(), digests(folder)
    graph.write_bytes(whole[:-5])
    with pytest.raises(DataError, match=f"{len(whole) - 5} bytes"):
        read_planetoid(folder, name="cora", digests=known)
    with pytest.raises(DataError, match=r"ind\.cora\.\* is corrupt"):
        read_planetoid(folder, name="cora", digests=digests(folder))
    graph.unlink()
    with pytest.raises(DataError, match=r"ind\.cora\.graph cannot be read"):
        read_planetoid(folder, name="cora", digests=known)


def test_inconsistent_files_are_refused(folder: Path) -> None:
    (folder / "ind.cora.test.index").write_text("6\n4\n")
    with pytest.raises(DataError, match=r"ind\.cora\.\* is corrupt"):
        read_planetoid(folder, name="cora", digests=digests(folder))


def test_test_nodes_far_beyond_the_others_are_refused_before_memory_is_allocated(folder: Path) -> None:
    (folder / "ind.cora.test.index").write_text("6\n4\n99999999999\n")
    with pytest.raises(DataError, match=r"names node 99999999999, and there are 7 nodes"):
        read_planetoid(folder, name="cora", digests=digests(folder))


def test_a_list_that_is_named_many_times_does_not_multiply_the_edges(folder: Path) -> None:
    shared = list(range(2000))
    (folder / "ind.cora.graph").write_bytes(pickle.dumps(dict.fromkeys(range(2000), shared), protocol=2))
    with pytest.raises(DataError, match=r"graph has lists of something else than its nodes"):
        read_planetoid(folder, name="cora", digests=digests(folder))


@pytest.mark.parametrize("graph", [{0: ["1"]}, {0: (1,)}, {"0": [1]}, [1], {0: [1, 2**70]}], ids=repr)
def test_a_graph_of_other_types_is_refused(folder: Path, graph: object) -> None:
    (folder / "ind.cora.graph").write_bytes(pickle.dumps(graph, protocol=2))
    with pytest.raises(DataError, match=r"ind\.cora\.\* is corrupt"):
        read_planetoid(folder, name="cora", digests=digests(folder))


def test_entries_outside_of_a_sparse_matrix_are_refused(folder: Path) -> None:
    matrix = csr_matrix(np.array([[6, 6], [0, 5], [7, 0]], dtype=np.float32))
    matrix.indices[0] = 10**6
    (folder / "ind.cora.tx").write_bytes(old_pickle(matrix))
    with pytest.raises(DataError, match=r"ind\.cora\.\* is corrupt"):
        read_planetoid(folder, name="cora", digests=digests(folder))
