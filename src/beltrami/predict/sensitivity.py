"""Derivatives of a node's final state by all initial states and by the weights of the edges, and integrated gradients.

One backward solve gives the derivatives by everything at once; the solution operator, n x n, is never formed.
"""

from collections.abc import Callable
from typing import NamedTuple, cast

import numpy
import torch
from numpy.polynomial.legendre import leggauss
from torch import Tensor

from beltrami.flow import BeltramiField, BoundField, Flow, FunctionField, LinearField, LinearFlow, TimeVarying
from beltrami.flow.base import present
from beltrami.flow.wrapped import WrappedFlow
from beltrami.graph import Edges, aggregate
from beltrami.model import Evolution

MOST_POINTS = 64  # of the quadrature of integrated gradients


class Sensitivity(NamedTuple):
    """Derivatives of <g, z_i(T)>: by z(0), (n, d), and on each graph of the path by the logarithm of each weight, (m,).

    ``by_weight`` has one tensor per graph in ``meshes``; None for a flow whose edges have no weights that multiply
    states, such as a flow of messages.
    """

    by_state: Tensor
    by_weight: tuple[Tensor, ...] | None
    meshes: tuple[Edges, ...]


class HeldWeights(WrappedFlow):
    """A flow whose frozen weights are constants, and which has a factor of one on every weight of an edge.

    Weights that are frozen where the flow is bound do not depend on z(0) by differentiation; weights of a live flow do.
    A source depends on z(0) in both. ``factors`` and ``meshes`` have an entry for each call of ``bind``.
    """

    def __init__(self, flow: Flow) -> None:
        super().__init__(flow)
        self.factors: list[Tensor] = []
        self.meshes: list[Edges] = []

    def bind(self, z: Tensor, edges: Edges, *, start: Tensor | None = None) -> BoundField:
        f = self.flow.bind(z.detach(), edges, start=start)
        factor = torch.ones(edges.num_edges, dtype=z.dtype, device=z.device, requires_grad=True)
        weighted = _with_factor(f, factor)
        self.meshes.append(edges)
        self.factors += [] if weighted is f else [factor]
        return weighted


class DifferentiablePath:
    """A solve from ``z0`` (n, d) to ``time`` with the model's own scheme and stencil; ``z`` (n, d) is its end."""

    def __init__(self, evolution: Evolution, z0: Tensor, edges: Edges, *, time: float) -> None:
        self.start, self.flow = z0.detach().requires_grad_(), HeldWeights(evolution.flow)
        held = Evolution(
            self.flow, scheme=evolution.scheme, time=evolution.time, stencil=evolution.stencil, remesh=evolution.remesh
        )
        with torch.enable_grad():
            self.z = held.trajectory(self.start, edges, (0.0, time)).z if time else self.start
        self.meshes = tuple(self.flow.meshes) or (edges,)

    def pull(self, node: int, g: Tensor) -> Sensitivity:
        """Return the derivatives of <g, z_node> for ``g`` (d,), by one backward solve; it can be called once."""
        inputs = (self.start, *self.flow.factors)
        with torch.enable_grad():
            by_state, *by_weight = torch.autograd.grad(self.z[node] @ g, inputs, materialize_grads=True)
        complete = len(by_weight) == len(self.meshes)
        return Sensitivity(by_state, tuple(by_weight) if complete else None, self.meshes)


def is_linear(flow: Flow) -> bool:
    """Whether z(T) is linear in z(0) while the weights are held at the values with which the flow is bound."""
    if isinstance(flow, TimeVarying):
        return all(is_linear(cast("Flow", part)) for part in flow.flows)
    return is_linear(flow.flow) if isinstance(flow, WrappedFlow) else isinstance(flow, LinearFlow)


def integrated_gradients(score: Callable[..., Tensor], *xs: Tensor, rtol: float) -> tuple[Tensor, ...]:
    r"""Return :math:`\int_0^1 \nabla m(s x)\, ds` for a scalar m, ``score``, of one or several tensors.

    Complete: the sum of its products with x is m(x) - m(0). By Gauss-Legendre quadrature, whose points are doubled
    until this holds to ``rtol`` times the larger of both values, up to ``MOST_POINTS``. One point is exact where m(s x)
    is linear in s > 0, as for ReLU followed by a linear map: scaling changes no sign.
    """
    with torch.no_grad():
        last, first = float(score(*xs)), float(score(*map(torch.zeros_like, xs)))
    allowed, points = rtol * max(abs(last), abs(first)), 1
    while True:
        gradients = _mean_gradients(score, xs, points)
        explained = sum(float((g * x).sum()) for g, x in zip(gradients, xs, strict=True))
        if abs(explained - (last - first)) <= allowed or points >= MOST_POINTS:
            return gradients
        points *= 2


def _mean_gradients(score: Callable[..., Tensor], xs: tuple[Tensor, ...], points: int) -> tuple[Tensor, ...]:
    means = tuple(map(torch.zeros_like, xs))
    for root, weight in zip(*map(numpy.ndarray.tolist, leggauss(points)), strict=True):  # on [-1, 1]
        with torch.enable_grad():
            at = tuple((x.detach() * (0.5 + 0.5 * root)).requires_grad_() for x in xs)
            each = torch.autograd.grad(score(*at), at, materialize_grads=True)
        means = tuple(mean + 0.5 * weight * g for mean, g in zip(means, each, strict=True))
    return means


def _with_factor(f: BoundField, factor: Tensor) -> BoundField:
    """Return the field whose weights are multiplied by ``factor`` (m,) after normalisation; ``f`` if it has no weights.

    At one, the derivative by the factor is the derivative by the logarithm of the weight.
    """
    if isinstance(f, LinearField):
        isolated = None if f.isolated is None else f.isolated[:, 0]
        a, alpha = factor * f.a.detach(), None if f.alpha is None else f.alpha.detach()
        return LinearField(a, f.edges, isolated=isolated, alpha=alpha, source=f.source, norm=f.norm)
    if not isinstance(f, BeltramiField):
        return f

    def dz_dt(t: float, z: Tensor) -> Tensor:
        change = aggregate((factor - 1) * f.diffusivity(z, f.edges), z, f.edges)  # zero, but not its derivative
        for scalar in present(f.alpha, f.kappa):
            change = scalar * change
        return f(t, z) + change

    return FunctionField(dz_dt, (*f.tensors, factor))
