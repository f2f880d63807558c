r"""Diffusion kernels of a graph: personalised PageRank and heat.

Eq. (12) writes the series with the random-walk Laplacian; the series that converges, and that the closed form sums, is
that of the transition matrix :math:`P = D^{-1} A`. Every kernel here is a function of the symmetric
:math:`S = D^{-1/2} A D^{-1/2}`; since :math:`P = D^{-1/2} S D^{1/2}`, the random walk's kernel is its similarity
transform.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from beltrami.graph.edges import Edges
from beltrami.graph.ops.products import aggregate, collect

MAX_PRODUCTS = 2_000  # with the matrix of a graph, for a column of a kernel
Kernel = Callable[[Edges, Tensor], Tensor]
"""Columns of a kernel of a graph, (c,) -> (n, c); for example ``partial(personalised_pagerank, restart=0.05)``."""


def symmetric_weights(edges: Edges) -> Tensor:
    r"""Entries of :math:`S = D^{-1/2} A D^{-1/2}` on the edges, (m,); A from ``edges.weight``, one where None."""
    w = torch.ones(edges.num_edges, device=edges.device) if edges.weight is None else edges.weight
    root = collect(w[:, None], edges)[:, 0].rsqrt()
    return w * root[edges.i] * root[edges.j]


def personalised_pagerank(edges: Edges, columns: Tensor, *, restart: float, tolerance: float = 1e-7) -> Tensor:
    r"""Columns of the symmetric PageRank kernel :math:`K = \rho (I - (1 - \rho) S)^{-1}`, with restart :math:`\rho`.

    Solved by Chebyshev iteration: the spectrum of :math:`I - (1 - \rho) S` lies in :math:`[\rho, 2 - \rho]`, so that
    the error falls by :math:`(\sqrt\kappa - 1) / (\sqrt\kappa + 1)`, :math:`\kappa = (2 - \rho) / \rho`, every product:
    about 60 products for six digits at :math:`\rho = 0.05`, where the power series needs 270. The graph is undirected;
    ``restart`` is the paper's :math:`1 - \beta`; ``tolerance`` bounds the error of the solve relative to its start.

    Shapes:
        ``columns`` (c,) -> (n, c).
    """
    products = check_restart(restart, tolerance=tolerance)
    s = symmetric_weights(edges)
    unit = restart * _unit(edges, columns, s.dtype)
    delta = 1 - restart  # the spectrum is [1 - delta, 1 + delta]
    k, step, residual, rho = torch.zeros_like(unit), unit, unit, delta
    for _ in range(products):
        k = k + step
        residual = residual - step + delta * aggregate(s, step, edges)
        rho_next = 1 / (2 / delta - rho)
        step, rho = rho_next * rho * step + (2 * rho_next / delta) * residual, rho_next
    return k


def check_restart(restart: float, *, tolerance: float = 1e-7) -> int:
    """Return the products that a column of PageRank needs; a restart outside (0, 1) or too small is refused."""
    if not 0 < restart < 1:
        raise ValueError(f"`restart` must lie between 0 and 1; got {restart}.")
    kappa = (2 - restart) / restart
    rate = (math.sqrt(kappa) - 1) / (math.sqrt(kappa) + 1)
    products = math.ceil(math.log(tolerance / 2) / math.log(rate)) if rate < 1 else math.inf
    if products > MAX_PRODUCTS:
        raise ValueError(
            f"personalised PageRank with `restart` {restart:g} needs {products:.4g} products, and at most "
            f"{MAX_PRODUCTS} are allowed: choose a `restart` of at least 1e-4."
        )
    return int(products)


def check_heat_time(time: float, *, tolerance: float = 1e-7) -> None:
    """Refuse a time of the heat kernel that is negative, or so long that it needs too many products."""
    if not 0 <= time < math.inf:
        raise ValueError(f"`time` must be finite and not negative; got {time}.")
    products = math.sqrt(2 * time * math.log(1 / tolerance))
    if products > MAX_PRODUCTS:
        raise ValueError(
            f"the heat kernel at `time` {time:g} needs about {products:.4g} products, and at most {MAX_PRODUCTS} are "
            f"allowed: choose a time below {MAX_PRODUCTS**2 / (2 * math.log(1 / tolerance)):.2g}."
        )


def heat_kernel(edges: Edges, columns: Tensor, *, time: float, tolerance: float = 1e-7) -> Tensor:
    r"""Columns of the symmetric heat kernel :math:`H_t = e^{-t (I - S)}`.

    The spectrum of S lies in :math:`[-1, 1]`, where the exponential is a Chebyshev series with Bessel coefficients,

    .. math:: e^{-t (I - S)} = e^{-t} I_0(t) + 2 \sum_{k \ge 1} e^{-t} I_k(t) \, T_k(S),

    whose terms are bounded by their coefficients. The sum ends where the remaining coefficients sum to less than the
    tolerance, which bounds the error of each column in the Euclidean norm, rounding apart; after about
    :math:`\sqrt{2 t \log(1 / \text{tolerance})}` products for large t. The graph is undirected.

    Shapes:
        ``columns`` (c,) -> (n, c).
    """
    check_heat_time(time, tolerance=tolerance)
    s = symmetric_weights(edges)
    before, term = None, _unit(edges, columns, s.dtype)
    first, *others = _bessel(time, tolerance)
    h = first * term
    for coefficient in others:
        step = aggregate(s, term, edges)
        before, term = term, step if before is None else 2 * step - before
        h = h + 2 * coefficient * term
    return h


def top_entries(
    edges: Edges, kernel: Kernel, *, top: int | None, block: int = 512, on_columns: Callable[[int], None] | None = None
) -> Tensor:
    """The ``top`` largest entries of every column of a kernel, as a sparse (n, n) matrix; the dense matrix for None.

    Columns are computed in blocks, in O(n (block + top)) memory instead of O(n^2). ``on_columns`` is called after each
    block with the number of columns done.
    """
    n, found = edges.num_nodes, []
    for columns in torch.arange(n, device=edges.device).split(block):
        solved = kernel(edges, columns)
        found.append(solved if top is None else _largest(solved, top=min(top, n)))
        if on_columns is not None:
            on_columns(int(columns[-1]) + 1)
    return torch.cat(found, dim=1) if top is None else torch.cat(found, dim=1).coalesce()


def _unit(edges: Edges, columns: Tensor, dtype: torch.dtype) -> Tensor:
    """Columns of the identity, (n, c)."""
    unit = torch.zeros(edges.num_nodes, len(columns), dtype=dtype, device=edges.device)
    unit[columns, torch.arange(len(columns), device=edges.device)] = 1
    return unit


def _bessel(time: float, tolerance: float) -> list[float]:
    """e^-t I_k(t) for k = 0, 1, ..., until twice the sum of the rest is below the tolerance."""
    import numpy as np
    from scipy.special import ive

    # Beyond k = t each is below half of the one before; after sixty halvings the rest is below rounding.
    coefficients = ive(np.arange(math.ceil(time) + 60), time)
    left = 2 * coefficients[::-1].cumsum()[::-1]  # twice the sum from k on
    return [float(c) for c in coefficients[: max(1, int((left > tolerance).sum()))]]


def _largest(columns: Tensor, *, top: int) -> Tensor:
    """The ``top`` largest positive entries of each column (n, c), as a sparse (n, c) matrix."""
    values, rows = columns.topk(top, dim=0)
    keep = values > 0
    here = torch.arange(columns.shape[1], device=columns.device).expand(top, -1)
    index = torch.stack((rows[keep], here[keep]))
    return torch.sparse_coo_tensor(index, values[keep], columns.shape, check_invariants=False)
