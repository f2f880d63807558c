"""Build the model, the encoding and the training of a configuration, and refuse settings that do not fit together."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from functools import partial
from typing import Any

import torch
from torch.optim import SGD, Adam, Adamax, AdamW, Optimizer, RMSprop

from beltrami import position
from beltrami.arguments import Count, Natural, checked
from beltrami.config import spec_model
from beltrami.config.build_evolution import build_evolution, build_prior, build_scheme, build_stencil, terminal_time
from beltrami.config.limits import check_heads, check_steps, check_weights, widths_of
from beltrami.config.parser import parse
from beltrami.config.recipe.recipes import BLEND_RECIPES, load_recipe
from beltrami.config.spec import RunConfig, TrainSpec
from beltrami.config.spec_graph import PositionSpec, kinds_of
from beltrami.errors import UnknownName
from beltrami.joint import Joint
from beltrami.model import BLEND, Classifier, Decoder, Encoder, Evolution, baseline, zoo
from beltrami.model.baseline import Architecture
from beltrami.model.linear_diffusion import LinearDiffusion
from beltrami.position import Encoding, Progress
from beltrami.train import Consistency, Distillation, TimeGrid, Training, seeded

OPTIMISERS: Mapping[str, Callable[..., Optimizer]] = {
    optimiser.__name__.lower(): optimiser for optimiser in (Adam, AdamW, Adamax, RMSprop, SGD)
}
BASELINES, CONTINUOUS = tuple(kinds_of(spec_model.BaselineModelSpec)), tuple(kinds_of(spec_model.ContinuousSpec))
ZOO = tuple(kinds_of(spec_model.ZooSpec))
WIDE = 2**24  # numbers of a matrix of weights above which it is not allocated to be counted
MOST_LAYERS = 1000
DEFAULT_POS = spec_model.BlendSpec().pos


def build_encoding(spec: PositionSpec, *, progress: Progress | None = None) -> Encoding | None:
    """Return the encoding, which reports to ``progress``; None where positions are absent or come from a file. One that
    cannot be computed is refused by the names of its settings."""
    try:
        return _encoding(spec, progress)
    except ValueError as error:
        raise ValueError(re.sub(r"`(\w+)`", r"`position.\1`", str(error))) from None


def _encoding(spec: PositionSpec, progress: Progress | None) -> Encoding | None:
    if spec.kind == "ppr":
        return position.PPR(restart=spec.restart, top=spec.top, progress=progress)
    if spec.kind == "heat":
        return position.Heat(time=spec.time, top=spec.top, progress=progress)
    if spec.kind == "laplacian":
        return position.LaplacianEigenvectors(spec.channels)
    if spec.kind == "walk":
        return position.ReturnProbabilities(spec.channels, progress=progress)
    if spec.kind == "hyperbolic":
        return position.Hyperbolic(spec.channels, progress=progress)
    if spec.kind == "deepwalk":
        length = {"tuned": True} if spec.walk_length is None else {"walk_length": spec.walk_length}
        return position.DeepWalk(spec.channels, progress=progress, **length)
    return None


def build_classifier(config: RunConfig, *, features: int, positions: int, num_classes: int) -> Classifier:
    """Return the model for inputs of these widths; ``positions`` 0 for none."""
    spec: Any = config.model
    if positions and not isinstance(spec, spec_model.PositionedSpec | spec_model.BaselineModelSpec):
        raise ValueError(f"`model.kind={spec.kind}` looks at features alone: set `position.kind=none` too.")
    if spec.kind == "linear":
        time, scheme = terminal_time(config.scheme), build_scheme(config.scheme)
        return LinearDiffusion(features, num_classes, time=time, input_dropout=spec.input_dropout, scheme=scheme)
    if spec.kind not in BASELINES:
        return build_model(config, features=features, positions=positions, num_classes=num_classes)
    own = _own_settings(config, spec_model.BaselineSpec)
    if spec.kind in CONTINUOUS:
        own |= {"scheme": build_scheme(config.scheme), "time": terminal_time(config.scheme)}
    frame = Architecture(
        features,
        num_classes,
        positions=positions,
        width=spec.width,
        depth=getattr(spec, "depth", 1),
        input_dropout=spec.input_dropout,
        dropout=spec.dropout,
        stencil=build_stencil(config.stencil, Joint(1, 1)),
    )
    function: Callable[..., Classifier] = getattr(baseline, spec.kind.replace("-", "_"))
    return function(frame, **own)


def build_model(config: RunConfig, *, features: int, positions: int, num_classes: int) -> BLEND:
    """Return BLEND, or a network of Table 1, which has BLEND's encoders and decoder around another evolution."""
    spec: Any = config.model
    joint = Joint(spec.pos if positions else 0, spec.feat)
    evolution = build_evolution(config, joint) if spec.kind == "blend" else build_network(config, joint)
    return BLEND.from_parts(
        Encoder(features, joint.feat, dropout=spec.input_dropout, hidden=spec.hidden),
        evolution,
        Decoder(joint.channels, num_classes, dropout=spec.dropout),
        phi=Encoder(positions, joint.pos, dropout=spec.input_dropout) if positions else None,
        batch_norm=spec.batch_norm,
        node_dropout=spec.node_dropout,
    )


