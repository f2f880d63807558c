"""Compare the cost of a run with the memory that is free, before it starts, and explain a lack of memory."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from beltrami.config.build import count_parameters
from beltrami.config.limits import check_weights, widths_of
from beltrami.config.parser import override
from beltrami.config.run_cost import EDGE_BYTES, RunCost, Sizes, edges_of, estimate_run, position_bytes
from beltrami.config.spec import RunConfig
from beltrami.config.spec_graph import PositionSpec
from beltrami.data import Dataset
from beltrami.graph.sparse_matrix import SPARSE_BELOW
from beltrami.memory import free_memory, in_bytes

NARROWEST = 8  # channels that are still suggested
ASKED = re.compile(r"(?:tried to|unable to) allocate ([\d.]+) *(bytes|[KMGTPE]i?B)?", re.IGNORECASE)
UNITS = "BKMGTPE"


def sizes_of(config: RunConfig, dataset: Dataset) -> Sizes:
    """Return the sizes of a run on a dataset; positions in a file, which is not read here, count as one column."""
    n, spec = dataset.num_nodes, config.position
    nonzeros = int(torch.count_nonzero(dataset.x))
    dense = nonzeros >= SPARSE_BELOW * dataset.x.numel()
    columns = kept = getattr(spec, "channels", int(spec.kind == "file"))
    if spec.kind == "ppr" or spec.kind == "heat":
        columns, kept = n, n if spec.top is None else min(spec.top, n)
    stored = (0 if dense else nonzeros) + n * kept
    return Sizes(n, dataset.edge_index.shape[1], dataset.num_features, columns, dataset.num_classes, dense, stored)


def check_cost(config: RunConfig, sizes: Sizes, *, device: str = "cpu") -> RunCost:
    """Refuse a run whose positions, weights, training step or validation do not fit into the free memory.

    It takes milliseconds and allocates nothing of these sizes; call it before positions are computed and a model is
    built. The cost that it returns is for ``explained_memory``.
    """
    check_positions(config.position, sizes.num_nodes)
    check_edges(config, sizes)
    cost, free = _estimate(config, sizes), free_memory(device)
    if cost.total <= free:
        return cost
    parts = {
        "the weights and the optimiser": cost.weights,
        "the features, the positions and the graph": cost.inputs,
        "a training step" + ("" if cost.steps is None else f" of {cost.steps} steps in time"): cost.step,
        "a validation": cost.validation,
    }
    what, needed = max(parts.items(), key=lambda part: part[1])
    raise ValueError(
        f"the run needs about {in_bytes(needed)} for {what}, and {in_bytes(free)} are free: {_remedy(cost, free)}."
    )


def check_positions(spec: PositionSpec, num_nodes: int) -> None:
    """Refuse positions whose computation does not fit into the free memory of the machine."""
    needed, free = position_bytes(spec, num_nodes), free_memory()
    if needed > free:
        raise ValueError(
            f"`position.kind={spec.kind}` needs about {in_bytes(needed)} for {num_nodes} nodes, and {in_bytes(free)} "
            "are free: choose fewer channels, a smaller `top`, or another kind."
        )


def check_edges(config: RunConfig, sizes: Sizes) -> None:
    """Refuse a stencil whose edges do not fit into the free memory of the machine."""
    count, free = edges_of(config, sizes), free_memory()
    group = "model" if config.stencil.kind == "none" else "stencil"  # networks of Table 1 have their own stencil
    if EDGE_BYTES * count > free:
        raise ValueError(
            f"`{group}.kind={getattr(config, group).kind}` makes {count:.3g} edges, which need about "
            f"{in_bytes(EDGE_BYTES * count)}, and {in_bytes(free)} are free: choose a smaller `k`, or another kind."
        )


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error of torch, numpy or Python says that memory did not suffice."""
    says = any(words in str(error) for words in ("out of memory", "can't allocate memory"))
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and says)


def explain_out_of_memory(error: BaseException, cost: RunCost | None = None, *, device: str = "cpu") -> str:
    """Return a sentence that says how much memory was asked for, how much is free, and what would fit."""
    asked, free = ASKED.search(str(error)), free_memory(device)
    how_much = f" for {in_bytes(_bytes(*asked.groups()))} more" if asked else ""
    remedy = "choose fewer channels, fewer steps or a smaller graph" if cost is None else _remedy(cost, free)
    return f"the memory did not suffice{how_much}, and {in_bytes(free)} are free: {remedy}."


@contextmanager
def explained_memory(cost: RunCost | None = None, *, device: str = "cpu") -> Iterator[None]:
    """Turn an error about memory within the block into a ``MemoryError`` with an explanation."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise MemoryError(explain_out_of_memory(error, cost, device=device)) from None


def _estimate(config: RunConfig, sizes: Sizes) -> RunCost:
    widths = {"features": sizes.features, "positions": sizes.positions, "num_classes": sizes.num_classes}
    parameters = count_parameters(config, **widths)
    check_weights(config, parameters)
    return estimate_run(config, sizes, parameters=int(parameters))


def _remedy(cost: RunCost, free: int) -> str:
    """Return at most two settings each of which would fit; general advice if none does."""
    fitting: dict[str, str] = {}
    for name, value in _changes(cost.config):
        if name not in fitting and len(fitting) < 2 and _fits(cost, f"{name}={value}", free):
            fitting[name] = f"`{name}={value}`"
    if not fitting:
        return "choose fewer channels, a shorter `scheme.time`, or a smaller graph"
    return " or ".join(fitting.values()) + " would fit"


def _changes(config: RunConfig) -> Iterator[tuple[str, str]]:
    """Yield settings that need less memory; those that change the results least come first."""
    adjoint = getattr(config.scheme, "adjoint", None)
    if adjoint is not None and adjoint.kind == "direct" and config.scheme.kind != "torchdiffeq":
        yield "scheme.adjoint.kind", "checkpointed"
    if config.train.time_grid.kind == "grid":
        yield "train.time_grid.kind", "terminal"
    if config.train.consistency.kind == "squared" and config.train.consistency.passes > 1:
        yield "train.consistency.passes", "1"
    name, value = max(widths_of(config), key=lambda width: width[1], default=("", 0))
    while (value := value // 2) >= NARROWEST:
        yield name, str(value)


def _fits(cost: RunCost, change: str, free: int) -> bool:
    try:
        return _estimate(override(cost.config, [change]), cost.sizes).total <= free
    except ValueError:  # the changed settings do not go together, or their weights do not fit
        return False


def _bytes(number: str, unit: str | None) -> float:
    return float(number) * 1024.0 ** UNITS.index(unit[0].upper() if unit else "B")
