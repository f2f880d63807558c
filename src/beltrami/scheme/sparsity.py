"""Pattern: where the matrices of linear fields have entries."""

from abc import ABC, abstractmethod

from torch import Tensor

Scaled = tuple[float, Tensor]  # a number and the states it is to multiply


class SparsityPattern(ABC):
    """What fields side by side have in common: the steps of a recurrence, given their entries. None makes a graph.

    Shapes:
        of all runs together, entries ``a`` (runs, ...), states (runs, n, d), numbers (runs,). What is written to is
        contiguous.
    """

    @abstractmethod
    def advance(self, out: Tensor, a: Tensor, y: Tensor, *, factor: float, before: Scaled | None) -> None:
        """Write c B y + k b into ``out``; ``before`` is k and b."""

    @abstractmethod
    def pull(
        self,
        out: Tensor,
        a: Tensor,
        p: Tensor,
        *,
        factor: float,
        before: Scaled | None,
        given: tuple[Tensor, Tensor],
        across: tuple[Tensor, Tensor] | None,
    ) -> None:
        """Write c B^T p + k b + d g into ``out``, and add the derivative of c <p, B q> by the entries.

        ``before`` is k and b, ``given`` a number d a run and g, ``across`` q and what is added to, or None where the
        entries ask for no derivative.
        """
