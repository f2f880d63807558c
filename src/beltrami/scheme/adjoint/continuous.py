"""The continuous adjoint: Pontryagin's adjoint equation, solved backwards in time."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from beltrami.arguments import checked
from beltrami.scheme.adjoint.discrete import pullback, run_function
from beltrami.scheme.base import Adjoint, CountingField, InitialValueProblem, Stats, refuse_second_derivative
from beltrami.scheme.controller import PrefixController
from beltrami.scheme.interpolant import Interpolant, hermite_interpolant, linear_interpolant
from beltrami.scheme.step_loop import accepted_steps

if TYPE_CHECKING:
    from beltrami.scheme.time_stepping import Scheme


@checked
@dataclass(frozen=True)
class Continuous(Adjoint):
    r"""The adjoint equation, solved backwards in time.

    .. math:: \lambda' = -\partial_y f(t, y)^\top \lambda, \qquad
              \lambda(t_k^-) = \lambda(t_k^+) + \frac{\partial L}{\partial y(t_k)}, \qquad
              \frac{dL}{dp} = \int \partial_p f(t, y)^\top \lambda \, dt

    Accurate to the tolerances of the scheme rather than to round-off; its longest graph is that of one evaluation.

    A diffusion equation is ill-posed backwards: y cannot be recovered from y(T), since errors grow like exp(2 T).
    So the forward solve keeps y at every accepted step, the backward solve interpolates it, and only lambda is
    integrated, for which backwards is the stable direction. Lambda is scaled to unit size, so that the tolerances do
    not depend on the size of the loss; the integrals over time have no influence on the step sizes. ``scheme`` is that
    of the backward solve, by default that of the forward solve.
    """

    scheme: "Scheme | None" = None

    def run(self, problem: InitialValueProblem, y0: Tensor, params: tuple[Tensor, ...]) -> Tensor:
        return run_function(_Continuous.apply, problem, self.scheme or problem.scheme, y0, params)


class _Continuous(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, problem: InitialValueProblem, backward: "Scheme", y0: Tensor, *params: Tensor) -> Tensor:
        f, ts, scheme, stats = problem
        states = {ts[0]: y0}
        for accepted in accepted_steps(CountingField(f, stats), y0, ts[0], ts[-1], scheme, stats):
            if scheme.solver.order > 4:  # a cubic over the whole step would be less accurate than the solver
                middle = 0.5 * (accepted.t0 + accepted.t1)
                states[middle] = accepted.step.interpolate(middle)
            states |= accepted.states_at(ts)
            states[accepted.t1] = accepted.step.y1
        ctx.problem, ctx.backward_scheme, ctx.times = problem, backward, sorted(states)
        ctx.save_for_backward(*params, *(states[t] for t in ctx.times))
        return torch.stack([states[t] for t in ts])

    @staticmethod
    def backward(ctx: Any, grad_ys: Tensor) -> tuple[Tensor | None, ...]:
        refuse_second_derivative("Continuous()")
        f, ts, forward, stats = ctx.problem
        params, states = ctx.saved_tensors[: -len(ctx.times)], ctx.saved_tensors[-len(ctx.times) :]
        field = CountingField(f, stats, backward=True)
        adjoint = _AdjointField(field, _Path(field, ctx.times, states, cubic=forward.solver.order > 2), params)

        count = grad_ys[0].numel()
        size = torch.linalg.vector_norm(grad_ys) / count**0.5
        size = torch.where(size > 0, size, torch.ones_like(size))
        w = adjoint.pack([grad_ys[-1] / size, *(torch.zeros_like(p) for p in params)])
        controller = PrefixController(ctx.backward_scheme.controller.resume(stats.last_dt), count)
        for k in reversed(range(len(ts) - 1)):
            interval, scheme = Stats(), replace(ctx.backward_scheme, controller=controller)
            for accepted in accepted_steps(adjoint, w, -ts[k + 1], -ts[k], scheme, interval):
                w = accepted.step.y1
            controller = controller.resume(interval.last_dt)
            lam, *sums = adjoint.unpack(w)
            w = adjoint.pack([lam + grad_ys[k] / size, *sums])
        grad_y0, *sums = (g * size for g in adjoint.unpack(w))
        return None, None, grad_y0, *sums


class _AdjointField:
    """d/ds of w = (lambda, integrals) along s = -t, as one flat vector: (J^T lambda, (df/dp)^T lambda)."""

    def __init__(self, f: CountingField, path: "_Path", params: Sequence[Tensor]) -> None:
        self.f, self.path, self.params = f, path, params
        self.shapes = [path.states[0].shape, *(p.shape for p in params)]

    def __call__(self, s: float, w: Tensor) -> Tensor:
        create_graph = torch.is_grad_enabled()  # implicit solvers differentiate this field
        lam, *_ = self.unpack(w)
        with torch.enable_grad():
            y = self.path(-s).detach().requires_grad_()
            dy = self.f(-s, y)
            return self.pack(pullback([dy], [y, *self.params], [lam], create_graph=create_graph))

    def pack(self, parts: Sequence[Tensor]) -> Tensor:
        dtype = self.path.states[0].dtype
        return torch.cat([x.flatten().to(dtype) for x in parts])

    def unpack(self, w: Tensor) -> list[Tensor]:
        parts = torch.split(w, [shape.numel() for shape in self.shapes])
        return [x.view(shape) for x, shape in zip(parts, self.shapes, strict=True)]


class _Path:
    """The forward solution y(t) through the states y_i = y(t_i), cubic Hermite with slopes f(t_i, y_i), or linear. A
    cubic overshoots if steps are far longer than the time scales of the problem."""

    def __init__(self, f: CountingField, times: Sequence[float], states: Sequence[Tensor], *, cubic: bool) -> None:
        self.f, self.times, self.states, self.cubic = f, times, states, cubic
        self.slopes: dict[int, Tensor] = {}
        self.current: tuple[int, Interpolant] | None = None

    def __call__(self, t: float) -> Tensor:
        i = min(max(bisect_right(self.times, t) - 1, 0), len(self.times) - 2)
        if self.current is None or self.current[0] != i:
            self.current = i, self._interpolant(i)
        return self.current[1](t)

    def _interpolant(self, i: int) -> Interpolant:
        ts, ys = self.times, self.states
        ends = ts[i], ts[i + 1], ys[i], ys[i + 1]
        if not self.cubic:
            return linear_interpolant(*ends)
        with torch.no_grad():
            known = self.slopes
            self.slopes = {k: known[k] if k in known else self.f(ts[k], ys[k]) for k in (i, i + 1)}
        slope1 = self.slopes[i + 1]
        return hermite_interpolant(*ends, slope0=self.slopes[i], slope1=lambda: slope1)
