"""Forward push in plain torch: a block of rows at a time, and in each row all nodes above their threshold at once."""

from collections.abc import Iterator

import torch
from torch import Tensor

from beltrami.graph.edges import Compressed
from beltrami.graph.ops import dispatch
from beltrami.graph.pagerank.push import MARGIN, Entries, Estimate, Walk
from beltrami.graph.row_chunks import expand_ranges, expand_ranges_in_parts, largest_per_row

CELLS = 2**24  # numbers in one block of rows: 64 MiB in single precision
EDGES = CELLS // 4  # edges expanded at a time
GATHER_COST = 8  # cost of an edge that is gathered, relative to its cost in a product with all of S


def block(num_nodes: int) -> int:
    return max(1, CELLS // num_nodes)


def workers() -> int:
    return 1  # torch runs threads itself


def push(walk: Walk, first: int, last: int) -> Entries:
    """Rows of P; see ``PushBackend``."""
    n, rows = walk.num_nodes, last - first
    p = walk.v.new_zeros(rows * n)
    r = torch.zeros_like(p)
    here = torch.arange(rows, device=p.device) * (n + 1) + first
    r[here] = 1
    while len(here):
        if _is_dense(walk, here, rows):
            here = _push_all(walk, p.view(rows, n), r.view(rows, n))
            continue
        value = r[here]
        r[here] = 0
        p[here] += value
        reached = _spread(walk, r, here // n, here % n, value)
        # Residuals only grow here, so that each is tested after it has passed its threshold.
        here = torch.cat([there[r[there] > walk.threshold[there % n]] for there in reached] or [here[:0]]).unique()
    place = p.nonzero()[:, 0]
    place = place[largest_per_row(place // n, p[place], top=n)]
    return torch.bincount(place // n, minlength=rows), (place % n).int(), walk.restart * p[place]


def refine(walk: Walk, estimate: Estimate, first: int, last: int, *, candidates: int | None, least: float) -> Entries:
    """P + R P^T + ell ell^T at candidates; see ``PushBackend``."""
    n, begin, end = walk.num_nodes, estimate.ptr[first:last], estimate.ptr[first + 1 : last + 1]
    p = walk.v.new_zeros((last - first) * n)
    r = torch.zeros_like(p)
    row, entry = expand_ranges(begin, end)
    node, value = estimate.index[entry].long(), estimate.value[entry]
    here = row * n + node
    p[here] = value
    r[here] = -value / walk.restart
    r[torch.arange(last - first, device=r.device) * (n + 1) + first] += 1
    if _is_dense(walk, here, last - first):
        r += _product(walk, p.view(-1, n) / walk.restart).flatten()
        reached = [((r != 0) | (p != 0)).nonzero()[:, 0]]  # within the component, as ell is
    else:
        reached = [here, *_spread(walk, r, row, node, value / walk.restart)]

    def score(place: Tensor) -> Tensor:
        row, node = place // n, place % n
        even = estimate.left[row + first] * walk.v[node]
        return p[place] + even + (r[place] - even) * estimate.diagonal[node]

    floor = torch.full_like(walk.v[first:last], least)
    if candidates is not None:  # R and ell are positive up to rounding: entries below so many of P are no candidates
        cut = begin + candidates - 1
        floor = torch.where(cut < end, (1 - MARGIN) * estimate.value[cut.clamp(max=len(estimate.value) - 1)], floor)
    place = torch.cat([part[score(part) >= floor[part // n]] for part in reached]).unique()
    if candidates is not None:
        place = place[largest_per_row(place // n, score(place), top=candidates)].sort().values
    row, node = place // n, place % n
    out = p[place] + estimate.left[row + first] * estimate.left[node]
    for which, entry in expand_ranges_in_parts(estimate.ptr[node], estimate.ptr[node + 1], size=EDGES):
        out.index_add_(0, which, estimate.value[entry] * r[row[which] * n + estimate.index[entry]])
    return row + first, node, out


def _is_dense(walk: Walk, here: Tensor, rows: int) -> bool:
    """Whether a product with all of S is faster than gathering the edges of these places."""
    return len(here) * len(walk.index) > walk.num_nodes * walk.num_nodes * rows // GATHER_COST


def _push_all(walk: Walk, p: Tensor, r: Tensor) -> Tensor:
    """Push once in all rows, (rows, n); return the places above their threshold afterwards."""
    moving = torch.where(r > walk.threshold, r, 0)
    p += moving
    r += _product(walk, moving) - moving
    return (r > walk.threshold).flatten().nonzero()[:, 0]


def _product(walk: Walk, rows: Tensor) -> Tensor:
    """Rows times (1 - rho) S, (rows, n)."""
    pattern = Compressed(walk.ptr.int(), walk.index, torch.arange(len(walk.index), device=rows.device))
    return dispatch.spmm(pattern, walk.step[:, None], rows.T.contiguous()[:, None])[:, 0].T


def _spread(walk: Walk, out: Tensor, row: Tensor, node: Tensor, value: Tensor) -> Iterator[Tensor]:
    """Add (1 - rho) S applied to the entries (row, node) to ``out``, flat; yield the places reached, in parts."""
    for which, entry in expand_ranges_in_parts(walk.ptr[node], walk.ptr[node + 1], size=EDGES):
        there = row[which] * walk.num_nodes + walk.index[entry]
        out.index_add_(0, there, value[which] * walk.step[entry])
        yield there
