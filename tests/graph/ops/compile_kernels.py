"""Program that compiles every kernel for a Hopper GPU, without one, and prints the name and size of each.

The interpreter accepts code that the compiler refuses, such as a name that changes its type in a branch.
"""

import warnings
from typing import Any

import torch
import triton
from checks import crowd
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from beltrami.graph import (
    Both,
    Edges,
    Leaky,
    PairScore,
    Rows,
    aggregate,
    attend,
    collect,
    edge_dot,
    identity,
    row_chunks,
    squareplus_link,
)
from beltrami.graph.ops import attention, dispatch, largest, row_block
from beltrami.graph.ops.edge_weights import fused_weights
from beltrami.graph.ops.recurrence import LinearRecurrence
from beltrami.graph.ops.triton import attention_forward
from beltrami.model import masking
from beltrami.scheme.exponential import recurrence_sum
from beltrami.scheme.exponential.coefficients_triton import coefficients
from beltrami.scheme.exponential.recurrence_sum import combine, dots

TYPES = {
    torch.float32: "*fp32",
    torch.float64: "*fp64",
    torch.bfloat16: "*bf16",
    torch.int32: "*i32",
    torch.int64: "*i64",
}
HOPPER = GPUTarget("cuda", 90, 32)
seen: set[str] = set()


def compile_instead(kernel: Any, *values: Any, grid: Any, warmup: bool, **named: Any) -> None:
    """Replacement of a launch."""
    options = {name: named.pop(name) for name in ("num_warps", "enable_fp_fusion") if name in named}
    names = [parameter.name for parameter in kernel.params]
    given = dict(zip(names, values, strict=False)) | named
    fixed = {(names.index(p.name),): given[p.name] for p in kernel.params if p.is_constexpr}
    kinds = {p.name: "constexpr" if p.is_constexpr else kind(given[p.name]) for p in kernel.params}
    if (key := f"{kernel.__name__} {sorted(kinds.items())} {sorted(fixed.items())}") not in seen:
        seen.add(key)
        source = ASTSource(fn=kernel, signature=kinds, constexprs=fixed)
        print(kernel.__name__, len(triton.compile(source, target=HOPPER, options=options).asm["cubin"]))


def kind(value: Any) -> str:
    if torch.is_tensor(value):
        return TYPES[value.dtype]
    return "fp32" if isinstance(value, float) else "i32"


def run_recurrence(y: torch.Tensor, a: torch.Tensor, edges: Edges) -> None:
    """Run steps with all terms and with none, and linear combinations of their vectors at one time and at several."""
    LinearRecurrence(edges).advance(y.clone(), a, y, factor=1.0)
    full, number = LinearRecurrence(edges, y.new_ones(9, 1)), y.new_ones(2)
    full.advance(y.clone(), a, y, factor=2.0, previous=(-1.0, y))
    full.pull(y.clone(), a, y, factor=2.0, previous=(-1.0, y), cotangent=(number, y), edge_sums=(y, a.clone()))
    for times in (1, 24):
        d, block = y.new_ones(2, times, 3), y.expand(3, -1, -1, -1).contiguous()
        dots(y[:, None].expand(-1, times, -1, -1), [block])
        combine(y, d.repeat(1, 1, 2), [block, block])


def run_row_block(y: torch.Tensor, edges: Edges) -> None:
    """Run products of a row block with all terms and with none, of whole rows and of rows in parts."""
    a, rows = y.new_ones(edges.num_edges), y.new_ones(edges.num_nodes)
    for parts in (None, row_block.cut_long_rows(edges.rows.ptr, longest=4)):
        block = row_block.RowBlock(0, edges.num_nodes, edges.rows.ptr, edges.rows.index, parts)
        row_block.write_rows(block, y.clone(), y, row_block.RowTerms(None, y))
        terms = row_block.RowTerms(a, y, rows, rows, 2.0, (-1.0, y), (0.5, y))
        row_block.write_rows(block, y.clone(), y, terms)


def main() -> None:
    warnings.simplefilter("ignore")
    triton.runtime.jit.JITFunction.run = compile_instead
    dispatch.backend = lambda tensor, **_: "triton"
    recurrence_sum.uses_triton = lambda tensor: True
    row_chunks.LONG = 4
    attention.MAX_STORED = 0
    edges = crowd()
    for dtype, normalise, f, attention_forward.ONE_PASS in (
        (torch.float32, Rows(), identity, 128),
        (torch.float32, Rows(), identity, 0),
        (torch.float64, Both(squareplus_link), Leaky(0.2), 128),
    ):
        p, z, a = torch.zeros(9, 2, 4, dtype=dtype), torch.zeros(9, 8, dtype=dtype), torch.zeros(47, 2, dtype=dtype)
        for x in (p, z, a):
            x.requires_grad_()
        attend(PairScore(p, p, f), z, edges, normalise=normalise).sum().backward()
        if not attention_forward.ONE_PASS:
            continue  # the other configurations compile all of the following
        coefficients(torch.tensor(0.5, dtype=dtype), torch.ones(2).double(), size=9, wanted=4, dtype=dtype)
        weights = fused_weights(PairScore(p, p, f), edges, normalise=normalise)
        assert weights is not None
        weights.sum().backward()
        largest(a.detach(), edges)
        masking.masked(z, *torch.zeros(2, dtype=torch.int32), threshold=0, scale=2.0, width=1)
        run_row_block(z.detach(), edges)
        run_recurrence(z.detach()[None].expand(2, -1, -1).contiguous(), a.detach().T.contiguous(), edges)
        (aggregate(a, p, edges).sum() + edge_dot(p, p, edges).sum() + collect(a, edges).sum()).backward()


if __name__ == "__main__":
    main()
