"""The interfaces of a flow, the equation, and of its vector field on a graph; the learned scalars of a flow."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from beltrami.arguments import Finite, checked
from beltrami.diffusivity import EdgeWeights
from beltrami.diffusivity.base import PrintedModule
from beltrami.graph import Edges


class BoundField(ABC):
    """The right-hand side f(t, z) of dz/dt = f, bound to a graph and an initial state.

    Adjoints differentiate by z and by ``tensors``: parameters, and tensors computed when f was bound.
    """

    tensors: tuple[Tensor, ...]

    @abstractmethod
    def __call__(self, t: float, z: Tensor) -> Tensor:
        """Return f(t, z), (n, d) -> (n, d)."""


class FunctionField(BoundField):
    """A vector field given by a function ``f(t, z)`` and the tensors that it depends on."""

    def __init__(self, f: Callable[[float, Tensor], Tensor], tensors: tuple[Tensor, ...]) -> None:
        self.f, self.tensors = f, tensors

    def __call__(self, t: float, z: Tensor) -> Tensor:
        return self.f(t, z)


@checked
class Flow(PrintedModule, ABC):
    """A learnable diffusion equation with its diffusivity."""

    def __init__(self, diffusivity: EdgeWeights) -> None:
        super().__init__()
        self.diffusivity = diffusivity

    @abstractmethod
    def bind(self, z: Tensor, edges: Edges, *, start: Tensor | None = None) -> BoundField:
        """Return the vector field from the state ``z`` (n, d) on ``edges``; ``start`` is z(0), by default ``z``."""


@checked
class Rate(PrintedModule):
    r"""A learned rate of diffusion in (0, 1), :math:`\alpha = \mathrm{sigmoid}(\theta)`, initially ``start``."""

    def __init__(self, start: float = 0.5) -> None:
        super().__init__()
        if not 0 < start < 1:
            raise ValueError(f"Rate needs `start` strictly between 0 and 1; got {start}. For a rate of one, omit it.")
        self.start = start
        self.logit = nn.Parameter(torch.logit(torch.tensor(start)))

    @torch.no_grad()
    def reset_parameters(self) -> None:
        self.logit.copy_(torch.logit(torch.tensor(self.start)))

    def forward(self) -> Tensor:
        return torch.sigmoid(self.logit)


@checked
class Source(PrintedModule):
    r"""A learned source :math:`\beta z(0)`, initially with beta = ``start``; it counteracts oversmoothing."""

    def __init__(self, start: Finite = 0.0) -> None:
        super().__init__()
        self.start = start
        self.beta = nn.Parameter(torch.tensor(float(start)))

    def reset_parameters(self) -> None:
        nn.init.constant_(self.beta, self.start)

    def forward(self, z0: Tensor) -> Tensor:
        return self.beta * z0


@checked
class Coupling(PrintedModule):
    r"""A learned sign and strength of the neighbours' influence in (-1, 1), :math:`\kappa = \tanh(10\, \theta)`.

    .. math:: \frac{\partial z_i}{\partial t} = \alpha \Big(\kappa \sum_j a_{ij} z_j - z_i\Big) + \beta z_i(0)

    Near 1 nodes move towards their neighbours; at 0 they do not depend on them; near -1 they move away from them, as
    suits graphs whose neighbours tend to differ. Weights that do not expand the state, such as those that sum to one
    over rows, do not expand it with any coupling, so that no safeguard is needed. From ``start`` = 0, the default, the
    training labels decide the sign; with ``source``, states do not fade away while kappa is small. The factor of ten
    lets Adam, whose steps are about its learning rate, learn kappa within tens of epochs.
    """

    SPEED = 10.0

    def __init__(self, start: float = 0.0) -> None:
        super().__init__()
        if not -1 < start < 1:
            raise ValueError(f"Coupling needs `start` strictly between -1 and 1; got {start}. For 1, omit it.")
        self.start = start
        self.theta = nn.Parameter(torch.tensor(math.atanh(start) / self.SPEED))

    @torch.no_grad()
    def reset_parameters(self) -> None:
        self.theta.fill_(math.atanh(self.start) / self.SPEED)

    def forward(self) -> Tensor:
        return torch.tanh(self.SPEED * self.theta)


@checked
class Attachment(PrintedModule):
    r"""A learned attachment to the start, :math:`\lambda (z(0) - z)`, :math:`\lambda = \mathrm{softplus}(\theta)`.

    Initially lambda = ``start``. Unlike a source, it is the gradient of an energy that is bounded below,
    :math:`\tfrac\lambda2 \|z - z(0)\|^2`.
    """

    def __init__(self, start: float = 0.1) -> None:
        super().__init__()
        if not 0 < start < float("inf"):
            raise ValueError(f"Attachment needs a positive, finite `start`; got {start}. For no attachment, omit it.")
        self.start = start
        self.theta = nn.Parameter(torch.empty(()))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.constant_(self.theta, self.start + math.log(-math.expm1(-self.start)))

    def forward(self) -> Tensor:
        return F.softplus(self.theta)


def rate_and_source(rate: Rate | None, source: Source | None, z0: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """Return alpha and beta z(0), or None for each that is absent."""
    return None if rate is None else rate(), None if source is None else source(z0)


def present(*tensors: Tensor | None) -> tuple[Tensor, ...]:
    """Return the tensors that are not None."""
    return tuple(tensor for tensor in tensors if tensor is not None)
