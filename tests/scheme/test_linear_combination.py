"""Combinations of vectors and their dot products, by kernels and without, are the sums they say they are."""

from functools import partial

import pytest
import torch
from checks import normal

from beltrami.scheme.exponential import linear_combination
from beltrami.scheme.exponential.linear_combination import combine, dots

close = partial(torch.testing.assert_close, atol=1e-10, rtol=1e-10)
sizes = pytest.mark.parametrize(
    ("runs", "times", "terms"), [(1, 1, [1]), (1, 3, [9, 4]), (3, 1, [2, 1, 3]), (2, 5, [6])]
)


@pytest.fixture(params=["kernels", "libraries"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "kernels":
        combining = pytest.importorskip("beltrami.scheme.exponential.linear_combination_triton")
        monkeypatch.setattr(combining, "TILE", 16)
        monkeypatch.setattr(combining, "TIMES", 2)
        monkeypatch.setattr(linear_combination, "has_kernel", lambda _: True)
    return "cuda" if request.param == "kernels" and torch.cuda.is_available() else "cpu"


@sizes
def test_a_combination_is_the_start_and_the_sum_over_all_terms(
    path: str, runs: int, times: int, terms: list[int]
) -> None:
    y0, d = normal(runs, 5, 3).to(path), normal(runs, times, sum(terms), seed=1).to(path)
    w = normal(sum(terms), runs, 5, 3, seed=2).to(path)
    wanted = y0[:, None] + torch.einsum("rjk,krnd->rjnd", d, w)
    found = combine(y0, d, [part.clone() for part in w.split(terms)])
    close(found, torch.cat((y0[:, None], wanted), dim=1))
    assert torch.equal(found[:, 0], y0)


@sizes
def test_dots_are_the_sums_over_all_values(path: str, runs: int, times: int, terms: list[int]) -> None:
    ys, w = normal(runs, 1 + times, 5, 3).to(path), normal(sum(terms), runs, 5, 3, seed=2).to(path)
    blocks = [part.clone() for part in w.split(terms)]
    for g in (ys[:, 1:], ys[:, :1].expand(-1, times, -1, -1), ys.mT.contiguous().mT[:, 1:]):
        close(dots(g, blocks), torch.einsum("rjnd,krnd->rjk", g, w))


def test_shorter_numbers_are_summed_in_single_precision(path: str) -> None:
    y0, d, w = normal(1, 40, 3).float().to(path), normal(1, 1, 6).float().to(path), normal(6, 1, 40, 3).float().to(path)
    found, wanted = combine(y0, d, [w]), combine(y0.double(), d.double(), [w.double()])
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), wanted, atol=1e-5, rtol=1e-6)
    torch.testing.assert_close(dots(found, [w]).double(), dots(found.double(), [w.double()]), atol=1e-4, rtol=1e-6)


def test_the_cpu_takes_no_kernel() -> None:
    assert not linear_combination.has_kernel(normal(3))
