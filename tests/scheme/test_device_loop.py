"""The device loop chooses the same steps as the host loop, separately for each run of a batch."""

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.func import grad, vmap

from beltrami.errors import SolverError
from beltrami.scheme import PID, Bosh3, Dopri5, Heun, Scheme, Solution, Stats, solve
from beltrami.scheme.base import CountingField
from beltrami.scheme.device_loop import MAX_PENDING, DeviceLoop, Readback

TS = (0.1, 0.4, 1.0, 1.7, 2.0)
PLAIN, FULL = PID(1e-4, 1e-6), PID(1e-4, 1e-6, pcoeff=0.4, icoeff=0.3, dcoeff=0.1)
SCHEMES = {
    "dopri5": Scheme(Dopri5(), PLAIN),
    "bosh3": Scheme(Bosh3(), PLAIN),
    "heun": Scheme(Heun(), PID(1e-3, 1e-4)),
    "all of PID": Scheme(Dopri5(), FULL),
    "rejected": Scheme(Dopri5(), PID(1e-6, 1e-8, first=1.5)),
    "rejected bosh3": Scheme(Bosh3(), PID(1e-4, 1e-6, first=1.5, pcoeff=0.4, icoeff=0.3)),
}
EVERY_SCHEME = pytest.mark.parametrize("scheme", SCHEMES.values(), ids=SCHEMES)


def solve_on_device(
    f: Callable[[Tensor, Tensor], Tensor], y0: Tensor, ts: tuple[float, ...], scheme: Scheme
) -> Solution:
    """Run the device loop where ``solve`` would not use it: for one run on the CPU."""
    stats = Stats()
    return Solution(DeviceLoop(scheme, ts).run(CountingField(f, stats), y0, stats), stats)


