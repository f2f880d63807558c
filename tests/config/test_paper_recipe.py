"""The recipes of the paper have the published settings, build for their datasets and train."""

from collections.abc import Sequence
from dataclasses import asdict, replace

import pytest
import torch

from beltrami.config import check_settings, load_recipe, override
from beltrami.config.build import build_classifier, build_training
from beltrami.config.recipe.aids import aids_of
from beltrami.config.recipe.paper import KNN_DATASETS, PAPER
from beltrami.config.spec import AdaptiveSpec
from beltrami.config.spec_graph import DIGLSpec
from beltrami.data import Dataset, Split, undirected
from beltrami.errors import UnknownName
from beltrami.model import Classifier, Inputs
from beltrami.train import Fit, Training, fit, fit_many

SHORT = ("train.epochs=2", "train.patience=2", "scheme.time=1")
PRINTED = {  # d', d, width, heads, T, scale, lr, decay, dropouts, epochs, as published
    "cora": (16, 64, 128, 8, 18.29, 822, 0.02292, 0.005077, 0.047, 0.5, 100),
    "citeseer": (16, 64, 32, 8, 7.874, 2.9, 0.008636, 0.1, 0.749, 0.68, 250),
    "pubmed": (16, 64, 16, 1, 12.94, 1991, 0.01467, 0.001824, 0.072, 0.5, 600),
    "coauthor-cs": (32, 128, 8, 4, 3.126, 9349, 0.000934, 0.004738, 0.686, 0.528, 250),
    "computers": (32, 64, 64, 4, 3.249, 127, 0.00353, 0.007675, 0.087, 0.597, 100),
    "photo": (16, 64, 64, 4, 3.582, 2087, 0.005561, 0.004708, 0.465, 0.429, 100),
    "ogbn-arxiv": (98, 64, 32, 2, 3.676, 11350, 0.005451, 0.0, 0.116, 0.0, 100),
}


@pytest.mark.parametrize("dataset", PAPER)
def test_settings_are_the_published_ones(dataset: str) -> None:
    config = load_recipe("paper", dataset)
    check_settings(config)
    model, a, scheme, train = (asdict(part) for part in (config.model, config.diffusivity, config.scheme, config.train))
    scale = scheme["atol"] / 1e-7
    widths = (model["pos"], model["feat"], a["width"], a["heads"], scheme["time"], scale, train["lr"])
    found = (*widths, train["weight_decay"], model["dropout"], model["input_dropout"], train["epochs"])
    assert found == pytest.approx(PRINTED[dataset])
    assert scheme["rtol"] == pytest.approx(scheme["atol"] / 100)
    assert isinstance(config.scheme, AdaptiveSpec)
    assert config.scheme.solver == "dopri5"
    assert a["start"] == {"kind": "constant", "value": 1e-5}
    assert train["attention_decay"] == train["weight_decay"]
    assert train["patience"] >= train["epochs"]
    assert train["time_grid"]["multiple"] == (5 if dataset == "pubmed" else 3)
    assert (a["over"] == "columns") == (dataset in ("cora", "citeseer", "coauthor-cs"))
    assert aids_of(config) == []
    assert config.data.component == ("all" if dataset == "ogbn-arxiv" else "largest")


def test_the_graph_of_knn_is_that_of_pagerank_and_the_rest_is_the_same() -> None:
    for dataset in KNN_DATASETS:
        config, paper = load_recipe("paper-knn", dataset), load_recipe("paper", dataset)
        check_settings(config)
        assert isinstance(config.stencil, DIGLSpec)
        assert (config.stencil.k, config.stencil.weighted) == (128 if dataset == "citeseer" else 64, False)
        assert replace(config, recipe="paper", stencil=paper.stencil) == paper


def test_datasets_without_published_settings_are_refused() -> None:
    with pytest.raises(UnknownName, match=r"unknown dataset for recipe 'paper' 'digits'"):
        load_recipe("paper", "digits")
    with pytest.raises(UnknownName, match=r"unknown dataset for recipe 'paper-knn' 'ogbn-arxiv'"):
        load_recipe("paper-knn", "ogbn-arxiv")


def ring_of_classes() -> Dataset:
    """Return a ring of 80 nodes in two halves, whose first feature is the class."""
    edge_index = undirected(torch.stack((torch.arange(80), (torch.arange(80) + 1) % 80)), num_nodes=80)
    y = torch.arange(80) // 40
    x = torch.randn(80, 5, generator=torch.Generator().manual_seed(0))
    x[:, 0] += 4 * y
    return Dataset("ring", x, edge_index, y)


def a_split(seed: int) -> Split:
    """Return ten training and ten validation nodes of each half, the rest for testing."""
    order = torch.randperm(40, generator=torch.Generator().manual_seed(seed))
    place = torch.empty(40, dtype=torch.long)
    place[order] = torch.arange(40)
    place = place.repeat(2)
    return Split(place < 10, (place >= 10) & (place < 20), place >= 20, protocol="by hand", seed=seed)


def models(name: str, dataset: str, seeds: Sequence[int]) -> tuple[list[Classifier], Inputs, Training]:
    """Return models of a recipe for the ring from some seeds, their inputs, and a training of two short epochs."""
    data, config = ring_of_classes(), override(load_recipe(name, dataset), SHORT)
    made = []
    for seed in seeds:
        torch.manual_seed(seed)
        made.append(build_classifier(config, features=5, positions=3, num_classes=2))
    pos = torch.randn(80, 3, generator=torch.Generator().manual_seed(1))
    return made, made[0].prepare(data.x, data.edge_index, pos=pos), build_training(config.train)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "dataset"), [("paper", name) for name in PAPER] + [("paper-knn", "citeseer")])
def test_two_epochs_on_a_small_graph(name: str, dataset: str) -> None:
    (model,), inputs, training = models(name, dataset, [0])
    assert model.attention_spread(inputs) < 1e-3  # the attention begins uniform
    found = fit(model, inputs, ring_of_classes().y, a_split(0), training)
    assert found.epochs == 2
    assert found.stats.evaluations > 0
    assert (found.stats.backward_evaluations > 0) == (dataset not in ("cora", "citeseer"))


@pytest.mark.slow
@pytest.mark.parametrize("dataset", ["cora", "pubmed", "coauthor-cs"])
def test_runs_train_together_with_adaptive_steps_by_every_adjoint(dataset: str) -> None:
    alone, inputs, training = models("paper", dataset, [0, 1])
    together, _, _ = models("paper", dataset, [0, 1])
    y, splits = ring_of_classes().y, [a_split(0), a_split(1)]
    found = fit_many(together, inputs, y, splits, training)
    for model, split, fitted in zip(alone, splits, found, strict=True):
        assert isinstance(fitted, Fit)
        single = fit(model, inputs, y, split, training)
        assert single.best.metric == pytest.approx(fitted.best.metric, abs=0.051)  # one validation node of twenty
        assert single.best.minus_loss == pytest.approx(fitted.best.minus_loss, rel=0.02)


def test_runs_that_keep_the_strongest_edges_are_trained_one_by_one() -> None:
    several, inputs, training = models("paper", "photo", [0, 1])
    with pytest.raises(ValueError, match=r"fit_many cannot train models that rewire the graph by their own state"):
        fit_many(several, inputs, ring_of_classes().y, [a_split(0), a_split(1)], training)
