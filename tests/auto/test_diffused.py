"""Diffused features at some nodes, by diffusing features or by the transposed flow, in blocks, dense or sparse."""

import pytest
import torch
from checks import bare, normal, ragged
from dense_diffusion import diffusion_matrix

from beltrami.auto.diffused import diffused_features, feature_rows
from beltrami.graph import Edges, SparseMatrix
from beltrami.model import linear_diffusion

GRAPHS = {"weighted": ragged(weighted=True), "unweighted": ragged(), "bare": bare()}


@pytest.mark.slow
@pytest.mark.parametrize("columns", [2, 7], ids=["features", "transposed"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("graph", GRAPHS)
def test_rows_are_those_of_the_matrix_exponential(
    graph: str, sparse: bool, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linear_diffusion, "MOST_COLUMNS", 2)
    edges: Edges = GRAPHS[graph]
    x, nodes, times = normal(edges.num_nodes, columns), torch.tensor([0, 1, 3]), [0.0, 0.5, 6.0]
    x[x.abs() < 0.4] = 0
    found = diffused_features(SparseMatrix.of(x) if sparse else x, edges, nodes, times)
    expected = torch.stack([(diffusion_matrix(edges, t) @ x)[nodes] for t in times])
    torch.testing.assert_close(found, expected, rtol=0, atol=2e-5)


def test_a_graph_that_does_not_fit_one_block_is_diffused_a_column_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    x, edges, nodes = normal(6, 3), ragged(weighted=True), torch.arange(4)
    expected = diffused_features(x, edges, nodes, [2.0])
    monkeypatch.setattr(linear_diffusion, "BLOCK_BYTES", 1)
    torch.testing.assert_close(diffused_features(x, edges, nodes, [2.0]), expected, rtol=0, atol=1e-5)


def test_rows_of_sparse_features_are_those_of_dense_ones() -> None:
    x, nodes = normal(6, 4), torch.tensor([5, 0, 2])
    x[x < 0] = 0
    assert torch.equal(feature_rows(SparseMatrix.of(x), nodes), x[nodes])
