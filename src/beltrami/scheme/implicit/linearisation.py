"""A vector field near a point."""

import torch
from torch import Tensor

from beltrami.scheme.base import VectorField


class Linearisation:
    """f(t, y) and the products of its Jacobian J there with vectors, from one evaluation.

    J^T v is reverse mode. J v is reverse mode twice over, as J^T u is linear in u and J its transposed derivative; so
    the field may hold autograd functions without a forward mode. Works under ``no_grad``.
    """

    def __init__(self, f: VectorField, t: float, y: Tensor) -> None:
        with torch.enable_grad():
            self.y = y.detach().requires_grad_()
            self.fy = f(t, self.y)
            self.dual: tuple[Tensor, Tensor] | None = None

    @property
    def value(self) -> Tensor:
        return self.fy.detach()

    def vjp(self, v: Tensor) -> Tensor:
        """J^T v."""
        return _gradient(self.fy, self.y, v)

    def jvp(self, v: Tensor) -> Tensor:
        """J v."""
        if self.dual is None:
            with torch.enable_grad():
                u = torch.zeros_like(self.fy).requires_grad_()
                self.dual = u, _gradient(self.fy, self.y, u, create_graph=True)
        u, product = self.dual
        return _gradient(product, u, v)


def _gradient(output: Tensor, x: Tensor, v: Tensor, *, create_graph: bool = False) -> Tensor:
    if not output.requires_grad:
        return torch.zeros_like(x)
    (g,) = torch.autograd.grad(output, x, v, retain_graph=True, create_graph=create_graph, allow_unused=True)
    return torch.zeros_like(x) if g is None else g
