"""Norms of states, by which schemes choose steps and numbers of terms."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor


class Norm(ABC):
    """The p-norm over all values of a state, of which a tensor may hold a part and other processes the rest."""

    @abstractmethod
    def __call__(self, x: Tensor, p: float) -> Tensor:
        """Return the p-norm of the state, a scalar."""

    @abstractmethod
    def count(self, x: Tensor) -> int:
        """Return the number of values of the state."""

    def mean(self, x: Tensor, p: float) -> Tensor:
        """Return the p-norm as a mean over the values: for p = 1, 2, inf the mean size, the rms, the largest size."""
        norm = self(x, p)
        return norm if math.isinf(p) else norm / self.count(x) ** (1.0 / p)

    def rms(self, x: Tensor) -> Tensor:
        """Return the root mean square in double precision, on the device."""
        return self(x, 2.0).double() / math.sqrt(self.count(x))


@dataclass(frozen=True)
class WholeNorm(Norm):
    """The p-norm of a state that one tensor holds."""

    def __call__(self, x: Tensor, p: float) -> Tensor:
        norm: Tensor = torch.linalg.vector_norm(x, p)
        return norm

    def count(self, x: Tensor) -> int:
        return x.numel()
