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
    found = {(j, i) for j, i in nearest(x, k=1).T.tolist()}
    assert found == expected | {(i, j) for j, i in expected}
    assert nearest(x[:1]).shape == (2, 0)


def test_weights_are_divided_by_their_median_and_cut_off() -> None:
    edge_index = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
    weight = torch.tensor([1e-20, 1e-20, 4.0, 4.0, 6.0, 6.0])
    rows = table([1.0, 2.0, 3.0, 4.0], edge_index=edge_index, weight=weight)
    graph = LabelledGraph.of_table(rows, Preprocessing.learn(rows.columns))
    assert graph.edges.weight is not None
    assert sorted(graph.edges.weight.tolist()) == pytest.approx([1e-6, 1e-6, 1, 1, 1.5, 1.5])


def test_new_rows_come_first_and_known_ids_are_replaced() -> None:
    rows = table([float(k) for k in range(30)])
    rules = Preprocessing.learn(rows.columns)
    graph = LabelledGraph.of_table(rows, rules)
    new = graph.followed_by(table([3.1, 90.0], first=29), rules)
    assert list(new.ids) == ["29", "30", *(str(k) for k in range(29))]
    assert new.x[2:].equal(graph.x[:29])
    assert new.edges.edge_index.shape == nearest(new.x).shape
    joined = {new.ids[int(j)] for j, i in new.edges.edge_index.T.tolist() if new.ids[i] == "29"}
    assert {"2", "3", "4"} <= joined


@pytest.mark.parametrize("scale", [2.0**64, 2.0**-74, 2.0**120])
@pytest.mark.parametrize("sparse", [False, True])
def test_nearest_rows_do_not_depend_on_the_scale(scale: float, sparse: bool) -> None:
    x = torch.randn(40, 5, generator=torch.Generator().manual_seed(0))
    some, scaled = (x.to_sparse(), (scale * x).to_sparse()) if sparse else (x, scale * x)
    assert torch.equal(nearest(scaled), nearest(some))
