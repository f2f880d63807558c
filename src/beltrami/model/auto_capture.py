"""Modules that capture their own passes as CUDA graphs, for the user's own training loop."""

import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.func import debug_unwrap

from beltrami.graph import Edges
from beltrami.model.captured_graph import CapturedGraph, values_kept
from beltrami.scheme.base import refuse_second_derivative

Work = Callable[..., Tensor]
FIRST_CALLS = 2  # equal calls of a module that are computed without a CUDA graph; the next one is captured
PLAIN = {bool, int, float, str, type(None)}  # attributes of modules that are compared by their values
MAX_EDGES = 2**21  # of a graph that is worth a capture: launches take less time than the work on a larger one


def is_capturable(edges: Edges) -> bool:
    """Whether work on a graph is worth a CUDA graph and can be captured: on a GPU, small, with constant values."""
    constant = not any(x is not None and x.requires_grad for x in (edges.weight, edges.features))
    return not torch.compiler.is_compiling() and edges.j.is_cuda and edges.num_edges <= MAX_EDGES and constant


class _Call:
    """One replayed forward pass: whether its backward pass has run, and the versions of the parameters it read."""

    def __init__(self, versions: list[int]) -> None:
        self.versions, self.done = versions, False


class CapturedPass:
    """The forward pass of a function, and its backward pass if it has one, as CUDA graphs.

    ``work`` maps ``inputs`` to a tensor with the parameters of ``module``. Each call copies its inputs into the tensors
    of the capture and returns a new tensor. Gradients are those by the inputs that require one and by the parameters;
    there is no second derivative.
    """

    def __init__(self, module: nn.Module, work: Work, inputs: Sequence[Tensor]) -> None:
        self.inputs = [x.detach().clone().requires_grad_(x.requires_grad) for x in inputs]
        self.parameters = list(module.parameters())
        # The capture uses tensors of its own on the same memory: autograd remembers on which stream a parameter was
        # first used, and would make that stream wait for the capture.
        aliases: dict[Tensor, Tensor] = {p: p.detach().requires_grad_(p.requires_grad) for p in self.parameters}
        wanted = [x for x in (*self.inputs, *aliases.values()) if x.requires_grad and torch.is_grad_enabled()]
        self.device = next(iter((*inputs, *self.parameters))).device
        self._last: weakref.ref[_Call] | None = None

        def forward_pass() -> Tensor:
            with _parameters_replaced(module, aliases):
                return work(*self.inputs)

        def both_passes() -> None:
            out = forward_pass()
            if wanted:
                torch.autograd.grad(out, wanted, torch.zeros_like(out), allow_unused=True)

        self.backward: CapturedGraph[tuple[Tensor | None, ...]] | None = None
        with values_kept(module.buffers()):  # until the end: the backward pass of the capture reads some of them
            self.forward = CapturedGraph(forward_pass, (), self.device, warm_up=both_passes)
            if wanted:
                out = self.forward.result
                self.cotangent = torch.zeros_like(out)
                self.backward = CapturedGraph(
                    lambda: torch.autograd.grad(out, wanted, self.cotangent, retain_graph=True, allow_unused=True),
                    (), self.device, warm_up=lambda: None,
                )  # fmt: skip

    @property
    def is_waiting(self) -> bool:
        """Whether a backward pass may still come that needs the values of the last forward pass."""
        last = None if self._last is None else self._last()
        return last is not None and not last.done

    def __call__(self, *inputs: Tensor) -> Tensor:
        if self.backward is None:
            return self.replay_forward(inputs)
        out: Tensor = _Replay.apply(self, len(inputs), *inputs, *self.parameters)  # type: ignore[no-untyped-call]
        return out

    @torch.no_grad()
    def replay_forward(self, inputs: Sequence[Tensor]) -> Tensor:
        """Return the output for new inputs."""
        for place, x in zip(self.inputs, inputs, strict=True):
            place.copy_(x)
        return self.forward().clone()

    def begin(self) -> _Call:
        """Remember a forward pass, whose backward pass may follow."""
        call = _Call([p._version for p in self.parameters])
        self._last = weakref.ref(call)
        return call

    def replay_backward(self, call: _Call, cotangent: Tensor) -> list[Tensor | None]:
        """Return the gradients by inputs and parameters, None where there is none."""
        if self._last is None or self._last() is not call or call.versions != [p._version for p in self.parameters]:
            raise RuntimeError(
                "the backward pass needs values that have been overwritten: the model was called, or its weights "
                "changed, after the forward pass; build the model with `capture=False`."
            )
        assert self.backward is not None
        self.cotangent.copy_(cotangent)
        found, call.done = iter(self.backward()), True
        return [next(found) if x.requires_grad else None for x in (*self.inputs, *self.parameters)]


