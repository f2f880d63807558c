"""The Polyakov flow by its settings."""

import pytest
import torch
from toy import small_config, toy_problem

from beltrami.config import RunConfig, load_recipe, override
from beltrami.config.build import build_model, check_settings
from beltrami.config.build_flow import PSIS
from beltrami.config.recipe.catalogue import POLYAKOV_SETTINGS
from beltrami.energy import Constant, Gauss, PeronaMalik, PolyakovAction, Psi, Roughness
from beltrami.flow import PolyakovFlow, degree
from beltrami.model import BLEND
from beltrami.run import run_config
from beltrami.run_many import run_configs
from beltrami.scheme import EnergyDecreasing, Scheme

FAMILIES: dict[str, type[Psi]] = {
    "constant": Constant,
    "gauss": Gauss,
    "perona-malik": PeronaMalik,
    "roughness": Roughness,
}
DESCENDS = ["flow.psi=gauss", "scheme.descends=true"]


def configured(*settings: str) -> RunConfig:
    return override(small_config(), list(settings))


def built(*settings: str) -> BLEND:
    return build_model(configured(*settings), features=6, positions=0, num_classes=2)


@pytest.mark.parametrize("name", PSIS)
def test_a_family_by_its_name_is_a_flow_that_learns_its_length(name: str) -> None:
    flow = built(f"flow.psi={name}", "flow.length=2.5", "flow.source=true", "diffusivity.score=additive").evolution.flow
    assert isinstance(flow, PolyakovFlow)
    assert isinstance(flow.diffusivity, PolyakovAction)
    assert isinstance(flow.diffusivity.psi, FAMILIES[name])
    lengths = [float(log_length.detach().exp()) for log_length in flow.diffusivity.parameters()]
    assert lengths == pytest.approx([] if name == "constant" else [2.5])
    assert flow.mass is degree
    assert flow.rate is not None
    assert flow.attachment is not None
    bare = built(f"flow.psi={name}", "flow.rate=false").evolution.flow
    assert [name for name, _ in bare.named_children()] == ["diffusivity"]


@pytest.mark.parametrize("name", PSIS)
@pytest.mark.parametrize("adjoint", ["direct", "checkpointed", "continuous"])
def test_it_trains_and_everything_in_it_learns(name: str, adjoint: str) -> None:
    settings = [f"flow.psi={name}", "flow.source=true", "scheme.descends=true", "scheme.dt=0.5"]
    _, model = run_config(override(small_config(adjoint), settings), problem=toy_problem())
    assert isinstance(model, BLEND)
    fresh = built(*settings)
    moved = {
        name: not torch.equal(now, then)
        for (name, now), then in zip(model.evolution.named_parameters(), fresh.evolution.parameters(), strict=True)
    }
    assert all(moved.values()), moved


def test_descends_wraps_the_scheme_and_nothing_else_does() -> None:
    scheme = built(*DESCENDS).evolution.scheme
    assert isinstance(scheme, EnergyDecreasing)
    assert scheme.scheme == built("flow.psi=gauss").evolution.scheme
    assert isinstance(built().evolution.scheme, Scheme)


def test_many_runs_at_once_are_what_they_are_alone() -> None:
    short = ["train.epochs=3", "train.look_every=3", "scheme.time=1", "model.feat=8"]
    configs = [override(load_recipe("polyakov", "digits", seed=seed), short) for seed in (0, 1)]
    for config, outcome in zip(configs, run_configs(configs), strict=True):
        assert isinstance(outcome, tuple)
        alone, found = run_config(config)[0], outcome[0]
        assert (found.best_epoch, found.evaluations) == (alone.best_epoch, alone.evaluations)
        assert found.test_accuracy == pytest.approx(alone.test_accuracy, abs=0.2)  # three nodes of 1,297


def test_without_descent_nothing_waits_so_that_steps_can_be_recorded() -> None:
    assert not built("flow.psi=gauss").synchronises
    assert built(*DESCENDS).synchronises


def test_the_recipe_descends_from_the_graph_itself() -> None:
    config = load_recipe("polyakov", "cora", protocol="planetoid")
    assert config.flow.psi == "perona-malik"
    assert config.scheme.descends
    assert config.stencil.loops == 0.0
    assert config.data.component == "all"
    assert config.train == override(load_recipe("blend", "cora"), POLYAKOV_SETTINGS["cora"]).train
    assert load_recipe("polyakov", "citeseer").train == load_recipe("blend", "citeseer").train


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["flow.psi=gaus"], r"unknown flow.psi 'gaus': did you mean 'gauss'"),
        (["flow.psi=gauss", "flow.length=0"], r"Gauss needs a positive, finite `length`"),
        (["flow.psi=gauss", "flow.positions=hyperbolic"], r"`flow.psi` measures flat distances"),
        (["flow.psi=gauss", "stencil.strongest=0.5"], r"`stencil.strongest` may drop one"),
        (["flow.psi=gauss", "scheme.solver=exponential", "scheme.dt=null"], r"linear flows alone: .*`flow.psi=null`"),
        (["scheme.descends=true"], r"`scheme.descends` needs a flow that goes down an energy: set `flow.psi`"),
        ([*DESCENDS, "flow.kinetic=0.1"], r"`scheme.descends` needs .*`flow.kinetic=0`"),
        ([*DESCENDS, "scheme.solver=torchdiffeq:euler"], r"looks at every step, and 'torchdiffeq:euler' shows none"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_what_does_not_fit_is_refused(settings: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_settings(configured(*settings))
