"""The state of a training, from which it can go on: tensors and plain values, as a file that holds no code."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor
from torch.optim import Optimizer

from beltrami.data.file import tensor_digest, write_atomically
from beltrami.errors import DataError
from beltrami.file_limits import check_safetensors

Tensors = dict[str, Tensor]
VALUES, DIGEST = "values", "digest"  # the keys of the plain values and of the digest in the metadata of a file
CPU, GPU = "random.cpu", "random.gpu"  # the keys of the random states


@dataclass(frozen=True, eq=False)
class TrainingState:
    """Where a training stands after an epoch. ``tensors`` are copies; ``values`` can be written as JSON."""

    tensors: Tensors
    values: dict[str, Any]

    def to_bytes(self) -> bytes:
        """Return the state as a safetensors file, with the values as JSON and a digest of everything as metadata."""
        tensors = {name: tensor.cpu().contiguous() for name, tensor in self.tensors.items()}
        values = json.dumps(self.values)
        content: bytes = save(tensors, {VALUES: values, DIGEST: tensor_digest(tensors, name=values)})
        return content

    def write(self, path: Path) -> None:
        """Write the state, the whole file or nothing."""
        write_atomically(path, self.to_bytes())

    @staticmethod
    def read(path: Path) -> "TrainingState":
        """Return the state in a file."""
        try:
            check_safetensors(path)
            with safe_open(path, framework="pt") as file:
                tensors = {name: file.get_tensor(name) for name in list(file.keys())}
                values, digest = file.metadata()[VALUES], file.metadata()[DIGEST]
            if tensor_digest(tensors, name=values) != digest:
                raise ValueError("it is damaged")
            return TrainingState(tensors, json.loads(values))
        except (OSError, SafetensorError, DataError, KeyError, TypeError, ValueError) as error:
            raise DataError(
                f"the checkpoint {path} cannot be read ({error}): delete it, or train again with `--force`."
            ) from None

    def part(self, prefix: str) -> Tensors:
        """Return the tensors whose names begin with ``prefix`` and a dot, by the rest of their names."""
        start = f"{prefix}."
        return {name.removeprefix(start): tensor for name, tensor in self.tensors.items() if name.startswith(start)}


def copies(prefix: str, tensors: Mapping[str, Tensor]) -> Tensors:
    """Return copies of tensors, with ``prefix`` and a dot before their names."""
    return {f"{prefix}.{name}": tensor.detach().clone() for name, tensor in tensors.items()}


@torch.no_grad()
def write_into(tensors: Mapping[str, Tensor], saved: Mapping[str, Tensor]) -> None:
    """Copy saved values into tensors of the same names and shapes, in place; refuse others."""
    if {name: tensor.shape for name, tensor in tensors.items()} != {name: x.shape for name, x in saved.items()}:
        raise DataError("the checkpoint is of another model: begin anew, or train with the settings that it had.")
    for name, tensor in tensors.items():
        tensor.copy_(saved[name])


def random_state(device: torch.device) -> Tensors:
    """Return the states of the random generators of the CPU and of a GPU that is in use."""
    found = {CPU: torch.get_rng_state()}
    return found | {GPU: torch.cuda.get_rng_state(device)} if device.type == "cuda" else found


def set_random_state(tensors: Mapping[str, Tensor], device: torch.device) -> None:
    """Set the random generators to states that :func:`random_state` returned."""
    torch.set_rng_state(tensors[CPU].cpu())
    if device.type == "cuda":
        if GPU not in tensors:
            raise DataError("the checkpoint was written on a CPU: go on with `--device cpu`, or begin anew.")
        torch.cuda.set_rng_state(tensors[GPU].cpu(), device)


def optimiser_state(optimiser: Optimizer) -> Tensors:
    """Return copies of the tensors of an optimiser by the number of their parameter and their name."""
    return copies("optimiser", dict(_state(optimiser)))


def set_optimiser_state(optimiser: Optimizer, saved: Mapping[str, Tensor]) -> None:
    """Give an optimiser the tensors that :func:`optimiser_state` returned, without their prefix."""
    parameters = list(_parameters(optimiser))
    optimiser.state.clear()
    for name, value in saved.items():
        number, _, key = name.partition(".")
        parameter = parameters[int(number)]
        # Adam counts its steps on the CPU, unless it runs in a CUDA graph; other tensors lie beside the parameter.
        device = value.device if key == "step" and not _in_graph(optimiser) else parameter.device
        optimiser.state[parameter][key] = value.detach().clone().to(device)


def _state(optimiser: Optimizer) -> Iterator[tuple[str, Tensor]]:
    for number, parameter in enumerate(_parameters(optimiser)):
        for key, value in optimiser.state.get(parameter, {}).items():
            if not isinstance(value, Tensor):
                raise ValueError(f"a checkpoint cannot hold the value {key!r} of {type(optimiser).__name__}.")
            yield f"{number}.{key}", value


def _parameters(optimiser: Optimizer) -> Iterable[Tensor]:
    return (parameter for group in optimiser.param_groups for parameter in group["params"])


def _in_graph(optimiser: Optimizer) -> bool:
    return any(group.get("capturable", False) for group in optimiser.param_groups)
