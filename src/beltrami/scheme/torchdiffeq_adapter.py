"""Adapter for torchdiffeq's solvers."""

from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from torch import Tensor
from torch.autograd.graph import Node, get_gradient_edge

from beltrami.arguments import NotNegative, Positive, checked
from beltrami.errors import SolverError
from beltrami.scheme.adjoint import Continuous, Direct
from beltrami.scheme.base import (
    Adjoint,
    CountingField,
    Solution,
    Stats,
    TimeStepping,
    VectorField,
    check_step_count,
    requiring_grad,
)
from beltrami.scheme.controller import ConstantSteps

MAX_STEPS, MAX_EVALUATIONS = 10_000, 70_000  # of a solve
Method = Literal[
    "dopri8", "dopri5", "bosh3", "fehlberg2", "adaptive_heun", "euler", "midpoint", "heun2", "heun3", "rk4",
    "explicit_adams", "implicit_adams", "fixed_adams", "scipy_solver",
]  # fmt: skip


@checked
@dataclass(frozen=True)
class TorchDiffEq(TimeStepping):
    """A solver of torchdiffeq in place of a ``Scheme``; needs ``pip install beltrami[torchdiffeq]``.

    Its ``Continuous`` integrates y backwards together with the adjoint over each whole interval: for diffusion, which
    is unstable backwards, keep intervals short. Evaluations are counted, steps are not. ``method`` is torchdiffeq's
    name of the solver, such as ``"dopri5"``; ``step_size`` is for its solvers with constant steps. A solve may evaluate
    the field ``MAX_EVALUATIONS`` times.
    """

    method: Method
    rtol: NotNegative
    atol: NotNegative
    step_size: Positive | None = None
    adjoint: Adjoint = Direct()  # noqa: RUF009 - frozen and empty, so it may be shared

    def __post_init__(self) -> None:
        if self.adjoint not in (Direct(), Continuous()):
            raise ValueError(f"torchdiffeq has the adjoints Direct() and Continuous(); got {self.adjoint!r}.")

    def check_times(self, ts: tuple[float, ...]) -> None:
        if self.step_size is not None:
            check_step_count(ConstantSteps(self.step_size).least_steps(ts[0], ts[-1]), MAX_STEPS, ts[0], ts[-1])

    def run(self, f: VectorField, y0: Tensor, ts: tuple[float, ...], params: tuple[Tensor, ...]) -> Solution:
        try:
            from torchdiffeq import odeint, odeint_adjoint
        except ImportError as missing:
            raise ImportError("TorchDiffEq needs torchdiffeq: pip install beltrami[torchdiffeq].") from missing
        stats = Stats()
        field = CountingField(f, stats)

        def bounded(t: Tensor, y: Tensor) -> Tensor:
            if stats.evaluations >= MAX_EVALUATIONS:  # the error that torchdiffeq itself raises
                raise AssertionError(f"{MAX_EVALUATIONS} evaluations of the field did not suffice")
            return field(float(t.detach()), y)

        solve = odeint if self.adjoint == Direct() else partial(odeint_adjoint, adjoint_params=_independent(params))
        times = torch.tensor(ts, dtype=y0.dtype, device=y0.device)
        options = {"norm": _rms} if self.step_size is None else {"step_size": self.step_size}
        choices = {"rtol": self.rtol, "atol": self.atol, "method": self.method, "options": options}
        try:
            ys = solve(bounded, y0, times, **choices)
        except AssertionError as failure:
            raise SolverError(
                f"torchdiffeq's {self.method} failed between t={ts[0]:.6g} and {ts[-1]:.6g}: {failure}. "
                "Try looser tolerances or a smaller `step_size`."
            ) from failure
        field.backward = True
        return Solution(ys, stats)


def _rms(x: Tensor) -> Tensor:
    """Return the root mean square without a graph: torchdiffeq would differentiate step sizes, and only in part."""
    return x.detach().square().mean().sqrt()


def _independent(params: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Return the parameters that require gradients; raise if one was computed from another, since torchdiffeq's
    adjoint would then count the gradient between them twice."""
    reached = requiring_grad(params)
    nodes = [get_gradient_edge(p).node for p in reached]
    ahead = [parent for node in nodes for parent, _ in node.next_functions]
    seen: set[Node] = set()
    while ahead:
        node = ahead.pop()
        if node is None or node in seen:
            continue
        if node in nodes:
            raise ValueError(
                "with TorchDiffEq and Continuous() no tensor of `params` may be computed from another, but one is "
                f"computed from params[{nodes.index(node)}]: leave out one of the two, or use a Scheme."
            )
        seen.add(node)
        ahead += [parent for parent, _ in node.next_functions]
    return reached
