"""Estimates of the steps and the memory of a run, from its settings and sizes alone, before anything is computed."""

import math
from dataclasses import dataclass
from typing import Any

from beltrami.config.build_evolution import IMPLICIT, SOLVERS, by_kind, terminal_time
from beltrami.config.spec import RunConfig
from beltrami.config.spec_graph import PositionSpec
from beltrami.scheme import ConstantSteps
from beltrami.scheme.exponential.integrator import expected_terms
from beltrami.scheme.implicit.krylov import RESTART
from beltrami.scheme.runge_kutta import RungeKutta
from beltrami.scheme.torchdiffeq_adapter import MAX_STEPS

NUMBER = 4  # bytes of a float32
NODE, WIDTH, EDGE = 3, 3, 3  # numbers kept by attention for a channel and node, a projected channel, a head and edge
BALL_EDGE = 10  # numbers kept by distances in the ball: a positional channel and edge
CODER = 2  # numbers kept by encoders and decoder of a flow for a channel and node
DENSE_ENTRY, SPARSE_ENTRY = 3, 4  # numbers kept by the first layer for an entry of dense or of sparse inputs
ADAPTIVE_STEPS = 10  # of a solve to t = 10; longer solves take one a unit of time, about
EDGE_BYTES = 60  # of an edge in one direction: indices, patterns by rows and columns, weight
ENTRY_BYTES = 40  # of a non-zero entry of a sparse matrix
SLOTS = {"adam": 2, "adamw": 2, "adamax": 2, "rmsprop": 1, "sgd": 0}  # numbers that an optimiser keeps for a weight
LAYERS = ("gcn", "sage-mean", "sage-maxpool", "gat", "monet", "lanczosnet", "adalanczosnet")


@dataclass(frozen=True)
class Sizes:
    """The sizes of a problem: nodes, edges in both directions, columns of features and positions, and classes;
    ``dense`` is false if the features are stored by their non-zeros, and ``nonzeros`` counts all entries so stored."""

    num_nodes: int
    num_edges: int
    features: int
    positions: int = 0
    num_classes: int = 2
    dense: bool = True
    nonzeros: int = 0


@dataclass(frozen=True)
class RunCost:
    """The steps, or terms, of a solve, None where they are not known before, and bytes: of weights, gradients and the
    optimiser's numbers; of features, positions and edges; of what a training step keeps for its gradient; and of a
    validation. Measured training steps were within a factor of two."""

    config: RunConfig
    sizes: Sizes
    steps: int | None
    weights: int
    inputs: int
    step: int
    validation: int

    @property
    def total(self) -> int:
        """The bytes of a run at its peak, without those of the program itself."""
        return self.weights + self.inputs + max(self.step, self.validation)


def estimate_run(config: RunConfig, sizes: Sizes, *, parameters: int) -> RunCost:
    """Estimate a run of a model with so many parameters, in float32; see ``count_parameters``."""
    n, m = sizes.num_nodes, edges_of(config, sizes) + sizes.num_nodes
    start, each, channels = _numbers_kept(config, sizes, m)
    steps, stages = steps_and_stages(config, terminal_time(config.scheme))
    state, segments = channels * n, segments_of(config)
    kept: float = start * segments
    if config.scheme.kind != "none":
        kept += _kept_by_adjoint(config, steps or _typical_steps(config), stages, each, state)
    train, grid = config.train, config.train.time_grid
    passes = train.consistency.passes if train.consistency.kind == "squared" else 1
    times = grid.multiple * grid.resolution if grid.kind == "grid" else 1
    rounds = train.self_training > 0 or train.distillation.kind != "none"  # each begins from the initial weights
    copies = 3 + SLOTS[train.optimiser] + (train.ema > 0) + rounds  # weights, gradient, best weights
    validation = 2 * (times + 1) * state + (steps or 0 if config.scheme.kind == "exponential" else 0) * state
    inputs = NUMBER * n * sizes.features + ENTRY_BYTES * sizes.nonzeros + EDGE_BYTES * m
    weights, step = NUMBER * copies * parameters, int(NUMBER * passes * kept)
    return RunCost(config, sizes, steps, weights, inputs, step, int(NUMBER * validation))


def edges_of(config: RunConfig, sizes: Sizes) -> int:
    """Return the number of edges of the flow's graph in both directions, without loops; within a radius, as many as the
    input graph has."""
    n, model, stencil = sizes.num_nodes, config.model, config.stencil
    if stencil.kind == "complete" or model.kind == "transformer-flow":
        return n * n
    nearest: int | None = getattr(stencil, "k", getattr(model, "k", None))
    if nearest is not None:
        return n * min(nearest, n) * (1 + getattr(stencil, "symmetric", False))
    added = getattr(stencil, "add", None)
    more = 2 * n * min(added.k, n) if added is not None and added.kind == "neighbours" else 0
    return 0 if stencil.kind == "isolated" else sizes.num_edges + more


