"""The Triton kernel gives the dropout of the torch operations: interpreted on the CPU, or on a CUDA device."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.func import functional_call, grad, vmap

from beltrami.model import Dropout
from beltrami.train import seeded

masking = pytest.importorskip("beltrami.model.masking")


@pytest.fixture(autouse=True)
def short_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masking, "BLOCK", 64)


def results(
    shape: tuple[int, ...], kernels: str, monkeypatch: pytest.MonkeyPatch, **options: Any
) -> list[list[Tensor]]:
    """Return two calls and their gradients, by torch operations and by the kernel."""
    found = []
    for plain in (True, False):
        if plain:
            monkeypatch.setattr("beltrami.model.coder.has_kernel", lambda _: False)
        else:
            monkeypatch.setattr("beltrami.model.coder.has_kernel", lambda _: True)
        with seeded(3):
            module = Dropout(0.3, **options).train().to(kernels)
            x = torch.randn(shape, dtype=torch.float64).to(kernels).requires_grad_()
        first, second = module(x), module(x)
        (first + 2 * second).square().sum().backward()
        assert x.grad is not None
        found.append([first, second, x.grad])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(20, 7), (1, 1), (5, 3, 9)], ids=str)
@pytest.mark.parametrize("rows", [False, True])
def test_kernel_gives_the_same_values_and_gradients(
    kernels: str, shape: tuple[int, ...], rows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for plain, kernel in zip(*results(shape, kernels, monkeypatch, rows=rows), strict=True):
        torch.testing.assert_close(kernel, plain, rtol=1e-12, atol=1e-12)


@pytest.mark.slow  # the interpreter
@pytest.mark.parametrize("shared", [False, True])
def test_stacked_models_drop_the_same_as_single_ones(
    kernels: str, shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("beltrami.model.coder.has_kernel", lambda _: True)
    module, models = Dropout(0.4).train().to(kernels), 3
    seeds = torch.tensor([5, -7, 2**31 - 1], dtype=torch.int32, device=kernels)
    x = torch.randn(models, 20, 6, dtype=torch.float64).to(kernels)
    x = x[:1].expand_as(x) if shared else x

    def loss(x: Tensor, seed: Tensor, calls: Tensor) -> Tensor:
        out: Tensor = functional_call(module, {"seed": seed, "calls": calls}, (x,))
        return out.square().sum()

    def calls() -> Tensor:
        return torch.zeros(models, dtype=torch.int32, device=kernels)

    alone = [grad(loss)(x[k], seeds[k], calls()[k]) for k in range(models)]
    together = vmap(grad(loss))(x, seeds, calls())
    torch.testing.assert_close(together, torch.stack(alone))
    if shared:
        total = grad(lambda x: vmap(loss, in_dims=(None, 0, 0))(x, seeds, calls()).sum())(x[0])
        torch.testing.assert_close(total, torch.stack(alone).sum(0))
    assert len({tuple((one == 0).flatten().tolist()) for one in alone}) == models


def test_second_derivative_exists(kernels: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("beltrami.model.coder.has_kernel", lambda _: True)
    module = Dropout(0.5).train().to(kernels)
    x = torch.randn(8, 4, dtype=torch.float64, device=kernels, requires_grad=True)
    (first,) = torch.autograd.grad((module(x) ** 3).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    kept = first != 0
    torch.testing.assert_close(second, torch.where(kept, 2.0**3 * 6 * x, 0.0).detach())
