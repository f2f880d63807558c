"""A linear vector field, known by its products."""

from abc import ABC, abstractmethod

from torch import Tensor

from beltrami.scheme.sparsity import SparsityPattern


class LinearVectorField(ABC):
    r"""A linear field :math:`f(y) = \alpha (B - I) y + b` whose flow brings no two states further apart.

    What has this face can be solved by its exponential; it is a vector field as well, and so can be stepped.

    Attributes:
        a: the entries that B is made of, to which gradients go.
        alpha: the rate, a scalar of at least zero, or None for one.
        norm: p of a p-norm, over all values of the state, in which B does not expand: :math:`\|B y\|_p \le \|y\|_p`.
            Then neither does the flow, :math:`\|e^{t (B - I)}\|_p \le 1`.
        fastest: a bound of the rate that is known without looking at it.
    """

    a: Tensor
    alpha: Tensor | None
    norm: float
    fastest: float = 1.0

    @property
    def mutual(self) -> bool:
        """Whether B has an entry (j, i) wherever it has (i, j), so that its spectrum is likely near the real line."""
        return False

    @property
    @abstractmethod
    def pattern(self) -> SparsityPattern:
        """Where B has entries, which knows its products: of this field, or of many like it side by side."""

    @abstractmethod
    def __call__(self, t: float, y: Tensor) -> Tensor:
        """f(y), differentiable by everything it depends on."""
