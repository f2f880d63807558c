"""Inputs of a model: other types of numbers are converted, and edges in one direction are reported once."""

import math
import warnings
from typing import Any

import numpy
import pytest
import torch
from toy import small_blend, two_cliques

from beltrami.errors import DirectedGraphWarning
from beltrami.graph import Edges, SparseMatrix

TOY = two_cliques()
ONE_WAY = TOY.edge_index[:, TOY.edge_index[0] < TOY.edge_index[1]]


@pytest.fixture
def prepare() -> Any:
    """The method of a model with positions, without its types."""
    return small_blend(positions=True).prepare


def test_float64_half_and_numpy_features_and_positions_become_the_models_type(prepare: Any) -> None:
    expected = prepare(TOY.x, TOY.edge_index, pos=TOY.pos)
    for x, pos in [
        (TOY.x.double(), TOY.pos.double()),
        (TOY.x.numpy(), TOY.pos.numpy()),
        (TOY.x.numpy().astype(numpy.float64), TOY.pos.numpy().astype(numpy.float64)),
    ]:
        inputs = prepare(x, TOY.edge_index, pos=pos)
        assert torch.equal(inputs.x, expected.x)
        assert torch.equal(inputs.pos, expected.pos)
    half = prepare(TOY.x.half(), TOY.edge_index.numpy(), pos=TOY.pos).x
    assert half.dtype == torch.float32
    sparse = prepare(SparseMatrix.of(TOY.x.double()), TOY.edge_index, pos=TOY.pos).x
    assert sparse.values.dtype == torch.float32


def test_features_of_the_models_type_are_not_copied(prepare: Any) -> None:
    assert prepare(TOY.x, TOY.edge_index, pos=TOY.pos).x is TOY.x


def test_a_model_in_double_precision_takes_single_precision() -> None:
    model = small_blend().double()
    assert model.prepare(TOY.x, TOY.edge_index).x.dtype == torch.float64


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (None, "prepare needs `x` to be a torch.Tensor or a SparseMatrix; got None"),
        ([[1.0]], "make it a tensor with `torch.tensor`"),
        (TOY.x.double() * 1e300, "`x` holds .* values that are NaN or infinite"),
        (TOY.x.long(), r"`x` must be floating point; got torch.int64. Try `x.float\(\)`"),
        (torch.full((20, 6), math.nan), "`x` holds 120 values that are NaN"),
        (TOY.x.to("meta"), "`x` is on meta and the model on cpu: move one"),
    ],
)
def test_features_that_cannot_be_converted_are_refused(prepare: Any, x: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        prepare(x, TOY.edge_index, pos=TOY.pos)


def test_edges_in_one_direction_only_are_reported_once_for_each_tensor(prepare: Any) -> None:
    edge_index, n = ONE_WAY.clone(), ONE_WAY.shape[1]
    with pytest.warns(DirectedGraphWarning, match=f"{n} of {n} edges .* no reverse edge.*`beltrami.data.undirected`"):
        prepare(TOY.x, edge_index, pos=TOY.pos)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        prepare(TOY.x, edge_index, pos=TOY.pos)
        with torch.inference_mode():
            prepare(TOY.x, edge_index, pos=TOY.pos)
    with pytest.warns(DirectedGraphWarning, match=f"2 of {TOY.edge_index.shape[1] - 2} edges"):
        prepare(TOY.x, TOY.edge_index[:, 2:].clone(), pos=TOY.pos)


def test_parallel_edges_and_graphs_that_were_built_are_not_reported(prepare: Any) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        prepare(TOY.x, torch.cat((TOY.edge_index, TOY.edge_index[:, :3]), 1), pos=TOY.pos)
        prepare(TOY.x, Edges.build(ONE_WAY, num_nodes=20), pos=TOY.pos)
    assert told == []
