"""Training aids are taken from a configuration or given to it, and nothing else changes."""

from dataclasses import replace

import pytest

from beltrami.config import RECIPES, check_settings, load_recipe, override
from beltrami.config.parser import departures
from beltrami.config.recipe.aids import AIDS, ALL, aids_of, read_aids, with_aids
from beltrami.config.recipe.baseline import baseline
from beltrami.config.recipe.equal_budget import EQUAL_BUDGET
from beltrami.config.spec_graph import InputEdgesSpec
from beltrami.errors import UnknownName

SIX = ("cora", "citeseer", "pubmed", "coauthor-cs", "computers", "photo")
OWN = {
    "cora": ["consistency"],
    "citeseer": ["consistency", "self-training", "ema", "similarity"],
    "pubmed": ["self-training"],
    "coauthor-cs": ["consistency", "neighbours"],
    "computers": ["consistency", "neighbours"],
    "photo": ["consistency"],
}
PLACES = ("train.consistency.", "train.self_training", "train.ema", "stencil.reweight.", "stencil.add.")


@pytest.mark.parametrize("dataset", SIX)
def test_blend_has_these_aids_and_plain_has_none_and_differs_in_nothing_else(dataset: str) -> None:
    blend, plain = load_recipe("blend", dataset), load_recipe("blend-plain", dataset)
    assert aids_of(blend) == OWN[dataset]
    assert aids_of(plain) == []
    assert load_recipe("blend", dataset, aids=ALL) == blend
    others = {name: value for name, value in departures(blend).items() if not name.startswith(PLACES)}
    without = load_recipe("blend", dataset, aids=())
    assert departures(without) == others
    searched = EQUAL_BUDGET.get(("blend-plain", dataset, False))
    chosen = without if searched is None else override(without, searched.settings)
    assert departures(plain) == departures(chosen)


@pytest.mark.parametrize("name", ["gcn", "gat", "monet", "sage-maxpool", "cgnn", "gde", "lanczosnet", "paper", "grand"])
def test_the_aids_of_blend_are_given_and_taken_again(name: str) -> None:
    for dataset in SIX:
        alone, blend = load_recipe(name, dataset), load_recipe("blend", dataset)
        same = load_recipe(name, dataset, aids=ALL)
        check_settings(same)
        assert aids_of(alone) == []
        assert aids_of(same) == OWN[dataset]
        assert (same.train.consistency, same.train.self_training) == (
            blend.train.consistency,
            blend.train.self_training,
        )
        assert same.train.ema == blend.train.ema
        assert isinstance(same.stencil, InputEdgesSpec)
        assert isinstance(blend.stencil, InputEdgesSpec)
        assert (same.stencil.reweight, same.stencil.add) == (blend.stencil.reweight, blend.stencil.add)
        searched = EQUAL_BUDGET.get((name, dataset, True))
        assert with_aids(same, blend, ()) == (alone if searched is None else baseline(name, dataset, aided=True))


def test_settings_chosen_with_aids_start_from_those_of_the_authors() -> None:
    assert EQUAL_BUDGET["gcn", "photo", True].settings == ()
    assert departures(load_recipe("gcn", "photo", aids=ALL))["model.dropout"] == 0.5
    assert departures(load_recipe("gcn", "photo"))["model.dropout"] == 0.5387


def test_some_aids_are_given_by_name() -> None:
    some = load_recipe("gcn", "citeseer", aids=("ema", "similarity"))
    changed = {name: value for name, value in departures(some).items() if name.startswith(PLACES)}
    assert changed == {"train.ema": 0.9, "stencil.reweight.kind": "similarity", "stencil.reweight.sharpness": 0.3}


def test_the_published_split_has_the_aids_of_its_own_settings() -> None:
    gcn = load_recipe("gcn", "citeseer", protocol="planetoid", aids=ALL)
    assert aids_of(gcn) == ["consistency"]
    assert gcn.train.consistency == load_recipe("blend", "citeseer", protocol="planetoid").train.consistency
    plain = load_recipe("blend-plain", "pubmed", protocol="planetoid")
    assert plain == replace(load_recipe("blend", "pubmed", protocol="planetoid", aids=()), recipe="blend-plain")


def test_aids_of_the_input_graph_do_not_apply_to_a_model_without_one() -> None:
    flow = load_recipe("gat-flow", "citeseer", aids=ALL)
    check_settings(flow)
    assert aids_of(flow) == ["consistency", "self-training", "ema"]


def test_every_recipe_can_be_without_aids() -> None:
    for name in RECIPES:
        assert aids_of(load_recipe(name, "cora", aids=())) == []


def test_words_and_names_are_read_and_others_refused() -> None:
    assert read_aids("none") == ()
    assert read_aids("same") == ALL == tuple(AIDS)
    assert read_aids("ema, consistency") == ("ema", "consistency")
    for text in ("ena", "consistency,ena", ",", "none,ema"):
        with pytest.raises(UnknownName, match=r"unknown training aid"):
            read_aids(text)
    with pytest.raises(UnknownName, match=r"unknown training aid 'emma': did you mean 'ema'\?"):
        load_recipe("gcn", "cora", aids=("emma",))
