"""Vector fields with structure that a scheme can use: linear fields, and fields along which an energy decreases."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

Scaled = tuple[float, Tensor]  # a number and the states that it multiplies
Couple = tuple[Tensor, Tensor]


class SparsityPattern(Protocol):
    """The positions of the non-zero entries of B, shared by a batch of linear fields, with the steps of a recurrence.

    No method records an autograd graph.

    Shapes:
        entries ``a`` (runs, ...), states (runs, n, d), one number a run (runs,); ``out`` is contiguous.
    """

    def term_dtype(self, w: Tensor) -> torch.dtype:
        """Return the type in which the states of a recurrence from ``w`` are kept."""
        return w.dtype

    def advance(self, out: Tensor, a: Tensor, y: Tensor, *, factor: float, previous: Scaled | None) -> None:
        """Write c B y + k b into ``out``, where c is ``factor`` and ``previous`` is (k, b)."""

    def pull(
        self, out: Tensor, a: Tensor, p: Tensor, *, factor: float, previous: Scaled | None, cotangent: Couple,
        edge_sums: Couple | None,
    ) -> None:  # fmt: skip
        """Write c B^T p + k b + d g into ``out``, where ``cotangent`` is (d, g), with one number d a run. ``edge_sums``
        is (q, a sum), or None: the derivative of c <p, B q> by the entries of B is added to the sum."""


class LinearVectorField(ABC):
    r"""A linear field :math:`f(y) = \alpha (B - I) y + b` whose flow is non-expansive, for ``Exponential``.

    In some p-norm over all values of the state :math:`\|B y\|_p \le \|y\|_p`; then :math:`\|e^{t (B - I)}\|_p \le 1`.
    """

    a: Tensor  # the entries of B, which receive gradients
    alpha: Tensor | None  # a scalar of at least zero, or None for one; batches and CUDA graphs assume at most one
    norm: float  # p

    def __init_subclass__(cls) -> None:
        LINEAR_FIELDS[cls.__name__] = cls

    @property
    def parts(self) -> list[Tensor]:
        """The tensors that determine the pattern; compiled networks pass these instead of the field."""
        raise NotImplementedError(f"{type(self).__name__} cannot be compiled: it has no `parts`.")

    @classmethod
    def of_parts(cls, a: Tensor, parts: Sequence[Tensor], norm: float) -> "LinearVectorField":
        """Return a field with these entries, ``parts`` and ``norm``, with a rate of one and without a source."""
        raise NotImplementedError(f"{cls.__name__} cannot be compiled: it has no `of_parts`.")

    @property
    def structurally_symmetric(self) -> bool:
        """Whether B has an entry (j, i) wherever it has (i, j); its spectrum is then likely near the real line."""
        return False

    @property
    @abstractmethod
    def pattern(self) -> SparsityPattern:
        """The positions of the entries of B, and products with it."""

    @abstractmethod
    def __call__(self, t: float, y: Tensor) -> Tensor:
        """Return f(y), differentiable with respect to everything it depends on."""


LINEAR_FIELDS: dict[str, type[LinearVectorField]] = {}  # all classes by their names


class Potential(ABC):
    r"""A field along which an energy never grows, such as :math:`- M^{-1} \nabla E(y)`; for ``EnergyDecreasing``."""

    @abstractmethod
    def energy(self, y: Tensor) -> Tensor:
        """Return E(y), a scalar."""

    @abstractmethod
    def __call__(self, t: float, y: Tensor) -> Tensor:
        """Return f(y)."""
