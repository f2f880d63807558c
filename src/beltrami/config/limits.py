"""Refuse settings that ask for more steps, layers or weights than a run can have, before anything is built."""

import math
from typing import Any

import torch

from beltrami.config.build_evolution import build_scheme, terminal_time
from beltrami.config.run_cost import NUMBER
from beltrami.config.spec import RunConfig
from beltrami.memory import free_memory, in_bytes
from beltrami.model.evolution import MAX_SEGMENTS

WIDTHS = ("feat", "pos", "hidden", "width", "kernels", "steps")
MAX_LAYERS = 1_000  # of a network


def check_steps(config: RunConfig, *, longest: float) -> None:
    """Refuse more layers or steps than a model may have; ``longest`` is the last time of validation, relative to T."""
    spec, time = config.scheme, terminal_time(config.scheme)
    layers = {f"model.{name}": getattr(config.model, name, 0) for name in ("depth", "terms")}
    layers |= {"scheme.time": time} if config.model.kind.endswith("-flow") else {}
    for name, count in layers.items():
        if count > MAX_LAYERS:
            raise ValueError(f"`{name}={count:g}` asks for more than {MAX_LAYERS} layers: choose fewer.")
    if spec.kind == "none" or not 0 < time < math.inf:  # the model refuses a time that is not positive
        return
    remesh = getattr(config.stencil, "remesh", None)
    if remesh is not None and not remesh > 0:  # likewise
        return
    if remesh is not None and not time * longest / remesh < MAX_SEGMENTS:
        raise ValueError(
            f"`stencil.remesh={remesh:g}` rebuilds the graph {time * longest / remesh:.4g} times until "
            f"t={time * longest:g}, and at most {MAX_SEGMENTS} times are allowed: choose a longer one."
        )
    _check_resolution(spec)
    scheme, end = build_scheme(spec), time * longest if remesh is None else min(time * longest, remesh)
    try:
        scheme.check_times((0.0, end))
    except ValueError as error:
        until = f", with validation up to {longest:g} times that," if longest > 1 else ""
        raise ValueError(f"`scheme.time={time:g}`{until} takes too many steps: {error}") from None


def _check_resolution(spec: Any) -> None:
    """Refuse tolerances of steps below what float32 resolves for values of size one."""
    eps = torch.finfo(torch.float32).eps
    for name, each in (("scheme", spec), ("scheme.adjoint", getattr(spec, "adjoint", None))):
        rtol, atol = getattr(each, "rtol", 1.0), getattr(each, "atol", 1.0)
        if 0 <= rtol < eps and 0 <= atol < eps and spec.kind != "exponential" and rtol + atol > 0:
            raise ValueError(
                f"`{name}.rtol={rtol:g}` and `{name}.atol={atol:g}` are less than float32 resolves: set one of them to "
                f"{2 * eps:.0e} or more."
            )


def widths_of(config: RunConfig) -> list[tuple[str, int]]:
    """Return the settings, by dotted name, that the number of weights grows with."""
    groups = {"model": config.model, "diffusivity": config.diffusivity}
    names = [(f"{group}.{name}", getattr(spec, name, None)) for group, spec in groups.items() for name in WIDTHS]
    return [(name, value) for name, value in names if value is not None]


def check_weights(config: RunConfig, parameters: float) -> None:
    """Refuse a model whose weights alone do not fit into the free memory of the machine."""
    needed, free = NUMBER * parameters, free_memory()
    if needed > free:
        name, value = max(widths_of(config), key=lambda width: width[1])
        raise ValueError(
            f"`{name}={value}` needs about {in_bytes(needed)} for the weights, and {in_bytes(free)} are free: choose "
            "fewer channels."
        )


def check_node_counts(config: RunConfig, num_nodes: int) -> None:
    """Refuse settings that need more nodes than the graph has."""
    model, position, stencil = config.model, config.position, config.stencil
    limits = {
        "stencil.k": (stencil.k if stencil.kind == "knn" else 0, num_nodes - 1),
        "stencil.add.k": (getattr(getattr(stencil, "add", None), "k", 0), num_nodes - 1),
        "model.k": (model.k if model.kind == "dgcnn-flow" else 0, num_nodes - 1),
        "model.steps": (getattr(model, "steps", 0), num_nodes),
        "position.channels": (position.channels if position.kind == "laplacian" else 0, num_nodes - 2),
    }
    for name, (value, most) in limits.items():
        if value > most:
            raise ValueError(f"`{name}` must be at most {most} on a graph of {num_nodes} nodes; got {value}.")


def check_heads(config: RunConfig) -> None:
    """Refuse widths of attention that its heads do not divide."""
    for group, spec in (("diffusivity", config.diffusivity), ("model", config.model)):
        heads, width = getattr(spec, "heads", 1), getattr(spec, "width", None)
        least = 2 * heads if spec.kind == "pearson" else heads
        if width is not None and (width % heads or width < least):
            raise ValueError(
                f"`{group}.width` must be a multiple of `{group}.heads` and at least {least}; got {width} for {heads}."
            )
