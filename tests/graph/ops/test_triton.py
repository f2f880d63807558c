"""The Triton kernels of the sparse products against the reference, on a CUDA device or interpreted on the CPU."""

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from checks import alone, bare, crowd, normal, ragged
from torch import Tensor

from beltrami.graph import Edges, aggregate, collect, edge_dot, ops
from beltrami.graph.edges import Compressed
from beltrami.graph.ops import reference

product = pytest.importorskip("beltrami.graph.ops.triton.sparse_product")
HERE = Path(__file__).parent
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


def fill_new_tensors_with_nan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fill every new tensor with NaN, which stays where a kernel does not write."""
    empty: Callable[..., Tensor] = Tensor.new_empty

    def new_empty(*inputs: Any, **options: Any) -> Tensor:
        new = empty(*inputs, **options)
        return new.fill_(torch.nan) if new.is_floating_point() else new

    monkeypatch.setattr(Tensor, "new_empty", new_empty)


def test_rows_of_this_graph_have_many_chunks(kernels: str) -> None:
    edges = graph("crowd", kernels)
    assert int(edges.rows.chunks.split_ptr.diff().max()) > 4
    assert int(edges.columns.chunks.split_ptr.diff().max()) > 3


@pytest.mark.slow
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
    wanted = reference.spmm(pattern, values, dense)
    fill_new_tensors_with_nan(monkeypatch)
    close(product.spmm(pattern, values, dense), wanted)


@pytest.mark.slow
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
    wanted = reference.sddmm(pattern, left, right)
    fill_new_tensors_with_nan(monkeypatch)
    close(product.sddmm(pattern, left, right), wanted)


@pytest.mark.slow
@graphs
@patterns
@pytest.mark.parametrize("channels", [1, 3])
def test_row_sums_equal_a_scattered_sum(
    kernels: str, name: str, side: str, channels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    edges = graph(name, kernels)
    values = normal(edges.num_edges, channels).to(kernels)
    node = edges.i if side == "rows" else edges.j
    wanted = values.new_zeros(edges.num_nodes, channels).index_add(0, node, values)
    fill_new_tensors_with_nan(monkeypatch)
    close(product.row_sums(pattern_of(edges, side), values), wanted)


@pytest.mark.slow
def test_wide_states_take_several_programs_per_chunk(kernels: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(product, "MAX_CHANNELS", 8)
    edges = graph("crowd", kernels)
    a, z = normal(47, 2).to(kernels), normal(9, 2, 11, seed=1).to(kernels)
    close(product.spmm(edges.rows, a, z), reference.spmm(edges.rows, a, z))
    close(product.sddmm(edges.rows, z, z), reference.sddmm(edges.rows, z, z))
    wanted = a.new_zeros(9, 22).index_add(0, edges.i, z.flatten(1)[edges.j])
    close(product.row_sums(edges.rows, z.flatten(1)[edges.j]), wanted)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
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


@pytest.mark.parametrize("name", [pytest.param("crowd", marks=pytest.mark.slow), "ragged", "bare"])
def test_derivatives_through_the_kernels_equal_the_reference(kernels: str, name: str) -> None:
    def derivatives() -> tuple[Tensor, ...]:
        edges = graph(name, kernels)
        a = normal(edges.num_edges, 2).to(kernels).requires_grad_()
        p, q = (normal(edges.num_nodes, 2, 3, seed=s).to(kernels).requires_grad_() for s in (1, 2))
        out = aggregate(a * edge_dot(p, q, edges), q, edges).sin().sum() + collect(a**2, edges, senders=True).sum()
        first = torch.autograd.grad(out, (a, p, q), create_graph=True)
        return (*first, *torch.autograd.grad(torch.cat([g.flatten() for g in first]).square().sum(), (a, p, q)))

    found = derivatives()
    with ops.use("reference"):
        wanted = derivatives()
    for x, y in zip(found, wanted, strict=True):
        close(x, y)


def test_kernels_accept_strided_views(kernels: str) -> None:
    edges, wide, a = graph("crowd", kernels), normal(9, 2, 6).to(kernels), normal(47, 3).to(kernels)
    view = wide[:, :, ::2]
    close(product.spmm(edges.rows, a[:, 1:], view), reference.spmm(edges.rows, a[:, 1:], view))
    close(product.sddmm(edges.rows, view, view), reference.sddmm(edges.rows, view, view))


@pytest.mark.slow
def test_kernels_give_the_same_bits_every_time(kernels: str) -> None:
    edges, a, z = graph("crowd", kernels), normal(47, 2).float().to(kernels), normal(9, 2, 3).float().to(kernels)
    runs: tuple[Callable[[], Tensor], ...] = (
        lambda: product.spmm(edges.rows, a, z),
        lambda: product.sddmm(edges.rows, z, z),
        lambda: product.row_sums(edges.columns, a),
    )
    for run in runs:
        assert torch.equal(run(), run())


@pytest.mark.slow
def test_every_kernel_compiles_for_hopper(tmp_path: Path) -> None:
    paths = os.pathsep.join((str(HERE.parents[1]), str(HERE.parents[2] / "src")))
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    environment |= {"PYTHONPATH": paths, "TRITON_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, str(HERE / "compile_kernels.py")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    compiled = {line.split()[0] for line in done.stdout.splitlines()}
    assert compiled == {
        "_spmm", "_sddmm", "_row_sums", "_gather", "_attend_rows", "_join_rows", "_weighted_sum", "_moments", "_pull",
        "_mask", "_step", "_join_step", "_combine", "_dots", "_log_weights", "_log_sums", "_mean_weights",
        "_weighted_gradients", "_dot_gradients", "_coefficients", "_sum_rows",
    }  # fmt: skip
