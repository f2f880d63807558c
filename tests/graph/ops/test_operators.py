"""The operators of torch.library: the checks of torch for each, and how they find the graph of their tensors."""

import gc
import weakref

import pytest
import torch
from checks import GRAPHS, normal, ragged
from torch import Tensor
from torch.library import opcheck

from beltrami.graph import Edges, PairScore, Rows, attend, identity
from beltrami.graph.ops import aggregate, attention_operator, operators
from beltrami.model.coder import dropout_mask
from beltrami.scheme.exponential import sum_operator
from beltrami.stencil import Loops
from beltrami.stencil.rewire_operator import rewire

EDGES = GRAPHS["weighted"]
N, M = EDGES.num_nodes, EDGES.num_edges
PTR, INDEX, COLUMNS = CSR = operators.csr_of(EDGES)
LOOPS = Loops(0.5)


def leaf(*shape: int, seed: int = 0) -> Tensor:
    made: Tensor = normal(*shape, seed=seed).requires_grad_()
    return made


OPERATORS = {
    "aggregate": (operators.aggregate, (leaf(M, 2), leaf(N, 2, 3, seed=1), *CSR, False)),
    "aggregate transposed": (operators.aggregate, (leaf(M, 2), leaf(N, 2, 3, seed=1), *CSR, True)),
    "edge_dot": (operators.edge_dot, (leaf(N, 2, 3), leaf(N, 2, 3, seed=1), *CSR)),
    "spread": (operators.transfer, (leaf(N, 2), *CSR, True, "spread")),
    "collect": (operators.transfer, (leaf(M, 2), *CSR, False, "collect")),
    "largest": (operators.transfer, (normal(M, 2), *CSR, True, "largest")),
    "compress": (operators.compress, (EDGES.edge_index.flip(1), N)),
    "transpose": (operators.transpose, CSR),
    "rewire": (rewire, (PTR, INDEX, EDGES.weight, [id(LOOPS)])),
    "dropout_mask": (dropout_mask, (torch.tensor(3).int(), torch.tensor(1).int(), [4, 3], 5)),
    "exponential": (
        sum_operator.expand,
        (
            *(leaf(N, 3), normal(M).abs().div(9).requires_grad_(), leaf(N, 3, seed=1), leaf(1, 40), leaf(1, 60)),
            *(torch.ones(()).double(), [PTR, INDEX], "LinearField", [torch.inf, 1.0, 1e-6, 1e-6]),
        ),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATORS)
def test_torch_finds_no_fault_in_an_operator(name: str) -> None:
    operator, arguments = OPERATORS[name]
    assert set(opcheck(operator, arguments).values()) == {"SUCCESS"}


@pytest.mark.slow
def test_torch_finds_no_fault_in_fused_attention(kernels: str) -> None:
    csr = operators.csr_of(EDGES.to(kernels))
    inputs = [normal(N, *rest, seed=k).to(kernels).requires_grad_() for k, rest in enumerate([(1, 4), (1, 4), (4,)])]
    arguments = (*inputs, EDGES.to(kernels).weight, *csr, "leaky.Both.squareplus", 0.2, None)
    assert set(opcheck(attention_operator.attend, arguments).values()) == {"SUCCESS"}


@pytest.mark.slow
def test_fused_attention_is_that_of_eager_code(kernels: str) -> None:
    edges = EDGES.to(kernels)
    p, q, z = inputs = [leaf(N, *rest, seed=k).to(kernels) for k, rest in enumerate([(1, 4), (1, 4), (4,)])]
    eager = attend(PairScore(p, q), z, edges, normalise=Rows())
    operator = attention_operator.fused(p, q, z, identity, edges, Rows(), None)
    assert torch.equal(eager, operator)
    g = torch.ones_like(eager)
    for one, other in zip(torch.autograd.grad(eager, inputs, g), torch.autograd.grad(operator, inputs, g), strict=True):
        assert torch.equal(one, other)


def test_the_graph_of_the_same_tensors_is_derived_once_and_freed_with_them() -> None:
    edges = ragged()
    ptr, index, n = edges.rows.ptr, edges.rows.index.clone(), edges.num_nodes
    graph = operators.graph_of(ptr, index, n)
    assert operators.graph_of(ptr, index, n) is graph
    assert torch.equal(graph.j, edges.j)
    assert torch.equal(graph.i, edges.i)
    for one, other in ((graph.rows, edges.rows), (graph.columns, edges.columns)):
        assert all(torch.equal(getattr(one, x), getattr(other, x)) for x in ("ptr", "index", "edge"))
    index.copy_(index.flip(0))  # a new version of the tensor
    assert operators.graph_of(ptr, index, n) is not graph
    freed = weakref.ref(operators.graph_of(ptr, index, n))
    del index
    gc.collect()
    assert freed() is None


def test_a_graph_that_changed_without_a_new_version_is_built_again() -> None:
    edge_index = torch.tensor([[0, 1, 2], [1, 2, 0]])
    _, before, _ = operators.compress(edge_index, 3)
    edge_index.numpy()[:] = [[1, 2, 0], [0, 1, 2]]
    ptr, after, permutation = operators.compress(edge_index, 3)
    assert not torch.equal(before, after)
    fresh = Edges.build(edge_index, num_nodes=3)
    assert torch.equal(after, fresh.rows.index)
    assert torch.equal(permutation, fresh.permutation)
    assert torch.equal(operators.graph_of(ptr, after, 3).j, fresh.j)


def test_a_matrix_need_not_be_square() -> None:
    ptr, index = torch.tensor([0, 1, 3], dtype=torch.int32), torch.tensor([2, 0, 3], dtype=torch.int32)
    values, z = torch.tensor([[1.0], [2.0], [3.0]]), torch.arange(4.0)[:, None, None]
    assert operators.aggregate(values, z, ptr, index, 4, False).flatten().tolist() == [2.0, 9.0]
    assert operators.aggregate(values, z[:2], ptr, index, 4, True).flatten().tolist() == [2.0, 0.0, 0.0, 3.0]


def test_operators_are_differentiated_twice() -> None:
    a, z = normal(M, 2).requires_grad_(), normal(N, 2, 3, seed=1).requires_grad_()
    assert torch.autograd.gradgradcheck(lambda a, z: operators.aggregate(a, z, *CSR, False).sin(), (a, z))
    torch.testing.assert_close(operators.aggregate(a, z, *CSR, True), aggregate(a, z, EDGES, transposed=True))
