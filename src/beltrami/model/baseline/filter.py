"""Filters: learned functions of a matrix, seen from its Krylov space."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from beltrami.model.baseline.krylov import Krylov

LONG = (10, 20, 30)  # powers of the matrix that the filters start from, and as many filters
HIDDEN = 32  # channels in their networks


class Filters(nn.Module, ABC):
    """Learned functions of the small matrix T: one for each long range."""

    @abstractmethod
    def forward(self, krylov: Krylov) -> Tensor:
        """-> (filters, k, k), symmetric."""


class OfValues(Filters):
    r"""Functions of the eigenvalues, :math:`B \operatorname{diag} f(r^{10}, r^{20}, r^{30}) B^\top` where
    :math:`T = B \operatorname{diag}(r) B^\top`; f is a network with a hidden layer."""

    def __init__(self) -> None:
        super().__init__()
        self.f = nn.Sequential(nn.Linear(len(LONG), HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, len(LONG)))

    def forward(self, krylov: Krylov) -> Tensor:
        r, b = krylov.eigen
        responses = self.f(torch.stack([r**power for power in LONG], dim=-1)).t()  # (filters, k)
        out: Tensor = (b * responses[:, None]) @ b.t()
        return out


class OfMatrix(Filters):
    r"""Functions of T itself, :math:`G + G^\top` with :math:`G = g(T^{10}, T^{20}, T^{30})`: eigenvectors, whose
    derivative is ill-conditioned, are not needed. g is a network with a hidden layer on all entries."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        entries = len(LONG) * steps**2
        self.g = nn.Sequential(nn.Linear(entries, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, entries))

    def forward(self, krylov: Krylov) -> Tensor:
        powers = torch.stack([torch.linalg.matrix_power(krylov.t, power) for power in LONG])
        g = self.g(powers.flatten()).view_as(powers)
        out: Tensor = g + g.mT
        return out
