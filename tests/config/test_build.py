"""Every name that a configuration may hold becomes an object that trains; other names are refused."""

from collections.abc import Sequence

import pytest
import torch
from toy import small_config, toy_problem

from beltrami.config import RunConfig, override
from beltrami.config.build import (
    ENCODINGS,
    LINKS,
    NORMALISERS,
    OPTIMISERS,
    SCORES,
    build_diffusivity,
    build_encoding,
    build_model,
    build_training,
    check_settings,
)
from beltrami.config.build_flow import build_costs, build_flow
from beltrami.config.build_scheme import ADJOINTS, SOLVERS, build_scheme
from beltrami.config.spec import DiffusivityConfig, FlowConfig, PositionConfig
from beltrami.diffusivity import Gaussian
from beltrami.errors import UnknownName
from beltrami.flow import BeltramiFlow, HyperbolicFlow, LinearFlow
from beltrami.geometry import PoincareBall
from beltrami.joint import Joint
from beltrami.position import PPR, LaplacianEigenvectors
from beltrami.run import run_config
from beltrami.scheme import PID, ConstantSteps, Continuous, Dopri5, Exponential, Scheme, TorchDiffEq
from beltrami.train import Epoch, seeded

FIXED_STEPS = sorted(SOLVERS)
ADAPTIVE = ("bosh3", "dopri5", "heun")


def configured(*settings: str) -> RunConfig:
    return override(small_config(), settings)


def check_trains(settings: Sequence[str], *, positions: bool = False) -> None:
    """Two epochs on the toy run through and move the weights."""
    config, problem, log = configured(*settings), toy_problem(positions=positions), list[Epoch]()
    result, model = run_config(config, problem=problem, on_epoch=log.append)
    with seeded(config.seed):
        fresh = problem.model(config)
    moved = [not torch.equal(p, q) for p, q in zip(model.parameters(), fresh.parameters(), strict=True)]
    assert (result.epochs, len(log)) == (2, 2)
    assert all(torch.isfinite(torch.tensor(epoch.losses)).all() for epoch in log)
    assert any(moved)
    assert result.parameters == sum(p.numel() for p in fresh.parameters())
    assert result.evaluations["forward"] > 0


@pytest.mark.parametrize("name", FIXED_STEPS)
def test_every_solver_trains_by_constant_steps(name: str) -> None:
    check_trains([f"scheme.solver={name}"])


@pytest.mark.parametrize("name", ADAPTIVE)
def test_solvers_with_an_error_estimate_train_adaptively(name: str) -> None:
    check_trains([f"scheme.solver={name}", "scheme.dt=null"])


@pytest.mark.parametrize("over", sorted(NORMALISERS))
@pytest.mark.parametrize("link", sorted(LINKS))
@pytest.mark.parametrize("score", SCORES)
def test_every_score_trains_under_every_link_and_normaliser(score: str, link: str, over: str) -> None:
    check_trains([f"diffusivity.score={score}", f"diffusivity.link={link}", f"diffusivity.over={over}"])


@pytest.mark.parametrize("score", SCORES)
def test_every_score_trains_with_positions(score: str) -> None:
    check_trains([f"diffusivity.score={score}", "model.batch_norm=true"], positions=True)


@pytest.mark.parametrize("name", sorted(OPTIMISERS))
def test_every_optimiser_trains(name: str) -> None:
    check_trains([f"train.optimiser={name}"])


@pytest.mark.parametrize("frozen", ["true", "false"])
@pytest.mark.parametrize("name", ADJOINTS)
def test_every_adjoint_trains_frozen_and_live_with_costs(name: str, frozen: str) -> None:
    check_trains(
        [f"scheme.adjoint={name}", f"flow.frozen={frozen}", "flow.source=true", "flow.kinetic=0.1", "flow.jacobian=0.1"]
    )


@pytest.mark.parametrize("start", ["xavier", "constant"])
def test_every_start_trains(start: str) -> None:
    check_trains([f"diffusivity.start={start}"])


@pytest.mark.parametrize("dt", ["null", "0.5"])
def test_continuous_adjoint_goes_back_by_a_scheme_of_its_own(dt: str) -> None:
    settings = ["scheme.adjoint=continuous", "scheme.backward=dopri5", f"scheme.backward_dt={dt}"]
    scheme = build_scheme(configured(*settings).scheme)
    assert isinstance(scheme, Scheme)
    assert isinstance(scheme.adjoint, Continuous)
    assert isinstance(scheme.adjoint.scheme, Scheme)
    assert isinstance(scheme.adjoint.scheme.solver, Dopri5)
    assert isinstance(scheme.adjoint.scheme.controller, PID if dt == "null" else ConstantSteps)
    check_trains(settings)


