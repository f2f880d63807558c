"""Attention in row blocks against the softmax of a dense matrix of scores, with derivatives by autograd."""

import pytest
import torch
from streamed_toys import NODES, hub_graph, plan_of
from torch import Tensor

from beltrami.graph import squareplus_link
from beltrami.scale.block_attention import BlockAttention
from beltrami.scale.edge_blocks import BlockArray, EdgeBlocks

HEADS, WIDTH = 2, 3


def random(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def dense_weights(p: Tensor, q: Tensor, *, loops: float) -> Tensor:
    """Return the matrix A, averaged over heads, from the formula; a node without edges has a one on the diagonal."""
    edges = hub_graph()
    there = torch.zeros(NODES, NODES, dtype=torch.bool)
    there[edges.i, edges.j] = True
    mass = there.double()
    if loops:
        mass = mass.fill_diagonal_(loops)
    weight = mass[:, :, None] * squareplus_link(torch.einsum("ihk,jhk->ijh", p, q)).exp()
    total = weight.sum(1, keepdim=True)
    return (weight / total.clamp(min=1e-300)).mean(2) + torch.diag((mass.sum(1) == 0).double())


def blocks(device: str, rows: int) -> EdgeBlocks:
    edges = hub_graph()
    plan = plan_of(edges, columns=1, rows=rows, resident=0.5)
    return EdgeBlocks.of(edges, ranges=plan.ranges, on_device=plan.on_device, device=device)


def matrix_of(edges: EdgeBlocks, values: BlockArray, *, transposed: bool = False) -> Tensor:
    """Return edge values in row blocks as a dense matrix."""
    found = torch.zeros(NODES, NODES, dtype=torch.float64)
    for _, block, (a,) in edges.walk(values, after_writes=True):
        i, j = block.receivers.cpu(), block.index.long().cpu()
        found[(j, i) if transposed else (i, j)] = a.cpu()
    return found


def check(device: str, *, loops: float, rows: int) -> None:
    p, q = (random(NODES, HEADS, WIDTH, seed=k).requires_grad_() for k in range(2))
    expected = dense_weights(p, q, loops=loops)
    edges = blocks(device, rows)
    a, transposed, by_a, by_transposed = (edges.new_values(torch.float64) for _ in range(4))
    attention = BlockAttention(edges, squareplus_link, loops, a, transposed)
    there_p, there_q = p.detach().to(device), q.detach().to(device)
    diagonal, log_total = attention.write_weights(there_p, there_q)
    own = torch.diag(torch.where(diagonal.cpu() > 0, diagonal.cpu(), 0.0))
    torch.testing.assert_close(matrix_of(edges, a) + own, expected.detach(), atol=1e-12, rtol=1e-12)
    torch.testing.assert_close(
        matrix_of(edges, transposed, transposed=True) + own, expected.detach(), atol=1e-12, rtol=1e-12
    )
    grad = random(NODES, NODES, seed=2)  # by every entry of the matrix
    for k, block, _ in edges.walk():
        i, j = block.receivers.cpu(), block.index.long().cpu()
        by_a.write(k, grad[i, j].to(device))
        by_transposed.write(k, grad[j, i].to(device))
    dp, dq = attention.pull(there_p, there_q, log_total, by_a, by_transposed, grad.diagonal().to(device))
    wanted = torch.autograd.grad(expected, (p, q), grad)
    torch.testing.assert_close((dp.cpu(), dq.cpu()), wanted, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("rows", [1, 7, 100])
@pytest.mark.parametrize("loops", [0.0, 0.7])
def test_weights_and_derivatives_are_those_of_the_dense_softmax(loops: float, rows: int) -> None:
    check("cpu", loops=loops, rows=rows)


@pytest.mark.slow  # the interpreter
@pytest.mark.parametrize("loops", [0.0, 0.7])
def test_the_kernels_give_the_dense_softmax(kernels: str, loops: float) -> None:
    check(kernels, loops=loops, rows=11)
