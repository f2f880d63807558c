"""Discrete adjoints: backpropagation through the steps, all at once or between checkpoints."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice, pairwise
from typing import Any

import torch
from torch import Tensor

from beltrami.arguments import checked
from beltrami.scheme.base import Adjoint, CountingField, InitialValueProblem, refuse_second_derivative, requiring_grad
from beltrami.scheme.device_loop import DeviceLoop
from beltrami.scheme.step_loop import AcceptedStep, accepted_steps


@dataclass(frozen=True)
class Direct(Adjoint):
    """The exact gradient of the numerical solution, with step sizes as constants.

    Keeps the graph of every accepted step: the fastest adjoint, and the one that needs most memory. With ``PID`` on a
    GPU, or under ``torch.func.vmap``, steps are chosen on the device (``DeviceLoop``); the other adjoints choose them
    on the host, which synchronises with the device at every step.
    """

    def run(self, problem: InitialValueProblem, y0: Tensor, params: tuple[Tensor, ...]) -> Tensor:
        f, ts, scheme, stats = problem
        field = CountingField(f, stats)
        if DeviceLoop.applies_to(scheme, y0):
            return DeviceLoop(scheme, ts).run(field, y0, stats)
        ys = [y0]
        for accepted in accepted_steps(field, y0, ts[0], ts[-1], scheme, stats):
            ys += accepted.states_at(ts).values()
        field.backward = True  # implicit steps evaluate the field once more in the backward pass
        return torch.stack(ys)


@checked
@dataclass(frozen=True)
class Checkpointed(Adjoint):
    """The gradient of ``Direct`` to round-off, with the memory of a few steps, for the price of a second forward solve.

    The forward solve keeps no graph, only the state after every ``every``-th step. The backward pass repeats the steps
    from each checkpoint with a graph, at the recorded times; so ``f`` must be deterministic, without dropout. By
    default ``every`` is about the square root of the number of steps.
    """

    every: int | None = None

    def __post_init__(self) -> None:
        if self.every is not None and self.every < 1:
            raise ValueError(f"Checkpointed needs `every` of at least one step, or None; got {self.every}.")

    def run(self, problem: InitialValueProblem, y0: Tensor, params: tuple[Tensor, ...]) -> Tensor:
        return run_function(_Checkpointed.apply, problem, self.every, y0, params)


def run_function(
    apply: Callable[..., Any], problem: InitialValueProblem, option: object, y0: Tensor, params: tuple[Tensor, ...]
) -> Tensor:
    """Return ``apply(problem, option, y0, *params)``, or the solution by ``Direct`` if no gradient is needed."""
    params = requiring_grad(params)
    if not torch.is_grad_enabled() or not requiring_grad((y0, *params)):
        return Direct().run(problem, y0, ())
    ys: Tensor = apply(problem, option, y0, *params)
    return ys


class _Checkpointed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, problem: InitialValueProblem, every: int | None, y0: Tensor, *params: Tensor) -> Tensor:
        f, ts, scheme, stats = problem
        times: list[float] = []
        checkpoints, ys, spacing = [], [y0], every or 1
        for accepted in accepted_steps(CountingField(f, stats), y0, ts[0], ts[-1], scheme, stats):
            if len(times) % spacing == 0:
                checkpoints.append((accepted.y0, *accepted.state))
            times.append(accepted.t0)
            if every is None and len(checkpoints) > 2 * spacing:  # keeps about sqrt(2 N) of them after N steps
                checkpoints, spacing = checkpoints[::2], 2 * spacing
            ys += accepted.states_at(ts).values()
        ctx.problem, ctx.spacing, ctx.times = problem, spacing, (*times, ts[-1])
        ctx.sizes = [len(tensors) for tensors in (params, *checkpoints)]
        ctx.save_for_backward(*params, *chain(*checkpoints))
        return torch.stack(ys)

    @staticmethod
    def backward(ctx: Any, grad_ys: Tensor) -> tuple[Tensor | None, ...]:
        refuse_second_derivative("Checkpointed()")
        saved = iter(ctx.saved_tensors)
        params, *checkpoints = (list(islice(saved, size)) for size in ctx.sizes)
        sums = [torch.zeros_like(p) for p in params]
        end = len(grad_ys)
        cotangents: list[Tensor] = []  # of the state and the solver's state after the current segment
        for k, checkpoint in reversed(list(enumerate(checkpoints))):
            times = ctx.times[k * ctx.spacing : (k + 1) * ctx.spacing + 1]
            inputs = [x.detach().requires_grad_() for x in checkpoint]
            with torch.enable_grad():
                ys, last = _replay(ctx.problem, times, inputs, first=k == 0)
            observed = list(grad_ys[end - len(ys) : end])
            end -= len(ys)
            cotangents = cotangents or [torch.zeros_like(x) for x in last]
            gradients = pullback([*ys, *last], [*inputs, *params], [*observed, *cotangents])
            cotangents = gradients[: len(inputs)]
            sums = [total + g for total, g in zip(sums, gradients[len(inputs) :], strict=True)]
        return None, None, cotangents[0] + grad_ys[0], *sums


def _replay(
    problem: InitialValueProblem, times: Sequence[float], start: Sequence[Tensor], *, first: bool
) -> tuple[list[Tensor], list[Tensor]]:
    """Repeat the steps between ``times``; return the states at requested times, and the last state and solver state."""
    solver, field = problem.scheme.solver, CountingField(problem.f, problem.stats, backward=True)
    y, state = start[0], tuple(start[1:])
    if first:
        state = solver.init(field, times[0], y)
    ys: list[Tensor] = []
    for t0, t1 in pairwise(times):
        step = solver.step(field, t0, t1, y, state)
        ys += AcceptedStep(t0, t1, y, state, step).states_at(problem.ts).values()
        y, state = step.y1, step.state
    return ys, [y, *state]


def pullback(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], cotangents: Sequence[Tensor], *, create_graph: bool = False
) -> list[Tensor]:
    """Return sum_k (d output_k / d input_l)^T cotangent_k for each l, zero where nothing depends on the input.

    The derivative is partial: if one input was computed from another, as attention from the state, no gradient flows
    between them. The graph before the inputs is kept.
    """
    pairs = [(y, v) for y, v in zip(outputs, cotangents, strict=True) if y.requires_grad]
    if not pairs or not inputs:
        return [torch.zeros_like(x) for x in inputs]
    ys, vs = zip(*pairs, strict=True)

    def stop(output_nr: int, gradients: tuple[Tensor | None, ...]) -> tuple[Tensor | None, ...]:
        return tuple(None if k == output_nr else g for k, g in enumerate(gradients))

    # A prehook of a node runs after the engine has captured the gradient that reaches the node.
    nodes = [(x.grad_fn, x.output_nr) for x in inputs if x.grad_fn is not None]
    handles = [node.register_prehook(partial(stop, number)) for node, number in nodes]
    try:
        gradients = torch.autograd.grad(ys, inputs, vs, retain_graph=True, create_graph=create_graph, allow_unused=True)
    finally:
        for handle in handles:
            handle.remove()
    return [torch.zeros_like(x) if g is None else g for x, g in zip(inputs, gradients, strict=True)]
