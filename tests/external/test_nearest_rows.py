"""Nearest rows in bounded memory against all distances."""

from pathlib import Path

import numpy as np
import pytest
import torch
from external_folders import folder_of

from beltrami.data.array_file import open_array
from beltrami.data.graph_folder import GraphFolder
from beltrami.errors import DataError
from beltrami.external import nearest_rows
from beltrami.external.nearest_rows import write_nearest_rows
from beltrami.external.rewired_graph import write_nearest_graph
from beltrami.graph import Edges
from beltrami.stencil import KNN, Chain, Symmetric

ROWS, K = 1500, 6


def clustered(rows: int = ROWS, *, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    centres = random.standard_normal((20, 8))
    return (centres[random.integers(20, size=rows)] + 0.2 * random.standard_normal((rows, 8))).astype(np.float32)


def exact(points: np.ndarray) -> np.ndarray:
    """The K nearest other rows by all distances in double precision."""
    difference = points[:, None].astype(np.float64) - points[None]
    distance = (difference**2).sum(-1)
    np.fill_diagonal(distance, np.inf)
    return np.asarray(distance.argsort(1, kind="stable")[:, :K])


def saved(points: np.ndarray, folder: Path) -> np.ndarray:
    np.save(folder / "points.npy", points)
    return open_array(folder / "points.npy")


def without_faiss(name: str) -> None:
    raise ImportError(name)


@pytest.mark.slow
def test_clustered_rows_find_nearly_all_neighbours(tmp_path: Path) -> None:
    pytest.importorskip("faiss")
    points = clustered()
    found = write_nearest_rows(saved(points, tmp_path), tmp_path / "out", k=K, memory=10**6)
    right = exact(points)
    recall = np.mean([len({*a} & {*b}) / K for a, b in zip(found.tolist(), right.tolist(), strict=True)])
    assert recall >= 0.95
    assert bool((found != np.arange(ROWS)[:, None]).all())
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["knn-index.npy"]


@pytest.mark.parametrize("memory", [15_000, 10**8])
def test_a_search_of_all_lists_is_exact(tmp_path: Path, memory: int) -> None:
    """With a small budget the rows of all lists are compared in many groups."""
    pytest.importorskip("faiss")
    points = clustered(600)
    found = write_nearest_rows(saved(points, tmp_path), tmp_path, k=K, memory=memory, probe=10**6)
    assert np.array_equal(found, exact(points))


def test_equal_rows_have_k_other_neighbours(tmp_path: Path) -> None:
    pytest.importorskip("faiss")
    points = np.repeat(clustered(100), 10, axis=0)
    found = write_nearest_rows(saved(points, tmp_path), tmp_path, k=12, memory=10**6)
    assert all(len({*row} - {k}) == 12 for k, row in enumerate(found.tolist()))
    assert all({*range(k // 10 * 10, k // 10 * 10 + 10)} - {k} == {*row[:9]} for k, row in enumerate(found.tolist()))


def test_few_rows_are_searched_without_faiss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest_rows, "import_module", without_faiss)
    points = clustered(300)
    assert np.array_equal(write_nearest_rows(points, tmp_path, k=K, memory=1), exact(points))
    monkeypatch.setattr(nearest_rows, "EXACT", 299)
    with pytest.raises(DataError, match=r"the nearest of 300 rows need faiss: install `beltrami\[approximate\]`"):
        write_nearest_rows(points, tmp_path, k=K, memory=1)


def test_the_graph_is_that_of_the_stencil(tmp_path: Path) -> None:
    points = torch.from_numpy(clustered(200))
    empty = Edges.build(torch.empty(2, 0, dtype=torch.int64), num_nodes=200)
    folder = folder_of(empty, tmp_path / "graph", x=points)
    for symmetric, stencil in ((False, KNN(K)), (True, Chain(KNN(K), Symmetric()))):
        out = tmp_path / str(symmetric)
        assert folder.x is not None
        settings = {"symmetric": symmetric, "memory": 10**6, "probe": 100}
        found: GraphFolder = write_nearest_graph(folder, folder.x, out, k=K, **settings)  # type: ignore[arg-type]
        assert torch.equal(found.edges().edge_index, stencil(points, empty).edge_index)


def test_bad_input_is_refused(tmp_path: Path) -> None:
    points = clustered(300)
    with pytest.raises(ValueError, match="`k` must be at least 1 and below the number of rows; got k=300"):
        write_nearest_rows(points, tmp_path, k=300, memory=10**6)
    with pytest.raises(ValueError, match="`probe` must be at least 1"):
        write_nearest_rows(points, tmp_path, k=3, memory=10**6, probe=0)
    pytest.importorskip("faiss")
    with pytest.raises(DataError, match=r"need 7.03 KiB of memory, and 100 bytes are allowed"):
        write_nearest_rows(points, tmp_path, k=3, memory=100)
    points[17, 2] = np.nan
    with pytest.raises(DataError, match="row 17 of the vectors has a value that is NaN or infinite"):
        write_nearest_rows(points, tmp_path, k=3, memory=10**6)
    assert not list(tmp_path.iterdir())
