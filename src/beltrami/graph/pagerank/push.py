r"""Large entries of personalised PageRank, row by row, for graphs where n x n numbers do not fit.

With :math:`S = D^{-1/2} A D^{-1/2}` and restart :math:`\rho` the kernel is :math:`K = \rho (I - (1 - \rho) S)^{-1}`, as
in :mod:`beltrami.graph.pagerank.kernel`. A sparse estimate P of it has the residual R,

.. math:: R = I - \tfrac1\rho P (I - (1 - \rho) S), \qquad K = P + R K.

Forward push (Andersen, Chung and Lang 2006) builds P row by row: wherever :math:`r_u` exceeds
:math:`\varepsilon \sqrt{d_u}` it moves :math:`\rho r_u` into p and :math:`(1 - \rho) r_u` on to the neighbours of u.
That alone is of first order in the residual, and slow: for small :math:`\rho` most of the mass ends far away. But K is
symmetric, so that the K on the right may be estimated by :math:`P^\top`:

.. math:: K \approx P + R P^\top + \ell \ell^\top, \qquad \ell = v - P v, \qquad v = (d / \textstyle\sum d)^{1/2}.

Here :math:`\ell = R v` is the part that has mixed: v is the eigenvector of eigenvalue one, K v = v. The error is the
part of :math:`R K R^\top` off v, of second order; and the formula is evaluated only at a few candidates in each row.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from math import ceil

import torch
from torch import Tensor

from beltrami.graph.edges import Edges, check_undirected
from beltrami.graph.ops.products import collect
from beltrami.graph.pagerank.kernel import check_restart, symmetric_weights
from beltrami.graph.row_chunks import largest_per_row
from beltrami.graph.statistics import component_of

CANDIDATES = 2  # per entry asked for
BLOCKS = 64  # of rows, for the threads; each allocates vectors of length n
Entries = tuple[Tensor, Tensor, Tensor]  # row, column, value


@dataclass(frozen=True, eq=False)
class Walk:
    """(1 - rho) S by rows in single precision, the thresholds of push, and the eigenvector v of eigenvalue one."""

    ptr: Tensor  # (n + 1,)
    index: Tensor  # (m,), the neighbours of each node
    step: Tensor  # (m,), their entries of (1 - rho) S
    threshold: Tensor  # (n,), epsilon sqrt(d)
    v: Tensor  # (n,), normalised over each connected component
    restart: float

    @staticmethod
    def on(edges: Edges, *, restart: float, tolerance: float) -> "Walk":
        check_restart(restart)
        if not tolerance > 0:
            raise ValueError(f"`tolerance` must be positive; got {tolerance}.")
        check_undirected(edges, needed_by="personalised PageRank by push")
        weight = torch.ones(edges.num_edges, device=edges.device) if edges.weight is None else edges.weight.detach()
        degree = collect(weight[:, None], edges)[:, 0].double()
        component = component_of(edges)
        volume = torch.zeros_like(degree).index_add_(0, component, degree)[component]
        return Walk(
            ptr=edges.rows.ptr.long(),
            index=edges.rows.index,
            step=((1 - restart) * symmetric_weights(edges).detach()).float(),
            threshold=(tolerance * degree.sqrt()).float(),
            v=torch.where(volume > 0, degree / volume, 0.0).sqrt().float(),
            restart=restart,
        )

    @property
    def num_nodes(self) -> int:
        return len(self.v)


@dataclass(frozen=True, eq=False)
class Estimate:
    r"""P by rows, the entries of each in descending order, with its diagonal and :math:`\ell = v - P v`."""

    ptr: Tensor  # (n + 1,)
    index: Tensor  # (e,)
    value: Tensor  # (e,)
    diagonal: Tensor  # (n,)
    left: Tensor  # (n,), ell

    @staticmethod
    def of(walk: Walk, count: Tensor, index: Tensor, value: Tensor) -> "Estimate":
        """From the number of entries of each row, (n,), and the entries, row after row."""
        ptr = torch.cat((count.new_zeros(1), count.cumsum(0)))
        diagonal, mixed = torch.zeros_like(walk.v), torch.zeros_like(walk.v)
        nodes = torch.arange(walk.num_nodes, device=ptr.device)
        for rows in nodes.split(max(1, walk.num_nodes // 16)):  # in parts: row numbers take twice the memory of P
            begin, end = int(ptr[rows[0]]), int(ptr[rows[-1] + 1])
            row = torch.repeat_interleave(rows, count[rows])
            column, entry = index[begin:end], value[begin:end]
            own = row == column
            diagonal[row[own]] = entry[own]
            mixed.index_add_(0, row, entry * walk.v[column])
        return Estimate(ptr=ptr, index=index, value=value, diagonal=diagonal, left=walk.v - mixed)


def largest_entries(edges: Edges, *, restart: float, top: int, tolerance: float = 1e-4) -> Tensor:
    r"""The ``top`` largest entries of every row of K of an undirected graph on the CPU, as a sparse (n, n) matrix.

    A row takes :math:`O(1 / (\varepsilon \rho))` operations for a graph of any size, so that time and memory are O(n).
    A row with fewer nodes in reach has fewer entries; ties go to the lowest nodes. ``restart`` is :math:`\rho`, in
    (0, 1). The default :math:`\varepsilon`, ``tolerance``, finds 99 of 100 entries at :math:`\rho = 0.05`, to 1e-4.
    """
    if top < 1:
        raise ValueError(f"`top` must be at least 1; got {top}.")
    walk = Walk.on(edges, restart=restart, tolerance=tolerance)
    return _select(walk, lambda row, value: largest_per_row(row, value, top=top), CANDIDATES * top, 0.0)


def entries_above(edges: Edges, *, restart: float, least: float) -> Tensor:
    """All entries of K that are at least ``least``, as a sparse (n, n) matrix. As :func:`largest_entries`, with a
    tolerance of 1e-4, or a tenth of ``least`` where that is smaller."""
    if not 0 < least < 1:
        raise ValueError(f"`least` must lie between 0 and 1; got {least}.")
    walk = Walk.on(edges, restart=restart, tolerance=min(1e-4, least / 10))
    return _select(walk, lambda row, value: (value >= least).nonzero()[:, 0], walk.num_nodes, least / 2)


def _select(walk: Walk, keep: Callable[[Tensor, Tensor], Tensor], candidates: int, least: float) -> Tensor:
    """The entries whose places ``keep`` returns from (row, value), as a sparse matrix."""
    if find_spec("numba") is None:
        raise ImportError("personalised PageRank by push needs numba: pip install beltrami[fast].")
    from beltrami.graph.pagerank import push_numba

    n = walk.num_nodes

    def in_blocks(work: Callable[[int, int], Entries]) -> Entries:
        rows = ceil(n / BLOCKS)
        first = range(0, n, rows)
        with ThreadPoolExecutor(torch.get_num_threads()) as pool:
            parts = list(pool.map(work, first, [min(a + rows, n) for a in first]))
        one, two, three = (torch.cat(part) for part in zip(*parts, strict=True))
        return one, two, three

    def refine(first: int, last: int) -> Entries:
        row, column, value = push_numba.refine(walk, estimate, first, last, candidates=candidates, least=least)
        kept = keep(row - first, value)
        kept = kept[value[kept] > 0]
        return row[kept], column[kept], value[kept]

    estimate = Estimate.of(walk, *in_blocks(lambda first, last: push_numba.push(walk, first, last)))
    row, column, value = in_blocks(refine)
    return torch.sparse_coo_tensor(torch.stack((row, column)), value, (n, n), check_invariants=False).coalesce()
