"""Recipes are complete, and seeds, protocols and files give the configurations that they should."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from checks import crooked, dense, undirected

from beltrami.config import RECIPES, RunConfig, load_recipe, override, parse
from beltrami.config.build import BASELINES, ZOO, build_classifier, build_encoding, build_model, build_training
from beltrami.config.build_evolution import build_stencil
from beltrami.config.parser import departures
from beltrami.config.recipe.aids import ALL
from beltrami.config.recipe.baseline import BASELINES as BASELINE_NAMES
from beltrami.config.recipe.baseline import DATASETS, GRAND, SETTINGS
from beltrami.config.recipe.blend import BLEND, POLYAKOV, PUBLISHED, REWIRED
from beltrami.config.recipe.equal_budget import EQUAL_BUDGET
from beltrami.config.recipe.recipes import IDEAS, LISTED, ON_DATASETS, OURS, TRIED, UNLISTED, search_count
from beltrami.config.spec_graph import InputEdgesSpec, NoneSpec, PPRSpec
from beltrami.data import CATALOGUE, PROTOCOLS
from beltrami.errors import DataError, UnknownName
from beltrami.joint import Joint
from beltrami.model import BLEND as Blend
from beltrami.model import zoo
from beltrami.stencil import TopK
from beltrami.train import Distillation

SIX = ["cora", "citeseer", "pubmed", "coauthor-cs", "computers", "photo"]
SEARCHES = Path(__file__).parents[2] / "results" / "search"
ONE = "train.consistency.weight=1"
PUBLISHED_RECIPES = ("paper", "paper-knn")
every_dataset = pytest.mark.parametrize("dataset", ["digits", *SIX])
TUNED = replace(
    override(load_recipe("blend", "cora"), ["train.lr=0.03", "scheme.time=9"]), recipe="blend-tuned", tried=40
)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(RECIPES))
def test_recipe_is_complete_and_comes_back_from_json(name: str) -> None:
    for dataset in SIX if name in PUBLISHED_RECIPES else ("digits", *SIX):
        config = load_recipe(name, dataset, seed=4)
        assert (config.dataset, config.recipe) == (dataset, name)
        assert config.data.protocol in PROTOCOLS
        assert parse(RunConfig, json.loads(config.to_json())) == config
        assert build_training(config.train).epochs == config.train.epochs
    config, classes = load_recipe(name, "cora"), CATALOGUE["cora"].classes
    positions = 0 if build_encoding(config.position) is None else 5
    model = build_classifier(config, features=4, positions=positions, num_classes=classes)
    ring = undirected([(k, (k + 1) % 32) for k in range(32)], num_nodes=32)
    pos = torch.zeros(32, positions) if positions else None
    assert model(torch.zeros(32, 4), ring, pos=pos).shape == (32, classes)


@every_dataset
def test_uniform_has_nothing_to_learn_on_the_edges_and_differs_in_nothing_else(dataset: str) -> None:
    blend, uniform = load_recipe("blend", dataset), load_recipe("uniform", dataset)
    model = build_model(uniform, features=4, positions=0, num_classes=3)
    assert list(model.evolution.flow.diffusivity.parameters()) == []
    assert isinstance(blend.stencil, InputEdgesSpec)
    stencil = replace(blend.stencil, reweight=NoneSpec())
    same = replace(uniform, recipe="blend", diffusivity=blend.diffusivity)
    assert same == replace(blend, stencil=stencil)


@every_dataset
def test_blend_knn_is_on_the_graph_of_pagerank_and_loops_are_those_of_its_diagonal(dataset: str) -> None:
    config = load_recipe("blend-knn", dataset)
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


def test_settings_are_for_recipes_and_datasets_that_there_are() -> None:
    assert {*REWIRED, *POLYAKOV, *PUBLISHED} <= set(BLEND) == set(CATALOGUE)
    assert set(GRAND) == set(DATASETS)
    assert {name for name, _ in SETTINGS} <= set(RECIPES)
    assert {dataset for _, dataset in SETTINGS} <= set(DATASETS)
    assert {*BASELINES, *ZOO, "gat-ppr", "grand"} <= set(RECIPES)


def test_every_row_of_table_1_has_a_recipe() -> None:
    recipes = {row.recipe for row in zoo.TABLE}
    assert set(ZOO) == recipes - {"grand", "blend"}
    for name in recipes:
        assert load_recipe(name, "cora").recipe == name


@pytest.mark.parametrize("dataset", sorted(PUBLISHED))
def test_the_published_split_has_its_own_settings_and_a_file_keeps_its_own(dataset: str, tmp_path: Path) -> None:
    plain, published = load_recipe("blend", dataset), load_recipe("blend", dataset, protocol="planetoid")
    assert published.data.component == "all"
    assert override(replace(plain, data=published.data), PUBLISHED[dataset]) == published != plain
    uniform = load_recipe("uniform", dataset, protocol="planetoid")
    assert uniform.diffusivity.kind == "uniform"
    assert isinstance(uniform.stencil, InputEdgesSpec)
    assert uniform.stencil.reweight.kind == "none"
    assert (uniform.model, uniform.train) == (published.model, published.train)
    file = tmp_path / "best.json"
    file.write_text(plain.to_json())
    kept = load_recipe(str(file), dataset, protocol="planetoid")
    assert (kept.model, kept.train, kept.diffusivity) == (plain.model, plain.train, plain.diffusivity)


def test_grand_is_blend_without_positions_and_with_scaled_dot_attention() -> None:
    for dataset in DATASETS:
        config = load_recipe("grand", dataset)
        kinds = (config.position.kind, config.diffusivity.kind, config.flow.kind, config.train.consistency.kind)
        assert kinds == ("none", "scaled-dot", "frozen", "none")
    assert isinstance(build_classifier(config, features=4, positions=0, num_classes=3), Blend)


def test_gat_ppr_is_gat_with_positions_and_nothing_else() -> None:
    for dataset in DATASETS:
        ppr = load_recipe("gat-ppr", dataset)
        assert ppr.position == PPRSpec(restart=0.05, top=64)
        assert replace(ppr, recipe="gat", position=NoneSpec()) == load_recipe("gat", dataset)


def test_polyakov_decreases_an_energy_from_the_graph_without_loops() -> None:
    found = departures(load_recipe("polyakov", "cora", protocol="planetoid"))
    assert (found["flow.psi.kind"], found["scheme.energy_decreasing"]) == ("perona-malik", True)
    assert (found["stencil.loops"], found["data.component"]) == (0.0, "all")
    polyakov, blend = load_recipe("polyakov", "cora"), load_recipe("blend", "cora")
    assert polyakov.train == override(blend, ["train.lr=0.02292", "train.weight_decay=0.02", ONE]).train
    assert load_recipe("polyakov", "citeseer").train == load_recipe("blend", "citeseer").train


def test_seed_is_that_of_the_run_and_of_its_split() -> None:
    config = load_recipe("blend", "cora", seed=7)
    assert (config.seed, config.data.split_seed) == (7, 7)


def test_split_may_have_another_seed() -> None:
    config = load_recipe("blend", "cora", seed=7, split_seed=0)
    assert (config.seed, config.data.split_seed) == (7, 0)


@pytest.mark.parametrize("dataset", ["cora", "citeseer", "pubmed"])
def test_planetoid_is_a_split_of_the_whole_graph(dataset: str) -> None:
    config = load_recipe("blend", dataset, protocol="planetoid")
    assert (config.data.protocol, config.data.component) == ("planetoid", "all")


def test_other_protocols_keep_the_component_of_the_recipe() -> None:
    config = load_recipe("blend", "cora", protocol="shchur")
    assert (config.data.protocol, config.data.component) == ("shchur", load_recipe("blend", "cora").data.component)


def test_the_papers_protocol_is_the_default_of_its_datasets() -> None:
    for dataset in SIX:
        assert (load_recipe("blend", dataset).data.protocol, load_recipe("blend", dataset).data.component) == (
            "digl",
            "largest",
        )


def test_unknown_recipe_is_refused_with_the_nearest() -> None:
    with pytest.raises(
        UnknownName, match=r"unknown recipe 'blnd': did you mean 'blend'\? Known: .*, blend, blend-distilled"
    ):
        load_recipe("blnd", "cora")


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_unknown_dataset_is_refused_with_the_nearest(name: str) -> None:
    with pytest.raises(UnknownName, match=r"unknown dataset 'coar': did you mean 'cora'\?"):
        load_recipe(name, "coar")


def test_dataset_without_a_baseline_is_refused_by_saying_so() -> None:
    with pytest.raises(UnknownName, match=r"unknown dataset for recipe 'gcn' 'ogbn-arxiv'"):
        load_recipe("gcn", "ogbn-arxiv")


def test_every_dataset_has_a_recipe() -> None:
    for name in CATALOGUE:
        assert load_recipe("blend", name).dataset == name


def written(folder: Path) -> str:
    path = folder / "best.json"
    path.write_text(TUNED.to_json())
    return str(path)


def test_a_file_is_a_recipe_with_its_own_protocol(tmp_path: Path) -> None:
    name = written(tmp_path)
    assert load_recipe(name, "cora") == TUNED
    other = load_recipe(name, "cora", protocol="planetoid", seed=3, split_seed=5)
    assert (other.seed, other.data.split_seed, other.data.protocol, other.data.component) == (3, 5, "planetoid", "all")
    assert replace(other, seed=0, data=TUNED.data) == TUNED


def test_a_file_is_a_recipe_for_its_own_dataset_alone(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match=r"unknown dataset for recipe '.*best.json' 'photo': .*Known: cora"):
        load_recipe(written(tmp_path), "photo")
    with pytest.raises(DataError, match=r"there is no configuration at .*none.json"):
        load_recipe(str(tmp_path / "none.json"), "cora")


@pytest.mark.parametrize("protocol", ["digl", "planetoid"])
def test_blend_distilled_is_blend_with_four_rounds(protocol: str) -> None:
    distilled, blend = (load_recipe(name, "citeseer", protocol=protocol) for name in ("blend-distilled", "blend"))
    assert departures(distilled) == {
        **departures(blend),
        "train.distillation.kind": "soft-targets",
    }
    assert build_training(distilled.train).distillation == Distillation(4, 1.0)


def test_the_number_of_configurations_compared_is_no_setting() -> None:
    assert departures(replace(TUNED, tried=None)) == departures(TUNED)
    assert search_count(TUNED) == 40
    assert search_count(load_recipe("blend", "cora")) == ON_DATASETS["cora"]
    assert search_count(load_recipe("gcn", "cora")) == ON_DATASETS["cora"]
    assert search_count(load_recipe("sage-mean", "citeseer")) is None


@pytest.mark.skipif(not SEARCHES.exists(), reason="the lists of the searches are in the repository, not in the package")
def test_counts_are_those_of_the_lists_of_the_searches() -> None:
    found: dict[str, set[tuple[str, ...]]] = {dataset: set() for dataset in ON_DATASETS}
    ideas: dict[str, int] = {}
    baselines: dict[tuple[str, str], set[tuple[str, ...]]] = {}
    searched: dict[tuple[str, str, bool], set[tuple[str, ...]]] = {}
    for path in SEARCHES.glob("*.jsonl"):
        lines = [json.loads(text)["line"] for text in path.read_text().splitlines()]
        for dataset, name, protocol, _, *settings in map(str.split, lines):
            if path.stem == "ideas":
                if name in OURS and settings:  # the recipe itself is in another list
                    ideas[dataset] = ideas.get(dataset, 0) + 1
            elif path.stem == "equal-budget":
                row = name, dataset, settings[:1] == ["--aids"]
                searched.setdefault(row, set()).add(tuple(settings))
            elif name in OURS:
                found[dataset].add((name, protocol, *settings))
            else:
                baselines.setdefault((name, dataset), set()).add(tuple(settings))
        listed = path.with_suffix(".txt").read_text().splitlines()
        assert set(lines) == {line for line in listed if line[0] != "#"}
    assert {dataset: len(each) for dataset, each in found.items()} == ON_DATASETS
    assert ideas == IDEAS
    chosen = {row: each.tried for row, each in EQUAL_BUDGET.items()}  # of the other rows no settings are chosen yet
    assert {row: len(searched[row]) for row in chosen} == chosen
    counts = {of: len(each) for of, each in baselines.items()}
    assert {of: count for of, count in counts.items() if count > 1} == LISTED
    assert {TRIED[of] for of, count in counts.items() if count == 1 and of not in UNLISTED} == {1}


def test_every_row_of_the_tables_has_a_count_but_those_compared_before_there_were_lists() -> None:
    assert search_count(load_recipe("paper", "cora")) == search_count(load_recipe("paper-knn", "photo")) == 1
    assert search_count(load_recipe("gcn", "pubmed", aids=("self-training",))) == 1
    assert search_count(load_recipe("blend-plain", "cora")) == ON_DATASETS["cora"]
    unknown = {(name, dataset) for name in BASELINE_NAMES for dataset in SIX if (name, dataset) not in TRIED}
    assert unknown == set(UNLISTED)


def test_a_baseline_with_all_aids_has_the_settings_that_were_chosen_with_them() -> None:
    for (name, dataset, aided), searched in EQUAL_BUDGET.items():
        config = load_recipe(name, dataset, aids=ALL if aided else None)
        assert override(config, searched.settings) == config
        assert config.tried == searched.tried == ON_DATASETS[dataset]
    assert load_recipe("gcn", "cora", aids=("consistency",)).train.lr == load_recipe("gcn", "cora").train.lr


def test_a_recipe_file_keeps_its_seeds_unless_others_are_given(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(load_recipe("blend", "digits", seed=3, split_seed=5).to_json())
    any_load: Any = load_recipe
    seeds: dict[Any, tuple[int, int]] = {
        (): (3, 5),
        (("seed", 4),): (4, 4),
        (("split_seed", 6),): (3, 6),
        (("seed", 4), ("split_seed", 6)): (4, 6),
    }
    for given, expected in seeds.items():
        config = any_load(str(path), "digits", **dict(given))
        assert (config.seed, config.data.split_seed) == expected


@pytest.mark.parametrize(
    ("field", "name"),
    [
        ("recipe", "../../../ESCAPE"),
        ("recipe", "/tmp/escape"),
        ("recipe", ".hidden"),
        ("recipe", "a" * 101),
        ("recipe", "a b"),
        ("recipe", "a\x00b"),
        ("recipe", "name\n"),
        ("dataset", "../digits"),
    ],
)
def test_names_from_files_that_could_leave_the_folder_are_refused(field: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / "evil.json"
    path.write_text(json.dumps({**json.loads(load_recipe("blend", "digits").to_json()), field: name}))
    with pytest.raises(DataError, match=f"evil.json cannot be read .`{field}` must be at most 100 letters, digits"):
        load_recipe(str(path), "digits")


@pytest.mark.parametrize("seeds", [{"seed": -1}, {"split_seed": -1}, {"seed": 2**32}])
def test_negative_seeds_are_refused(seeds: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"needs `(split_)?seed` from 0 to 2\*\*32 - 1"):
        load_recipe("blend", "digits", **seeds)
