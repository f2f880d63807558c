"""Networks of Table 1 are built by their names, trained and read back as BLEND is, and refused where they cannot be."""

from pathlib import Path

import pytest
import torch
from toy import small_config, toy_problem

from beltrami.config import RunConfig, check_settings, load_recipe, override
from beltrami.config.build import build_training
from beltrami.config.build_zoo import BY_FEATURES, BY_POSITIONS, NETWORKS, build_network
from beltrami.config.recipe.zoo import ROWS
from beltrami.errors import UnknownName
from beltrami.flow import TimeVarying
from beltrami.joint import Joint
from beltrami.model import BLEND, Classifier, zoo
from beltrami.run import run_config
from beltrami.stencil import Chain
from beltrami.train import fit, fit_many, load_weights, predict, save_weights, seeded

kinds = pytest.mark.parametrize("kind", NETWORKS)


def small(kind: str, *settings: str) -> RunConfig:
    """Two epochs on the toy."""
    own = ["scheme.solver=euler", "stencil.k=3", "baseline.width=8", "baseline.steps=3", "train.time_multiple=1"]
    return override(small_config(), [f"model.kind={kind}", *own, *settings])


def test_every_row_of_the_table_has_a_recipe() -> None:
    recipes = {row.recipe for row in zoo.TABLE}
    assert set(NETWORKS) == set(ROWS) == recipes - {"grand", "blend"}
    for name in recipes:
        assert load_recipe(name, "cora").recipe == name


@kinds
def test_every_network_trains_and_its_weights_come_back(kind: str, tmp_path: Path) -> None:
    config, problem = small(kind), toy_problem(positions=kind in BY_POSITIONS)
    result, model = run_config(config, problem=problem)
    assert isinstance(model, BLEND)
    assert (result.epochs, result.best_time) == (2, 2.0)
    save_weights(model, tmp_path / "model.safetensors")
    again = problem.model(override(config, ["seed=9"]))
    load_weights(again, tmp_path / "model.safetensors")
    inputs = again.prepare(problem.x, problem.edges, problem.pos)
    assert torch.equal(predict(again, inputs, time=2.0), predict(model, inputs, time=2.0))


@pytest.mark.parametrize("kind", [kind for kind in NETWORKS if kind != "dgcnn-flow"])  # whose graph is each run's own
def test_seeds_side_by_side_are_those_of_each_alone(kind: str) -> None:
    problem = toy_problem(positions=kind in BY_POSITIONS)

    def models() -> list[Classifier]:
        made = []
        for seed in range(2):
            with seeded(seed):
                made.append(problem.model(small(kind)))
        return made

    together, training, y = models(), build_training(small(kind).train), problem.dataset.y
    inputs = together[0].prepare(problem.x, problem.edges, problem.pos)
    fit_many(together, inputs, y, [problem.split] * 2, training)
    for alone, model in zip(models(), together, strict=True):
        fit(alone, inputs, y, problem.split, training)
        for found, wanted in zip(model.parameters(), alone.parameters(), strict=True):
            torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


def test_layers_are_the_terminal_time_and_settings_reach_the_network() -> None:
    evolution = build_network(small("gat-flow", "scheme.time=3", "diffusivity.heads=4"), Joint(0, 8))
    assert isinstance(evolution.flow, TimeVarying)
    assert len(evolution.flow.parts) == evolution.time == 3
    assert evolution.flow.diffusivity.get_parameter("receiver").shape == (4, 2)
    stencil = build_network(small("digl-flow", "stencil.k=5", "stencil.restart=0.3"), Joint(0, 8)).stencil
    assert isinstance(stencil, Chain)
    assert vars(stencil.stencils[0]) == {"k": 5, "restart": 0.3}


def test_refusals() -> None:
    with pytest.raises(UnknownName, match=r"unknown model.kind 'gat-flw': did you mean 'gat-flow'\?"):
        check_settings(small("gat-flw"))
    with pytest.raises(ValueError, match=r"`scheme.time` is the number of layers .* got 2.5"):
        check_settings(small("gat-flow", "scheme.time=2.5"))
    with pytest.raises(ValueError, match=r"`scheme.time` is the number of layers .* got 0.0"):
        check_settings(small("gat-flow", "scheme.time=0"))
    with pytest.raises(ValueError, match=r"`scheme.solver=exponential` solves BLEND's frozen flows alone"):
        check_settings(small("gcn-flow", "scheme.solver=exponential", "scheme.dt=null"))
    with pytest.raises(ValueError, match=r"Mixture needs positions"):
        check_settings(small("monet-flow"))
    for kind in BY_FEATURES:
        with pytest.raises(ValueError, match=r"looks at features alone: set `position.encoding=none`"):
            check_settings(small(kind, "position.encoding=ppr"))
