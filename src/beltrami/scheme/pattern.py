"""Pattern: where the matrices of many linear fields have entries."""

from abc import ABC, abstractmethod

from torch import Tensor


class Pattern(ABC):
    """What fields side by side have in common: their products, given their entries. None of them makes a graph.

    Shapes:
        of all runs together, entries ``a`` (m, runs), or (m, 1) where they share them, and states (n, runs, d);
        of one run, where something is added in place, (m,) and (n, d).
    """

    @abstractmethod
    def product(self, a: Tensor, y: Tensor) -> Tensor:
        """B y for every run."""

    @abstractmethod
    def transposed(self, a: Tensor, y: Tensor) -> Tensor:
        """The transpose of B times y for every run."""

    @abstractmethod
    def outer(self, p: Tensor, q: Tensor, *, shared: bool) -> Tensor:
        """The derivative of <p, B q> by the entries for every run; of shared ones the sum, (m, 1)."""

    @abstractmethod
    def add_product(self, out: Tensor, a: Tensor, y: Tensor, *, factor: float) -> None:
        """Add c B y to ``out``, for one run."""

    @abstractmethod
    def add_gradients(self, out: Tensor, da: Tensor, a: Tensor, p: Tensor, q: Tensor, *, factor: float) -> None:
        """Add the derivatives of c <p, B q>, by q to ``out`` and by the entries to ``da``, for one run."""
