"""What a scheme is made of: solvers take a step, controllers judge it, adjoints differentiate the whole march.

The problem is always y'(t) = f(t, y), y(t0) = y0, for one tensor ``y`` of any shape. Time is a Python float, but where
steps are chosen on the device (``DeviceLoop``): there it is a tensor without dimensions.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

import torch
from torch import Tensor
from torch.func import debug_unwrap

if TYPE_CHECKING:
    from beltrami.scheme.solve import Scheme

Time: TypeAlias = float | Tensor
VectorField: TypeAlias = Callable[[Any, Tensor], Tensor]  # of a Time; a field that is shown none but floats may say so
State: TypeAlias = tuple[Tensor, ...]


_rehearsing: ContextVar[bool] = ContextVar("rehearsing", default=False)


class Step(NamedTuple):
    """One step y0 -> y1 and what may be asked about it; what nobody asks for is never computed.

    Args:
        y1: the state at ``t1``.
        error: gives the local error estimate, without a graph; None where the solver has none.
        state: what the solver wants to remember for its next step.
        interpolate: the state at a time within the step.
    """

    y1: Tensor
    error: Callable[[], Tensor] | None
    state: State
    interpolate: Callable[[float], Tensor]


class Solver(ABC):
    """A one-step map y0 -> y1, possibly with memory.

    Attributes:
        order: p, where the error at a fixed time is O(dt^p).
        error_order: q, where the error estimate is O(dt^(q+1)); None without an estimate.
        equal_steps: whether all steps must be of one length.
        waits: whether a step waits for the device, to decide how to go on.
    """

    order: int
    error_order: ClassVar[int | None] = None
    equal_steps: ClassVar[bool] = False
    synchronises: ClassVar[bool] = False

    @abstractmethod
    def init(self, f: VectorField, t0: float, y0: Tensor) -> State:
        """The memory before the first step."""

    @abstractmethod
    def step(self, f: VectorField, t0: float, t1: float, y0: Tensor, state: State) -> Step:
        """Carry ``y0`` from ``t0`` to ``t1``."""


class Verdict(NamedTuple):
    """What a controller thinks of a step: take it or not, how long the next should be, and its own memory."""

    accept: bool
    dt: float
    memory: tuple[float, ...] = ()


class Controller(ABC):
    """Chooses the lengths of steps. Stateless: what it remembers travels in its verdicts."""

    @property
    @abstractmethod
    def varies(self) -> bool:
        """Whether steps may differ in length; such a controller looks at every step."""

    @property
    def estimates(self) -> bool:
        """Whether it needs the solver's error estimate."""
        return self.varies

    @abstractmethod
    def start(self, f: VectorField, t0: float, t1: float, y0: Tensor, solver: Solver) -> float:
        """The length of the first step of a march from ``t0`` to ``t1``."""

    @abstractmethod
    def judge(self, step: Step, dt: float, y0: Tensor, solver: Solver, memory: tuple[float, ...]) -> Verdict:
        """Accept or refuse a step of length ``dt`` from ``y0``."""

    @abstractmethod
    def resume(self, dt: Time) -> "Controller":
        """The same controller, to go on where a march ended: ``dt`` is its ``Stats.last_dt``."""


@dataclass
class Stats:
    """What a solve cost; the backward counts are filled in when ``backward`` runs.

    Args:
        evaluations: of the vector field, going forward.
        backward_evaluations: of the vector field, for the gradients.
        accepted: steps taken.
        rejected: steps tried in vain.
        last_dt: the step the controller would take next, for ``Controller.resume``.

    Runs of a batch with steps of their own (``DeviceLoop``) are counted as the one program that they are: ``accepted``
    are the tries by which at least one of them got on, ``rejected`` the others, and an evaluation is one of the whole
    batch. ``last_dt`` is then a tensor, each run's own.
    """

    evaluations: int = 0
    backward_evaluations: int = 0
    accepted: int = 0
    rejected: int = 0
    last_dt: Time = 0.0

    @staticmethod
    def total(each: "Iterable[Stats]") -> "Stats":
        """Several solves together; backward counts are in once ``backward`` has run."""
        total = Stats()
        for stats in each:
            total.add(stats)
        return total

    def add(self, other: "Stats") -> None:
        """Count another solve in. The ``last_dt`` of a batch stays behind: outside its ``vmap`` it means nothing."""
        self.evaluations += other.evaluations
        self.backward_evaluations += other.backward_evaluations
        self.accepted += other.accepted
        self.rejected += other.rejected
        self.last_dt = 0.0 if isinstance(other.last_dt, Tensor) else other.last_dt


