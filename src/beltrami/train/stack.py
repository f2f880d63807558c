"""Stack: the weights of many models side by side, to be run as one program."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.optim import Optimizer

from beltrami.model import Classifier

T = TypeVar("T")
Tensors = dict[str, Tensor]


@dataclass(frozen=True, eq=False)
class Stack:
    """Models of one make: their parameters and buffers by name, each with the models along its first dimension.

    Args:
        params: what is trained, leaves that gradients reach.
        buffers: running statistics and the keys of dropout.
        make: one of the models, whose code is run on every row.
    """

    params: Tensors
    buffers: Tensors
    make: Classifier

    @staticmethod
    def of(models: Sequence[Classifier]) -> "Stack":
        named = [dict(model.named_parameters()) for model in models]
        kept = [dict(model.named_buffers()) for model in models]
        return Stack(
            {name: torch.stack([p[name].detach() for p in named]).requires_grad_() for name in named[0]},
            {name: torch.stack([b[name].detach() for b in kept]) for name in kept[0]},
            copy.deepcopy(models[0]),
        )

    def __len__(self) -> int:
        return len(next(iter(self.params.values())))

    def copy(self) -> "Stack":
        """The same values in tensors of their own, without gradients."""
        return Stack(_map(self.params, _cloned), _map(self.buffers, _cloned), self.make)

    def rows(self, chosen: Tensor) -> "Stack":
        """Some of the models."""
        return Stack(
            _map(self.params, lambda x: x.detach()[chosen].requires_grad_(x.requires_grad)),
            _map(self.buffers, lambda x: x[chosen]),
            self.make,
        )

    @torch.no_grad()
    def update(self, other: "Stack", chosen: Tensor, rows: Tensor) -> None:
        """Take over the rows ``chosen`` of another stack as the rows ``rows`` of this one."""
        for mine, theirs in ((self.params, other.params), (self.buffers, other.buffers)):
            for name, tensor in mine.items():
                tensor[rows] = theirs[name][chosen]

    @property
    def tensors(self) -> Tensors:
        """Parameters and buffers by name."""
        return {**self.params, **self.buffers}

    def write_to(self, model: Classifier, row: int) -> None:
        """Give a model the values of a row."""
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter.copy_(self.params[name][row])
            for name, buffer in model.named_buffers():
                buffer.copy_(self.buffers[name][row])

    def apply(self, work: Callable[..., T], *args: Tensor, chunk: int | None = None) -> T:
        """``work(model, *row)`` for every model and the rows of ``args`` that go with it, ``chunk`` or all at once."""
        run = _Run(self.make, work)

        def one(params: Tensors, buffers: Tensors, *args: Tensor) -> T:
            state = {f"model.{name}": tensor for name, tensor in (*params.items(), *buffers.items())}
            result: T = functional_call(run, state, args)
            return result

        together: T = vmap(one, chunk_size=chunk)(self.params, self.buffers, *args)
        return together


def keep_rows(optimiser: Optimizer, before: Stack, after: Stack, chosen: Tensor) -> None:
    """Let an optimiser of the parameters ``before`` go on with ``after``, which holds the rows ``chosen`` of them."""
    renewed = {id(old): after.params[name] for name, old in before.params.items()}
    runs = len(before)
    for group in optimiser.param_groups:
        for place, old in enumerate(group["params"]):
            new = group["params"][place] = renewed[id(old)]
            state = optimiser.state.pop(old, None)
            if state is not None:
                optimiser.state[new] = {
                    name: value[chosen] if isinstance(value, Tensor) and value.shape[:1] == (runs,) else value
                    for name, value in state.items()
                }


class _Run(nn.Module):
    """A model as the argument of a function, so that ``functional_call`` can put other weights into it."""

    def __init__(self, model: Classifier, work: Callable[..., object]) -> None:
        super().__init__()
        self.model, self.work = model, work

    def forward(self, *args: Tensor) -> object:
        return self.work(self.model, *args)


def _map(tensors: Tensors, change: Callable[[Tensor], Tensor]) -> Tensors:
    return {name: change(tensor) for name, tensor in tensors.items()}


def _cloned(x: Tensor) -> Tensor:
    return x.detach().clone()
