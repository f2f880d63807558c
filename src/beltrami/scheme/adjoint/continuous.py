"""Pontryagin's adjoint equation."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from beltrami.scheme.adjoint.direct import Direct
from beltrami.scheme.adjoint.path import Path
from beltrami.scheme.adjoint.prefix_controller import PrefixController
from beltrami.scheme.adjoint.pullback import pullback, spread
from beltrami.scheme.base import (
    Adjoint,
    CountingField,
    Solution,
    Stats,
    VectorField,
    refuse_second_derivative,
    requiring_grad,
)
from beltrami.scheme.loop import accepted_steps

if TYPE_CHECKING:
    from beltrami.scheme.solve import Scheme


@dataclass(frozen=True)
class Continuous(Adjoint):
    r"""The adjoint equation, solved backwards in time.

    .. math:: \lambda' = -\partial_y f(t, y)^\top \lambda, \qquad
              \lambda(t_k^-) = \lambda(t_k^+) + \frac{\partial L}{\partial y(t_k)}, \qquad
              \frac{dL}{dp} = \int \partial_p f(t, y)^\top \lambda \, dt

    Accurate to the tolerances of the scheme rather than to round-off, and free of any graph longer than one evaluation.

    Backwards, a diffusion equation is ill-posed: y itself can not be recovered from y(T), as errors grow like
    exp(2 T). So y is kept at every accepted step on the way forward and interpolated on the way back, where only
    lambda is integrated; for lambda backwards is the stable direction. It is scaled to unit size, which leaves the
    tolerances their meaning however small the loss, and the integrals over time, which nothing feeds on, have no say
    in the step sizes.

    Args:
        scheme: how to go backwards; by default as forwards.
    """

    scheme: "Scheme | None" = None

    def run(
        self, f: VectorField, y0: Tensor, ts: tuple[float, ...], scheme: "Scheme", params: tuple[Tensor, ...]
    ) -> Solution:
        params = requiring_grad(params)
        if not torch.is_grad_enabled() or not requiring_grad((y0, *params)):
            return Direct().run(f, y0, ts, scheme, ())
        stats = Stats()
        ys: Tensor = _Continuous.apply(  # type: ignore[no-untyped-call]
            _Problem(f, ts, scheme, self.scheme or scheme, stats), y0, *params
        )
        return Solution(ys, stats)


@dataclass(frozen=True)
class _Problem:
    f: VectorField
    ts: tuple[float, ...]
    scheme: "Scheme"
    backward: "Scheme"
    stats: Stats


class _Continuous(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, problem: _Problem, y0: Tensor, *params: Tensor) -> Tensor:
        f, ts, scheme, stats = problem.f, problem.ts, problem.scheme, problem.stats
        anchors = {ts[0]: y0}
        for stride in accepted_steps(CountingField(f, stats), y0, ts[0], ts[-1], scheme, stats):
            if scheme.solver.order > 4:  # a cubic over the whole step would lose digits that the solver has
                middle = 0.5 * (stride.t0 + stride.t1)
                anchors[middle] = stride.step.interpolate(middle)
            anchors |= stride.observe(ts)
            anchors[stride.t1] = stride.step.y1
        ctx.problem, ctx.times, ctx.count = problem, sorted(anchors), len(params)
        ctx.save_for_backward(*params, *(anchors[t] for t in ctx.times))
        return torch.stack([anchors[t] for t in ts])

    @staticmethod
    def backward(ctx: Any, grad_ys: Tensor) -> tuple[Tensor | None, ...]:
        refuse_second_derivative("Continuous()")
        problem, ts = ctx.problem, ctx.problem.ts
        params, anchors = ctx.saved_tensors[: ctx.count], ctx.saved_tensors[ctx.count :]
        wanted = [p for p, needed in zip(params, ctx.needs_input_grad[2:], strict=True) if needed]
        field = CountingField(problem.f, problem.stats, backward=True)
        path = Path(field, ctx.times, anchors, smooth=problem.scheme.solver.order > 2)
        adjoint = _AdjointField(field, path, wanted)

        size = torch.linalg.vector_norm(grad_ys) / grad_ys[0].numel() ** 0.5
        size = torch.where(size > 0, size, torch.ones_like(size))
        w = adjoint.pack([grad_ys[-1] / size, *(torch.zeros_like(p) for p in wanted)])
        scheme = _backward_scheme(problem, grad_ys[0].numel())
        for k in reversed(range(len(ts) - 1)):
            stats = Stats()
            for stride in accepted_steps(adjoint, w, -ts[k + 1], -ts[k], scheme, stats):
                w = stride.step.y1
            scheme = replace(scheme, controller=scheme.controller.resume(stats.last_dt))
            lam, *sums = adjoint.unpack(w)
            w = adjoint.pack([lam + grad_ys[k] / size, *sums])
        grad_y0, *sums = (g * size for g in adjoint.unpack(w))
        return None, grad_y0 if ctx.needs_input_grad[1] else None, *spread(sums, ctx.needs_input_grad[2:])


class _AdjointField:
    """d/ds of w = (lambda, integrals) along s = -t, as one flat vector: (J^T lambda, (df/dp)^T lambda)."""

    def __init__(self, f: VectorField, path: Path, params: Sequence[Tensor]) -> None:
        self.f, self.path, self.params = f, path, params
        self.shapes = [path.anchors[0].shape, *(p.shape for p in params)]

    def __call__(self, s: float, w: Tensor) -> Tensor:
        create_graph = torch.is_grad_enabled()  # implicit solvers differentiate this field in their turn
        lam, *_ = self.unpack(w)
        with torch.enable_grad():
            y = self.path(-s).detach().requires_grad_()
            dy = self.f(-s, y)
            return self.pack(pullback([dy], [y, *self.params], [lam], create_graph=create_graph))

    def pack(self, parts: Sequence[Tensor]) -> Tensor:
        dtype = self.path.anchors[0].dtype
        return torch.cat([x.flatten().to(dtype) for x in parts])

    def unpack(self, w: Tensor) -> list[Tensor]:
        pieces = torch.split(w, [shape.numel() for shape in self.shapes])
        return [x.view(shape) for x, shape in zip(pieces, self.shapes, strict=True)]


def _backward_scheme(problem: _Problem, count: int) -> "Scheme":
    controller = problem.backward.controller.resume(problem.stats.last_dt)
    return replace(problem.backward, controller=PrefixController(controller, count))