@dataclass(frozen=True)
class Solution:
    """The states at the times asked for, and what they cost.

    Shapes:
        ``ys`` (len(ts), *y.shape), beginning with ``y0`` itself.
    """

    ys: Tensor
    stats: Stats


class Adjoint(ABC):
    """How the gradient of a solve is found; the values are the same for all."""

    @abstractmethod
    def run(
        self, f: VectorField, y0: Tensor, ts: tuple[float, ...], scheme: "Scheme", params: tuple[Tensor, ...]
    ) -> Solution:
        """Solve, so that gradients reach ``y0`` and ``params``."""


class TimeStepping(ABC):
    """Whatever can stand behind ``solve``: a ``Scheme`` of ours, or an adaptor to somebody else's."""

    @property
    def synchronises(self) -> bool:
        """Whether the host looks at values before a solve's end, to wait for the device or merely to see how many steps
        it takes; if it does not, the solve can be recorded as a CUDA graph."""
        return True

    @abstractmethod
    def run(self, f: VectorField, y0: Tensor, ts: tuple[float, ...], params: tuple[Tensor, ...]) -> Solution:
        """Solve at the times ``ts``, which ``solve`` has checked."""

    @abstractmethod
    def resume(self, stats: Stats) -> "TimeStepping":
        """The same, to go on where a solve with these ``stats`` ended: it need not look for a first step again."""


class CountingField:
    """A vector field that counts its evaluations in ``stats`` and refuses slopes unlike the state.

    Evaluations count as backward ones once ``backward`` is set.
    """

    def __init__(self, f: VectorField, stats: Stats, *, backward: bool = False) -> None:
        self.f = f
        self.stats = stats
        self.backward = backward

    def __call__(self, t: float, y: Tensor) -> Tensor:
        if self.backward:
            self.stats.backward_evaluations += 1
        else:
            self.stats.evaluations += 1
        dy = self.f(t, y)
        if dy.shape != y.shape or dy.dtype != y.dtype:
            raise ValueError(
                f"the vector field must return what it is given, {tuple(y.shape)} of {y.dtype}; "
                f"it returned {tuple(dy.shape)} of {dy.dtype}."
            )
        return dy


def is_batched_or_captured(y: Tensor) -> bool:
    """Whether nobody may look at the values of ``y``: it is being recorded as a CUDA graph, or one of a batch.

    Of a batch under ``torch.func.vmap``, what is wrong with one is no concern of the others.
    """
    return debug_unwrap(y) is not y or recording(y)


def transformed() -> bool:
    """Whether a ``torch.func`` transform is at work, so that any tensor may turn out to be one of a batch."""
    return torch._C._are_functorch_transforms_active()


def recording(y: Tensor) -> bool:
    """Whether what is done to ``y`` is being recorded as a CUDA graph, or rehearsed for that."""
    return _rehearsing.get() or (y.is_cuda and torch.cuda.is_current_stream_capturing())


@contextmanager
def warmup() -> Iterator[None]:
    """Go the way that a recording goes, so that all it needs is there when it begins."""
    token = _rehearsing.set(True)
    try:
        yield
    finally:
        _rehearsing.reset(token)


def requiring_grad(tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Those of the tensors that gradients can reach."""
    return tuple(x for x in tensors if x.requires_grad)


def refuse_second_derivative(what: str) -> None:
    """For the top of a backward pass that cannot be differentiated in its turn; a silent zero would be worse."""
    if torch.is_grad_enabled():
        raise RuntimeError(
            f"{what} has no second derivative: do without `create_graph`, or use an explicit solver with Direct()."
        )