class _Replay(Function):
    @staticmethod
    def forward(ctx: Any, captured: CapturedPass, count: int, *tensors: Tensor) -> Tensor:
        ctx.captured, ctx.call = captured, captured.begin()
        return captured.replay_forward(tensors[:count])

    @staticmethod
    def backward(ctx: Any, *grad: Tensor) -> tuple[Any, ...]:
        refuse_second_derivative("a model captured as a CUDA graph", "build it with `capture=False`")
        return (None, None, *ctx.captured.replay_backward(ctx.call, grad[0]))


@dataclass
class _Mode:
    """The calls of a module in training or evaluation, with or without gradients, on one graph."""

    graph: weakref.ref[Any]
    signature: list[Any]
    calls: int = 1
    captured: CapturedPass | None = None
    failed: bool = False  # the work cannot be captured


class AutoCapture:
    """Replays the passes of a module as CUDA graphs once it was called a few times on the same graph.

    A call is computed without a CUDA graph if the module or its surroundings differ from the capture, if a backward
    pass still needs the values of an earlier call, and where the work cannot be captured. Copies begin empty.
    """

    def __init__(self) -> None:
        self._modes: dict[tuple[bool, ...], _Mode] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> "AutoCapture":
        return AutoCapture()

    def __reduce__(self) -> tuple[Any, ...]:
        return AutoCapture, ()

    def __call__(self, module: nn.Module, work: Work, *inputs: Tensor, graph: object, force: bool) -> Tensor:
        """Return ``work(*inputs)``; ``graph`` is what else the work reads, the same object if it is unchanged. Modules
        that are not of this library or torch may depend on more, and are captured by ``force`` only."""
        parts = list(module.modules())
        if not (force or all(_is_known(type(part).__module__) for part in parts)) or _is_observed(parts):
            return work(*inputs)
        kind = (module.training, torch.is_grad_enabled(), torch.is_inference_mode_enabled())
        mode, signature = self._modes.get(kind), _signature(parts, inputs)
        if mode is None or mode.graph() is not graph or mode.signature != signature:
            self._modes[kind] = _Mode(weakref.ref(graph), signature)
            return work(*inputs)
        mode.calls += 1
        if mode.captured is None and not mode.failed and mode.calls > FIRST_CALLS:
            mode.captured = self._captured(module, work, inputs)
            mode.failed = mode.captured is None
        if mode.captured is None or mode.captured.is_waiting:
            return work(*inputs)
        return mode.captured(*inputs)

    @staticmethod
    def _captured(module: nn.Module, work: Work, inputs: Sequence[Tensor]) -> CapturedPass | None:
        try:
            return CapturedPass(module, work, inputs)
        except torch.cuda.OutOfMemoryError:
            torch.cuda.empty_cache()
        except RuntimeError as error:
            with suppress(RuntimeError):
                torch.cuda.synchronize()
            reason = " ".join(str(error).split())[:160]
            warnings.warn(
                f"{type(module).__name__} cannot be captured as a CUDA graph, and runs without one, which is slower "
                f"({reason}); build it with `capture=False` to leave this out.",
                stacklevel=2,
            )
        return None


@contextmanager
def _parameters_replaced(module: nn.Module, aliases: Mapping[Tensor, Tensor]) -> Iterator[None]:
    """Use other tensors in place of the parameters of a module."""
    places = [(part._parameters, name) for part in module.modules() for name in part._parameters]
    before = [known[name] for known, name in places]
    try:
        for (known, name), parameter in zip(places, before, strict=True):
            known[name] = None if parameter is None else aliases[parameter]  # type: ignore[assignment]
        yield
    finally:
        for (known, name), parameter in zip(places, before, strict=True):
            known[name] = parameter


def _is_known(module: str) -> bool:
    """Whether a class is of this library or torch: the work of its objects depends on attributes and tensors alone."""
    return module.startswith(("beltrami.", "torch."))


def _is_observed(parts: Sequence[nn.Module]) -> bool:
    """Whether something would miss what happens inside the modules, or change it: hooks, transforms, tracing."""
    return (
        torch.compiler.is_compiling()
        or torch.cuda.is_current_stream_capturing()
        or torch.is_autocast_enabled("cuda")
        or torch.is_anomaly_enabled()
        or any(part._forward_hooks or part._forward_pre_hooks or part._backward_hooks for part in parts)
        or any(p is not None and debug_unwrap(p) is not p for part in parts for p in part._parameters.values())
    )


def _signature(parts: Sequence[nn.Module], inputs: Sequence[Tensor]) -> list[Any]:
    """Return what a capture depends on besides the graph: attributes, addresses of weights, shapes of inputs."""
    found: list[Any] = [(x.shape, x.dtype, x.device, x.requires_grad) for x in inputs]
    for part in parts:
        for name, value in part.__dict__.items():  # in the order in which they were set
            if name[0] != "_":
                found.append(value if type(value) in PLAIN else id(value))
        for tensors in (part._parameters, part._buffers):
            found.extend((x.data_ptr(), x.requires_grad) for x in tensors.values() if x is not None)
    return found
