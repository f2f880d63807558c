"""Checkpoints: a model's weights as safetensors, never pickled."""

from pathlib import Path

import torch
from torch import nn

from beltrami.data.file import write_atomically
from beltrami.errors import DataError


def save_weights(model: nn.Module, path: Path) -> None:
    """Write the weights of ``model``, whole or not at all."""
    from safetensors.torch import save

    write_atomically(path, save({name: tensor.contiguous() for name, tensor in model.state_dict().items()}))


def load_weights(model: nn.Module, path: Path, *, device: torch.device | str = "cpu") -> None:
    """Read weights into ``model``; a :class:`DataError` says what does not fit."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        weights = load(path.read_bytes())
    except FileNotFoundError:
        raise DataError(f"no weights at {path}: was the run finished? Train it again.") from None
    except (OSError, SafetensorError) as error:
        raise DataError(f"the weights in {path} cannot be read ({error}): train the run again.") from None
    try:
        model.load_state_dict({name: tensor.to(device) for name, tensor in weights.items()})
    except RuntimeError as error:
        first = " ".join(str(error).split())[:200]
        raise DataError(f"the weights in {path} are of another model ({first}): check its configuration.") from None
