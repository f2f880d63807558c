"""Tables as graphs: nearest rows, relative weights, and new rows beside those of the training."""

from typing import Any

import numpy as np
import pytest
import torch

from beltrami.data.graph_table import GraphTable
from beltrami.data.labelled_graph import LabelledGraph, nearest
from beltrami.data.preprocess import Preprocessing
from beltrami.data.table import Numbers


def table(values: list[float], *, first: int = 0, **parts: Any) -> GraphTable:
    """Return a table of one column; its ids are counted from ``first``."""
    ids = [str(first + k) for k in range(len(values))]
    return GraphTable("rows", ids, columns={"size": Numbers(np.array(values))}, **parts)


def test_nearest_rows_are_joined_in_both_directions() -> None:
    x = torch.tensor([[0.0], [1.0], [3.0], [10.0]])
    distance = (x - x.T).abs() + torch.diag(torch.full((4,), torch.inf))
    expected = {(int(distance[i].argmin()), i) for i in range(4)}
    found = {(j, i) for j, i in nearest(x, k=1).edge_index.T.tolist()}
    assert found == expected | {(i, j) for j, i in expected}
    assert nearest(x[:1]).num_edges == 0


def test_weights_of_nearest_rows_follow_the_density() -> None:
    x = torch.randn(30, 3, generator=torch.Generator().manual_seed(0)).double()
    x[1] = x[0]
    distance = torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist").fill_diagonal_(torch.inf)
    width = distance.sort().values[:, 3]
    edges = nearest(x.float(), k=4)
    assert edges.weight is not None
    for j, i, weight in zip(edges.j.tolist(), edges.i.tolist(), edges.weight.tolist(), strict=True):
        assert distance[i, j] <= max(width[i], width[j])
        expected = torch.exp(-(distance[i, j] ** 2) / (width[i] * width[j]))
        assert weight == pytest.approx(max(float(expected), 1e-6), rel=1e-3)
    assert edges.structurally_symmetric


def test_equal_rows_have_finite_weights() -> None:
    edges = nearest(torch.tensor([[0.0], [0.0], [0.0], [5.0]]), k=2)
    assert edges.weight is not None
    assert bool(torch.isfinite(edges.weight).all())
    assert float(edges.weight.max()) == 1


def test_weights_are_divided_by_their_median_and_cut_off() -> None:
    edge_index = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
    weight = torch.tensor([1e-20, 1e-20, 4.0, 4.0, 6.0, 6.0])
    rows = table([1.0, 2.0, 3.0, 4.0], edge_index=edge_index, weight=weight)
    graph = LabelledGraph.of_table(rows, Preprocessing.learn(rows.columns))
    assert graph.edges.weight is not None
    assert sorted(graph.edges.weight.tolist()) == pytest.approx([1e-6, 1e-6, 1, 1, 1.5, 1.5])


def test_new_rows_come_first_and_only_receive() -> None:
    rows = table([float(k) for k in range(30)])
    rules = Preprocessing.learn(rows.columns)
    graph = LabelledGraph.of_table(rows, rules, neighbours=4)
    new = graph.followed_by(table([3.1, 90.0], first=29), rules)
    assert list(new.ids) == ["29", "30", *(str(k) for k in range(30))]
    assert new.x[2:].equal(graph.x)
    j, i = new.edges.j, new.edges.i
    assert sorted((j[i == 0] - 2).tolist()) == [2, 3, 4, 5]
    assert not bool((j < 2).any())
    kept = i >= 2
    assert new.edges.edge_index[:, kept].equal(graph.edges.edge_index + 2)
    assert graph.edges.weight is not None
    assert new.edges.weight is not None
    assert new.edges.weight[kept].equal(graph.edges.weight)


@pytest.mark.parametrize("scale", [2.0**64, 2.0**-74, 2.0**120])
@pytest.mark.parametrize("sparse", [False, True])
def test_nearest_rows_do_not_depend_on_the_scale(scale: float, sparse: bool) -> None:
    x = torch.randn(40, 5, generator=torch.Generator().manual_seed(0))
    some, scaled = (x.to_sparse(), (scale * x).to_sparse()) if sparse else (x, scale * x)
    found, expected = nearest(scaled), nearest(some)
    assert found.edge_index.equal(expected.edge_index)
    assert found.weight is not None
    assert expected.weight is not None
    assert found.weight.allclose(expected.weight, rtol=1e-5)
