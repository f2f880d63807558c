"""Competitors are built by their names, trained and read back as BLEND is, and refused where they cannot be."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from toy import small_config, toy_problem

from beltrami.config import RunConfig, check_settings, load_recipe, override
from beltrami.config.build import build_classifier
from beltrami.config.build_baseline import CONTINUOUS, LAYERED, RIVALS
from beltrami.config.recipe.baseline import COMPETITORS, DATASETS, GRAND_SETTINGS, NETWORKS, SETTINGS
from beltrami.errors import UnknownName
from beltrami.model import BLEND
from beltrami.model.baseline import Baseline, GraphODE
from beltrami.run import run_config
from beltrami.run_many import run_configs
from beltrami.train import load_weights, predict, save_weights


def small(kind: str, *settings: str) -> RunConfig:
    """Two epochs on the toy."""
    own = ["baseline.width=8", "baseline.heads=2", "baseline.steps=3", "train.time_multiple=1"]
    return override(small_config(), [f"model.kind={kind}", *own, *settings])


@pytest.mark.parametrize("kind", RIVALS)
def test_every_competitor_trains(kind: str) -> None:
    result, model = run_config(small(kind), problem=toy_problem())
    assert isinstance(model, Baseline)
    assert isinstance(model, GraphODE) == (kind in CONTINUOUS)
    assert result.epochs == 2
    assert result.best_time == (2.0 if kind in CONTINUOUS else 0.0)
    assert (result.evaluations["forward"] > 0) == (kind in CONTINUOUS)
    assert result.parameters == sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize("kind", ["gcn", "gde"])
def test_weights_come_back(kind: str, tmp_path: Path) -> None:
    config, problem = small(kind), toy_problem()
    result, model = run_config(config, problem=problem)
    save_weights(model, tmp_path / "model.safetensors")
    again = problem.model(override(config, ["seed=9"]))
    load_weights(again, tmp_path / "model.safetensors")
    inputs = again.prepare(problem.x, problem.edges)
    expected = predict(model, inputs, time=result.best_time)
    assert torch.equal(predict(again, inputs, time=result.best_time), expected)


def test_settings_reach_the_network() -> None:
    settings = ("baseline.depth=3", "baseline.out_heads=2", "stencil.loops=0", "model.dropout=0.1")
    model = build_classifier(small("gat", *settings), features=6, positions=3, num_classes=2)
    assert isinstance(model, Baseline)
    frame = model.architecture
    assert (frame.depth, frame.width, frame.positions, frame.dropout) == (3, 8, 3, 0.1)
    shapes = [tuple(p.shape) for name, p in model.named_parameters() if name.endswith("receiver")]
    assert shapes == [(2, 4), (2, 4), (2, 2)]
    edges = toy_problem().edges
    assert model.prepare(torch.zeros(20, 6), edges, torch.zeros(20, 3)).edges is edges


@pytest.mark.parametrize("kind", LAYERED)
def test_positions_may_stand_beside_the_features_of_every_network(kind: str) -> None:
    _, model = run_config(small(kind), problem=toy_problem(positions=True))
    assert isinstance(model, Baseline)
    assert model.architecture.positions == 3


def test_unknown_kind_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match=r"unknown model.kind 'gnc': did you mean 'gcn'\? Known: .*blend"):
        check_settings(small("gnc"))


def test_settings_that_only_flows_have_are_refused() -> None:
    for setting in ("stencil.remesh=1", "stencil.strongest=0.5"):
        with pytest.raises(ValueError, match=r"leave `stencil.remesh` and `stencil.strongest` null"):
            check_settings(small("gcn", setting))
    with pytest.raises(ValueError, match=r"fixed graph, and KNN depends on the state of a flow"):
        check_settings(small("gcn", "stencil.kind=knn", "stencil.loops=0"))
    with pytest.raises(ValueError, match=r"`scheme.solver=exponential` solves BLEND's frozen flows alone"):
        check_settings(small("cgnn", "scheme.solver=exponential", "scheme.dt=null"))


def test_competitor_may_run_on_the_graph_of_digl() -> None:
    _, model = run_config(small("gcn", "stencil.kind=digl", "stencil.k=3", "stencil.loops=0"), problem=toy_problem())
    problem = toy_problem()
    assert model.prepare(problem.x, problem.edges).edges.num_edges == 3 * 20


def test_grand_is_blend_without_positions_and_with_scaled_dot_attention() -> None:
    for dataset in DATASETS:
        config = load_recipe("grand", dataset)
        assert (config.position.encoding, config.diffusivity.score, config.flow.frozen) == ("none", "scaled-dot", True)
        assert config.train.consistency == 0
        assert isinstance(build_classifier(config, features=4, positions=0, num_classes=3), BLEND)
    assert set(GRAND_SETTINGS) == set(DATASETS)


def test_gat_ppr_is_gat_with_positions_and_nothing_else() -> None:
    for dataset in DATASETS:
        gat, ppr = load_recipe("gat", dataset), load_recipe("gat-ppr", dataset)
        assert ppr.position.encoding == "ppr"
        assert replace(ppr, recipe="gat", position=gat.position) == gat


def test_settings_by_dataset_are_of_networks_and_datasets_that_there_are() -> None:
    assert {name for name, _ in SETTINGS} <= set(NETWORKS)
    assert {dataset for _, dataset in SETTINGS} <= set(DATASETS)
    assert set(COMPETITORS) == {*NETWORKS, "grand"}


def test_dataset_without_a_competitor_is_refused_by_saying_so() -> None:
    with pytest.raises(UnknownName, match=r"unknown dataset for recipe 'gcn' 'ogbn-arxiv'"):
        load_recipe("gcn", "ogbn-arxiv")


@pytest.mark.slow
def test_runs_side_by_side_on_digits_are_the_runs_alone() -> None:
    configs = [override(load_recipe("gcn", "digits", seed=seed), ["train.epochs=5"]) for seed in (0, 1)]
    for config, found in zip(configs, run_configs(configs), strict=True):
        assert isinstance(found, tuple)
        assert found[0].test_accuracy == pytest.approx(run_config(config)[0].test_accuracy, abs=0.2)
