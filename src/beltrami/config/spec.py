"""Settings of schemes, data and training, and of a whole run."""

import json
from dataclasses import asdict
from typing import Annotated, Literal

from beltrami.arguments import Count, Name, Natural, NotNegative, Part, Positive, Range, Seed, Share
from beltrami.config.spec_graph import KeepSpec, NoneSpec, PositionSpec, Spec, StencilSpec
from beltrami.config.spec_model import BlendSpec, DiffusivitySpec, FlowSpec, FrozenSpec, ModelSpec, ScaledDotSpec
from beltrami.scheme.torchdiffeq_adapter import Method

SCHEMA = 2  # version of the files of configurations, results and records; those of the first release have none
Explicit = Literal["euler", "midpoint", "heun", "rk4", "bosh3", "dopri5", "adams-bashforth", "adams-moulton"]
Implicit = Literal["implicit-euler", "crank-nicolson"]
Embedded = Literal["heun", "bosh3", "dopri5", "implicit-euler"]  # solvers with an error estimate


class AdjointSpec(Spec):
    kind: Literal["direct", "checkpointed", "continuous"] = "direct"


class ConstantAdjointSpec(Spec):
    kind: Literal["continuous-constant"] = "continuous-constant"
    solver: Explicit
    dt: Positive


class AdaptiveAdjointSpec(Spec):
    kind: Literal["continuous-adaptive"] = "continuous-adaptive"
    solver: Embedded
    rtol: NotNegative
    atol: NotNegative


class ExponentialSpec(Spec):
    kind: Literal["exponential"] = "exponential"
    time: NotNegative
    rtol: NotNegative
    atol: NotNegative


class SteppingSpec(Spec):  # base of the schemes that take steps
    time: NotNegative
    max_steps: Count = 10_000
    energy_decreasing: bool = False
    adjoint: AdjointSpec | ConstantAdjointSpec | AdaptiveAdjointSpec = AdjointSpec()


class ConstantSpec(SteppingSpec):
    kind: Literal["constant"] = "constant"
    solver: Explicit
    dt: Positive


class ImplicitSpec(SteppingSpec):
    kind: Literal["implicit"] = "implicit"
    solver: Implicit
    dt: Positive
    rtol: NotNegative
    atol: NotNegative


class AdaptiveSpec(SteppingSpec):
    kind: Literal["adaptive"] = "adaptive"
    solver: Embedded
    rtol: NotNegative
    atol: NotNegative


class TorchAdjointSpec(Spec):
    kind: Literal["direct", "continuous"] = "direct"


class TorchDiffEqSpec(Spec):
    kind: Literal["torchdiffeq"] = "torchdiffeq"
    method: Method
    time: NotNegative
    rtol: NotNegative
    atol: NotNegative
    step_size: Positive | None = None
    adjoint: TorchAdjointSpec = TorchAdjointSpec()


StepsSpec = ConstantSpec | ImplicitSpec | AdaptiveSpec | ConstantAdjointSpec | AdaptiveAdjointSpec
SchemeSpec = NoneSpec | ExponentialSpec | ConstantSpec | ImplicitSpec | AdaptiveSpec | TorchDiffEqSpec
"""Time stepping to the terminal time ``time``: the exponential integrator, for frozen flows; an explicit or an implicit
solver with steps of ``dt``, the latter with equations solved to the tolerances; an explicit solver with steps chosen by
a PID controller (adaptive); a method of torchdiffeq, with ``step_size`` where its steps are constant.
``energy_decreasing``: refuse steps along which the energy of a Polyakov flow grows. ``adjoint``: differentiate the
steps taken, all kept (direct) or some (checkpointed), or solve the adjoint equation (continuous), by the same scheme
or by one with constant or adaptive steps. Step sizes and tolerances have no defaults."""


class DataSpec(Spec):
    """Component of the graph, scaling of the features, and the split. ``rows``: the absolute values of every row have
    the same sum, the mean of all rows; ``unit``: the sum is 1; for counts, PyG's ``NormalizeFeatures``."""

    component: Literal["largest", "all"] = "largest"
    features: Literal["raw", "rows", "unit"] = "raw"
    protocol: str = "digl"
    split_seed: Seed = 0


class TerminalSpec(Spec):
    kind: Literal["terminal"] = "terminal"


class GridSpec(Spec):
    kind: Literal["grid"] = "grid"
    multiple: Positive = 3.0
    resolution: Count = 8
    patience: Count = 12


class ConsistencySpec(Spec):
    kind: Literal["squared"] = "squared"
    weight: NotNegative
    passes: Count = 2
    temperature: Part = 0.5
    ramp: Natural = 0


class DistillationSpec(Spec):
    kind: Literal["soft-targets"] = "soft-targets"
    rounds: Annotated[int, Range("at least 2 and below 2**31", lambda x: 2 <= x < 2**31)] = 4
    weight: Positive = 1.0


class TrainSpec(Spec):
    """How to train; the fields are those of :class:`beltrami.train.Training`, :class:`~beltrami.train.TimeGrid`,
    :class:`~beltrami.train.Consistency` and :class:`~beltrami.train.Distillation`."""

    epochs: Count = 100
    optimiser: Literal["adam", "adamw", "adamax", "rmsprop", "sgd"] = "adam"
    lr: Positive = 0.01
    weight_decay: NotNegative = 5e-3
    attention_decay: NotNegative = 0.0
    patience: Count = 100
    time_grid: TerminalSpec | GridSpec = GridSpec()
    validate_every: Count = 5
    ema: Share = 0.0
    consistency: NoneSpec | ConsistencySpec = NoneSpec()
    self_training: Natural = 0
    distillation: NoneSpec | DistillationSpec = NoneSpec()
    cuda_graph: bool | None = None


class ConfigFile(Spec):
    """Base of the settings of a whole run, which are kept in a file."""

    def to_json(self) -> str:
        """Return the configuration as the text of a file."""
        return json.dumps({"schema": SCHEMA, **asdict(self)}, indent=2)


class RunConfig(ConfigFile):
    """One run, from the dataset to the last epoch; a group that does not apply to the model is of kind ``none``."""

    dataset: Name
    recipe: Name
    seed: Seed = 0
    data: DataSpec = DataSpec()
    position: PositionSpec = NoneSpec()
    model: ModelSpec = BlendSpec()
    diffusivity: DiffusivitySpec = ScaledDotSpec()
    flow: FlowSpec = FrozenSpec()
    stencil: StencilSpec = KeepSpec()
    scheme: SchemeSpec
    train: TrainSpec = TrainSpec()
    tried: Natural | None = None  # configurations compared on validation before this one was chosen, null if unknown
