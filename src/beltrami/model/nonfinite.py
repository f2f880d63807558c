"""Where a model's computation first stops being finite; for the report of a training that failed."""

import copy
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from beltrami.errors import SolverError
from beltrami.graph import SparseMatrix
from beltrami.model.blend import BLEND
from beltrami.model.classifier import Classifier
from beltrami.model.inputs import Inputs
from beltrami.model.linear_diffusion import LinearDiffusion

PARTS = {
    "psi": "the encoder of the features",
    "phi": "the encoder of the positions",
    "encoder": "the encoder",
    "norm": "the batch norm",
    "evolution": "the flow",
    "xi": "the decoder",
}
TIMES = 32  # of the flow that are compared


@torch.no_grad()
def first_nonfinite(model: Classifier, inputs: Inputs) -> str:
    """Return the first part of a forward pass whose values are NaN or infinite, such as ``the flow at t=0.5 of 4``.

    The order is: weights and buffers, inputs, encoders, batch norm, flow with its time, decoder; other models name
    their first such module. If all of these are finite, the loss or its gradient is not. The model, which runs once in
    its present mode, is not changed. It reads values from the device: call it after a failure only.
    """
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if not _finite(tensor):
            return f"the weights `{name}`"
    for name, values in inputs.arrays.items():
        if not _finite(values):
            return f"the {name} of the input"
    model = copy.deepcopy(model)  # dropout counts its calls, and batch norm averages, in buffers
    found = _first_module(model, inputs)
    if isinstance(model, BLEND | LinearDiffusion) and PARTS.get(found) == "the flow":
        return _flow_time(model, inputs)
    return PARTS.get(found, found) or "the loss or its gradient, as the outputs are finite"


def _first_module(model: Classifier, inputs: Inputs) -> str:
    """Return the part of :data:`PARTS`, or a description of the module, that first returns values that are not finite;
    empty if none does."""
    found: list[str] = []

    def look(name: str, module: nn.Module, given: tuple[Any, ...], returned: Any) -> None:
        if found or all(map(_finite, (*given, returned))):
            return
        part = name.partition(".")[0]
        if not all(map(_finite, given)):  # what lies between this module and the one before it
            found.append("evolution" if hasattr(model, "evolution") else f"the computation before `{name}`")
        else:
            found.append(part if part in PARTS else f"the module `{name}`")

    handles = [module.register_forward_hook(partial(look, name)) for name, module in model.named_modules() if name]
    try:
        logits = model.run(inputs).logits
    except (SolverError, ValueError) as error:  # of a flow that begins with, or meets, such values
        return found[0] if found else "evolution" if hasattr(model, "evolution") else f"the flow: {error}"
    finally:
        for handle in handles:
            handle.remove()
    if not found and not _finite(logits):
        return "evolution" if isinstance(model, LinearDiffusion) else "the outputs"
    return found[0] if found else ""


def _flow_time(model: BLEND | LinearDiffusion, inputs: Inputs) -> str:
    """Return the flow with the first time at which its state is not finite."""
    z0 = model.encode(inputs) if isinstance(model, BLEND) else model.encoder(inputs.x)
    times = [model.time * k / TIMES for k in range(TIMES + 1)]
    try:
        states = model.evolution.trajectory(z0, inputs.edges, times).ys
    except (SolverError, ValueError) as error:
        return f"the flow: {error}"
    bad = next((t for t, state in zip(times, states, strict=True) if not _finite(state)), None)
    return "the flow" if bad is None else f"the flow at t={bad:.4g} of {model.time:.4g}"


def _finite(x: object) -> bool:
    """Whether a tensor or sparse matrix has finite values only; anything else counts as finite."""
    values = x.values if isinstance(x, SparseMatrix) else x
    return not isinstance(values, Tensor) or bool(torch.isfinite(values).all())
