"""Diffused columns are those of the matrix exponential, for blocks of every size, with a valid error bound."""

import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from streamed_toys import NODES, hub_graph, random_features, write_folder
from torch import Tensor

from beltrami import diffuse_columns
from beltrami.errors import DataError
from beltrami.graph import Edges
from beltrami.scale import diffuse

TIMES = (0.5, 4.0)


def transition(edges: Edges, loops: float) -> Tensor:
    """Return the random walk's matrix, with a one for each node without edges."""
    edges = edges.with_loops(loops) if loops else edges
    weight = torch.ones(edges.num_edges) if edges.weight is None else edges.weight
    dense = torch.zeros(NODES, NODES, dtype=torch.float64).index_put_(
        (edges.i, edges.j), weight.double(), accumulate=True
    )
    total = dense.sum(1, keepdim=True)
    return torch.where(total > 0, dense / total.clamp(min=1e-300), torch.eye(NODES, dtype=torch.float64))


def check(edges: Edges, x: Tensor, folder: Path, *, loops: float, memory: int | None, rtol: float) -> float:
    """Compare with the matrix exponential; return the bound."""
    out = [folder / f"{t}.npy" for t in TIMES]
    bound: float = diffuse_columns(edges, x.numpy(), times=TIMES, out=out, rtol=rtol, memory=memory, loops=loops)
    assert bound <= rtol
    generator = transition(edges, loops) - torch.eye(NODES, dtype=torch.float64)
    for t, path in zip(TIMES, out, strict=True):
        error = torch.from_numpy(np.load(path)).double() - torch.matrix_exp(t * generator) @ x.double()
        relative = error.abs().amax(0) / x.double().abs().amax(0)
        assert float(relative.max()) <= bound + 100 * torch.finfo(x.dtype).eps
    return bound


@pytest.mark.parametrize("memory", [None, 40_000, 18_000, 13_000])
@pytest.mark.parametrize("loops", [0.0, 1.0])
def test_columns_are_those_of_the_matrix_exponential(tmp_path: Path, loops: float, memory: int | None) -> None:
    check(hub_graph(), random_features().double(), tmp_path, loops=loops, memory=memory, rtol=1e-9)


@pytest.mark.parametrize("rtol", [1e-2, 1e-4])
def test_the_error_is_within_the_bound(tmp_path: Path, rtol: float) -> None:
    assert check(hub_graph(), random_features(), tmp_path, loops=1.0, memory=None, rtol=rtol) > rtol / 1e4


def test_directed_and_weighted_graphs(tmp_path: Path) -> None:
    edges = hub_graph()
    kept = torch.arange(edges.num_edges) % 3 > 0
    weight = 0.1 + torch.rand(int(kept.sum()), generator=torch.Generator().manual_seed(2))
    directed = Edges.build(edges.edge_index[:, kept], num_nodes=NODES, weight=weight)
    for loops in (0.0, 2.0):
        check(directed, random_features().double(), tmp_path, loops=loops, memory=15_000, rtol=1e-9)


def test_growing_vectors_are_replaced_by_powers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cycle = torch.stack((torch.arange(NODES), (torch.arange(NODES) + 1) % NODES))  # a spectrum far from the real line
    edges, tried, found = Edges.build(cycle, num_nodes=NODES), list[str](), diffuse._sum

    def noted(*given: Any) -> Any:
        tried.append(type(given[2]).__name__)
        return found(*given)

    monkeypatch.setattr(diffuse, "_sum", noted)
    check(edges, random_features().double(), tmp_path, loops=0.0, memory=None, rtol=1e-9)
    assert tried == ["Chebyshev", "Taylor"]


def test_results_of_a_block_are_gone_before_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    computed, alive = diffuse.exponential, list[weakref.ref[Tensor]]()

    def watched(*given: Any, **options: Any) -> tuple[list[Tensor], float]:
        assert [tensor for tensor in (reference() for reference in alive) if tensor is not None] == []
        ys, bound = computed(*given, **options)
        alive.extend(map(weakref.ref, ys))
        return ys, bound

    monkeypatch.setattr(diffuse, "exponential", watched)
    monkeypatch.setattr(diffuse, "column_ranges", lambda columns, size: [slice(k, k + 1) for k in range(columns)])
    out = [tmp_path / "a.npy", tmp_path / "b.npy"]
    diffuse_columns(hub_graph(), random_features().numpy()[:, :3], times=[1.0, 2.0], out=out, rtol=1e-6)
    assert len(alive) == 6


def test_a_folder_gives_the_bits_of_the_graph(tmp_path: Path) -> None:
    edges, x = hub_graph(), random_features()
    folder = write_folder(tmp_path / "graph", edges, x=x)
    assert folder.x is not None
    for name, graph, memory in (("a", folder, 13_000), ("b", edges, None)):
        diffuse_columns(graph, folder.x, times=[2.0], out=[tmp_path / f"{name}.npy"], rtol=1e-5, memory=memory)
    assert np.array_equal(np.load(tmp_path / "a.npy"), np.load(tmp_path / "b.npy"))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"times": [2.0, 1.0]}, "`times` must increase"),
        ({"times": []}, "there must be one"),
        ({"out": []}, "`out` must name a file for each of 1 times"),
        ({"out": [Path("x.csv")]}, "`out` must name npy files"),
        ({"x": np.zeros((3, 2))}, "for 18 nodes"),
        ({"x": np.zeros((NODES, 0))}, "for 18 nodes"),
    ],
)
def test_bad_arguments_are_refused(changed: dict[str, Any], message: str, tmp_path: Path) -> None:
    given = {"x": random_features().numpy(), "times": [1.0], "out": [tmp_path / "x.npy"], "rtol": 1e-3, **changed}
    with pytest.raises(ValueError, match=message):
        diffuse_columns(hub_graph(), given.pop("x"), **given)


def test_values_that_are_not_finite_and_too_little_memory_leave_no_file(tmp_path: Path) -> None:
    x = random_features().numpy()
    with pytest.raises(DataError, match="one column of 18 nodes needs about"):
        diffuse_columns(hub_graph(), x, times=[1.0], out=[tmp_path / "x.npy"], rtol=1e-3, memory=2_000)
    x[3, 2] = np.nan
    with pytest.raises(DataError, match="NaN or infinite"):
        diffuse_columns(hub_graph(), x, times=[1.0], out=[tmp_path / "x.npy"], rtol=1e-3)
    assert list(tmp_path.iterdir()) == []
