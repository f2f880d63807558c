"""Checks that every diffusivity, stencil and encoding must pass, and the small graphs they run on.

Add a new one to its list: ``DIFFUSIVITIES``, ``STENCILS``, ``ENCODINGS`` or ``RANDOM_ENCODINGS``. Reference values are
computed by loops over plain numbers, written from the equations.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.autograd import gradcheck, gradgradcheck
from torch.func import functional_call

from beltrami.diffusivity import (
    Additive,
    Cosine,
    Diffusivity,
    ExpKernel,
    Mixture,
    Pearson,
    RandomWalk,
    ScalarCosine,
    ScaledDot,
    Start,
    xavier,
)
from beltrami.graph import Both, Columns, Edges, Normaliser, Rows, softmax_link, squareplus_link
from beltrami.joint import Joint
from beltrami.position import PPR, DeepWalk, Encoding, Heat, Hyperbolic, LaplacianEigenvectors, ReturnProbabilities
from beltrami.scheme import SparsityPattern
from beltrami.stencil import (
    KNN,
    AddEdges,
    Chain,
    Charted,
    FeatureSimilarity,
    Isolated,
    Keep,
    KeepStrongest,
    Loops,
    Radius,
    Stencil,
    Symmetric,
    Threshold,
    TopK,
    TrainingOnly,
)

JOINT = Joint(2, 3)
NORMALISERS = [over(link) for over in (Rows, Columns, Both) for link in (softmax_link, squareplus_link)]
SOME_NORMALISERS = [Rows(), Columns(squareplus_link), Both(squareplus_link)]

Make = Callable[[Normaliser, int, Start], Diffusivity]
DIFFUSIVITIES: dict[str, Make] = {
    "ScaledDot": lambda n, h, s: ScaledDot(JOINT.channels, 4 * h, heads=h, normalise=n, start=s),
    "Cosine": lambda n, h, s: Cosine(JOINT.channels, 4 * h, heads=h, normalise=n, start=s),
    "Pearson": lambda n, h, s: Pearson(JOINT.channels, 4 * h, heads=h, normalise=n, start=s),
    "ExpKernel": lambda n, h, s: ExpKernel(JOINT, 4 * h, heads=h, normalise=n, start=s),
    "Additive": lambda n, h, s: Additive(JOINT.channels, 4 * h, heads=h, normalise=n, start=s),
    "ScalarCosine": lambda n, h, s: ScalarCosine(heads=h, normalise=n),
    "Mixture": lambda n, h, s: Mixture(JOINT, kernels=2 * h, normalise=n),
    "RandomWalk": lambda n, h, s: RandomWalk(n),
}
LEARNED = [name for name in DIFFUSIVITIES if name != "RandomWalk"]
STENCILS: list[Stencil] = [Keep(), Loops(), Loops(0.3), TopK(2), TopK(9, restart=0.3), Threshold(0.05)]
STENCILS += [KNN(2), Radius(1.5), FeatureSimilarity(), AddEdges(KNN(1)), KeepStrongest(0.5, RandomWalk())]
STENCILS += [Chain(KNN(2), Symmetric()), Charted(Loops(), lambda z: z[:, JOINT.u])]
STENCILS += [TrainingOnly(Isolated(), nn.Identity().eval())]
ENCODINGS: list[Encoding] = [
    PPR(),
    PPR(restart=0.3, top=2),
    PPR(top=None),
    Heat(time=2.0),
    Heat(time=0.5, top=2),
    Heat(time=0.5, top=None),
    LaplacianEigenvectors(1),
    LaplacianEigenvectors(2),
    ReturnProbabilities(4),
]
RANDOM_ENCODINGS: list[Encoding] = [
    DeepWalk(4, walk_length=8, context=3),
    DeepWalk(3, walk_length=8, context=3, negatives=2, epochs=2),
    Hyperbolic(2),
]


def undirected(pairs: Sequence[tuple[int, int]], *, num_nodes: int) -> Edges:
    """A graph with both directions of each pair."""
    both = [*pairs, *((j, i) for i, j in pairs)]
    return Edges.build(torch.tensor(both).T, num_nodes=num_nodes)


def kite() -> Edges:
    """A triangle 0, 1, 2 with a tail 3; degrees 2, 2, 3, 1."""
    return undirected([(0, 1), (0, 2), (1, 2), (2, 3)], num_nodes=4)


def ragged(*, weighted: bool = False) -> Edges:
    """Directed: a double edge 0 -> 1, a self-loop at 2, node 3 only sends, 4 only receives, 5 has no edge."""
    edge_index = torch.tensor([[0, 0, 1, 2, 2, 3, 3, 1, 2], [1, 1, 2, 2, 0, 0, 4, 4, 1]])
    weight = torch.tensor([0.5, 2.0, 1.0, 0.1, 3.0, 1.5, 0.7, 1.0, 4.0], dtype=torch.float64)
    return Edges.build(edge_index, num_nodes=6, weight=weight if weighted else None)


def crooked() -> Edges:
    """A path 0 to 4 and a node 5 joined to 1 and 2: undirected, without symmetries."""
    return undirected([(0, 1), (1, 2), (2, 3), (3, 4), (1, 5), (2, 5)], num_nodes=6)


def crowd() -> Edges:
    """Weighted, nine nodes: 0 receives 21 edges, 1 sends 14, there are loops and double edges, and 8 has no edge."""
    generator = torch.Generator().manual_seed(5)
    j, i = torch.randint(0, 8, (2, 12), generator=generator)
    j = torch.cat((j, torch.arange(21) % 8, torch.ones(14, dtype=torch.long)))
    i = torch.cat((i, torch.zeros(21, dtype=torch.long), torch.arange(14) % 7))
    return Edges.build(torch.stack((j, i)), num_nodes=9, weight=0.5 + normal(47).abs())


def alone(*, loop: bool) -> Edges:
    """One node, with or without a loop."""
    return Edges.build(torch.zeros(2, int(loop), dtype=torch.long), num_nodes=1)


def bare() -> Edges:
    """Four nodes and no edges."""
    return Edges.build(torch.zeros(2, 0, dtype=torch.long), num_nodes=4)


GRAPHS = {"kite": kite(), "ragged": ragged(), "weighted": ragged(weighted=True), "bare": bare()}


@dataclass(frozen=True)
class Full(SparsityPattern):
    """The sparsity pattern of dense matrices, (runs, n, n)."""

    def advance(
        self, out: Tensor, a: Tensor, y: Tensor, *, factor: float, previous: tuple[float, Tensor] | None
    ) -> None:
        out.copy_(factor * a @ y + (previous[0] * previous[1] if previous else 0))

    def pull(
        self,
        out: Tensor,
        a: Tensor,
        p: Tensor,
        *,
        factor: float,
        previous: tuple[float, Tensor] | None,
        cotangent: tuple[Tensor, Tensor],
        edge_sums: tuple[Tensor, Tensor] | None,
    ) -> None:
        self.advance(out, a.mT, p, factor=factor, previous=previous)
        out += cotangent[0][:, None, None] * cotangent[1]
        if edge_sums is not None:
            edge_sums[1].add_(p @ edge_sums[0].mT, alpha=factor)


def normal(*shape: int, seed: int = 0) -> Tensor:
    """Standard normal numbers in double precision."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def make(name: str, normalise: Normaliser | None = None, *, heads: int = 1, start: Start = xavier) -> Diffusivity:
    """Return a diffusivity of the list in double precision, with reproducible parameters."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return DIFFUSIVITIES[name](Rows() if normalise is None else normalise, heads, start).double()


def pairs(edges: Edges) -> list[tuple[int, int]]:
    """Return the edges as (i, j): receiver, sender."""
    return [(int(i), int(j)) for j, i in edges.edge_index.T]


def dense(a: Tensor, edges: Edges) -> Tensor:
    """Return the matrix A with A_ij the sum of the weights of the edges j -> i."""
    matrix = a.new_zeros(edges.num_nodes, edges.num_nodes)
    for e, (i, j) in enumerate(pairs(edges)):
        matrix[i, j] += a[e]
    return matrix


def normalised_by_loops(score: Sequence[float], edges: Edges, normalise: Normaliser) -> list[float]:
    """Return the weights of one head: mu e^s, or mu (s + sqrt(s^2 + 4)) / 2, over the row sum, column sum or both."""
    positive = math.exp if normalise.link is softmax_link else lambda s: (s + math.sqrt(s * s + 4)) / 2
    mu = [1.0] * edges.num_edges if edges.weight is None else edges.weight.tolist()
    w = [m * positive(s) for m, s in zip(mu, score, strict=True)]
    rows, columns = [0.0] * edges.num_nodes, [0.0] * edges.num_nodes
    for value, (i, j) in zip(w, pairs(edges), strict=True):
        rows[i] += value
        columns[j] += value
    totals: dict[type[Normaliser], Callable[[int, int], float]] = {
        Rows: lambda i, j: rows[i],
        Columns: lambda i, j: columns[j],
        Both: lambda i, j: math.sqrt(rows[i] * columns[j]),
    }
    total = totals[type(normalise)]
    return [value / total(i, j) for value, (i, j) in zip(w, pairs(edges), strict=True)]


def weights_by_loops(
    score: Callable[[int, int, int], float], edges: Edges, normalise: Normaliser, *, heads: int
) -> Tensor:
    """Return the mean over heads of the normalised scores ``score(i, j, head)``, (m,)."""
    scores = [[score(i, j, head) for i, j in pairs(edges)] for head in range(heads)]
    each = [normalised_by_loops(s, edges, normalise) for s in scores]
    return torch.tensor(each, dtype=torch.float64).mean(0)


def relabelled(edges: Edges, names: Tensor) -> Edges:
    """Return the same graph with node k renamed to ``names[k]``."""
    return Edges.build(names[edges.edge_index], num_nodes=edges.num_nodes, weight=edges.weight)


class _Caller(nn.Module):
    def __init__(self, module: nn.Module, run: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.module, self.run = module, run

    def forward(self, x: Tensor) -> Tensor:
        return self.run(x)


def by_parameters(module: nn.Module, run: Callable[[Tensor], Tensor]) -> tuple[Callable[..., Tensor], list[Tensor]]:
    """Return ``run``, which uses ``module``, as a function of its argument and all parameters, and the parameters."""
    caller = _Caller(module, run)
    names = [f"module.{name}" for name, _ in module.named_parameters()]

    def function(x: Tensor, *values: Tensor) -> Tensor:
        out: Tensor = functional_call(caller, dict(zip(names, values, strict=True)), (x,))
        return out

    return function, list(module.parameters())


def check_weights_are_normalised(a: Diffusivity, edges: Edges) -> None:
    """Weights are positive; rows or columns with edges sum to one; with ``Both`` no singular value exceeds one."""
    weights = a(normal(edges.num_nodes, JOINT.channels), edges)
    matrix = dense(weights, edges).detach()
    assert weights.shape == (edges.num_edges,)
    assert weights.dtype == torch.float64
    assert bool((weights > 0).all())
    if isinstance(a.normalise, Both):
        assert float(torch.linalg.matrix_norm(matrix, 2)) <= 1 + 1e-12
        return
    over = 1 if isinstance(a.normalise, Rows) else 0
    has_edges = (edges.in_degree() if over == 1 else edges.out_degree()) > 0
    torch.testing.assert_close(matrix.sum(over), has_edges.double())


def check_relabelling_commutes(a: Diffusivity, edges: Edges) -> None:
    """a(P z, P E) = a(z, E) on every edge."""
    z = normal(edges.num_nodes, JOINT.channels)
    names = torch.randperm(edges.num_nodes, generator=torch.Generator().manual_seed(1))
    renamed, moved = relabelled(edges, names), torch.empty_like(z).index_copy_(0, names, z)
    there = renamed.restore(a(moved, renamed))  # the order of `edges`, which `renamed` was built from
    torch.testing.assert_close(there, a(z, edges))
    if edges.num_edges and len(list(a.parameters())):
        assert not torch.allclose(a(moved, edges), a(z, edges)), "weights must depend on the states of their ends"


def check_derivatives(a: Diffusivity, edges: Edges) -> None:
    """First and second derivatives by z and all parameters agree with finite differences."""
    z = normal(edges.num_nodes, JOINT.channels).requires_grad_()
    weights, parameters = by_parameters(a, lambda z: a(z, edges) + 0 * z.sum())  # RandomWalk ignores z
    assert gradcheck(weights, (z, *parameters), fast_mode=True)
    assert gradgradcheck(weights, (z, *parameters), fast_mode=True)


def check_no_edges_do_no_harm(a: Diffusivity, edges: Edges) -> None:
    """Values and gradients are finite on nodes without edges, also inside the backward pass."""
    z = normal(edges.num_nodes, JOINT.channels).requires_grad_()
    with torch.autograd.set_detect_anomaly(True):
        weights = a(z, edges)
        (weights.square().sum() + 0 * z.sum()).backward()
    assert z.grad is not None
    assert bool(torch.isfinite(weights).all())
    assert bool(torch.isfinite(z.grad).all())
    without = (edges.in_degree() + edges.out_degree()) == 0
    assert float(z.grad[without].abs().sum()) == 0.0


def check_stencil(stencil: Stencil, edges: Edges) -> None:
    """The output has the same nodes, is reproducible and shows its name; the input is unchanged."""
    z = normal(edges.num_nodes, JOINT.channels)
    if isinstance(stencil, TopK | Threshold):
        edges = Symmetric()(z, edges)  # they need an undirected graph
    before = edges.edge_index.clone()
    out = stencil(z, edges)
    again = stencil(z, edges)
    assert out.num_nodes == edges.num_nodes
    assert torch.equal(out.edge_index, again.edge_index)
    assert torch.equal(edges.edge_index, before)
    if isinstance(stencil, Keep | Loops):
        assert set(pairs(edges)) <= set(pairs(out))
    Edges.build(out.edge_index, num_nodes=out.num_nodes, weight=out.weight)  # raises if a node is out of range
    assert repr(stencil).startswith(f"{type(stencil).__name__}(")


def check_encoding(encoding: Encoding, edges: Edges) -> None:
    """Positions are finite and reproducible, one row per node; relabelling permutes the rows up to an isometry."""
    u = encoding(edges).to_dense()
    assert u.shape[0] == edges.num_nodes
    assert u.dtype == torch.float32
    assert bool(torch.isfinite(u).all())
    assert torch.equal(u, encoding(edges).to_dense())
    names = torch.randperm(edges.num_nodes, generator=torch.Generator().manual_seed(2))
    moved = encoding(relabelled(edges, names)).to_dense()[names]
    torch.testing.assert_close(moved @ moved.T, u @ u.T, atol=1e-5, rtol=1e-5)


def check_random_encoding(encoding: Encoding, edges: Edges) -> None:
    """Positions are finite, one row per node, and depend on the seed of the generator and on no other randomness."""

    def encode(seed: int) -> Tensor:
        return encoding(edges, torch.Generator().manual_seed(seed)).to_dense()

    before = torch.get_rng_state()
    u = encode(0)
    assert torch.equal(torch.get_rng_state(), before)
    assert u.shape[0] == edges.num_nodes
    assert u.dtype == torch.float32
    assert bool(torch.isfinite(u).all())
    assert torch.equal(u, encode(0))
    assert not torch.equal(u, encode(1))
