"""Recipes are complete, and seeds and protocols go where they belong."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from checks import crooked, dense, undirected

from beltrami.config import RECIPES, RunConfig, load_recipe, override, parse
from beltrami.config.build import build_classifier, build_encoding, build_model, build_training
from beltrami.config.build_stencil import build_stencil
from beltrami.config.recipe.blend import DATASETS, PUBLISHED
from beltrami.config.recipe.catalogue import REWIRED_SETTINGS
from beltrami.data import CATALOGUE, PROTOCOLS
from beltrami.errors import UnknownName
from beltrami.joint import Joint
from beltrami.run import COMPONENTS
from beltrami.stencil import TopK

SIX = ["cora", "citeseer", "pubmed", "coauthor-cs", "computers", "photo"]
every_dataset = pytest.mark.parametrize("dataset", ["digits", *SIX])


@every_dataset
@pytest.mark.parametrize("name", sorted(RECIPES))
def test_recipe_is_complete(name: str, dataset: str) -> None:
    config = load_recipe(name, dataset)
    assert (config.dataset, config.recipe) == (dataset, name)
    assert config.data.protocol in PROTOCOLS
    assert config.data.component in COMPONENTS
    positions = 0 if build_encoding(config.position) is None else 5
    model = build_classifier(config, features=4, positions=positions, num_classes=CATALOGUE[dataset].classes)
    assert model.num_classes == CATALOGUE[dataset].classes
    ring = undirected([(k, (k + 1) % 32) for k in range(32)], num_nodes=32)
    pos = torch.zeros(32, positions) if positions else None
    assert model(torch.zeros(32, 4), ring, pos).shape == (32, CATALOGUE[dataset].classes)
    assert build_training(config.train).epochs == config.train.epochs


@every_dataset
@pytest.mark.parametrize("name", sorted(RECIPES))
def test_recipe_comes_back_from_json_as_it_was(name: str, dataset: str) -> None:
    config = load_recipe(name, dataset, seed=4)
    assert parse(RunConfig, json.loads(config.to_json())) == config


@every_dataset
def test_uniform_has_nothing_to_learn_on_the_edges_and_differs_in_nothing_else(dataset: str) -> None:
    blend, uniform = load_recipe("blend", dataset), load_recipe("uniform", dataset)
    model = build_model(uniform, features=4, positions=0, num_classes=3)
    assert list(model.evolution.flow.diffusivity.parameters()) == []
    assert (uniform.data, uniform.position, uniform.model) == (blend.data, blend.position, blend.model)
    assert (uniform.flow, uniform.stencil) == (blend.flow, replace(blend.stencil, alike=0.0))
    assert (uniform.scheme, uniform.train) == (blend.scheme, blend.train)


@every_dataset
def test_blend_knn_is_on_the_graph_of_pagerank_and_loops_are_those_of_its_diagonal(dataset: str) -> None:
    config = load_recipe("blend-knn", dataset)
    assert config.recipe == "blend-knn"
    stencil = build_stencil(config.stencil, Joint(0, 1))
    assert isinstance(stencil, TopK)
    restart = 0.1 if dataset == "pubmed" else 0.05
    assert (stencil.k, stencil.restart) == (128 if dataset == "citeseer" else 64, restart)
    edges = crooked()
    diffused = stencil(torch.zeros(6, 1), edges)
    assert diffused.weight is not None
    kernel = dense(diffused.weight, diffused)
    a = dense(torch.ones(edges.num_edges), edges) + torch.eye(6)
    s = a / (a.sum(1)[:, None] * a.sum(0)).sqrt()
    exact = restart * torch.linalg.inv(torch.eye(6) - (1 - restart) * s)
    torch.testing.assert_close(kernel, exact, rtol=1e-3, atol=1e-5)


def test_settings_of_blend_knn_are_for_datasets_that_have_a_recipe() -> None:
    assert set(REWIRED_SETTINGS) <= set(DATASETS)


@pytest.mark.parametrize("dataset", sorted(PUBLISHED))
def test_the_published_split_has_settings_of_its_own_and_a_file_keeps_its_own(dataset: str, tmp_path: Path) -> None:
    plain, published = load_recipe("blend", dataset), load_recipe("blend", dataset, protocol="planetoid")
    assert published.data.component == "all"
    assert override(replace(plain, data=published.data), PUBLISHED[dataset]) == published != plain
    uniform = load_recipe("uniform", dataset, protocol="planetoid")
    assert (uniform.diffusivity.score, uniform.stencil.alike) == ("uniform", 0.0)
    assert (uniform.model, uniform.train) == (published.model, published.train)
    file = tmp_path / "best.json"
    file.write_text(plain.to_json())
    kept = load_recipe(str(file), dataset, protocol="planetoid")
    assert (kept.model, kept.train, kept.diffusivity) == (plain.model, plain.train, plain.diffusivity)


def test_seed_is_that_of_the_run_and_of_its_split() -> None:
    config = load_recipe("blend", "cora", seed=7)
    assert (config.seed, config.data.split_seed) == (7, 7)


def test_split_may_have_a_seed_of_its_own() -> None:
    config = load_recipe("blend", "cora", seed=7, split_seed=0)
    assert (config.seed, config.data.split_seed) == (7, 0)


@pytest.mark.parametrize("dataset", ["cora", "citeseer", "pubmed"])
def test_planetoid_is_a_split_of_the_whole_graph(dataset: str) -> None:
    config = load_recipe("blend", dataset, protocol="planetoid")
    assert (config.data.protocol, config.data.component) == ("planetoid", "all")


def test_other_protocols_keep_the_component_of_the_recipe() -> None:
    config = load_recipe("blend", "cora", protocol="shchur")
    assert (config.data.protocol, config.data.component) == ("shchur", load_recipe("blend", "cora").data.component)


def test_paper_s_protocol_is_the_default_of_its_datasets() -> None:
    for dataset in SIX:
        assert (load_recipe("blend", dataset).data.protocol, load_recipe("blend", dataset).data.component) == (
            "digl",
            "largest",
        )


def test_unknown_recipe_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match=r"unknown recipe 'blnd': did you mean 'blend'\? Known: .*, blend, blend-knn"):
        load_recipe("blnd", "cora")


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_unknown_dataset_is_refused_with_the_nearest(name: str) -> None:
    with pytest.raises(UnknownName, match=r"unknown dataset 'coar': did you mean 'cora'\?"):
        load_recipe(name, "coar")


def test_every_dataset_has_a_recipe() -> None:
    for name in CATALOGUE:
        assert load_recipe("blend", name).dataset == name
