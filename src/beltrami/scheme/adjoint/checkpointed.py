"""Backpropagation through the steps, a few at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from beltrami.scheme.adjoint.direct import Direct
from beltrami.scheme.adjoint.pullback import pullback, spread
from beltrami.scheme.base import (
    Adjoint,
    CountingField,
    Solution,
    State,
    Stats,
    VectorField,
    refuse_second_derivative,
    requiring_grad,
)
from beltrami.scheme.loop import AcceptedStep, accepted_steps

if TYPE_CHECKING:
    from beltrami.scheme.solve import Scheme


@dataclass(frozen=True)
class Checkpointed(Adjoint):
    """The gradient of ``Direct`` to round-off, in the memory of a few steps, for one more forward solve.

    The way forward leaves no graph, only the state after every ``every``-th step; the way back repeats the steps
    from each of these, with a graph, at the recorded times. So ``f`` must give the same twice: no dropout inside.

    Args:
        every: steps between two checkpoints; by default about the root of their number.
    """

    every: int | None = None

    def __post_init__(self) -> None:
        if self.every is not None and self.every < 1:
            raise ValueError(f"Checkpointed needs `every` of at least one step, or None; got {self.every}.")

    def run(
        self, f: VectorField, y0: Tensor, ts: tuple[float, ...], scheme: "Scheme", params: tuple[Tensor, ...]
    ) -> Solution:
        params = requiring_grad(params)
        if not torch.is_grad_enabled() or not requiring_grad((y0, *params)):
            return Direct().run(f, y0, ts, scheme, ())
        stats = Stats()
        ys: Tensor = _Checkpointed.apply(  # type: ignore[no-untyped-call]
            _Problem(f, ts, scheme, self.every, stats), y0, *params
        )
        return Solution(ys, stats)


@dataclass(frozen=True)
class _Problem:
    f: VectorField
    ts: tuple[float, ...]
    scheme: "Scheme"
    every: int | None
    stats: Stats


class _Trail:
    """The times of all steps, and where each stretch of them began.

    With ``every`` unknown, whenever the checkpoints outnumber twice the steps between two of them every other one is
    dropped: after N steps there are about sqrt(2 N) of them, whatever N turns out to be.
    """

    def __init__(self, every: int | None) -> None:
        self.thins = every is None
        self.every = every or 1
        self.times: list[float] = []
        self.starts: list[tuple[Tensor, State]] = []

    def add(self, stride: AcceptedStep) -> None:
        if len(self.times) % self.every == 0:
            self.starts.append((stride.y0, stride.state))
        self.times.append(stride.t0)
        if self.thins and len(self.starts) > 2 * self.every:
            self.starts, self.every = self.starts[::2], 2 * self.every


class _Checkpointed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, problem: _Problem, y0: Tensor, *params: Tensor) -> Tensor:
        f, ts, scheme, stats = problem.f, problem.ts, problem.scheme, problem.stats
        trail, ys = _Trail(problem.every), [y0]
        for stride in accepted_steps(CountingField(f, stats), y0, ts[0], ts[-1], scheme, stats):
            trail.add(stride)
            ys += stride.observe(ts).values()
        ctx.problem, ctx.every, ctx.times = problem, trail.every, (*trail.times, ts[-1])
        ctx.sizes = [1 + len(state) for _, state in trail.starts]
        ctx.save_for_backward(*params, *(x for y, state in trail.starts for x in (y, *state)))
        return torch.stack(ys)

    @staticmethod
    def backward(ctx: Any, grad_ys: Tensor) -> tuple[Tensor | None, ...]:
        refuse_second_derivative("Checkpointed()")
        params, starts = _unpack(ctx)
        wanted = [p for p, needed in zip(params, ctx.needs_input_grad[2:], strict=True) if needed]
        sums = [torch.zeros_like(p) for p in wanted]
        seen = len(grad_ys)
        cotangents: list[Tensor] = []  # of the state and memory after the steps already undone
        for k, start in reversed(list(enumerate(starts))):
            times = ctx.times[k * ctx.every : (k + 1) * ctx.every + 1]
            inputs = [x.detach().requires_grad_() for x in start]
            with torch.enable_grad():
                ys, last = _replay(ctx.problem, times, inputs, first=k == 0)
            observed = list(grad_ys[seen - len(ys) : seen])
            seen -= len(ys)
            cotangents = cotangents or [torch.zeros_like(x) for x in last]
            gradients = pullback([*ys, *last], [*inputs, *wanted], [*observed, *cotangents])
            cotangents = gradients[: len(inputs)]
            sums = [total + g for total, g in zip(sums, gradients[len(inputs) :], strict=True)]
        grad_y0 = cotangents[0] + grad_ys[0] if ctx.needs_input_grad[1] else None
        return None, grad_y0, *spread(sums, ctx.needs_input_grad[2:])


def _unpack(ctx: Any) -> tuple[Sequence[Tensor], list[Sequence[Tensor]]]:
    count = len(ctx.saved_tensors) - sum(ctx.sizes)
    params, rest = ctx.saved_tensors[:count], iter(ctx.saved_tensors[count:])
    return params, [[next(rest) for _ in range(size)] for size in ctx.sizes]


def _replay(
    problem: _Problem, times: Sequence[float], start: Sequence[Tensor], *, first: bool
) -> tuple[list[Tensor], list[Tensor]]:
    """Repeat the steps between ``times``: the states observed on the way, then the last state with its memory."""
    solver, field = problem.scheme.solver, CountingField(problem.f, problem.stats, backward=True)
    y, state = start[0], tuple(start[1:])
    if first:
        state = solver.init(field, times[0], y)
    ys: list[Tensor] = []
    for t0, t1 in pairwise(times):
        step = solver.step(field, t0, t1, y, state)
        ys += AcceptedStep(t0, t1, y, state, step).observe(problem.ts).values()
        y, state = step.y1, step.state
    return ys, [y, *state]
