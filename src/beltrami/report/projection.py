"""Where to draw the nodes of a flow: one fixed map from states to the plane for all times."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from beltrami.flow import Flow, HyperbolicFlow
from beltrami.flow.wrapped import WrappedFlow
from beltrami.geometry import PoincareBall
from beltrami.graph import Edges
from beltrami.report.model_flow import ModelFlow

LAST = 4.0  # weight of the last state in the choice of axes, relative to the first
MOST_RATIO = 20.0  # of sizes that one picture shows without shortening
NEGLIGIBLE = 0.01  # variance of a second component, relative to the first, that is not worth an axis


class PlaneMap(ABC):
    """A map from states (..., n, d) to points of the plane (..., n, 2), with its axes and a sentence that describes it;
    ``disc``: whether the points lie in the Poincare disc."""

    axes: tuple[str, str]
    says: str
    disc: ClassVar[bool] = False

    @abstractmethod
    def __call__(self, z: Tensor) -> Tensor:
        """Return the points, in double precision."""


class Positions(PlaneMap):
    """The two positional channels of the state, shortened if those at the ends of the flow differ much in size."""

    axes = ("first position", "second position")

    def __init__(self, first: Tensor, last: Tensor) -> None:
        self.shorten = Shortening.between(first[:, :2], last[:, :2])
        self.says = "Each node is drawn at its position u(t), the two positional channels of its state"
        if self.shorten.needed:
            self.says += f"; {self.shorten.says('u')}"
        self.says += "."

    def __call__(self, z: Tensor) -> Tensor:
        u = z[..., :2].double()
        return self.shorten(u) if self.shorten.needed else u


class Disc(PlaneMap):
    """The two positional channels as a point of the Poincare disc; the state holds its logarithm at the origin."""

    axes = ("first coordinate in the disc", "second coordinate in the disc")
    says = (
        "Each node is drawn at its position in the Poincare disc, whose circle is infinitely far away: distances grow "
        "towards it."
    )
    disc = True

    def __init__(self, ball: PoincareBall) -> None:
        self.ball = ball

    def __call__(self, z: Tensor) -> Tensor:
        points: Tensor = self.ball.exp_origin(z[..., :2].double()) * float(self.ball.curvature) ** 0.5
        return points


@dataclass(frozen=True)
class Shortening:
    r"""The map :math:`\phi(z) = z / (|z| + r)`, with r the geometric mean of the median sizes at the ends of a flow.

    The size of a state grows with a source, shrinks by diffusion and differs by degree: without the map, one end of the
    flow would be drawn as a point, or a few nodes far from all others. It keeps directions, by which the decoder tells
    classes apart. ``ratio`` is that of the largest size to the smaller median.
    """

    r: float
    ratio: float

    @staticmethod
    def between(first: Tensor, last: Tensor) -> "Shortening":
        """Return the map for states (n, d) at the ends of a flow."""
        sizes = [torch.linalg.vector_norm(z.double(), dim=-1) for z in (first, last)]
        medians, largest = [float(size.median()) for size in sizes], max(float(size.max()) for size in sizes)
        r = math.sqrt(medians[0] * medians[1]) or max(medians) or largest or 1.0
        return Shortening(r, largest / min(medians) if min(medians) > 0 else math.inf)

    @property
    def needed(self) -> bool:
        """Whether the ends of the flow could not be seen in one picture without the map."""
        return self.ratio > MOST_RATIO

    def says(self, name: str) -> str:
        """Return what is done, as a part of a sentence."""
        what = f"{name} / (|{name}| + {self.r:.3g})"
        return f"lengths are shortened, to {what}, so that small and large ones fit into one picture"

    def __call__(self, z: Tensor) -> Tensor:
        z = z.double()
        size: Tensor = torch.linalg.vector_norm(z, dim=-1, keepdim=True)
        return z / (size + self.r)


class Components(PlaneMap):
    """The first two principal components of shortened states.

    The axes are those of the sum of two covariances, of the first and of the last points, each divided by its trace;
    the last state, which the decoder reads, counts ``LAST`` times as much.
    """

    axes = ("first principal component", "second principal component")

    def __init__(self, first: Tensor, last: Tensor) -> None:
        self.shorten = Shortening.between(first, last)
        ends = [self.shorten(z) for z in (first, last)]
        self.centre = ends[1].mean(0)
        covariances = [_relative(points - points.mean(0)) for points in ends]
        self.variances, axes = torch.linalg.eigh(covariances[0] + LAST * covariances[1])  # ascending
        axes = axes.flip(1)[:, :2]
        largest = axes.abs().argmax(0, keepdim=True)
        self.matrix = axes * torch.where(axes.gather(0, largest) < 0, -1.0, 1.0)  # the same signs on every machine
        self.says = (
            "Each node is drawn at two principal components of its state z(t), on the same axes at all times; "
            f"{self.shorten.says('z')}."
        )

    def __call__(self, z: Tensor) -> Tensor:
        points: Tensor = (self.shorten(z) - self.centre) @ self.matrix
        return points


class OneComponent(PlaneMap):
    """The first principal component from left to right; the height of a node is constant, its place in an order of the
    nodes in which neighbours are close (reverse Cuthill-McKee)."""

    axes = ("state", "place in an order in which neighbours are close")
    says = (
        "Each node moves from left to right by its state, which has one component; its height is constant, its place "
        "in an order in which neighbours are close."
    )

    def __init__(self, component: Callable[[Tensor], Tensor], first: Tensor, edges: Edges) -> None:
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import reverse_cuthill_mckee

        self.component, n = component, edges.num_nodes
        ends = (edges.i.cpu().numpy(), edges.j.cpu().numpy())
        order = reverse_cuthill_mckee(csr_array((torch.ones(edges.num_edges).numpy(), ends), shape=(n, n)))
        place = torch.empty(n, dtype=torch.double, device=first.device)
        place[torch.from_numpy(order.copy()).long()] = torch.linspace(-0.5, 0.5, n, dtype=torch.double)
        width = float(component(first).abs().max())
        self.height = place * (width if width > 0 else 1.0)

    def __call__(self, z: Tensor) -> Tensor:
        along = self.component(z)
        return torch.stack((along, self.height.expand_as(along)), dim=-1)


def choose_projection(flow: ModelFlow, last: Tensor) -> PlaneMap:
    """Return the map for a flow whose last state is ``last`` (n, d): two-dimensional positions as they are, hyperbolic
    ones in the disc; else two principal components, or one if the states have no second one."""
    if flow.positions == 2:
        ball = ball_of(flow.evolution.flow)
        return Positions(flow.z0, last) if ball is None else Disc(ball)
    if last.shape[1] == 1:
        return OneComponent(lambda z: z[..., 0].double(), flow.z0, flow.edges)
    both = Components(flow.z0, last)
    if float(both.variances[-2]) > NEGLIGIBLE * float(both.variances[-1]):
        return both
    return OneComponent(lambda z: both(z)[..., 0], flow.z0, flow.edges)


def _relative(points: Tensor) -> Tensor:
    """Return the second moments of points (n, d), divided by their trace, (d, d)."""
    moments = points.t() @ points
    trace = moments.trace()
    return moments / torch.where(trace > 0, trace, 1.0)


def ball_of(flow: Flow) -> PoincareBall | None:
    """Return the space of hyperbolic positions; None for a flow in flat space."""
    if isinstance(flow, WrappedFlow):
        return ball_of(flow.flow)
    return flow.ball if isinstance(flow, HyperbolicFlow) else None
