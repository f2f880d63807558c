"""Steps chosen on the device are the steps that the host would choose, for each run of a batch its own."""

import math
import warnings
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.func import grad, vmap

from beltrami.errors import SolverError
from beltrami.scheme import PID, Bosh3, Dopri5, Heun, Scheme, Solution, Stats, solve
from beltrami.scheme.base import CountingField
from beltrami.scheme.device_loop import DeviceLoop
from beltrami.scheme.readback import Readback

TS = (0.1, 0.4, 1.0, 1.7, 2.0)
PLAIN, FULL = PID(1e-4, 1e-6), PID(1e-4, 1e-6, pcoeff=0.4, icoeff=0.3, dcoeff=0.1)
SCHEMES = {
    "dopri5": Scheme(Dopri5(), PLAIN),
    "bosh3": Scheme(Bosh3(), PLAIN),
    "heun": Scheme(Heun(), PID(1e-3, 1e-4)),
    "all of PID": Scheme(Dopri5(), FULL),
    "refused": Scheme(Dopri5(), PID(1e-6, 1e-8, first=1.5)),
    "refused bosh3": Scheme(Bosh3(), PID(1e-4, 1e-6, first=1.5, pcoeff=0.4, icoeff=0.3)),
}
EVERY_SCHEME = pytest.mark.parametrize("scheme", SCHEMES.values(), ids=SCHEMES)


def piloted(f: Callable[[Tensor, Tensor], Tensor], y0: Tensor, ts: tuple[float, ...], scheme: Scheme) -> Solution:
    """The autopilot where ``solve`` would not take it: one run on the CPU."""
    stats = Stats()
    return Solution(DeviceLoop(scheme).run(CountingField(f, stats), y0, ts, stats), stats)