@checked
def build_recipe(
    dataset: str,
    in_channels: Count,
    out_channels: Count,
    *,
    pos_channels: Natural = 0,
    recipe: str = "blend",
    protocol: str | None = None,
) -> BLEND:
    """Return the network of a recipe, one of ``BLEND_RECIPES``, for inputs and outputs of these widths. It is available
    as :meth:`BLEND.from_recipe`."""
    if recipe not in BLEND_RECIPES:
        raise UnknownName("recipe of BLEND", recipe, BLEND_RECIPES)
    config = load_recipe(recipe, dataset, protocol=protocol)
    return build_model(config, features=in_channels, positions=pos_channels, num_classes=out_channels)


def count_parameters(config: RunConfig, *, features: int, positions: int, num_classes: int) -> float:
    """Return the number of weights of the model for inputs of these widths; infinite if it exceeds 64 bits. The weights
    of a wide model are not allocated."""
    sizes = {"features": features, "positions": positions, "num_classes": num_classes}
    widest = max((value for _, value in widths_of(config)), default=1)
    wide = widest * max(widest, features, positions) > WIDE
    try:
        # The device "meta" has no memory, but torch imports for a second before it is used first.
        with seeded(0), torch.device("meta" if wide else "cpu"):  # the caller's random state stays as it is
            return sum(parameter.numel() for parameter in build_classifier(config, **sizes).parameters())
    except (RuntimeError, TypeError, OverflowError):
        if not wide:
            raise
        return math.inf


def build_network(config: RunConfig, joint: Joint) -> Evolution:
    """Return the evolution of a network of Table 1 on a state of these channels."""
    kind, time = config.model.kind, terminal_time(config.scheme)
    if not 1 <= time <= MOST_LAYERS or time != int(time):
        what = f"`scheme.time` is the number of layers of `model.kind={kind}`"
        raise ValueError(f"{what}: set a whole one, at most {MOST_LAYERS}; got {time:g}.")
    own = _own_settings(config, spec_model.FlowModelSpec)
    channels = joint if isinstance(config.model, spec_model.PositionedSpec) else joint.channels
    function: Callable[..., Evolution] = getattr(zoo, kind.removesuffix("-flow"))
    return function(channels, layers=int(time), scheme=build_scheme(config.scheme), **own)


def _own_settings(config: RunConfig, base: Any) -> dict[str, Any]:
    """Return the settings of the model that are arguments of its own function."""
    common = ("kind", "pos", "depth", *(field.name for field in fields(base)))
    return {name: value for name, value in asdict(config.model).items() if name not in common}


def build_training(spec: TrainSpec) -> Training:
    """Return how to train."""
    grid, squared, times, consistency = spec.time_grid, spec.consistency, TimeGrid(1.0), Consistency()
    if grid.kind == "grid":
        if not grid.multiple > 1:
            raise ValueError(f"`train.time_grid.multiple` must be above 1; got {grid.multiple}: for 1, kind=terminal.")
        times = TimeGrid(grid.multiple, grid.resolution, grid.patience)
    if squared.kind == "squared":
        if not squared.weight > 0:
            raise ValueError(f"`train.consistency.weight` must be above 0; got {squared.weight}: for 0, kind=none.")
        consistency = Consistency(squared.weight, squared.passes, squared.temperature, squared.ramp)
    soft = spec.distillation
    distillation = Distillation() if soft.kind == "none" else Distillation(soft.rounds, soft.weight)
    optimiser = partial(OPTIMISERS[spec.optimiser], lr=spec.lr)
    built = {"optimiser": optimiser, "time_grid": times, "consistency": consistency, "distillation": distillation}
    return Training(**{name: value for name, value in vars(spec).items() if name != "lr"} | built)


