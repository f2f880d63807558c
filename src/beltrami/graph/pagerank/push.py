r"""The large entries of personalised PageRank, row by row, on graphs where n x n numbers are out of reach.

With :math:`S = D^{-1/2} A D^{-1/2}` and restart :math:`\rho` the kernel is :math:`K = \rho (I - (1 - \rho) S)^{-1}`, as
in :mod:`beltrami.graph.pagerank.kernel`. A sparse estimate P of it has the residual R,

.. math:: R = I - \tfrac1\rho P (I - (1 - \rho) S), \qquad K = P + R K.

Forward push (Andersen, Chung and Lang 2006) builds P row by row: wherever :math:`r_u` exceeds
:math:`\varepsilon \sqrt{d_u}` it moves :math:`\rho r_u` into p and :math:`(1 - \rho) r_u` on to the neighbours of u. By
itself that is of first order in the residual, and slow: for small :math:`\rho` most of the mass ends far away. But K is
symmetric, so that the K on the right may be taken from its other end:

.. math:: K \approx P + R P^\top + \ell \ell^\top, \qquad \ell = v - P v, \qquad v = (d / \textstyle\sum d)^{1/2}.

Here :math:`\ell = R v` stands for what has mixed: v is the eigenvector of eigenvalue one, K v = v. The error is the
part of :math:`R K R^\top` off v, of second order; and the formula is evaluated at a few candidates in each row alone.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import torch
from torch import Tensor

from beltrami.graph.edges import Edges, check_undirected
from beltrami.graph.pagerank import push_torch
from beltrami.graph.pagerank.push_estimate import Entries, Estimate, Walk
from beltrami.graph.ragged import ranked

SPARE = 2  # candidates looked at for each entry asked for


class PushBackend(Protocol):
    """Two functions on rows [first, last), in any thread: ``push_torch`` (plain torch) or ``compiled`` (numba)."""

    def block(self, num_nodes: int) -> int:
        """How many rows to work on at a time."""

    def workers(self) -> int:
        """How many blocks at a time."""

    def push(self, walk: Walk, first: int, last: int) -> Entries:
        """Rows of P, each from its largest entry down: how many entries each has, their columns, their values."""

    def refine(
        self, walk: Walk, estimate: Estimate, first: int, last: int, *, candidates: int | None, least: float
    ) -> Entries:
        """P + R P^T + ell ell^T at the candidates of each row, rows and columns ascending.

        Candidates are where P + ell v^T + (R - ell v^T) diag(P) is at least ``least``, the largest ``candidates`` of
        them: the formula itself, but that P^T is its diagonal for the part of R off v.
        """


def largest_entries(
    edges: Edges,
    *,
    restart: float,
    top: int,
    tolerance: float = 1e-4,
    block: int | None = None,
    engine: PushBackend | None = None,
) -> Tensor:
    r"""The ``top`` largest entries of every row of K, as a sparse (n, n) matrix.

    A row takes :math:`O(1 / (\varepsilon \rho))` operations whatever the size of the graph, so that time and memory
    are O(n). A row has fewer entries where less is in reach.

    Args:
        edges: an undirected graph.
        restart: :math:`\rho`, in (0, 1).
        top: how many in each row, the diagonal among them; of equal ones, the lowest nodes.
        tolerance: :math:`\varepsilon`. The default finds 99 of 100 entries at :math:`\rho = 0.05`, to 1e-4 and better.
        block: rows at a time; the result does not depend on it, but for rounding.
        engine: None is ``compiled`` where numba is installed and the graph is not on a GPU, else ``push_torch``.
    """
    if top < 1:
        raise ValueError(f"`top` must be at least 1; got {top}.")
    return _select(
        _walk(edges, restart, tolerance),
        lambda row, value: ranked(row, value, top=top),
        candidates=SPARE * top,
        least=0.0,
        block=block,
        engine=engine,
    )


def entries_above(
    edges: Edges,
    *,
    restart: float,
    least: float,
    tolerance: float | None = None,
    block: int | None = None,
    engine: PushBackend | None = None,
) -> Tensor:
    """All entries of K that are at least ``least``, as a sparse (n, n) matrix.

    As :func:`largest_entries`; ``tolerance`` is 1e-4, or a tenth of ``least`` where that is smaller, unless given.
    """
    if not 0 < least < 1:
        raise ValueError(f"`least` must lie between 0 and 1; got {least}.")
    return _select(
        _walk(edges, restart, min(1e-4, least / 10) if tolerance is None else tolerance),
        lambda row, value: (value >= least).nonzero()[:, 0],
        candidates=None,
        least=least / 2,
        block=block,
        engine=engine,
    )


def _select(
    walk: Walk,
    keep: Callable[[Tensor, Tensor], Tensor],
    *,
    candidates: int | None,
    least: float,
    block: int | None,
    engine: PushBackend | None,
) -> Tensor:
    """The entries that ``keep`` picks from (row, value), as a sparse matrix."""
    engine = _engine(walk) if engine is None else engine
    n = walk.num_nodes
    block = engine.block(n) if block is None else block
    estimate = Estimate.of(walk, *_joined(list(_each(lambda a, b: engine.push(walk, a, b), n, block, engine))))

    def refine(first: int, last: int) -> Entries:
        row, column, value = engine.refine(walk, estimate, first, last, candidates=candidates, least=least)
        kept = keep(row - first, value)
        kept = kept[value[kept] > 0]
        return row[kept], column[kept], value[kept]

    row, column, value = _joined(list(_each(refine, n, block, engine)))
    return torch.sparse_coo_tensor(torch.stack((row, column)), value, (n, n), check_invariants=False).coalesce()


def _each(run: Callable[[int, int], Entries], n: int, block: int, engine: PushBackend) -> Iterator[Entries]:
    first = range(0, n, block)
    with ThreadPoolExecutor(engine.workers()) as pool:
        yield from pool.map(run, first, [min(a + block, n) for a in first])


def _joined(parts: list[Entries]) -> Entries:
    one, two, three = (torch.cat(part) for part in zip(*parts, strict=True))
    return one, two, three


def _engine(walk: Walk) -> PushBackend:
    if walk.v.device.type != "cpu":
        return push_torch
    try:
        from beltrami.graph.pagerank import push_numba
    except ImportError:
        return push_torch
    return push_numba


def _walk(edges: Edges, restart: float, tolerance: float) -> Walk:
    if not 0 < restart < 1:
        raise ValueError(f"`restart` must lie between 0 and 1; got {restart}.")
    if not tolerance > 0:
        raise ValueError(f"`tolerance` must be positive; got {tolerance}.")
    check_undirected(edges, needed_by="personalised PageRank by push")
    return Walk.on(edges, restart=restart, tolerance=tolerance)
