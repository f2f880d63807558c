"""Weights: files of weights, moving averages, and the weights of many models in one stack."""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.optim import Optimizer

from beltrami import file_limits as limits
from beltrami.arguments import AnyPath, checked
from beltrami.data.file import write_atomically
from beltrami.errors import DataError
from beltrami.model import Classifier

T = TypeVar("T")
Tensors = dict[str, Tensor]


@checked
def save_weights(model: nn.Module, path: AnyPath) -> None:
    """Write the weights of a model as safetensors, the whole file or nothing."""
    write_atomically(Path(path), save({name: tensor.contiguous() for name, tensor in model.state_dict().items()}))


@checked
def load_weights(model: nn.Module, path: AnyPath, *, device: torch.device | str = "cpu") -> None:
    """Read weights from a safetensors file into a model; a :class:`DataError` says what does not fit."""
    try:
        limits.check_safetensors(Path(path))
        weights = load(Path(path).read_bytes())
    except FileNotFoundError:
        raise DataError(f"no weights at {path}: was the run finished? Train it again.") from None
    except (OSError, SafetensorError, DataError) as error:
        raise DataError(f"the weights in {path} cannot be read ({error}): train the run again.") from None
    try:
        model.load_state_dict({name: tensor.to(device) for name, tensor in weights.items()})
    except (RuntimeError, TypeError, ValueError) as error:
        first = " ".join(str(error).split())[:200]
        raise DataError(f"the weights in {path} are of another model ({first}): check its configuration.") from None


class ExponentialMovingAverage:
    r"""Tensors that follow others, :math:`\bar w \leftarrow \bar w + p (w - \bar w)`, with p = 1 at the first step.

    :math:`\bar w` are ``averages`` and w ``sources``, by the same names; 1 - p is ``decay``. Tensors that are not
    floating point are copied at every step.
    """

    def __init__(self, averages: Mapping[str, Tensor], sources: Mapping[str, Tensor], *, decay: float) -> None:
        self.pairs = [(tensor, sources[name]) for name, tensor in averages.items()]
        self.decay = decay
        example = next(tensor for tensor, _ in self.pairs if tensor.is_floating_point())
        self.p = torch.ones((), dtype=example.dtype, device=example.device)  # a tensor, for CUDA graphs to read

    def begin(self, step: int) -> None:
        """Prepare a step, counted from 1."""
        self.p.fill_(1.0 if step == 1 else 1.0 - self.decay)

    @torch.no_grad()
    def __call__(self) -> None:
        for average, source in self.pairs:
            if average.is_floating_point():
                average.lerp_(source, self.p)
            else:
                average.copy_(source)


def tensors_of(model: nn.Module) -> Tensors:
    """Return the parameters and buffers of a model by name."""
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}


@dataclass(frozen=True, eq=False)
class StackedWeights:
    """Parameters and buffers of models of one architecture by name, each with the models along its first dimension."""

    tensors: Tensors
    template: Classifier  # whose code is run on every row

    @staticmethod
    def of(models: Sequence[Classifier]) -> "StackedWeights":
        """Return copies of the weights of the models, the parameters as leaves of the gradient."""
        states = [tensors_of(model) for model in models]
        tensors = {name: torch.stack([state[name].detach() for state in states]) for name in states[0]}
        for name, _ in models[0].named_parameters():
            tensors[name].requires_grad_()
        return StackedWeights(tensors, copy.deepcopy(models[0]))

    @property
    def params(self) -> Tensors:
        """The tensors that are trained; none in a copy."""
        return {name: tensor for name, tensor in self.tensors.items() if tensor.requires_grad}

    def copy(self) -> "StackedWeights":
        """Return a copy without gradients."""
        return StackedWeights({name: x.detach().clone() for name, x in self.tensors.items()}, self.template)

    def rows(self, chosen: Tensor) -> "StackedWeights":
        """Return some of the models."""
        rows = {name: x.detach()[chosen].requires_grad_(x.requires_grad) for name, x in self.tensors.items()}
        return StackedWeights(rows, self.template)

    @torch.no_grad()
    def update(self, other: "StackedWeights", chosen: Tensor, rows: Tensor) -> None:
        """Copy the rows ``chosen`` of another stack into the rows ``rows`` of this one."""
        for name, tensor in self.tensors.items():
            tensor[rows] = other.tensors[name][chosen]

    @torch.no_grad()
    def write_to(self, model: Classifier, row: int) -> None:
        """Copy a row into a model."""
        for name, tensor in tensors_of(model).items():
            tensor.copy_(self.tensors[name][row])

    def apply(self, work: Callable[..., T], *args: Tensor, chunk: int | None = None) -> T:
        """Return ``work(model, *row)`` for every model and its rows of ``args``, ``chunk`` models or all at once."""
        function = _Function(self.template, work)

        def one(tensors: Tensors, *args: Tensor) -> Any:
            return functional_call(function, {f"model.{name}": x for name, x in tensors.items()}, args)

        results: T = vmap(one, chunk_size=chunk)(self.tensors, *args)
        return results


class _Function(nn.Module):
    """A function of a model as a module, so that ``functional_call`` can replace the weights of the model."""

    def __init__(self, model: Classifier, work: Callable[..., object]) -> None:
        super().__init__()
        self.model, self.work = model, work

    def forward(self, *args: Tensor) -> object:
        return self.work(self.model, *args)


def keep_rows(optimiser: Optimizer, before: Tensors, after: Tensors, chosen: Tensor) -> None:
    """Replace an optimiser's parameters ``before`` by their rows ``chosen``, which are ``after``, and its state too."""
    replacements = {id(old): after[name] for name, old in before.items()}
    for group in optimiser.param_groups:
        for place, old in enumerate(group["params"]):
            new = group["params"][place] = replacements[id(old)]
            state = optimiser.state.pop(old, None)
            if state is not None:
                optimiser.state[new] = {
                    name: value[chosen] if isinstance(value, Tensor) and value.shape[:1] == old.shape[:1] else value
                    for name, value in state.items()
                }