def reaction(w: Tensor, rate: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    """Return a field that is nonlinear, depends on time, and is fast or slow."""
    return lambda t, y: rate * (torch.tanh(w @ y) - y) + (1.0 + t) ** -1


def problem(device: str = "cpu") -> tuple[Tensor, Tensor, Tensor]:
    g = torch.Generator().manual_seed(0)
    y0, w = (torch.randn(s, generator=g, dtype=torch.float64) for s in ((4, 2), (4, 4)))
    rate = torch.tensor(3.0, dtype=torch.float64)
    return tuple(x.to(device).requires_grad_() for x in (y0, w, rate))  # type: ignore[return-value]


def _forbid_synchronisation() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns that it does not detect every synchronisation
        torch.cuda.set_sync_debug_mode("error")


def loss(ys: Tensor) -> Tensor:
    return (ys[1:-1].square().sum() + ys[-1].sin().sum()) / ys.numel()


@pytest.mark.slow
@EVERY_SCHEME
def test_values_gradients_and_counts_equal_those_of_the_host(scheme: Scheme) -> None:
    found = []
    for run in (solve, solve_on_device):
        leaves = problem()
        solution = run(reaction(*leaves[1:]), leaves[0], TS, scheme)
        found.append((solution, torch.autograd.grad(loss(solution.ys), leaves)))
    (host, wanted), (device, gradients) = found
    torch.testing.assert_close(device.ys, host.ys, rtol=1e-12, atol=1e-12)
    for one, other in zip(gradients, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)
    counts = (device.stats.evaluations, device.stats.accepted, device.stats.rejected)
    assert counts == (host.stats.evaluations, host.stats.accepted, host.stats.rejected)
    assert device.stats.last_dt == pytest.approx(host.stats.last_dt, rel=1e-8)
    assert isinstance(device.stats.last_dt, float)
    assert (
        host.stats.rejected > 0 or scheme.controller.resume(1.5) != scheme.controller
    )  # a first step that is too long is rejected


RATES = torch.tensor([0.01, 3.0, 40.0], dtype=torch.float64)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dopri5", "all of PID", "rejected bosh3"])
def test_every_run_of_a_batch_takes_the_steps_it_takes_alone(name: str) -> None:
    scheme = SCHEMES[name]
    y0, w, _ = (x.detach() for x in problem())
    ws = torch.stack([w, 0.3 * w, w.T])

    def run(w: Tensor, rate: Tensor) -> Tensor:
        return solve(reaction(w, rate), y0, TS, scheme).ys

    steps = [solve(reaction(*one), y0, TS, scheme).stats.accepted for one in zip(ws, RATES, strict=True)]
    assert max(steps) > 5 * min(steps)
    alone = torch.stack([run(*one) for one in zip(ws, RATES, strict=True)])
    torch.testing.assert_close(vmap(run)(ws, RATES), alone, rtol=1e-10, atol=1e-10)

    leaves = ws.clone().requires_grad_(), RATES.clone().requires_grad_()
    wanted = torch.autograd.grad(sum(loss(run(*one)) for one in zip(*leaves, strict=True)), leaves)  # type: ignore[arg-type]
    outside = torch.autograd.grad(vmap(lambda *one: loss(run(*one)))(*leaves).sum(), leaves)
    inside = vmap(grad(lambda *one: loss(run(*one)), argnums=(0, 1)))(ws, RATES)
    for one, other, third in zip(wanted, outside, inside, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(third, one, rtol=1e-10, atol=1e-10)


@pytest.mark.slow
def test_a_batch_resumes_with_the_step_size_of_each_run() -> None:
    y0, w, _ = (x.detach() for x in problem())
    scheme = SCHEMES["dopri5"]

    def twice(rate: Tensor) -> tuple[Tensor, Stats]:
        f = reaction(w, rate)
        first = solve(f, y0, TS[:3], scheme)
        second = solve(f, first.ys[-1], TS[2:], scheme.resume(first.stats))
        stats = Stats()
        stats.add(second.stats)
        return torch.cat((first.ys, second.ys)), stats

    alone = torch.stack([twice(rate)[0] for rate in RATES])
    torch.testing.assert_close(vmap(lambda rate: twice(rate)[0])(RATES), alone, rtol=1e-10, atol=1e-10)
    batch: list[Stats] = []

    def record(rate: Tensor) -> Tensor:
        batch.append(twice(rate)[1])
        return rate

    vmap(record)(RATES)
    assert batch[0].last_dt == 0.0  # no tensor leaves the batch
    tries = [twice(rate)[1] for rate in RATES]
    assert batch[0].accepted + batch[0].rejected == max(one.accepted + one.rejected for one in tries)


def stiff(y0: Tensor, w: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    """Return a field whose sinh overflows in a first step that is too long."""
    return lambda t, y: -w * torch.sinh(y)


def test_a_rejected_step_that_overflowed_does_not_change_the_gradient() -> None:
    scheme = Scheme(Dopri5(), PID(1e-6, 1e-8, first=1.0))
    y0 = torch.tensor([10.0, 2.0], dtype=torch.float64)
    ws = torch.tensor([1.0, 0.5], dtype=torch.float64)

    def end(run: Callable[..., Solution], w: Tensor) -> Tensor:
        return run(stiff(y0, w), y0, (0.0, 0.3, 1.0), scheme).ys[1:].sum()

    leaf = ws.clone().requires_grad_()
    wanted = [torch.autograd.grad(end(solve, w), leaf)[0].sum() for w in leaf]
    found = [torch.autograd.grad(end(solve_on_device, w), leaf)[0].sum() for w in leaf]
    assert all(math.isfinite(x) and x != 0.0 for x in wanted)
    torch.testing.assert_close(torch.stack(found), torch.stack(wanted), rtol=1e-9, atol=1e-12)
    together = vmap(grad(lambda w: end(solve, w)))(ws)
    torch.testing.assert_close(together, torch.stack(wanted), rtol=1e-9, atol=1e-12)
    assert solve(stiff(y0, ws[0]), y0, (0.0, 1.0), scheme).stats.rejected > 0


@pytest.mark.parametrize(
    ("f", "scheme"),
    [
        (lambda t, y: y**2, Scheme(Dopri5(), PLAIN)),
        (lambda t, y: y * math.nan, Scheme(Bosh3(), PLAIN)),
        (lambda t, y: -y, Scheme(Dopri5(), PID(1e-6, 1e-6), max_steps=3)),
    ],
    ids=["blow-up", "nan", "max_steps"],
)
def test_failures_raise_the_same_error_as_on_the_host(f: Callable[[Tensor, Tensor], Tensor], scheme: Scheme) -> None:
    y0, said = torch.ones(2, dtype=torch.float64), []
    for run in (solve, solve_on_device):
        with pytest.raises(SolverError) as caught:
            run(f, y0, (0.0, 2.0), scheme)
        said.append(str(caught.value).split(" with step size")[0])
    assert said[0] == said[1]


@pytest.mark.slow
def test_a_failed_run_is_nan_and_does_not_affect_the_others() -> None:
    scheme, y0 = Scheme(Dopri5(), PLAIN), torch.ones(2, dtype=torch.float64)
    powers = torch.tensor([1.0, 2.0, 0.5], dtype=torch.float64)  # y' = y^p blows up before 2 for p = 2

    def run(p: Tensor) -> Tensor:
        return solve(lambda t, y: y**p, y0, (0.0, 0.5, 2.0), scheme).ys

    together, fine = vmap(run)(powers), [0, 2]
    assert together[1].isnan().all()
    torch.testing.assert_close(together[fine], torch.stack([run(powers[k]) for k in fine]), rtol=1e-10, atol=1e-10)
    leaf = powers.clone().requires_grad_()
    losses = vmap(lambda p: loss(run(p)))(leaf)
    (found,) = torch.autograd.grad(losses[fine].sum(), leaf)
    for k in fine:
        (wanted,) = torch.autograd.grad(loss(run(leaf[k])), leaf)
        assert float(found[k]) == pytest.approx(float(wanted[k]), rel=1e-9)


@pytest.mark.parametrize("shape", [(), (3, 2)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_time_is_a_tensor_of_the_type_of_the_state(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    seen: list[Tensor] = []

    def field(t: Tensor, y: Tensor) -> Tensor:
        seen.append(t)
        return -y * t.exp()

    for scheme in (SCHEMES["dopri5"], SCHEMES["heun"]):
        ys = solve_on_device(field, torch.ones(shape, dtype=dtype), (0.0, 0.5, 1.0), scheme).ys
        assert (ys.dtype, ys.shape) == (dtype, (3, *shape))
        assert float(ys[-1].mean()) == pytest.approx(math.exp(1.0 - math.e), rel=2e-3)
    assert {(t.dtype, t.shape) for t in seen} == {(dtype, ())}
    assert float(seen[-1]) <= 1.0


def test_late_reports_cost_one_trial_and_change_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    y0, w, rate = (x.detach() for x in problem())
    early = solve_on_device(reaction(w, rate), y0, TS, SCHEMES["rejected"])

    def as_late_as_possible(self: Readback, max_pending: int = MAX_PENDING) -> Iterator[tuple[list[list[float]], Any]]:
        while len(self.queue) > max_pending:
            values, _, about = self.queue.popleft()
            yield values.tolist(), about

    monkeypatch.setattr(Readback, "arrived", as_late_as_possible)
    late = solve_on_device(reaction(w, rate), y0, TS, SCHEMES["rejected"])
    assert torch.equal(late.ys, early.ys)
    assert (late.stats.accepted, late.stats.rejected) == (early.stats.accepted, early.stats.rejected)
    assert late.stats.evaluations == early.stats.evaluations + 6  # one trial step of Dopri5 too many
    few = Scheme(Dopri5(), PID(1e-12, 1e-12), max_steps=5)
    with pytest.raises(SolverError, match="gave up after max_steps=5 steps"):
        solve_on_device(reaction(w, rate), y0, TS, few)


def test_the_host_reads_one_report_a_trial_and_nothing_else() -> None:
    reads: list[object] = []

    class Counting(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            if func in (Tensor.item, Tensor.tolist, Tensor.__bool__, Tensor.__float__, Tensor.__int__):
                reads.append(func)
            if func in (torch.where, torch.tensor) and not all(isinstance(x, Tensor) for x in args):
                reads.append("a number copied to the device")
            return func(*args, **(kwargs or {}))

    y0, w, rate = (x.detach() for x in problem())
    with Counting():
        stats = solve_on_device(reaction(w, rate), y0, TS, SCHEMES["rejected"]).stats
    assert reads == [Tensor.tolist] * (stats.accepted + stats.rejected)


def test_reports_arrive_in_order_with_the_numbers_of_every_run() -> None:
    readback = Readback()
    one = torch.tensor(1.0, dtype=torch.float64)
    readback.send((one, 2 * one), "first")

    def send(x: Tensor) -> Tensor:
        readback.send((x, one), "second")
        return x

    vmap(send)(torch.tensor([3.0, 4.0], dtype=torch.float64))
    assert list(readback.arrived()) == [([[1.0, 2.0]], "first"), ([[3.0, 1.0], [4.0, 1.0]], "second")]
    assert list(readback.arrived(max_pending=0)) == []


@pytest.mark.gpu
@EVERY_SCHEME
def test_a_solve_on_a_gpu_never_synchronises(scheme: Scheme) -> None:
    y0, w, rate = problem("cuda")
    solve(reaction(w, rate), y0, TS, scheme)  # initialises libraries
    torch.cuda.synchronize()
    _forbid_synchronisation()
    try:
        ys = solve(reaction(w, rate), y0, TS, scheme).ys
        gradients = torch.autograd.grad(loss(ys), (y0, w, rate))
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert all(bool(x.isfinite().all()) for x in (ys, *gradients))


@pytest.mark.gpu
@EVERY_SCHEME
def test_gpu_and_cpu_agree(scheme: Scheme) -> None:
    found = []
    for device in ("cpu", "cuda"):
        leaves = problem(device)
        solution = solve(reaction(*leaves[1:]), leaves[0], TS, scheme)
        gradients = torch.autograd.grad(loss(solution.ys), leaves)
        counts = (solution.stats.accepted, solution.stats.rejected)
        found.append((counts, [x.detach().cpu() for x in (solution.ys, *gradients)]))
    assert found[0][0] == found[1][0]
    for one, other in zip(found[0][1], found[1][1], strict=True):
        torch.testing.assert_close(other, one, rtol=1e-9, atol=1e-10)


@pytest.mark.gpu
def test_a_batch_on_a_gpu_never_synchronises_and_agrees_with_the_cpu() -> None:
    y0, w, _ = (x.detach() for x in problem())

    def run(y0: Tensor, w: Tensor, rate: Tensor) -> Tensor:
        return solve(reaction(w, rate), y0, TS, SCHEMES["dopri5"]).ys

    together = vmap(run, in_dims=(None, None, 0))
    wanted = together(y0, w, RATES)
    there = y0.cuda(), w.cuda(), RATES.cuda()
    together(*there)
    torch.cuda.synchronize()
    _forbid_synchronisation()
    try:
        found = together(*there)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    torch.testing.assert_close(found.cpu(), wanted, rtol=1e-9, atol=1e-10)


@pytest.mark.gpu
def test_a_failure_on_a_gpu_raises_with_the_time() -> None:
    y0 = torch.ones(2, dtype=torch.float64, device="cuda")
    with pytest.raises(SolverError, match=r"Dopri5\(\) .* t=(0\.99|1)\S* of 2 with step size"):
        solve(lambda t, y: y**2, y0, (0.0, 2.0), SCHEMES["dopri5"])