def reaction(w: Tensor, rate: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    """A field of all sorts: nonlinear, of the time, fast or slow."""
    return lambda t, y: rate * (torch.tanh(w @ y) - y) + (1.0 + t) ** -1


def problem(device: str = "cpu") -> tuple[Tensor, Tensor, Tensor]:
    g = torch.Generator().manual_seed(0)
    y0, w = (torch.randn(s, generator=g, dtype=torch.float64) for s in ((4, 2), (4, 4)))
    rate = torch.tensor(3.0, dtype=torch.float64)
    return tuple(x.to(device).requires_grad_() for x in (y0, w, rate))  # type: ignore[return-value]


def _forbid_waits() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch says that it does not find all of them
        torch.cuda.set_sync_debug_mode("error")


def loss(ys: Tensor) -> Tensor:
    return (ys[1:-1].square().sum() + ys[-1].sin().sum()) / ys.numel()


@EVERY_SCHEME
def test_values_gradients_and_counts_are_those_of_the_host(scheme: Scheme) -> None:
    found = []
    for run in (solve, piloted):
        leaves = problem()
        solution = run(reaction(*leaves[1:]), leaves[0], TS, scheme)
        found.append((solution, torch.autograd.grad(loss(solution.ys), leaves)))
    (host, wanted), (pilot, gradients) = found
    torch.testing.assert_close(pilot.ys, host.ys, rtol=1e-12, atol=1e-12)
    for one, other in zip(gradients, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)
    counts = (pilot.stats.evaluations, pilot.stats.accepted, pilot.stats.rejected)
    assert counts == (host.stats.evaluations, host.stats.accepted, host.stats.rejected)
    assert pilot.stats.last_dt == pytest.approx(host.stats.last_dt, rel=1e-8)
    assert isinstance(pilot.stats.last_dt, float)
    assert host.stats.rejected > 0 or scheme.controller.resume(1.5) != scheme.controller  # a step too long is refused


RATES = torch.tensor([0.01, 0.5, 3.0, 40.0], dtype=torch.float64)


@EVERY_SCHEME
def test_every_run_of_a_batch_is_as_if_alone(scheme: Scheme) -> None:
    y0, w, _ = (x.detach() for x in problem())
    ws = torch.stack([w, -w, 0.3 * w, w.T])

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


def test_a_batch_goes_on_with_each_run_s_own_step() -> None:
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
    kept: list[Stats] = []

    def keep(rate: Tensor) -> Tensor:
        kept.append(twice(rate)[1])
        return rate

    vmap(keep)(RATES)
    assert kept[0].last_dt == 0.0  # no tensor of the batch gets out
    tries = [twice(rate)[1] for rate in RATES]
    assert kept[0].accepted + kept[0].rejected == max(one.accepted + one.rejected for one in tries)


def stiff(y0: Tensor, w: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    """sinh overflows in the first step, which is far too long."""
    return lambda t, y: -w * torch.sinh(y)


def test_a_refused_step_that_overflowed_leaves_no_trace_in_the_gradient() -> None:
    scheme = Scheme(Dopri5(), PID(1e-6, 1e-8, first=1.0))
    y0 = torch.tensor([10.0, 2.0], dtype=torch.float64)
    ws = torch.tensor([1.0, 0.5], dtype=torch.float64)

    def end(run: Callable[..., Solution], w: Tensor) -> Tensor:
        return run(stiff(y0, w), y0, (0.0, 0.3, 1.0), scheme).ys[1:].sum()

    leaf = ws.clone().requires_grad_()
    wanted = [torch.autograd.grad(end(solve, w), leaf)[0].sum() for w in leaf]
    found = [torch.autograd.grad(end(piloted, w), leaf)[0].sum() for w in leaf]
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
def test_failures_say_what_the_host_says(f: Callable[[Tensor, Tensor], Tensor], scheme: Scheme) -> None:
    y0, said = torch.ones(2, dtype=torch.float64), []
    for run in (solve, piloted):
        with pytest.raises(SolverError) as caught:
            run(f, y0, (0.0, 2.0), scheme)
        said.append(str(caught.value).split(" with step size")[0])
    assert said[0] == said[1]


def test_a_run_that_fails_is_nan_and_leaves_the_others_alone() -> None:
    scheme, y0 = Scheme(Dopri5(), PLAIN), torch.ones(2, dtype=torch.float64)
    powers = torch.tensor([1.0, 2.0, 0.5], dtype=torch.float64)  # y' = y^p ends before 2 for p = 2

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
def test_the_time_is_a_tensor_of_the_state_s_type(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    seen: list[Tensor] = []

    def field(t: Tensor, y: Tensor) -> Tensor:
        seen.append(t)
        return -y * t.exp()

    for scheme in (SCHEMES["dopri5"], SCHEMES["heun"]):
        ys = piloted(field, torch.ones(shape, dtype=dtype), (0.0, 0.5, 1.0), scheme).ys
        assert (ys.dtype, ys.shape) == (dtype, (3, *shape))
        assert float(ys[-1].mean()) == pytest.approx(math.exp(1.0 - math.e), rel=2e-3)
    assert {(t.dtype, t.shape) for t in seen} == {(dtype, ())}
    assert float(seen[-1]) <= 1.0


def test_reports_that_come_late_change_nothing_but_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    y0, w, rate = (x.detach() for x in problem())
    prompt = piloted(reaction(w, rate), y0, TS, SCHEMES["refused"])
    monkeypatch.setattr("beltrami.scheme.readback._Sent.here", False)
    late = piloted(reaction(w, rate), y0, TS, SCHEMES["refused"])
    assert torch.equal(late.ys, prompt.ys)
    assert (late.stats.accepted, late.stats.rejected) == (prompt.stats.accepted, prompt.stats.rejected)
    assert late.stats.evaluations == prompt.stats.evaluations + 6  # one try of Dopri5 in vain
    few = Scheme(Dopri5(), PID(1e-12, 1e-12), max_steps=5)
    with pytest.raises(SolverError, match="gave up after max_steps=5 steps"):
        piloted(reaction(w, rate), y0, TS, few)


def test_one_report_to_a_try_is_all_that_the_host_reads() -> None:
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
        stats = piloted(reaction(w, rate), y0, TS, SCHEMES["refused"]).stats
    assert reads == [Tensor.tolist] * (stats.accepted + stats.rejected)


def test_reports_are_seen_in_order_with_the_numbers_of_every_run() -> None:
    lookout = Readback[str]()
    one = torch.tensor(1.0, dtype=torch.float64)
    lookout.send((one, 2 * one), "first")

    def send(x: Tensor) -> Tensor:
        lookout.send((x, one), "second")
        return x

    vmap(send)(torch.tensor([3.0, 4.0], dtype=torch.float64))
    assert list(lookout.seen()) == [([[1.0, 2.0]], "first"), ([[3.0, 1.0], [4.0, 1.0]], "second")]
    assert list(lookout.rest()) == []


@pytest.mark.gpu
@EVERY_SCHEME
def test_a_solve_on_a_gpu_never_synchronises(scheme: Scheme) -> None:
    y0, w, rate = problem("cuda")
    solve(reaction(w, rate), y0, TS, scheme)  # libraries set themselves up
    torch.cuda.synchronize()
    _forbid_waits()
    try:
        ys = solve(reaction(w, rate), y0, TS, scheme).ys
        gradients = torch.autograd.grad(loss(ys), (y0, w, rate))
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert all(bool(x.isfinite().all()) for x in (ys, *gradients))


@pytest.mark.gpu
@EVERY_SCHEME
def test_a_gpu_finds_what_the_cpu_finds(scheme: Scheme) -> None:
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
def test_a_batch_on_a_gpu_never_synchronises_and_finds_what_the_cpu_finds() -> None:
    y0, w, _ = (x.detach() for x in problem())

    def run(y0: Tensor, w: Tensor, rate: Tensor) -> Tensor:
        return solve(reaction(w, rate), y0, TS, SCHEMES["dopri5"]).ys

    together = vmap(run, in_dims=(None, None, 0))
    wanted = together(y0, w, RATES)
    there = y0.cuda(), w.cuda(), RATES.cuda()
    together(*there)
    torch.cuda.synchronize()
    _forbid_waits()
    try:
        found = together(*there)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    torch.testing.assert_close(found.cpu(), wanted, rtol=1e-9, atol=1e-10)


@pytest.mark.gpu
def test_a_failure_on_a_gpu_says_how_far_it_got() -> None:
    y0 = torch.ones(2, dtype=torch.float64, device="cuda")
    with pytest.raises(SolverError, match=r"Dopri5\(\) .* t=(0\.99|1)\S* of 2 with step size"):
        solve(lambda t, y: y**2, y0, (0.0, 2.0), SCHEMES["dopri5"])