@pytest.mark.parametrize("adjoint", ["direct", "continuous"])
def test_methods_of_torchdiffeq_train(adjoint: str) -> None:
    settings = ["scheme.solver=torchdiffeq:rk4", "scheme.dt=0.5", f"scheme.adjoint={adjoint}"]
    assert isinstance(build_scheme(configured(*settings).scheme), TorchDiffEq)
    check_trains(settings)


def test_torchdiffeq_has_no_checkpoints() -> None:
    with pytest.raises(UnknownName, match="checkpointed"):
        build_scheme(configured("scheme.solver=torchdiffeq:rk4", "scheme.adjoint=checkpointed").scheme)


@pytest.mark.parametrize("over", sorted(NORMALISERS))
def test_the_exponential_trains_with_its_tolerances(over: str) -> None:
    settings = ["scheme.solver=exponential", "scheme.dt=null", "scheme.rtol=1e-5", "scheme.atol=1e-7"]
    assert build_scheme(configured(*settings).scheme) == Exponential(rtol=1e-5, atol=1e-7)
    check_trains([*settings, f"diffusivity.over={over}", "flow.source=true"])


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("scheme.dt=1.5", r"takes no steps; got dt=1.5: set `scheme.dt=null` too"),
        ("scheme.adjoint=continuous", r"got adjoint=continuous: set `scheme.adjoint=direct` too"),
        ("flow.frozen=false", r"solves linear flows alone: set `flow.frozen=true`"),
        ("flow.kinetic=0.1", r"solves linear flows alone: .*`flow.kinetic=0`"),
        ("flow.jacobian=0.1", r"solves linear flows alone: .*`flow.jacobian=0`"),
    ],
)
def test_what_the_exponential_cannot_do_is_refused_before_any_data_are_read(setting: str, message: str) -> None:
    config = configured("scheme.solver=exponential", "scheme.dt=null", setting)
    with pytest.raises(ValueError, match=message):
        check_settings(config)


def test_positions_in_the_ball_train() -> None:
    settings = ["flow.positions=hyperbolic", "flow.frozen=false", "diffusivity.score=gaussian"]
    config = configured(*settings)
    flow = build_model(config, features=6, positions=3, num_classes=2).evolution.flow
    assert isinstance(flow, HyperbolicFlow)
    assert isinstance(flow.diffusivity, Gaussian)
    assert flow.diffusivity.metric == PoincareBall()
    check_trains(settings, positions=True)


def test_frozen_flow_in_the_ball_is_refused() -> None:
    with pytest.raises(ValueError, match=r"set `flow\.frozen=false` too"):
        build_model(configured("flow.positions=hyperbolic"), features=6, positions=3, num_classes=2)


def test_constant_start_has_the_value_of_the_setting() -> None:
    diffusivity = build_diffusivity(DiffusivityConfig(width=8, start="constant", start_value=0.25), Joint(0, 8))
    assert all(bool((parameter == 0.25).all()) for parameter in diffusivity.parameters())


def test_encodings_are_built_by_name() -> None:
    assert build_encoding(PositionConfig("none")) is None
    ppr = build_encoding(PositionConfig("ppr", restart=0.2, top=5))
    assert isinstance(ppr, PPR)
    assert (ppr.restart, ppr.top) == (0.2, 5)
    laplacian = build_encoding(PositionConfig("laplacian", channels=3))
    assert isinstance(laplacian, LaplacianEigenvectors)
    assert laplacian.channels == 3


def test_flow_is_frozen_or_live_with_the_parts_asked_for() -> None:
    diffusivity = build_diffusivity(DiffusivityConfig("uniform"), Joint(0, 8))
    frozen = build_flow(FlowConfig(frozen=True, rate=True, source=False), diffusivity, Joint(2, 3))
    live = build_flow(FlowConfig(frozen=False, rate=False, source=True), diffusivity, Joint(2, 3))
    assert isinstance(frozen, LinearFlow)
    assert isinstance(live, BeltramiFlow)
    assert dict(frozen.named_parameters()).keys() == {"rate.logit"}
    assert dict(live.named_parameters()).keys() == {"source.beta"}


def test_costs_are_built_where_they_weigh_something() -> None:
    assert build_costs(FlowConfig()) == []
    assert [cost.weight for cost in build_costs(FlowConfig(kinetic=0.1, jacobian=0.2))] == [0.1, 0.2]


def test_model_has_no_position_encoder_without_positions() -> None:
    config = small_config()
    model = build_model(config, features=5, positions=0, num_classes=3)
    assert model.phi is None
    assert model.xi.linear.in_features == config.model.feat
    model = build_model(config, features=5, positions=7, num_classes=3)
    assert model.phi is not None
    assert (model.phi.linear.in_features, model.phi.linear.out_features) == (7, config.model.pos)
    assert model.xi.linear.in_features == config.model.feat + config.model.pos


