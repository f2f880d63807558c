"""Rows of PageRank of a graph folder are those of push in memory; graphs made of rows are those of the stencils."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from external_folders import folder_of
from torch import Tensor

from beltrami.data.graph_folder import GraphFolder
from beltrami.data.synthetic import power_law
from beltrami.errors import DataError
from beltrami.external import pagerank_rows
from beltrami.external.pagerank_rows import check_symmetric, weighted_degrees, write_pagerank_rows
from beltrami.external.rewired_graph import write_diffusion_graph, write_rewired
from beltrami.graph import Edges
from beltrami.graph.pagerank.push import Walk
from beltrami.stencil import Chain, Symmetric, TopK

push_numba = pytest.importorskip("beltrami.graph.pagerank.push_numba")

NODES, RESTART, TOLERANCE = 300, 0.15, 1e-3


def graph(*, weighted: bool) -> Edges:
    data = power_law(NODES, 900, seed=0)
    weight = None
    if weighted:
        low, high = data.edge_index.amin(0), data.edge_index.amax(0)
        weight = 0.2 + ((low * 37 + high * 101) % 50).float() / 25
    return Edges.build(data.edge_index, num_nodes=NODES, weight=weight)


def dense_push(edges: Edges) -> tuple[Tensor, Tensor, Tensor]:
    """Return P of push in memory, its residual R by its definition, and the exact kernel K."""
    walk = Walk.on(edges, restart=RESTART, tolerance=TOLERANCE)
    count, column, value = push_numba.push(walk, 0, NODES)
    p = torch.zeros(NODES, NODES, dtype=torch.float64)
    p[torch.arange(NODES).repeat_interleave(count), column.long()] = value.double()
    s = torch.zeros_like(p).index_put_((edges.i, edges.j), walk.step.double(), accumulate=True)
    eye = torch.eye(NODES, dtype=torch.float64)
    return p, eye - p @ (eye - s) / RESTART, RESTART * torch.linalg.inv(eye - s)


@pytest.mark.parametrize("loops", [0.0, 1.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_are_those_of_push_in_memory(
    tmp_path: Path, weighted: bool, loops: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pagerank_rows, "ROWS", 100)
    edges = graph(weighted=weighted)
    p, r, k = dense_push(edges.with_loops(loops) if loops else edges)
    folder = folder_of(edges, tmp_path / "graph")
    settings: dict[str, Any] = {"restart": RESTART, "tolerance": TOLERANCE, "loops": loops}
    rows = write_pagerank_rows(folder, tmp_path / "rows", top=12, memory=20_000, **settings)
    estimate = p + RESTART * r
    expected = torch.where(estimate.abs() < 1e-9, 0.0, estimate).topk(12).values
    np.testing.assert_allclose(rows.value, expected.numpy(), atol=2e-7)
    found, value = (torch.from_numpy(np.array(each)) for each in (rows.index, rows.value))
    node, there = found.long().clamp(min=0), found >= 0
    assert torch.equal(there, value > 0)
    torch.testing.assert_close(estimate.gather(1, node)[there], expected[there], atol=2e-7, rtol=0)
    below = (k.gather(1, node) - value)[there]
    degree = torch.from_numpy(weighted_degrees(folder, memory=1000)) + loops
    assert float(below.min()) > -1e-6  # entries are lower bounds, within epsilon times the root of the degree
    assert bool((below <= TOLERANCE * degree.sqrt()[node][there] + 1e-6).all())
    assert rows.reached > 12
    assert sorted(path.name for path in (tmp_path / "rows").iterdir()) == ["ppr-index.npy", "ppr-value.npy"]


def test_short_rows_are_padded_and_hubs_enlarge_the_table(tmp_path: Path) -> None:
    """A hub of 1,500 leaves, more than the first hash table holds, a pair, and a node without edges."""
    leaves = torch.arange(1, 1501)
    one_way = torch.cat((torch.stack((torch.zeros_like(leaves), leaves)), torch.tensor([[1501], [1502]])), dim=1)
    edges = Edges.build(torch.cat((one_way, one_way.flip(0)), dim=1), num_nodes=1504)
    folder = folder_of(edges, tmp_path / "graph")
    rows = write_pagerank_rows(folder, tmp_path, restart=0.5, tolerance=1e-5, top=4, memory=10**6)
    assert rows.index[1501].tolist() == [1501, 1502, -1, -1]
    assert rows.value[1501].tolist() == pytest.approx([2 / 3, 1 / 3, 0, 0], abs=1e-5)  # rho = 1/2 on an edge
    assert rows.index[1503].tolist() == [1503, -1, -1, -1]
    assert rows.value[1503].tolist() == [0.5, 0, 0, 0]
    assert rows.index[0].tolist() == [0, 1, 2, 3]  # of equal entries those of the lowest nodes
    # K of a star: the hub's diagonal entry is rho / (1 - (1 - rho)^2), a leaf's share of it falls by its root.
    assert rows.value[0, 0] == pytest.approx(2 / 3, abs=1e-4)
    assert rows.value[0, 1] == pytest.approx(1 / 3 / 1500**0.5, abs=1e-5)


@pytest.mark.slow
def test_the_diffusion_graph_is_that_of_digl(tmp_path: Path) -> None:
    """With a small tolerance push finds the entries of the exact kernel, which DIGL takes below 4,096 nodes."""
    edges = graph(weighted=False)
    x, y = torch.randn(NODES, 3), torch.arange(NODES)
    folder = folder_of(edges, tmp_path / "graph", x=x, y=y)
    settings: dict[str, Any] = {"restart": RESTART, "tolerance": 1e-6}
    found = write_diffusion_graph(folder, tmp_path / "digl", k=8, **settings, memory=10**5)
    expected = Chain(TopK(8, restart=RESTART), Symmetric())(x, edges)
    dense = [torch.zeros(NODES, NODES).index_put_((e.i, e.j), e.weight) for e in (found.edges(), expected)]  # type: ignore[arg-type]
    differ = (dense[0] > 0) != (dense[1] > 0)
    assert int(differ.sum()) <= 0.002 * expected.num_edges  # ties of the kernel at the eighth place
    torch.testing.assert_close(dense[0][~differ], dense[1][~differ], atol=5e-5, rtol=0)
    assert torch.equal(dense[0], dense[0].T)
    assert np.array_equal(found.x, x.numpy())  # type: ignore[arg-type]
    assert np.array_equal(found.y, y.numpy())  # type: ignore[arg-type]
    assert (
        write_diffusion_graph(folder, tmp_path / "bare", k=8, **settings, weighted=False, memory=10**5).weight is None
    )


def test_rows_of_neighbours_become_edges_to_their_row(tmp_path: Path) -> None:
    folder = folder_of(graph(weighted=False), tmp_path / "graph")
    index = np.full((NODES, 2), -1, np.int32)
    index[3] = (5, 1)
    value = np.zeros((NODES, 2), np.float32)
    value[3] = (0.5, 0.25)
    one_way = write_rewired(folder, tmp_path / "one", index, value, symmetric=False, memory=1000).edges()
    assert one_way.edge_index.tolist() == [[1, 5], [3, 3]]
    assert one_way.weight is not None
    assert one_way.weight.tolist() == [0.25, 0.5]
    both = write_rewired(folder, tmp_path / "both", index, None, symmetric=True, memory=1000).edges()
    assert both.edge_index.tolist() == [[3, 1, 5, 3], [1, 3, 3, 5]]


@pytest.mark.parametrize("weighted", [False, True])
def test_a_directed_graph_is_refused(tmp_path: Path, weighted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pagerank_rows, "CHECKED", 50)
    edges = graph(weighted=weighted)
    check_symmetric(folder_of(edges, tmp_path / "undirected"), needed_by="push")
    if edges.weight is None:
        directed = Edges.build(edges.edge_index[:, 1:], num_nodes=NODES)
    else:
        directed = Edges.build(edges.edge_index, num_nodes=NODES, weight=edges.weight.index_fill(0, torch.tensor(0), 9))
    folder = folder_of(directed, tmp_path / "directed")
    with pytest.raises(DataError, match="is directed, and personalised PageRank by push needs both"):
        write_pagerank_rows(folder, tmp_path, restart=0.1, tolerance=1e-3, top=4, memory=1000)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("weight", np.full(NODES, -1, np.float32), "edge 0 has -1.0; it must be positive and finite"),
        ("weight", np.full(NODES, np.nan, np.float32), "edge 0 has nan; it must be positive and finite"),
        ("index", np.full(NODES, NODES, np.int32), f"edge 0 comes from node {NODES}"),
    ],
)
def test_edges_with_invalid_values_are_refused(tmp_path: Path, name: str, values: np.ndarray, message: str) -> None:
    ring = torch.stack((torch.arange(NODES), torch.arange(NODES).roll(1)))
    path = folder_of(Edges.build(ring, num_nodes=NODES), tmp_path / "graph").path
    np.save(path / f"{name}.npy", values)
    with pytest.raises(DataError, match=message):
        write_pagerank_rows(GraphFolder.open(path), tmp_path, restart=0.1, tolerance=1e-3, top=4, memory=1000)
    assert not list(tmp_path.glob("*.npy"))


def test_bad_settings_are_refused(tmp_path: Path) -> None:
    folder: GraphFolder = folder_of(graph(weighted=False), tmp_path / "graph")
    for settings, message in (
        ({"restart": 0.0, "tolerance": 1e-3, "top": 4}, "`restart` must lie between 0 and 1"),
        ({"restart": 0.1, "tolerance": 0.0, "top": 4}, "`tolerance` must be positive"),
        ({"restart": 0.1, "tolerance": 1e-3, "top": 0}, "`top` must be positive"),
    ):
        with pytest.raises(ValueError, match=message):
            write_pagerank_rows(folder, tmp_path, memory=1000, **settings)  # type: ignore[arg-type]
