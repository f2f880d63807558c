"""The GPU kernels against the reference: on a CUDA device where there is one, interpreted on the CPU where not."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from checks import alone, bare, crowd, normal, ragged
from torch import Tensor

from beltrami.graph import Edges, aggregate, collect, edge_dot
from beltrami.graph.edges import Compressed
from beltrami.graph.ops import dispatch, reference
from beltrami.graph.row_chunks import cut

product = pytest.importorskip("beltrami.graph.ops.triton.product")
close = partial(torch.testing.assert_close, atol=1e-10, rtol=1e-10)


GRAPHS: dict[str, Callable[[], Edges]] = {
    "crowd": crowd,
    "ragged": ragged,
    "bare": bare,
    "alone": lambda: alone(loop=False),
    "loop": lambda: alone(loop=True),
}
graphs = pytest.mark.parametrize("name", GRAPHS)
patterns = pytest.mark.parametrize("side", ["rows", "columns"])
shapes = pytest.mark.parametrize(("heads", "channels"), [(1, 5), (3, 2), (8, 1)])


def graph(name: str, device: str) -> Edges:
    return GRAPHS[name]().to(device)


def pattern_of(edges: Edges, side: str) -> Compressed:
    return edges.rows if side == "rows" else edges.columns


def poisoned(monkeypatch: pytest.MonkeyPatch) -> None:
    """New tensors hold nan, so that what a kernel leaves unwritten shows."""
    empty: Callable[..., Tensor] = Tensor.new_empty

    def poison(*inputs: Any, **options: Any) -> Tensor:
        new = empty(*inputs, **options)
        return new.fill_(torch.nan) if new.is_floating_point() else new

    monkeypatch.setattr(Tensor, "new_empty", poison)


@pytest.mark.parametrize("longest", [1, 3, 128])
def test_pieces_cover_every_row_once_and_in_order(longest: int) -> None:
    counts = torch.tensor([0, 7, 1, 0, 3, 4, 0])
    ptr = torch.cat((torch.zeros(1, dtype=torch.long), counts.cumsum(0))).int()
    found = cut(ptr, longest=longest)
    covered: dict[int, list[int]] = {row: [] for row in range(7)}
    for row, start, stop in zip(found.row.tolist(), found.start.tolist(), found.stop.tolist(), strict=True):
        assert stop - start <= longest
        covered[row] += range(start, stop)
    assert list(covered.values()) == [list(range(int(ptr[r]), int(ptr[r + 1]))) for r in range(7)]
    split = [row for row in range(7) if found.row.tolist().count(row) > 1]
    assert found.split_row.tolist() == split
    assert found.num_slots == sum(found.row.tolist().count(row) for row in split)
    for s, row in enumerate(split):
        slots = found.slot[found.row == row].tolist()
        assert slots == list(range(int(found.split_ptr[s]), int(found.split_ptr[s + 1])))
    assert all(found.slot[found.row == row].tolist() == [-1] for row in range(7) if row not in split)
    assert found.split_bounds[3].tolist() == list(range(found.num_slots))
    for whole, part in zip(found.bounds, found.split_bounds, strict=True):
        assert torch.equal(part, whole[found.slot >= 0])


def test_the_graph_of_this_file_has_rows_of_many_pieces(kernels: str) -> None:
    edges = graph("crowd", kernels)
    assert int(edges.rows.pieces.split_ptr.diff().max()) > 4
    assert int(edges.columns.pieces.split_ptr.diff().max()) > 3


@graphs
@patterns
@shapes
def test_spmm_equals_the_reference(
    kernels: str, name: str, side: str, heads: int, channels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    edges = graph(name, kernels)
    values = normal(edges.num_edges, heads).to(kernels)
    dense = normal(edges.num_nodes, heads, channels, seed=1).to(kernels)
    pattern = pattern_of(edges, side)
    poisoned(monkeypatch)
    found = product.spmm(pattern, values, dense)
    for h in range(heads):
        close(found[:, h], reference.spmm(pattern, values[:, h], dense[:, h]))


@graphs
@patterns
@shapes
def test_sddmm_equals_the_reference(
    kernels: str, name: str, side: str, heads: int, channels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    edges = graph(name, kernels)
    left = normal(edges.num_nodes, heads, channels).to(kernels)
    right = normal(edges.num_nodes, heads, channels, seed=1).to(kernels)
    pattern = pattern_of(edges, side)
    poisoned(monkeypatch)
    found = product.sddmm(pattern, left, right)
    for h in range(heads):
        close(found[:, h], reference.sddmm(pattern, left[:, h], right[:, h]))


@graphs
@patterns
@pytest.mark.parametrize("channels", [1, 3, 8])
def test_row_sums_are_sums(kernels: str, name: str, side: str, channels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    edges = graph(name, kernels)
    values = normal(edges.num_edges, channels).to(kernels)
    node = edges.i if side == "rows" else edges.j
    wanted = values.new_zeros(edges.num_nodes, channels).index_add(0, node, values)
    poisoned(monkeypatch)
    close(product.row_sums(pattern_of(edges, side), values), wanted)


def test_wide_states_take_several_programs_a_piece(kernels: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(product, "WIDEST", 8)
    edges = graph("crowd", kernels)
    a, z = normal(47, 2).to(kernels), normal(9, 2, 11, seed=1).to(kernels)
    found, dots = product.spmm(edges.rows, a, z), product.sddmm(edges.rows, z, z)
    for h in range(2):
        close(found[:, h], reference.spmm(edges.rows, a[:, h], z[:, h]))
        close(dots[:, h], reference.sddmm(edges.rows, z[:, h], z[:, h]))
    wanted = a.new_zeros(9, 22).index_add(0, edges.i, z.flatten(1)[edges.j])
    close(product.row_sums(edges.rows, z.flatten(1)[edges.j]), wanted)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_shorter_numbers_are_summed_in_single_precision(kernels: str, dtype: torch.dtype) -> None:
    """Against double precision on the same rounded numbers: only the result is rounded to the shorter type."""
    edges = graph("crowd", kernels)
    a, z = normal(47, 2).to(kernels, dtype), normal(9, 2, 3, seed=1).to(kernels, dtype)
    rtol = max(1e-6, torch.finfo(dtype).eps)
    for found, wanted in (
        (product.spmm(edges.rows, a, z), product.spmm(edges.rows, a.double(), z.double())),
        (product.sddmm(edges.rows, z, z), product.sddmm(edges.rows, z.double(), z.double())),
        (product.row_sums(edges.rows, a), product.row_sums(edges.rows, a.double())),
    ):
        assert found.dtype == dtype
        torch.testing.assert_close(found.double(), wanted, atol=1e-6, rtol=rtol)


@pytest.mark.parametrize("name", ["crowd", "bare"])
def test_derivatives_through_the_kernels_equal_those_without(
    kernels: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def derivatives() -> tuple[Tensor, ...]:
        edges = graph(name, kernels)
        a = normal(edges.num_edges, 2).to(kernels).requires_grad_()
        p, q = (normal(edges.num_nodes, 2, 3, seed=s).to(kernels).requires_grad_() for s in (1, 2))
        out = aggregate(a * edge_dot(p, q, edges), q, edges).sin().sum() + collect(a**2, edges, senders=True).sum()
        first = torch.autograd.grad(out, (a, p, q), create_graph=True)
        return (*first, *torch.autograd.grad(torch.cat([g.flatten() for g in first]).square().sum(), (a, p, q)))

    found = derivatives()
    monkeypatch.setattr(dispatch, "has_kernel", lambda _: False)
    for x, y in zip(found, derivatives(), strict=True):
        close(x, y)


def test_kernels_take_strided_views(kernels: str) -> None:
    edges, wide, a = graph("crowd", kernels), normal(9, 2, 6).to(kernels), normal(47, 3).to(kernels)
    view = wide[:, :, ::2]
    expected = reference.spmm(edges.rows, a[:, 1], view[:, 1])
    close(aggregate(a[:, 1], view[:, 1], edges), expected)
    expected = reference.sddmm(edges.rows, view[:, 0], view[:, 1])
    close(edge_dot(view[:, 0], view[:, 1], edges), expected)


def test_kernels_give_the_same_bits_every_time(kernels: str) -> None:
    edges, a, z = graph("crowd", kernels), normal(47, 2).float().to(kernels), normal(9, 2, 3).float().to(kernels)
    runs: tuple[Callable[[], Tensor], ...] = (
        lambda: product.spmm(edges.rows, a, z),
        lambda: product.sddmm(edges.rows, z, z),
        lambda: product.row_sums(edges.columns, a),
    )
    for run in runs:
        first = run()
        assert all(torch.equal(first, run()) for _ in range(3))


def test_the_cpu_takes_no_kernel() -> None:
    assert not dispatch.has_kernel(normal(3))
    assert not dispatch.has_kernel(torch.zeros(3, dtype=torch.long))
