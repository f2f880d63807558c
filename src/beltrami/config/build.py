"""Build: the one place where names become objects."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import torch
from torch.optim import Optimizer

from beltrami.config.build_baseline import build_rival
from beltrami.config.build_flow import build_costs, build_flow, build_metric, build_polyakov, check_equation
from beltrami.config.build_scheme import build_scheme
from beltrami.config.build_stencil import build_prior, build_stencil, thinned
from beltrami.config.build_zoo import NETWORKS, build_network
from beltrami.config.name import named
from beltrami.config.spec import (
    DiffusivityConfig,
    PositionConfig,
    RunConfig,
    TrainConfig,
)
from beltrami.diffusivity import (
    Additive,
    Cosine,
    Diffusivity,
    ExpKernel,
    Gaussian,
    Pearson,
    RandomWalk,
    ScalarCosine,
    ScaledDot,
    constant,
    xavier,
)
from beltrami.flow import Flow
from beltrami.geometry import Metric, PoincareBall
from beltrami.graph import Both, Columns, Normaliser, Rows, softmax_link, squareplus_link
from beltrami.joint import Joint
from beltrami.model import BLEND, Classifier, Decoder, Encoder, Evolution
from beltrami.position import (
    PPR,
    DeepWalk,
    Encoding,
    Heat,
    Hyperbolic,
    LaplacianEigenvectors,
    Progress,
    ReturnProbabilities,
)
from beltrami.train import Consistency, TimeGrid, Training, seeded
from beltrami.train.training import MakeOptimiser

T = TypeVar("T")

LINKS = {"softmax": softmax_link, "squareplus": squareplus_link}
NORMALISERS: dict[str, type[Normaliser]] = {"rows": Rows, "columns": Columns, "both": Both}
OPTIMISERS: dict[str, Callable[..., Optimizer]] = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "adamax": torch.optim.Adamax,
    "rmsprop": torch.optim.RMSprop,
    "sgd": torch.optim.SGD,
}
SCORES = ("uniform", "scaled-dot", "cosine", "pearson", "exp-kernel", "gaussian", "additive", "angle")
ENCODINGS: dict[str, Callable[[PositionConfig, Progress | None], Encoding | None]] = {
    "none": lambda config, progress: None,
    "ppr": lambda config, progress: PPR(restart=config.restart, top=config.top, progress=progress),
    "heat": lambda config, progress: Heat(time=config.time, top=config.top, progress=progress),
    "laplacian": lambda config, progress: LaplacianEigenvectors(config.channels),
    "walk": lambda config, progress: ReturnProbabilities(config.channels, progress=progress),
    "hyperbolic": lambda config, progress: Hyperbolic(config.channels, progress=progress),
    "deepwalk": lambda config, progress: DeepWalk(
        config.channels, walk_length=config.walk_length, tuned=config.tuned, progress=progress
    ),
}


def build_encoding(config: PositionConfig, *, progress: Progress | None = None) -> Encoding | None:
    """The encoding by its name, which tells ``progress`` how far it is."""
    return named("position.encoding", config.encoding, ENCODINGS)(config, progress)


def build_diffusivity(config: DiffusivityConfig, joint: Joint, *, metric: Metric | None = None) -> Diffusivity:
    normalise = named("diffusivity.over", config.over, NORMALISERS)(named("diffusivity.link", config.link, LINKS))
    starts = {"xavier": xavier, "constant": constant(config.start_value)}
    common: dict[str, Any] = {
        "heads": config.heads,
        "normalise": normalise,
        "start": named("diffusivity.start", config.start, starts),
    }
    scores: dict[str, Callable[[], Diffusivity]] = {
        "uniform": lambda: RandomWalk(normalise),
        "scaled-dot": lambda: ScaledDot(joint.channels, config.width, d_k=config.d_k, **common),
        "cosine": lambda: Cosine(joint.channels, config.width, **common),
        "pearson": lambda: Pearson(joint.channels, config.width, **common),
        "exp-kernel": lambda: ExpKernel(joint, config.width, **common),
        "gaussian": lambda: Gaussian(joint, metric=metric, heads=config.heads, normalise=normalise),
        "angle": lambda: ScalarCosine(heads=config.heads, normalise=normalise),
        "additive": lambda: Additive(joint.channels, config.width, **common),
    }
    return named("diffusivity.score", config.score, scores)()


def build_classifier(config: RunConfig, *, features: int, positions: int, num_classes: int) -> Classifier:
    """BLEND, its kin or the competitor of a configuration, for inputs of these widths; ``positions`` 0 for none."""
    build = build_model if config.model.kind in ("blend", *NETWORKS) else build_rival
    return build(config, features=features, positions=positions, num_classes=num_classes)


def build_model(config: RunConfig, *, features: int, positions: int, num_classes: int) -> BLEND:
    """The BLEND of a configuration for inputs of these widths; ``positions`` 0 for none.

    A network of Table 1 is one too: the same encoders and decoder around another evolution.
    """
    joint = Joint(config.model.pos if positions else 0, config.model.feat)
    evolution = build_evolution(config, joint) if config.model.kind == "blend" else build_network(config, joint)
    dropout = config.model.input_dropout
    return BLEND(
        Encoder(features, joint.feat, dropout=dropout, hidden=config.model.hidden),
        evolution,
        Decoder(joint.channels, num_classes, dropout=config.model.dropout),
        phi=Encoder(positions, joint.pos, dropout=dropout) if positions else None,
        batch_norm=config.model.batch_norm,
        node_dropout=config.model.node_dropout,
    )


def build_evolution(config: RunConfig, joint: Joint) -> Evolution:
    """The flow, stencil and scheme that a configuration puts together."""
    check_equation(config)
    ball = build_metric(config.flow)
    flow = _flow(config, joint, ball)
    return Evolution(
        flow,
        scheme=build_scheme(config.scheme),
        time=config.scheme.time,
        stencil=thinned(build_stencil(config.stencil, joint, ball=ball), config.stencil, flow.diffusivity),
        remesh=config.stencil.remesh,
        costs=build_costs(config.flow),
    )


def _flow(config: RunConfig, joint: Joint, ball: PoincareBall | None) -> Flow:
    if config.flow.psi is not None:
        return build_polyakov(config.flow, config.flow.psi)
    return build_flow(config.flow, build_diffusivity(config.diffusivity, joint, metric=ball), joint)


def check_settings(config: RunConfig) -> None:
    """Refuse settings that name nothing or fit nothing, before any data are read."""
    located = build_encoding(config.position) is not None or config.position.file is not None
    with seeded(0):  # the caller's random state is not ours to spend
        build_classifier(config, features=1, positions=int(located), num_classes=2)
    build_prior(config.stencil)
    build_training(config.train)


def build_training(config: TrainConfig) -> Training:
    return Training(
        epochs=config.epochs,
        optimiser=_optimiser(config),
        weight_decay=config.weight_decay,
        attention_decay=config.attention_decay,
        patience=config.patience,
        time_grid=TimeGrid(config.time_multiple, config.time_resolution, config.time_patience),
        validate_every=config.look_every,
        ema=config.average,
        self_training=config.adopt,
        cuda_graph=config.record,
        consistency=Consistency(config.consistency, config.passes, config.temperature, config.ramp),
    )


def _optimiser(config: TrainConfig) -> MakeOptimiser:
    make = named("train.optimiser", config.optimiser, OPTIMISERS)
    if not (config.lr > 0 and math.isfinite(config.lr)):
        raise ValueError(f"`train.lr` must be positive; got {config.lr}.")
    return partial(make, lr=config.lr)