def test_training_takes_every_setting() -> None:
    settings = ["epochs=7", "weight_decay=0.1", "attention_decay=0.2", "patience=8", "look_every=9", "average=0.3"]
    horizon = ["time_multiple=2", "time_resolution=3", "time_patience=4"]
    training = build_training(configured(*(f"train.{setting}" for setting in (*settings, *horizon))).train)
    assert (training.epochs, training.weight_decay, training.attention_decay) == (7, 0.1, 0.2)
    assert (training.patience, training.validate_every, training.ema) == (8, 9, 0.3)
    assert (training.time_grid.multiple, training.time_grid.resolution, training.time_grid.patience) == (2, 3, 4)


@pytest.mark.parametrize(
    ("setting", "kind", "nearest"),
    [
        ("scheme.solver=dopri", "scheme.solver", "dopri5"),
        ("scheme.solver=adams-bashford", "scheme.solver", "adams-bashforth"),
        ("scheme.adjoint=continous", "scheme.adjoint", "continuous"),
        ("diffusivity.score=scaleddot", "diffusivity.score", "scaled-dot"),
        ("diffusivity.link=softmx", "diffusivity.link", "softmax"),
        ("diffusivity.over=row", "diffusivity.over", "rows"),
        ("diffusivity.start=xaver", "diffusivity.start", "xavier"),
        ("train.optimiser=adamx", "train.optimiser", "adamax"),
        ("stencil.kind=treshold", "stencil.kind", "threshold"),
    ],
)
def test_unknown_name_is_refused_with_the_nearest(setting: str, kind: str, nearest: str) -> None:
    with pytest.raises(UnknownName, match=rf"unknown {kind} .*: did you mean '{nearest}'\?"):
        run_config(configured(setting), problem=toy_problem())


def test_unknown_backward_solver_is_refused() -> None:
    with pytest.raises(UnknownName, match=r"unknown scheme.solver 'rk': did you mean 'rk4'\?"):
        build_scheme(configured("scheme.adjoint=continuous", "scheme.backward=rk").scheme)


def test_unknown_encoding_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match=r"unknown position.encoding 'pp': did you mean 'ppr'\?"):
        build_encoding(PositionConfig("pp"))


def test_lists_of_names_are_those_the_refusals_give() -> None:
    with pytest.raises(UnknownName) as score:
        build_diffusivity(DiffusivityConfig("?"), Joint(0, 8))
    with pytest.raises(UnknownName) as adjoint:
        build_scheme(configured("scheme.adjoint=?").scheme)
    assert str(score.value).endswith(f"Known: {', '.join(sorted(SCORES))}.")
    assert str(adjoint.value).endswith(f"Known: {', '.join(sorted(ADJOINTS))}.")
    assert all(name == "none" or build_encoding(PositionConfig(name)) for name in ENCODINGS)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["train.lr=0"], r"`train.lr` must be positive; got 0.0"),
        (["train.lr=nan"], r"`train.lr` must be positive; got nan"),
        (["train.lr=inf"], r"`train.lr` must be positive; got inf"),
        (["train.average=1"], r"Training needs `ema`"),
        (["train.epochs=0"], r"Training needs `epochs`"),
        (["train.time_multiple=inf"], r"TimeGrid needs `multiple`"),
        (["scheme.time=-1"], r"positive, finite terminal `time`; got -1.0"),
        (["scheme.solver=euler", "scheme.dt=null"], r"Euler\(\) has no error estimate"),
        (["scheme.dt=0"], r"`dt`"),
        (["diffusivity.heads=3"], r"multiple of `heads`; got width=8, heads=3"),
        (["model.dropout=1"], r"`dropout` must be at least 0 and below 1"),
        (["flow.kinetic=-1"], r"Kinetic needs `weight` at least 0"),
        (["flow.storage=bfloat16"], r"`flow.storage` is of live flows"),
        (
            ["flow.frozen=false", "flow.storage=half", "scheme.solver=rk4", "scheme.dt=1"],
            r"unknown flow.storage 'half'",
        ),
        (["stencil.loops=-1"], r"Loops needs a positive `weight`"),
        (["stencil.kind=knn", "stencil.k=0"], r"KNN needs `k` at least 1"),
        (["stencil.kind=knn", "stencil.on=u"], r"`stencil.on=u` looks at positions and there are none"),
        (["stencil.kind=radius", "stencil.radius=0"], r"Radius needs a positive, finite `r`"),
        (["stencil.kind=digl", "stencil.k=0"], r"TopK needs `k` at least 1"),
        (["stencil.kind=digl", "stencil.restart=1"], r"TopK needs `restart` between 0 and 1"),
        (["stencil.kind=threshold", "stencil.least=0"], r"Threshold needs `least` between 0 and 1"),
        (["stencil.remesh=0"], r"positive `remesh`; got 0.0"),
        (["stencil.strongest=0"], r"Strongest needs `share` above 0 and at most 1; got 0.0"),
    ],
)
def test_value_that_makes_no_sense_is_refused_before_data_are_read(settings: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_settings(configured(*settings))
    with pytest.raises(ValueError, match=message):
        run_config(configured(*settings), problem=toy_problem())