@checked
def check_settings(config: RunConfig) -> None:
    """Refuse settings that name nothing or do not fit together, before any data are read; to check their values, a
    model for a single feature is built."""
    parse(RunConfig, asdict(config))  # a configuration made in Python may hold any value
    _check_groups(config)
    check_heads(config)
    _check_flow(config)
    build_encoding(config.position)
    build_prior(config.stencil)
    check_steps(config, longest=build_training(config.train).time_grid.multiple)
    positions = int(config.position.kind != "none")
    check_weights(config, count_parameters(config, features=1, positions=positions, num_classes=2))


def _check_groups(config: RunConfig) -> None:
    """Refuse groups that the model does not have and the lack of those that it needs."""
    kind, polyakov = config.model.kind, config.flow.kind == "polyakov"
    needed = {
        "diffusivity": kind == "blend" and not polyakov,
        "flow": kind == "blend",
        "stencil": kind == "blend" or kind in BASELINES,
        "scheme": kind not in BASELINES or kind in CONTINUOUS,
    }
    for group, need in needed.items():
        present = getattr(config, group).kind != "none"
        model = "flow.kind=polyakov" if polyakov and group == "diffusivity" else f"model.kind={kind}"
        if present and not need:
            raise ValueError(f"`{model}` has no {group}: set `{group}.kind=none` too.")
        if need and not present:
            raise ValueError(f"`{model}` needs a {group}: set `{group}.kind` too.")
    for name, unfit in (("flow", "hyperbolic"), ("model", "monet-flow")):
        if config.position.kind == "none" and getattr(config, name).kind == unfit:
            raise ValueError(f"`{name}.kind={unfit}` needs positions: set `position.kind` too.")
    if config.position.kind == "none" and getattr(config.model, "pos", DEFAULT_POS) != DEFAULT_POS:
        raise ValueError("`model.pos` is the width of positions, and there are none: leave it out, or set their kind.")
    if kind in BASELINES or kind == "linear":
        _check_baseline(config)


def _check_baseline(config: RunConfig) -> None:
    kind, stencil = config.model.kind, config.stencil
    moving = [name for name in ("remesh", "strongest") if getattr(stencil, name, None) is not None]
    if moving or stencil.kind in ("knn", "radius"):
        why = f"stencil.{moving[0]}" if moving else f"stencil.kind={stencil.kind}"
        raise ValueError(f"`model.kind={kind}` runs on a fixed graph, and `{why}` needs the state of a flow: drop it.")
    if config.train.attention_decay:
        raise ValueError(f"`train.attention_decay` is that of a diffusivity; `model.kind={kind}` has none: set 0.")
    if kind in BASELINES and kind not in CONTINUOUS and config.train.time_grid.kind != "terminal":
        raise ValueError(f"`model.kind={kind}` has no time: set `train.time_grid.kind=terminal` too.")


def _check_flow(config: RunConfig) -> None:
    """Refuse a flow and a scheme, or a flow and a stencil, that do not go together."""
    flow, scheme = config.flow, config.scheme
    if scheme.kind != "none" and not scheme.time > 0 and config.model.kind != "linear":
        raise ValueError(f"`scheme.time` must be positive for `model.kind={config.model.kind}`; got {scheme.time:g}.")
    for name, steps in {"scheme": scheme, "scheme.adjoint": getattr(scheme, "adjoint", None)}.items():
        if getattr(steps, "rtol", 1) == getattr(steps, "atol", 1) == 0 and scheme.kind != "torchdiffeq":
            raise ValueError(f"`{name}.rtol` and `{name}.atol` must not both be 0.")
    costs = flow.kind != "none" and bool(flow.kinetic or flow.jacobian)
    if scheme.kind == "exponential" and config.model.kind != "linear" and (flow.kind != "frozen" or costs):
        raise ValueError(
            "`scheme.kind=exponential` solves frozen flows without costs: set `flow.kind=frozen`, `flow.kinetic=0` and "
            "`flow.jacobian=0`, or another `scheme.kind`, such as constant."
        )
    if getattr(scheme, "energy_decreasing", False) and (flow.kind != "polyakov" or costs):
        raise ValueError(
            "`scheme.energy_decreasing` needs a flow that decreases an energy: set `flow.kind=polyakov`, "
            "`flow.kinetic=0` and `flow.jacobian=0`."
        )
    if flow.kind == "polyakov" and getattr(config.stencil, "strongest", None) is not None:
        raise ValueError("`flow.kind=polyakov` needs edges both ways; `stencil.strongest` may drop one: set null.")
