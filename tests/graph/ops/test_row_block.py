"""Products with blocks of rows against the dense matrix, by plain operations and by the Triton kernel."""

from collections.abc import Callable

import pytest
import torch
from checks import alone, bare, crowd, normal, ragged
from torch import Tensor

from beltrami.graph import Edges
from beltrami.graph.ops.row_block import RowBlock, RowTerms, cut_long_rows, write_rows

GRAPHS: dict[str, Callable[[], Edges]] = {
    "crowd": crowd,
    "ragged": ragged,
    "bare": bare,
    "alone": lambda: alone(loop=True),
}
graphs = pytest.mark.parametrize("name", GRAPHS)


def block_of(edges: Edges, start: int, stop: int, *, longest: int = 0) -> tuple[RowBlock, slice]:
    """Return rows of a graph as a block, and the numbers of their edges."""
    ptr, index = edges.rows.ptr, edges.rows.index
    entries = slice(int(ptr[start]), int(ptr[stop]))
    local = (ptr[start : stop + 1] - ptr[start]).cpu()
    parts = cut_long_rows(local, longest=longest) if longest else None
    moved = None if parts is None else (parts[0].to(index.device), parts[1].to(index.device))
    return RowBlock(start, stop, local.to(index.device), index[entries], moved), entries


def dense(edges: Edges, a: Tensor) -> Tensor:
    matrix = a.new_zeros(edges.num_nodes, edges.num_nodes)
    return matrix.index_put_((edges.i, edges.j), a, accumulate=True)


def check_all_rows(edges: Edges, rows: int, *, weighted: bool, longest: int = 0) -> None:
    """Compare every block of so many rows, with all terms, with the formula."""
    n, device = edges.num_nodes, edges.device
    y, b, g = (normal(n, 5, seed=k).to(device) for k in range(3))
    a = (
        normal(edges.num_edges, seed=3).double().to(device)
        if weighted
        else torch.ones(edges.num_edges).double().to(device)
    )
    diagonal, scale = (normal(n, seed=4 + k).to(device) for k in range(2))
    expected = 2.0 * scale[:, None] * (dense(edges, a) @ y + diagonal[:, None] * y) - b + 0.3 * g
    out = b.clone()  # the result may be written over b
    for start in range(0, n, rows):
        block, entries = block_of(edges, start, min(start + rows, n), longest=longest)
        at = block.rows
        terms = RowTerms(
            a[entries] if weighted else None, y[at], diagonal[at], scale[at], 2.0, (-1.0, out[at]), (0.3, g[at])
        )
        write_rows(block, out[at], y, terms)
    torch.testing.assert_close(out, expected, atol=1e-12, rtol=1e-12)


@graphs
@pytest.mark.parametrize("rows", [1, 4, 100])
@pytest.mark.parametrize("weighted", [False, True])
def test_blocks_of_rows_give_the_formula(name: str, rows: int, weighted: bool) -> None:
    check_all_rows(GRAPHS[name](), rows, weighted=weighted)


@pytest.mark.parametrize("longest", [0, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_kernel_gives_the_formula(kernels: str, longest: int, weighted: bool) -> None:
    for name in ("crowd", "bare"):
        check_all_rows(GRAPHS[name]().to(kernels), 5, weighted=weighted, longest=longest)


def test_long_rows_are_cut_into_parts_that_cover_them() -> None:
    ptr = torch.tensor([0, 0, 7, 8, 8, 14])
    found = cut_long_rows(ptr, longest=3)
    assert found is not None
    bounds, rows = found
    assert bounds.tolist() == [0, 0, 3, 6, 7, 8, 8, 11, 14]
    assert rows.tolist() == [0, 1, 4, 5, 6, 8]
    assert [int(bounds[k]) for k in rows.tolist()] == ptr.tolist()
    assert cut_long_rows(ptr, longest=7) is None
    assert cut_long_rows(torch.zeros(1), longest=7) is None
