"""Dropout: the share dropped, independence of calls, and the same masks for one model or for many stacked."""

import math

import pytest
import torch
from torch import Tensor
from torch.func import functional_call, vmap

from beltrami.model import Dropout
from beltrami.model.coder import hash32
from beltrami.train import seeded


def dropout(p: float, *, seed: int = 0, rows: bool = False) -> Dropout:
    with seeded(seed):
        return Dropout(p, rows=rows).train()


def mask(module: Dropout, *shape: int) -> Tensor:
    out: Tensor = module(torch.ones(*shape))
    return out != 0


@pytest.mark.parametrize("p", [0.05, 0.5, 0.9])
def test_share_p_is_dropped_and_the_others_are_scaled(p: float) -> None:
    out = dropout(p)(torch.ones(400, 500))
    error = math.sqrt(p * (1 - p) / out.numel())
    assert abs(float((out == 0).float().mean()) - p) < 4 * error
    assert torch.allclose(out[out != 0], torch.tensor(1 / (1 - p)))


def test_neighbouring_entries_and_calls_are_uncorrelated() -> None:
    module = dropout(0.5)
    one, two = (mask(module, 500, 400).double() - 0.5 for _ in range(2))
    bound = 4 * 0.25 / math.sqrt(one.numel())
    pairs = [(one, two), (one[1:], one[:-1]), (one[:, 1:], one[:, :-1]), (one[:, 2:], two[:, :-2]), (one[1:], two[:-1])]
    for a, b in pairs:
        assert abs(float((a * b).mean())) < bound


def test_hashes_are_uniform() -> None:
    module = dropout(0.5)
    keys = hash32(module._hashed_indices((200_000,), torch.device("cpu")) ^ hash32(module.seed))
    counts = torch.histc(keys.double(), bins=100, min=-(2.0**31), max=2.0**31)
    chi2 = float(((counts - 2000).square() / 2000).sum())
    assert 50 < chi2 < 160  # 99 degrees of freedom: mean 99, standard deviation 14


def test_hash_is_injective() -> None:
    assert len(hash32(torch.arange(-50_000, 50_000, dtype=torch.int32)).unique()) == 100_000


def test_mask_depends_on_the_seed_only() -> None:
    torch.rand(7)  # other random numbers have no effect
    assert torch.equal(mask(dropout(0.5), 40, 50), mask(dropout(0.5), 40, 50))
    assert not torch.equal(mask(dropout(0.5), 40, 50), mask(dropout(0.5, seed=1), 40, 50))


def test_evaluation_and_p_zero_return_the_input() -> None:
    x = torch.randn(5, 4)
    module = dropout(0.5)
    assert module.eval()(x) is x
    assert int(module.calls) == 0
    assert dropout(0.0)(x) is x


def test_whole_rows_are_dropped() -> None:
    out = dropout(0.5, rows=True)(torch.ones(300, 7))
    assert bool(((out == 0).all(1) | (out == 2).all(1)).all())
    assert 100 < int((out == 0).all(1).sum()) < 200


def test_gradient_has_the_same_mask() -> None:
    x = torch.randn(30, 5, requires_grad=True)
    out = dropout(0.4)(x)
    out.sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad != 0, out != 0)


def test_stacked_modules_drop_the_same_as_single_ones() -> None:
    alone = [dropout(0.5, seed=seed) for seed in range(4)]
    x = torch.randn(4, 6, 5)
    seeds = torch.stack([module.seed for module in alone])
    calls = torch.zeros(4, dtype=torch.int32)

    def call(seed: Tensor, calls: Tensor, x: Tensor) -> Tensor:
        out: Tensor = functional_call(alone[0], {"seed": seed, "calls": calls}, (x,))
        return out

    for _ in range(2):  # the second call drops other entries
        together = vmap(call)(seeds, calls, x)
        assert torch.equal(together, torch.stack([module(x[k]) for k, module in enumerate(alone)]))
    assert calls.tolist() == [2] * 4


def test_input_may_change_shape() -> None:
    module = dropout(0.5)
    assert mask(module, 3, 4).shape == (3, 4)
    assert mask(module, 50, 40).float().mean() == pytest.approx(0.5, abs=0.05)
