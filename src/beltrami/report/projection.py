"""Where to draw the nodes of a flow: one fixed map from states to the plane for all times."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from beltrami.flow import Flow, HyperbolicFlow
from beltrami.flow.wrapped import WrappedFlow
from beltrami.geometry import PoincareBall
from beltrami.report.model_flow import ModelFlow

COMPONENTS = ("first principal component", "second principal component")
FEWEST = 3  # channels of a state whose directions are drawn


class Projection(ABC):
    """A map from states (..., n, d) to points of the plane (..., n, 2), with its axes and a sentence that describes it;
    ``disc``: whether the points lie in the Poincare disc."""

    axes: tuple[str, str]
    says: str
    disc: ClassVar[bool] = False

    @abstractmethod
    def __call__(self, z: Tensor) -> Tensor:
        """Return the points, in double precision."""


class Positions(Projection):
    """The two positional channels of the state."""

    axes = ("first position", "second position")
    says = "Each node is drawn at its position u(t), the two positional channels of its state."

    def __call__(self, z: Tensor) -> Tensor:
        return z[..., :2].double()


class Disc(Projection):
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


class Components(Projection):
    """The first two principal components of the states, or of their directions z / |z|.

    The axes are fitted on the last state, which the decoder reads. Directions are drawn where the decoder tells classes
    apart by direction: the sizes of states grow with a source, shrink by diffusion, and differ by degree, which hides
    the arrangement of the nodes.
    """

    axes = COMPONENTS

    def __init__(self, z: Tensor, *, directions: bool) -> None:
        self.directions = directions
        points = self._points(z)
        self.centre = points.mean(0)
        _, axes = torch.linalg.eigh((points - self.centre).t() @ (points - self.centre))
        axes = axes[:, -2:].flip(1)  # eigenvalues ascend
        largest = axes.abs().argmax(0, keepdim=True)
        self.matrix = axes * torch.where(axes.gather(0, largest) < 0, -1.0, 1.0)  # the same signs on every machine
        what = "the direction of its state, z(t) / |z(t)|" if directions else "its state z(t)"
        self.says = (
            f"Each node is drawn at two principal components of {what}; the axes are those of the last time, at all "
            "times."
        )

    def __call__(self, z: Tensor) -> Tensor:
        points: Tensor = (self._points(z) - self.centre) @ self.matrix
        return points

    def _points(self, z: Tensor) -> Tensor:
        z = z.double()
        if not self.directions:
            return z
        size: Tensor = torch.linalg.vector_norm(z, dim=-1, keepdim=True)
        return z / size.clamp(min=torch.finfo(z.dtype).tiny)


class Outputs(Projection):
    """The states themselves where they have two channels, such as the outputs of linear diffusion for two classes."""

    says = "Each node is drawn at its two outputs."

    def __init__(self, names: Sequence[str]) -> None:
        self.axes = (
            (f"output {names[0]}", f"output {names[1]}") if len(names) == 2 else ("first channel", "second channel")
        )

    def __call__(self, z: Tensor) -> Tensor:
        return z.double()


class OneChannel(Projection):
    """A state of one channel, drawn from left to right; the nodes are stacked in the order of their first state."""

    axes = ("state", "order of the first states")
    says = "Each node moves from left to right by its state; its height is its rank among the first states."

    def __init__(self, z0: Tensor) -> None:
        rank = z0[:, 0].argsort(stable=True).argsort().double()
        spread = z0[:, 0].double().std(correction=0)
        self.height = (rank / max(1, len(z0) - 1) - 0.5) * 4 * torch.where(spread > 0, spread, 1.0)

    def __call__(self, z: Tensor) -> Tensor:
        z = z[..., 0].double()
        return torch.stack((z, self.height.expand_as(z)), dim=-1)


def choose_projection(flow: ModelFlow, last: Tensor, *, kind: str, names: Sequence[str]) -> Projection:
    """Return the map for a flow whose last state is ``last`` (n, d): two-dimensional positions, in the disc if they are
    hyperbolic, or else principal components, of directions if classes or labels are predicted."""
    if flow.positions == 2:
        ball = ball_of(flow.evolution.flow)
        return Positions() if ball is None else Disc(ball)
    channels = last.shape[1]
    if channels == 1:
        return OneChannel(flow.z0)
    if channels == 2:
        return Outputs(names)
    return Components(last, directions=kind != "numbers" and channels >= FEWEST)


def ball_of(flow: Flow) -> PoincareBall | None:
    """Return the space of hyperbolic positions; None for a flow in flat space."""
    if isinstance(flow, WrappedFlow):
        return ball_of(flow.flow)
    return flow.ball if isinstance(flow, HyperbolicFlow) else None
