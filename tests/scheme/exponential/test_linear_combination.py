"""Linear combinations and dot products agree with einsum, with Triton kernels and without."""

from functools import partial

import pytest
import torch
from checks import normal

from beltrami.scheme.exponential import recurrence_sum
from beltrami.scheme.exponential.recurrence_sum import combine, dots

close = partial(torch.testing.assert_close, atol=1e-10, rtol=1e-10)
sizes = pytest.mark.parametrize(("runs", "times", "terms"), [(1, 3, [5, 2]), (3, 1, [2, 1])])


@pytest.fixture(params=["triton", "torch"])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "triton":
        kernels = pytest.importorskip("beltrami.scheme.exponential.linear_combination_triton")
        monkeypatch.setattr(kernels, "TILE", 16)
        monkeypatch.setattr(kernels, "TIMES", 2)
        monkeypatch.setattr(recurrence_sum, "uses_triton", lambda _: True)
    return "cuda" if request.param == "triton" and torch.cuda.is_available() else "cpu"


@sizes
def test_a_combination_is_y0_plus_the_sum_over_all_terms(device: str, runs: int, times: int, terms: list[int]) -> None:
    y0, d = normal(runs, 5, 3).to(device), normal(runs, times, sum(terms), seed=1).to(device)
    w = normal(sum(terms), runs, 5, 3, seed=2).to(device)
    wanted = y0[:, None] + torch.einsum("rjk,krnd->rjnd", d, w)
    found = combine(y0, d, [part.clone() for part in w.split(terms)])
    close(found, torch.cat((y0[:, None], wanted), dim=1))
    assert torch.equal(found[:, 0], y0)


@pytest.mark.slow
@sizes
def test_dots_are_sums_over_all_values(device: str, runs: int, times: int, terms: list[int]) -> None:
    ys, w = normal(runs, 1 + times, 5, 3).to(device), normal(sum(terms), runs, 5, 3, seed=2).to(device)
    blocks = [part.clone() for part in w.split(terms)]
    for g in (ys[:, 1:], ys[:, :1].expand(-1, times, -1, -1), ys.mT.contiguous().mT[:, 1:]):
        close(dots(g, blocks), torch.einsum("rjnd,krnd->rjk", g, w))


def test_single_precision_is_kept(device: str) -> None:
    y0, d, w = (
        normal(1, 9, 3).float().to(device),
        normal(1, 1, 6).float().to(device),
        normal(6, 1, 9, 3).float().to(device),
    )
    found, wanted = combine(y0, d, [w]), combine(y0.double(), d.double(), [w.double()])
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), wanted, atol=1e-5, rtol=1e-6)
    torch.testing.assert_close(dots(found, [w]).double(), dots(found.double(), [w.double()]), atol=1e-4, rtol=1e-6)


def test_the_cpu_uses_no_triton_kernel() -> None:
    assert not recurrence_sum.uses_triton(normal(3))