def position_bytes(spec: PositionSpec, num_nodes: int) -> int:
    """Return the bytes that the computation of positions needs, about."""
    if spec.kind == "ppr" or spec.kind == "heat":
        block = 4 * NUMBER * num_nodes * min(512, num_nodes)  # of columns that are solved for together
        kept = num_nodes if spec.top is None else min(spec.top, num_nodes)
        return block + num_nodes * kept * (2 * NUMBER if spec.top is None else ENTRY_BYTES)
    channels = getattr(spec, "channels", 0)
    numbers = 4 * num_nodes * channels
    if spec.kind == "deepwalk":
        length = spec.walk_length or 120
        numbers += 3 * 64 * length * (length + 2 * channels)  # of a batch of walks
    return NUMBER * numbers


def position_columns(spec: PositionSpec, num_nodes: int) -> int:
    """Return the number of columns of positions; 0 for none, and where a file says it."""
    return num_nodes if spec.kind in ("ppr", "heat") else getattr(spec, "channels", 0)


def _numbers_kept(config: RunConfig, sizes: Sizes, m: int) -> tuple[int, int, int]:
    """Return the numbers that are kept for the gradient once, with encoders and decoder, and for each evaluation of the
    vector field; and the channels of the state."""
    spec: Any = config.model
    n, kind, depth = sizes.num_nodes, spec.kind, getattr(spec, "depth", 1)
    if kind == "linear":
        channels, start, each = sizes.num_classes, m, sizes.num_classes * n
    elif kind in LAYERS:
        channels, each = spec.width, 0
        start = NODE * spec.width * n * depth + EDGE * getattr(spec, "heads", 0) * m * depth
        start += 2 * spec.width * m if kind == "sage-maxpool" else 10 * n * getattr(spec, "steps", 0)
    elif kind in ("cgnn", "gde", "gode"):
        channels, start, each = spec.width, 0, (2 if kind == "cgnn" else NODE * depth) * spec.width * n
    else:
        channels = spec.feat + (spec.pos if sizes.positions and hasattr(spec, "pos") else 0)
        attention = _attention(config, channels, n, m)
        start, each = (attention, channels * n) if config.flow.kind == "frozen" else (0, attention)
    start += DENSE_ENTRY * n * sizes.features * sizes.dense + SPARSE_ENTRY * sizes.nonzeros
    coder = 0 if kind in LAYERS else CODER * n * (channels + (getattr(spec, "hidden", None) or 0))
    return start + coder, each, channels


def _attention(config: RunConfig, channels: int, n: int, m: int) -> int:
    """Return the numbers that an evaluation of the diffusivity and of the flow keeps."""
    spec: Any = config.diffusivity if config.model.kind == "blend" else config.model
    width, heads = getattr(spec, "width", 0), getattr(spec, "heads", getattr(spec, "kernels", 1))
    kept: int = NODE * channels * n + WIDTH * width * (1 + (spec.kind == "exp-kernel")) * n + EDGE * heads * m
    if spec.kind == "chebnet-flow":
        kept += spec.terms * channels * n
    ball = config.flow.kind == "hyperbolic" and spec.kind == "gaussian"
    return kept + (BALL_EDGE * getattr(config.model, "pos", 0) * m if ball else 0)


def steps_and_stages(config: RunConfig, time: float) -> tuple[int | None, int]:
    """Return the steps, or terms, of a solve, None if unknown, and the evaluations of a step."""
    spec: Any = config.scheme
    if spec.kind == "none" or time == 0:
        return None if spec.kind == "none" else 0, 0
    if spec.kind == "exponential":
        rate = 0.5 if getattr(config.flow, "rate", False) else 1.0  # of a flow at its start
        return expected_terms(time, rate=rate, rtol=spec.rtol or spec.atol), 1
    if spec.kind == "torchdiffeq":
        dt, stages = spec.step_size, 6
    else:
        solver, dt = SOLVERS[spec.solver], getattr(spec, "dt", None)
        explicit = isinstance(solver, type) and issubclass(solver, RungeKutta)
        stages = len(solver.tableau.b) if explicit else 2  # type: ignore[attr-defined]
    segments = segments_of(config)
    return None if dt is None else segments * ConstantSteps(dt).least_steps(0.0, time / segments), stages


def _kept_by_adjoint(config: RunConfig, steps: int, stages: int, each: float, state: int) -> float:
    """Return the numbers that an adjoint keeps of a solve."""
    adjoint = getattr(config.scheme, "adjoint", None)
    kind = "direct" if adjoint is None else adjoint.kind
    implicit = getattr(config.scheme, "solver", "") in by_kind(*IMPLICIT)
    krylov = (RESTART + 1) * state if implicit else 0
    if kind == "checkpointed":
        return math.sqrt(2 * steps) * state + math.sqrt(steps) * stages * each + krylov
    if kind != "direct":
        return 2 * steps * state + 2 * each + krylov
    return steps * stages * each + krylov


def segments_of(config: RunConfig) -> int:
    """Return how many graphs a solve to the terminal time builds."""
    remesh, time = getattr(config.stencil, "remesh", None), terminal_time(config.scheme)
    return 1 if remesh is None else max(1, math.ceil(time / remesh * (1 - 1e-9)))


def _typical_steps(config: RunConfig) -> int:
    most = getattr(config.scheme, "max_steps", MAX_STEPS)
    return min(most, max(ADAPTIVE_STEPS, math.ceil(terminal_time(config.scheme))))
