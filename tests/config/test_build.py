"""Models, encodings and training are built from their settings and train; settings that do not fit are refused."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from toy import small_config, toy_problem

from beltrami.config import RunConfig, check_settings, override
from beltrami.config.build import (
    BASELINES,
    CONTINUOUS,
    OPTIMISERS,
    ZOO,
    build_classifier,
    build_encoding,
    build_model,
    build_network,
    build_training,
)
from beltrami.config.spec_graph import DeepWalkSpec, NoneSpec, PPRSpec, SpectralSpec
from beltrami.flow import TimeVarying
from beltrami.joint import Joint
from beltrami.model import BLEND, Classifier
from beltrami.model.baseline import Baseline, GraphODE
from beltrami.model.linear_diffusion import LinearDiffusion
from beltrami.position import PPR, DeepWalk, LaplacianEigenvectors, ReturnProbabilities
from beltrami.run import run_config, run_configs
from beltrami.scheme import Exponential
from beltrami.stencil import Chain
from beltrami.train import Epoch, fit, fit_many, load_weights, predict, save_weights, seeded

NO_FLOW = ("diffusivity.kind=none", "flow.kind=none")
TERMINAL = "train.time_grid.kind=terminal"
EXPONENTIAL = ["scheme.kind=exponential", "scheme.rtol=1e-3", "scheme.atol=1e-3"]
NO_SCHEME = ("scheme.kind=none", TERMINAL)
POSITIONED = ("monet-flow", "transformer-flow")
OWN = {"lanczosnet": ["model.steps=3"], "adalanczosnet": ["model.steps=3"], "gat": ["model.heads=2"]}
OWN |= {kind: ["model.heads=2"] for kind in ("gat-flow", "transformer-flow")}
OWN |= {kind: ["model.heads=2", "model.k=3"] for kind in ("digl-flow", "dgcnn-flow")}


def configured(*settings: str) -> RunConfig:
    return override(small_config(), settings)


def baseline(kind: str, *settings: str) -> RunConfig:
    """Two epochs of a baseline on the toy."""
    scheme = (TERMINAL,) if kind in CONTINUOUS else NO_SCHEME
    own = ("model.width=8", *OWN.get(kind, []))
    return configured(f"model.kind={kind}", *NO_FLOW, *scheme, *own, *settings)


def network(kind: str, *settings: str) -> RunConfig:
    """Two epochs of a network of Table 1 on the toy."""
    width = () if kind in ("gcn-flow", "chebnet-flow", "monet-flow") else ("model.width=8",)
    own = (
        "scheme.solver=euler",
        "stencil.kind=none",
        TERMINAL,
        "train.attention_decay=0.001",
        *width,
        *OWN.get(kind, []),
    )
    return configured(f"model.kind={kind}", *NO_FLOW, *own, *settings)


def linear(*settings: str) -> RunConfig:
    """Two epochs of linear diffusion on the toy."""
    return configured("model.kind=linear", *NO_FLOW, "stencil.kind=none", *EXPONENTIAL, *settings)


def check_weights_come_back(config: RunConfig, model: Classifier, path: Path, *, positions: bool, time: float) -> None:
    problem = toy_problem(positions=positions)
    save_weights(model, path)
    again = problem.model(override(config, ["seed=9"]))
    load_weights(again, path)
    inputs = again.prepare(problem.x, problem.edges, pos=problem.pos)
    assert torch.equal(predict(again, inputs, time=time), predict(model, inputs, time=time))


def test_a_run_trains_and_reports_every_epoch() -> None:
    config, problem, log = configured("train.optimiser=adam"), toy_problem(), list[Epoch]()
    result, model = run_config(config, problem=problem, callbacks=[log.append])
    with seeded(config.seed):
        fresh = problem.model(config)
    assert any(not torch.equal(p, q) for p, q in zip(model.parameters(), fresh.parameters(), strict=True))
    assert (result.epochs, len(log)) == (2, 2)
    assert result.parameters == sum(p.numel() for p in fresh.parameters())
    assert result.evaluations["forward"] > 0


@pytest.mark.parametrize("name", sorted(OPTIMISERS))
def test_every_optimiser_trains(name: str) -> None:
    assert run_config(configured(f"train.optimiser={name}"), problem=toy_problem())[0].epochs == 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", BASELINES)
def test_every_baseline_trains_and_its_weights_come_back(kind: str, tmp_path: Path) -> None:
    config = baseline(kind)
    check_settings(config)
    result, model = run_config(config, problem=toy_problem())
    assert isinstance(model, Baseline)
    assert isinstance(model, GraphODE) == (kind in CONTINUOUS)
    assert (result.epochs, result.best_time) == (2, 2.0 if kind in CONTINUOUS else 0.0)
    assert (result.evaluations["forward"] > 0) == (kind in CONTINUOUS)
    check_weights_come_back(config, model, tmp_path / "weights", positions=False, time=result.best_time)


@pytest.mark.parametrize("time", [0.0, 2.0])
def test_linear_diffusion_trains_and_its_weights_come_back(time: float, tmp_path: Path) -> None:
    config = linear(f"scheme.time={time}", "model.input_dropout=0.2")
    check_settings(config)
    result, model = run_config(config, problem=toy_problem())
    assert isinstance(model, LinearDiffusion)
    assert (model.time, model.encoder.dropout.p) == (time, 0.2)
    assert model.evolution.scheme == Exponential(rtol=1e-3, atol=1e-3)
    check_weights_come_back(config, model, tmp_path / "weights", positions=False, time=result.best_time)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ZOO)
def test_every_network_of_table_1_trains_and_its_weights_come_back(kind: str, tmp_path: Path) -> None:
    config, positions = network(kind), kind in POSITIONED
    check_settings(override(config, ["position.kind=ppr"]) if positions else config)
    result, model = run_config(config, problem=toy_problem(positions=positions))
    assert isinstance(model, BLEND)
    assert (result.epochs, result.best_time) == (2, 2.0)
    check_weights_come_back(config, model, tmp_path / "weights", positions=positions, time=2.0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in ZOO if kind != "dgcnn-flow"])  # whose graph is each run's own
def test_networks_of_several_seeds_train_together_as_alone(kind: str) -> None:
    problem = toy_problem(positions=kind in POSITIONED)

    def models() -> list[Classifier]:
        made = []
        for seed in range(2):
            with seeded(seed):
                made.append(problem.model(network(kind)))
        return made

    together, training, y = models(), build_training(network(kind).train), problem.dataset.y
    inputs = together[0].prepare(problem.x, problem.edges, pos=problem.pos)
    fit_many(together, inputs, y, [problem.split] * 2, training)
    for alone, model in zip(models(), together, strict=True):
        fit(alone, inputs, y, problem.split, training)
        for found, wanted in zip(model.parameters(), alone.parameters(), strict=True):
            torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_baselines_of_several_seeds_train_together_as_alone() -> None:
    settings = ["model.kind=gcn", "train.epochs=5", *NO_FLOW, *NO_SCHEME]
    settings += ["data.component=all", "data.protocol=shchur"]
    configs = [replace(configured(*settings, f"seed={seed}"), dataset="digits") for seed in (0, 1)]
    for config, found in zip(configs, run_configs(configs), strict=True):
        assert isinstance(found, tuple)
        assert found[0].test_accuracy == pytest.approx(run_config(config)[0].test_accuracy, abs=0.2)


def test_settings_reach_the_baseline() -> None:
    settings = ("model.depth=3", "model.out_heads=2", "stencil.loops=0", "model.dropout=0.1")
    model = build_classifier(baseline("gat", *settings), features=6, positions=3, num_classes=2)
    assert isinstance(model, Baseline)
    made = model.architecture
    assert (made.depth, made.width, made.positions, made.dropout) == (3, 8, 3, 0.1)
    shapes = [tuple(p.shape) for name, p in model.named_parameters() if name.endswith("receiver")]
    assert shapes == [(2, 4), (2, 4), (2, 2)]
    edges = toy_problem().edges
    assert model.prepare(torch.zeros(20, 6), edges, pos=torch.zeros(20, 3)).edges is edges


def test_positions_are_concatenated_to_the_features_of_a_baseline() -> None:
    _, model = run_config(baseline("gcn"), problem=toy_problem(positions=True))
    assert isinstance(model, Baseline)
    assert model.architecture.positions == 3


def test_a_baseline_may_run_on_the_graph_of_digl() -> None:
    config, problem = baseline("gcn", "stencil.kind=digl", "stencil.k=3", "stencil.loops=0"), toy_problem()
    _, model = run_config(config, problem=problem)
    assert model.prepare(problem.x, problem.edges).edges.num_edges == 3 * 20


def test_settings_reach_the_network_and_its_layers_are_the_terminal_time() -> None:
    evolution = build_network(network("gat-flow", "scheme.time=3", "model.heads=4"), Joint(0, 8))
    assert isinstance(evolution.flow, TimeVarying)
    assert len(evolution.flow.flows) == evolution.time == 3
    assert evolution.flow.diffusivity.get_parameter("receiver").shape == (4, 2)
    stencil = build_network(network("digl-flow", "model.k=5", "model.restart=0.3"), Joint(0, 8)).stencil
    assert isinstance(stencil, Chain)
    assert vars(stencil.stencils[0]) == {"k": 5, "restart": 0.3}


def test_encodings_are_built_from_their_settings() -> None:
    assert build_encoding(NoneSpec()) is None
    ppr = build_encoding(PPRSpec(restart=0.2, top=5))
    assert isinstance(ppr, PPR)
    assert (ppr.restart, ppr.top) == (0.2, 5)
    laplacian = build_encoding(SpectralSpec(kind="laplacian", channels=3))
    assert isinstance(laplacian, LaplacianEigenvectors)
    assert laplacian.channels == 3
    assert isinstance(build_encoding(SpectralSpec(kind="walk")), ReturnProbabilities)
    tuned, fixed = build_encoding(DeepWalkSpec(walk_length=None)), build_encoding(DeepWalkSpec(walk_length=40))
    assert isinstance(tuned, DeepWalk)
    assert isinstance(fixed, DeepWalk)
    assert (tuned.tuned, fixed.tuned, fixed.walk_length) == (True, False, 40)


def test_model_has_no_position_encoder_without_positions() -> None:
    config = small_config()
    model = build_model(config, features=5, positions=0, num_classes=3)
    assert model.phi is None
    assert model.xi.linear.in_features == 8
    model = build_model(override(config, ["model.pos=4"]), features=5, positions=7, num_classes=3)
    assert model.phi is not None
    assert (model.phi.linear.in_features, model.phi.linear.out_features) == (7, 4)
    assert model.xi.linear.in_features == 8 + 4


def test_training_takes_every_setting() -> None:
    settings = ["epochs=7", "weight_decay=0.1", "attention_decay=0.2", "patience=8", "validate_every=9", "ema=0.3"]
    settings += ["time_grid.multiple=2", "time_grid.resolution=3", "time_grid.patience=4", "self_training=6"]
    training = build_training(configured(*(f"train.{setting}" for setting in settings)).train)
    assert (training.epochs, training.weight_decay, training.attention_decay) == (7, 0.1, 0.2)
    assert (training.patience, training.validate_every, training.ema) == (8, 9, 0.3)
    assert (training.time_grid.multiple, training.time_grid.resolution, training.time_grid.patience) == (2, 3, 4)
    assert training.self_training == 6


def test_check_leaves_the_random_state_as_it_was() -> None:
    before = torch.get_rng_state()
    check_settings(small_config())
    assert torch.equal(torch.get_rng_state(), before)


GAUSS = ["flow.kind=polyakov", "flow.psi.kind=gauss", "diffusivity.kind=none"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["train.lr=0"], r"`train.lr` must be positive and finite; got 0.0"),
        (["train.lr=nan"], r"`train.lr` must be positive and finite; got nan"),
        (["train.lr=inf"], r"`train.lr` must be positive and finite; got inf"),
        (["train.ema=1"], r"`train.ema` must be at least 0 and below 1; got 1.0"),
        (["train.epochs=0"], r"`train.epochs` must be at least 1 .*; got 0"),
        (["train.time_grid.multiple=inf"], r"`train.time_grid.multiple` must be positive and finite; got inf"),
        (["train.time_grid.multiple=1"], r"`train.time_grid.multiple` must be above 1; got 1.0"),
        (
            ["train.consistency.kind=squared", "train.consistency.weight=0"],
            r"`train.consistency.weight` must be above 0",
        ),
        (["scheme.time=-1"], r"`scheme.time` must be at least 0 and finite; got -1.0"),
        (["scheme.dt=0"], r"`scheme.dt` must be positive and finite; got 0.0"),
        (["model.dropout=1"], r"`model.dropout` must be at least 0 and below 1"),
        (["flow.kinetic=-1"], r"`flow.kinetic` must be at least 0 and finite; got -1.0"),
        (["stencil.loops=-1"], r"`stencil.loops` must be at least 0 and finite; got -1.0"),
        ([*GAUSS, "flow.psi.length=0"], r"`flow.psi.length` must be positive and finite; got 0.0"),
        (["stencil.kind=knn", "stencil.k=0"], r"`stencil.k` must be at least 1 .*; got 0"),
        (["stencil.kind=radius", "stencil.radius=0"], r"`stencil.radius` must be positive and finite; got 0.0"),
        (["stencil.kind=digl", "stencil.restart=1"], r"`stencil.restart` must be between 0 and 1; got 1.0"),
        (["stencil.kind=threshold", "stencil.least=0"], r"`stencil.least` must be between 0 and 1; got 0.0"),
        (["stencil.remesh=0"], r"`stencil.remesh` must be positive and finite; got 0.0"),
        (["stencil.strongest=0"], r"`stencil.strongest` must be above 0 and at most 1; got 0.0"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_value_out_of_range_is_refused_before_data_are_read(settings: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_settings(configured(*settings))
    with pytest.raises(ValueError, match=message):
        run_config(configured(*settings), problem=toy_problem())


BALL = ["flow.kind=hyperbolic", "diffusivity.kind=gaussian", "position.kind=ppr"]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (configured("model.kind=gcn", *NO_SCHEME), r"`model.kind=gcn` has no diffusivity: set `diffusivity.kind=none`"),
        (configured("model.kind=gcn", *NO_FLOW), r"`model.kind=gcn` has no scheme: set `scheme.kind=none`"),
        (configured("model.kind=gde", *NO_FLOW, "scheme.kind=none"), r"`model.kind=gde` needs a scheme"),
        (configured("diffusivity.kind=none"), r"`model.kind=blend` needs a diffusivity: set `diffusivity.kind`"),
        (configured("stencil.kind=none"), r"`model.kind=blend` needs a stencil"),
        (configured("scheme.time=0"), r"`scheme.time` must be positive for `model.kind=blend`; got 0"),
        (configured("diffusivity.heads=3"), r"`diffusivity.width` must be a multiple of `diffusivity.heads` .*; got 8"),
        (configured("model.pos=4"), r"`model.pos` is the width of positions, and there are none"),
        (configured(*EXPONENTIAL, "flow.kind=live"), r"`scheme.kind=exponential` solves frozen flows without costs"),
        (configured(*EXPONENTIAL, "flow.kinetic=0.1"), r"solves frozen flows without costs: .*`flow.kinetic=0`"),
        (configured(*EXPONENTIAL, "flow.jacobian=0.1"), r"solves frozen flows without costs: .*`flow.jacobian=0`"),
        (configured(*EXPONENTIAL, *GAUSS), r"solves frozen flows without costs"),
        (configured(*GAUSS[:2]), r"`flow.kind=polyakov` has no diffusivity: set `diffusivity.kind=none`"),
        (configured(*GAUSS, "stencil.strongest=0.5"), r"`stencil.strongest` may drop one"),
        (configured("scheme.energy_decreasing=true"), r"`scheme.energy_decreasing` needs a flow that decreases"),
        (configured(*GAUSS, "scheme.energy_decreasing=true", "flow.kinetic=1"), r"needs a flow .*`flow.kinetic=0`"),
        (configured("stencil.kind=knn", "stencil.on=u"), r"`stencil.on=u` looks at positions and there are none"),
        (configured(*BALL, "stencil.kind=knn"), r"`stencil.on=z` mixes positions in the ball with features"),
        (configured(*BALL[:2]), r"`flow.kind=hyperbolic` needs positions: set `position.kind` too"),
        (baseline("gcn", "stencil.remesh=1"), r"runs on a fixed graph, and `stencil.remesh` needs the state"),
        (baseline("gcn", "stencil.strongest=0.5"), r"runs on a fixed graph, and `stencil.strongest` needs"),
        (baseline("gcn", "stencil.kind=knn"), r"runs on a fixed graph, and `stencil.kind=knn` needs the state"),
        (baseline("gcn", "train.attention_decay=1"), r"`train.attention_decay` is that of a diffusivity"),
        (baseline("gcn", "train.time_grid.kind=grid"), r"`model.kind=gcn` has no time: set `train.time_grid.kind"),
        (baseline("cgnn", *EXPONENTIAL), r"solves frozen flows without costs"),
        (override(network("gcn-flow"), EXPONENTIAL), r"solves frozen flows without costs"),
        (network("gat-flow", "scheme.time=2.5"), r"`scheme.time` is the number of layers .* got 2.5"),
        (network("gat-flow", "scheme.time=0"), r"`scheme.time` must be positive for `model.kind=gat-flow`; got 0"),
        (
            network("gat-flow", "position.kind=ppr"),
            r"`model.kind=gat-flow` looks at features alone",
        ),
        (network("monet-flow"), r"`model.kind=monet-flow` needs positions: set `position.kind` too"),
        (override(linear(), ["scheme.kind=none"]), r"`model.kind=linear` needs a scheme"),
        (linear("stencil.kind=keep"), r"`model.kind=linear` has no stencil: set `stencil.kind=none`"),
        (linear("flow.kind=frozen"), r"`model.kind=linear` has no flow: set `flow.kind=none`"),
        (linear("position.kind=ppr"), r"`model.kind=linear` looks at features alone"),
        (linear("train.attention_decay=1"), r"`train.attention_decay` is that of a diffusivity"),
    ],
    ids=str,
)
def test_kinds_that_do_not_fit_together_are_refused(config: RunConfig, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_settings(config)
