"""Refusals name what came and what would do."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from beltrami.errors import DataError, SolverError, UnknownName, check_graph, check_matrix

INDEX = torch.tensor([[0, 1], [1, 2]])
LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "dense": lambda x: x,
    "coo": lambda x: x.to_sparse_coo(),
    "csr": lambda x: x.to_sparse_csr(),
    "csc": lambda x: x.to_sparse_csc(),
}


def refusal(edge_index: Tensor, num_nodes: int) -> str:
    with pytest.raises(ValueError) as caught:
        check_graph(edge_index, num_nodes=num_nodes)
    return str(caught.value)


def test_a_graph_within_its_nodes_passes() -> None:
    check_graph(INDEX, num_nodes=3)
    check_graph(INDEX.int(), num_nodes=3)
    check_graph(INDEX[:, :0], num_nodes=1)
    assert "names node 2" in refusal(INDEX, 2)  # one node fewer, and it does not


def test_indices_out_of_range_are_refused_by_name() -> None:
    assert "names node 2, but the graph has 2 nodes: they run from 0 to 1" in refusal(INDEX, 2)
    assert "names node -1" in refusal(INDEX - 1, 3)


def test_an_empty_graph_is_refused() -> None:
    assert "the graph is empty: it has 0 nodes" in refusal(INDEX[:, :0], 0)


@pytest.mark.parametrize("shape", [(3, 2), (2,), (2, 1, 1)])
def test_an_edge_index_of_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    assert "must have shape (2, m); got" in refusal(torch.zeros(shape, dtype=torch.long), 3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bool])
def test_an_edge_index_of_no_integers_is_refused(dtype: torch.dtype) -> None:
    assert f"must hold integers (torch.int64); got {dtype}" in refusal(INDEX.to(dtype), 3)


@pytest.mark.filterwarnings("ignore:Sparse CS. tensor support is in beta")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_finite_matrices_of_any_layout_pass_and_others_do_not(layout: str) -> None:
    x = torch.eye(3)
    check_matrix(LAYOUTS[layout](x), name="x", rows=3, columns=3)
    x[0, 0], x[1, 1] = math.nan, math.inf
    with pytest.raises(ValueError, match="`x` holds 2 values that are NaN or infinite"):
        check_matrix(LAYOUTS[layout](x), name="x")


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.zeros(3), r"`pos` must be a matrix \(nodes, channels\); got shape \(3,\)"),
        (torch.zeros(3, 2, dtype=torch.long), r"`pos` must be floating point; got torch.int64. Try `pos.float\(\)`"),
        (torch.zeros(4, 2), "`pos` has 4 rows where the graph has 3 nodes"),
        (torch.zeros(3, 1), "`pos` has 1 columns where 2 are expected"),
    ],
)
def test_matrices_that_do_not_fit_are_refused(x: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_matrix(x, name="pos", rows=3, columns=2)


def test_an_unknown_name_suggests_the_nearest() -> None:
    error = UnknownName("dataset", "Coora", ["pubmed", "cora"])
    assert str(error) == "unknown dataset 'Coora': did you mean 'cora'? Known: cora, pubmed."
    assert "did you mean" not in str(UnknownName("dataset", "zzzz", ["pubmed", "cora"]))


def test_errors_are_caught_by_their_kind() -> None:
    assert issubclass(UnknownName, ValueError)
    assert issubclass(SolverError, RuntimeError)
    assert issubclass(DataError, RuntimeError)
