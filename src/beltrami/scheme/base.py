"""The parts of a scheme: a solver makes a step, a controller chooses its length, an adjoint finds the gradient.

The problem is y'(t) = f(t, y), y(t0) = y0, for one tensor ``y`` of any shape. Time is a Python float, except in
``DeviceLoop``, which chooses steps on the device: there it is a tensor of shape ().
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

import torch
from torch import Tensor
from torch.compiler import is_compiling
from torch.func import debug_unwrap

if TYPE_CHECKING:
    from beltrami.scheme.time_stepping import Scheme

Time: TypeAlias = float | Tensor
VectorField: TypeAlias = Callable[[Any, Tensor], Tensor]  # of a Time and the state
State: TypeAlias = tuple[Tensor, ...]  # what a solver keeps from one step to the next

_in_warmup: ContextVar[bool] = ContextVar("in_warmup", default=False)


class Step(NamedTuple):
    """One step y0 -> y1. The error and the interpolant are computed only when they are called."""

    y1: Tensor
    error: Callable[[], Tensor] | None  # the local error estimate, without a graph; None if the solver has none
    state: State
    interpolate: Callable[[float], Tensor]  # the state at a time within the step


class Solver(ABC):
    """A one-step map y0 -> y1."""

    order: int  # p, where the error at a fixed time is O(dt^p)
    error_order: ClassVar[int | None] = None  # q, where the error estimate is O(dt^(q+1)); None without an estimate
    equal_steps: ClassVar[bool] = False  # whether all steps must have the same length
    synchronises: ClassVar[bool] = False  # whether a step reads values from the device to decide how to continue

    def init(self, f: VectorField, t0: float, y0: Tensor) -> State:
        """Return the solver's state before the first step."""
        return ()

    @abstractmethod
    def step(self, f: VectorField, t0: float, t1: float, y0: Tensor, state: State) -> Step:
        """Carry ``y0`` from ``t0`` to ``t1``."""


class Decision(NamedTuple):
    """A controller's decision: whether the step is accepted, the next step length, and the controller's memory."""

    accept: bool
    dt: float
    memory: tuple[float, ...] = ()


class Controller(ABC):
    """Chooses step lengths. It has no mutable state: its memory travels in its decisions."""

    @property
    @abstractmethod
    def adaptive(self) -> bool:
        """Whether step lengths depend on the solution; the host then reads values at every step."""

    @property
    def needs_error(self) -> bool:
        """Whether it uses the solver's error estimate."""
        return self.adaptive

    @abstractmethod
    def first_step(self, f: VectorField, t0: float, t1: float, y0: Tensor, solver: Solver) -> float:
        """Return the length of the first step from ``t0`` towards ``t1``."""

    def least_steps(self, t0: float, t1: float) -> int:
        """Return the fewest steps that it may take from ``t0`` to ``t1``, as far as known before a solve."""
        return 1

    @abstractmethod
    def decide(self, step: Step, dt: float, y0: Tensor, solver: Solver, memory: tuple[float, ...]) -> Decision:
        """Accept or reject a step of length ``dt`` from ``y0``."""

    def resume(self, dt: Time) -> "Controller":
        """Return a controller that continues a solve whose ``Stats.last_dt`` is ``dt``."""
        return self


@dataclass
class Stats:
    """The cost of a solve; ``backward`` fills in the backward count when it runs.

    A batch with adaptive steps (``DeviceLoop``) counts as one program: ``accepted`` counts trial steps that at least
    one run accepted, ``rejected`` the others, an evaluation is one of the whole batch, and ``last_dt`` is a tensor.
    """

    evaluations: int = 0  # of the vector field, in the forward solve
    backward_evaluations: int = 0  # of the vector field, for the gradient
    accepted: int = 0  # steps
    rejected: int = 0
    last_dt: Time = 0.0  # the step length that the controller would try next, for ``Controller.resume``

    @staticmethod
    def total(each: "Iterable[Stats]") -> "Stats":
        """Return the sum over several solves."""
        total = Stats()
        for stats in each:
            total.add(stats)
        return total

    def add(self, other: "Stats") -> None:
        """Add the counts of another solve. A ``last_dt`` of a batch is dropped: it must not leave its ``vmap``."""
        self.evaluations += other.evaluations
        self.backward_evaluations += other.backward_evaluations
        self.accepted += other.accepted
        self.rejected += other.rejected
        self.last_dt = 0.0 if isinstance(other.last_dt, Tensor) else other.last_dt


