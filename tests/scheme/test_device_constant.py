"""Small constants are made once for each device and arguments, and not too many are kept."""

import torch
from torch import Tensor

from beltrami.scheme.exponential.device_constant import MOST, kept

CPU = torch.device("cpu")


def test_what_was_made_is_given_again() -> None:
    made = []

    @kept
    def powers(device: torch.device, base: float, *, count: int) -> Tensor:
        made.append((base, count))
        return base ** torch.arange(count, device=device)

    first = powers(CPU, 2.0, count=3)
    assert first.tolist() == [1.0, 2.0, 4.0]
    assert powers(CPU, 2.0, count=3) is first
    assert powers(CPU, 2.0, count=2).tolist() == [1.0, 2.0]
    assert made == [(2.0, 3), (2.0, 2)]


def test_the_oldest_is_forgotten_when_there_are_too_many() -> None:
    made = []

    @kept
    def one(device: torch.device, value: int) -> Tensor:
        made.append(value)
        return torch.tensor(value, device=device)

    for value in range(MOST + 1):
        one(CPU, value)
    one(CPU, MOST)
    one(CPU, 0)
    assert made == [*range(MOST + 1), 0]


def test_what_inference_made_training_can_use() -> None:
    @kept
    def three(device: torch.device) -> Tensor:
        return torch.full((), 3.0, device=device)

    with torch.inference_mode():
        three(CPU)
    x = torch.ones((), requires_grad=True)
    (x * three(CPU)).backward()
    assert x.grad is not None
    assert float(x.grad) == 3.0