@dataclass(frozen=True)
class Solution:
    """The states ``ys`` (len(ts), *y.shape) at the requested times, beginning with ``y0``, and their cost."""

    ys: Tensor
    stats: Stats


class InitialValueProblem(NamedTuple):
    """A vector field, the times at which the state is wanted, the scheme, and where to count the cost."""

    f: VectorField
    ts: tuple[float, ...]
    scheme: "Scheme"
    stats: Stats


class Adjoint(ABC):
    """A way to compute the gradient of a solve; the values do not depend on it."""

    @abstractmethod
    def run(self, problem: InitialValueProblem, y0: Tensor, params: tuple[Tensor, ...]) -> Tensor:
        """Return the states at the times of the problem, such that gradients reach ``y0`` and ``params``."""


class TimeStepping(ABC):
    """Anything that ``solve`` accepts as its scheme: ``Scheme``, ``Exponential``, ``TorchDiffEq``, ..."""

    @property
    def synchronises(self) -> bool:
        """Whether the host reads values during a solve; if not, the solve can be captured as a CUDA graph."""
        return True

    def check_times(self, ts: tuple[float, ...]) -> None:
        """Refuse times whose solve would take too many steps, as far as known before it starts; by default none."""
        return

    @abstractmethod
    def run(self, f: VectorField, y0: Tensor, ts: tuple[float, ...], params: tuple[Tensor, ...]) -> Solution:
        """Solve at the times ``ts``, which ``solve`` has checked."""

    def resume(self, stats: Stats) -> "TimeStepping":
        """Return the scheme that continues a solve with these ``stats`` without a search for the first step."""
        return self


class CountingField:
    """A vector field that counts its evaluations, as backward ones while ``backward`` is set, and checks its result."""

    def __init__(self, f: VectorField, stats: Stats, *, backward: bool = False) -> None:
        self.f, self.stats, self.backward = f, stats, backward

    def __call__(self, t: float, y: Tensor) -> Tensor:
        if self.backward:
            self.stats.backward_evaluations += 1
        else:
            self.stats.evaluations += 1
        dy = self.f(t, y)
        if dy.shape != y.shape or dy.dtype != y.dtype:
            raise ValueError(
                f"the vector field must return the shape and type of its state, {tuple(y.shape)} of {y.dtype}; "
                f"it returned {tuple(dy.shape)} of {dy.dtype}."
            )
        return dy


def is_batched_or_captured(y: Tensor) -> bool:
    """Whether the host must not read ``y``: it is batched by ``torch.func.vmap``, captured or compiled."""
    return is_captured(y) or debug_unwrap(y) is not y


def is_captured(y: Tensor) -> bool:
    """Whether operations on ``y`` are being captured as a CUDA graph, or run as the warm-up for a capture, or compiled
    by ``torch.compile``."""
    return is_compiling() or _in_warmup.get() or (y.is_cuda and torch.cuda.is_current_stream_capturing())


@contextmanager
def warmup() -> Iterator[None]:
    """Run solves as in a capture, so that everything a capture needs exists before it begins."""
    token = _in_warmup.set(True)
    try:
        yield
    finally:
        _in_warmup.reset(token)


def check_step_count(steps: int, max_steps: int, t0: float, t1: float) -> None:
    """Refuse a solve that needs more than ``max_steps`` steps."""
    if steps > max_steps:
        raise ValueError(
            f"the solve from t={t0:g} to {t1:g} needs {steps:.4g} steps, and `max_steps` allows {max_steps}: choose a "
            f"shorter time, a `dt` of at least {(t1 - t0) / max_steps:.2g}, or a larger `max_steps`."
        )


def check_tolerances(who: object, rtol: float, atol: float) -> None:
    """Raise unless both tolerances are at least zero, finite, and one is positive."""
    if rtol < 0.0 or atol < 0.0 or not 0.0 < rtol + atol < math.inf:
        raise ValueError(
            f"{type(who).__name__} needs non-negative, finite `rtol` and `atol`, not both zero; "
            f"got rtol={rtol}, atol={atol}."
        )


def requiring_grad(tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return the tensors that require a gradient."""
    return tuple(x for x in tensors if x.requires_grad)


def refuse_second_derivative(what: str, remedy: str = "use an explicit solver with Direct()") -> None:
    """Raise if a backward pass that cannot be differentiated runs under ``create_graph``."""
    if torch.is_grad_enabled():
        raise RuntimeError(f"{what} has no second derivative: do without `create_graph`, or {remedy}.")
