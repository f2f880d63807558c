"""Every study is a list of runs that can be built, and unknown names are refused."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from beltrami.config import RECIPES, RunConfig, load_recipe, override
from beltrami.config.parser import departures
from beltrami.config.recipe.aids import ALL
from beltrami.errors import DataError, UnknownName
from beltrami.lab.study.planning import FIXED, Method, Sampling, Study, check_setups, missing_cells, plan
from beltrami.lab.study.record import key_of, read_records, setup_of
from beltrami.lab.study.studies import BY_IMPORTANCE, STUDIES
from beltrami.lab.study.work import Outcome

RESULTS = Path(__file__).parents[3] / "results" / "study"


@pytest.mark.slow
@pytest.mark.parametrize("name", STUDIES)
def test_every_study_can_be_planned(name: str) -> None:
    study = STUDIES[name]
    runs = plan(study, splits=None if study.sampling.protocol in FIXED else 2, inits=1)
    assert {run.method for run in runs} == {method.name for method in study.methods}
    assert len({(run.config.dataset, *run.identity) for run in runs}) == len(runs)
    setups = {(*run.group, setup_of(run.config)) for run in runs}
    assert len(setups) == len({run.group for run in runs})
    for run in runs:
        assert run.config.data.protocol == study.sampling_of(run.config.dataset, splits=None, inits=1).protocol
    assert len({method.name for method in study.methods}) == len(study.methods)


@pytest.mark.parametrize("name", STUDIES)
def test_comparisons_and_curves_name_methods_of_their_study(name: str) -> None:
    study = STUDIES[name]
    methods = {method.name for method in study.methods}
    for quantity in study.quantities:
        assert {end for pair in quantity.comparisons for end in (pair.one, pair.other)} <= methods
    assert (study.curve is not None) == any(method.at is not None for method in study.methods)
    assert all((method.at is None) == (method.series is None) for method in study.methods)


def test_all_studies_have_their_importance() -> None:
    assert sorted(study.name for study in BY_IMPORTANCE) == sorted(STUDIES)


def test_default_samplings_are_those_of_the_paper() -> None:
    assert STUDIES["planetoid"].sampling == Sampling("planetoid", 1, 20)
    assert STUDIES["random"].sampling == Sampling("digl", 100, 1)
    for study in (STUDIES["planetoid"], STUDIES["random"]):
        assert study.quantities[0].paper is not None
        assert {method.name for method in study.methods} >= set(study.quantities[0].paper.rows)


def test_more_splits_and_seeds_only_add_runs() -> None:
    few, many = Sampling("digl", 3, 2), Sampling("digl", 5, 4)
    assert set(few.seeds()) < set(many.seeds())
    assert len(set(many.seeds())) == 20
    assert list(Sampling("planetoid", 1, 3).seeds()) == [(0, 0), (0, 1), (0, 2)]
    assert list(Sampling("digl", 3, 1).seeds()) == [(0, 0), (1, 1), (2, 2)]


def test_empty_samplings_and_several_fixed_splits_are_refused() -> None:
    with pytest.raises(ValueError, match=r"`splits` and `inits` of at least 1; got 0, 1"):
        Sampling("digl", 0, 1)
    with pytest.raises(ValueError, match=r"'planetoid' has one split; got `splits` 3: ask for more `inits`"):
        plan(STUDIES["planetoid"], splits=3)


def test_a_dataset_with_a_fixed_split_ignores_the_number_of_splits() -> None:
    study = STUDIES["random"]
    assert study.sampling_of("ogbn-arxiv", splits=7, inits=2) == Sampling("ogb", 1, 2)
    assert study.sampling_of("cora", splits=7, inits=2) == Sampling("digl", 7, 2)


def test_configurations_are_those_of_the_recipe_and_the_method() -> None:
    (run,) = plan(STUDIES["steps"], datasets=["photo"], methods=["euler-0.5"], splits=1, settings=["train.epochs=9"])
    expected = load_recipe("blend", "photo", protocol="digl", seed=0)
    expected = override(expected, ["scheme.kind=constant", "scheme.solver=euler", "scheme.dt=0.5", "train.epochs=9"])
    assert run.config == expected


def test_unknown_names_are_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match=r"method of study 'random' 'blend-nn': did you mean 'blend-knn'\?"):
        plan(STUDIES["random"], methods=["blend-nn"])
    with pytest.raises(UnknownName, match=r"unknown dataset 'coora': did you mean 'cora'\?"):
        plan(STUDIES["random"], datasets=["coora"])
    with pytest.raises(UnknownName, match=r"unknown setting 'train.epoch'"):
        plan(STUDIES["random"], settings=["train.epoch=3"])


def test_datasets_without_settings_are_left_out_unless_asked_for() -> None:
    study = replace(STUDIES["random"], methods=(Method("blend", "blend"),))
    assert "ogbn-arxiv" not in RECIPES["blend"]("cora").dataset
    unknown = not study.methods[0].covers("ogbn-arxiv")
    assert {run.config.dataset for run in plan(study, splits=1)} == set(study.datasets) - (
        {"ogbn-arxiv"} if unknown else set()
    )


def test_a_study_without_any_run_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Method, "covers", lambda self, dataset, protocol=None: False)
    with pytest.raises(ValueError, match=r"study 'random' has no recipe for any of cora"):
        plan(STUDIES["random"], datasets=["cora"])


def test_rows_of_aids_are_those_that_differ_from_others() -> None:
    rows: dict[str, set[str]] = {}
    for run in plan(STUDIES["aids"], splits=1):
        rows.setdefault(run.config.dataset, set()).add(run.method)
    common = {"blend", "blend-plain", "gcn", "gat", "gcn-all-aids", "gat-all-aids"}
    assert rows["cora"] == rows["pubmed"] == rows["photo"] == common
    each = {"consistency", "neighbours"}
    names = {f"blend-no-{name}" for name in each} | {f"{base}-{name}" for base in ("gcn", "gat") for name in each}
    assert rows["computers"] == rows["coauthor-cs"] == common | names
    assert len(rows["citeseer"]) == len(common) + 3 * 4
    with pytest.raises(ValueError, match=r"'gcn-ema' equals another one on 'cora', .* of `blend` are: consistency"):
        plan(STUDIES["aids"], datasets=["cora"], methods=["gcn-ema"])


def test_rows_with_aids_have_the_aids_of_blend_and_share_their_runs_with_study_aids() -> None:
    (aided,) = plan(STUDIES["random"], datasets=["citeseer"], methods=["gcn+aids"], splits=1)
    (whole,) = plan(STUDIES["aids"], datasets=["citeseer"], methods=["gcn-all-aids"], splits=1)
    assert aided.config == whole.config == load_recipe("gcn", "citeseer", seed=0, aids=ALL)
    (without,) = plan(STUDIES["random"], datasets=["citeseer"], methods=["blend"], splits=1, aids=())
    assert without.config == load_recipe("blend", "citeseer", seed=0, aids=())


def test_a_row_may_have_fewer_splits_unless_a_number_is_asked_for() -> None:
    for name, expected in (("gcn", 100), ("paper", 100), ("monet", 50), ("monet+aids", 50)):
        assert len(plan(STUDIES["random"], datasets=["cora"], methods=[name])) == expected
    assert len(plan(STUDIES["random"], datasets=["cora"], methods=["monet"], splits=60)) == 60


def test_seeds_are_no_settings_of_a_study() -> None:
    for setting in ("seed=3", "data.split_seed = 4"):
        with pytest.raises(ValueError, match=r"the seeds of a study are those of its splits"):
            plan(STUDIES["random"], datasets=["cora"], methods=["blend"], settings=[setting])


def test_cells_without_a_run_are_missing() -> None:
    study = replace(STUDIES["aids"], datasets=("cora",))
    runs = plan(study, splits=1)
    missing = missing_cells(study, [run.record(Outcome(None)) for run in runs if run.method != "gat"])
    assert missing == [("gat", "cora")]
    failed = [run.record("failed") for run in runs]
    assert len(missing_cells(study, failed)) == len(runs)


@pytest.mark.skipif(not RESULTS.exists(), reason="the results are in the repository, not in the package")
@pytest.mark.slow
def test_every_run_on_record_is_one_of_its_study() -> None:
    planned = {run.identity for run in plan(STUDIES["planetoid"])}
    assert {record.identity for record in read_records(RESULTS / "planetoid.jsonl")} <= planned


def test_keys_tell_runs_apart_and_setups_tell_settings_apart() -> None:
    config = load_recipe("blend", "cora")
    other = replace(config, seed=1)
    elsewhere = replace(config, data=replace(config.data, split_seed=1))
    faster = override(config, ["train.lr=0.1"])
    assert len({key_of(each) for each in (config, other, elsewhere, faster)}) == 4
    assert setup_of(config) == setup_of(other) == setup_of(elsewhere)
    assert setup_of(config) != setup_of(faster)


def test_departures_are_the_whole_configuration() -> None:
    config = override(load_recipe("blend", "photo", seed=3), ["stencil.remesh=0.5"])
    found = departures(config)
    assert found["seed"] == 3
    assert found["stencil.remesh"] == 0.5
    again = override(
        RunConfig(dataset="photo", recipe="blend", scheme=config.scheme),
        [f"{name}={value}" for name, value in found.items()],
    )
    assert again == config


def test_the_key_of_a_record_can_be_told_from_the_line() -> None:
    (run,) = plan(STUDIES["steps"], datasets=["photo"], methods=["euler-0.5"], splits=1)
    record = run.record("failed")
    text = json.dumps({"dataset": record.dataset, "recipe": "blend", **record.settings}, sort_keys=True)
    assert record.key == hashlib.sha256(text.encode()).hexdigest()[:16] == run.identity[1]


def test_records_say_how_many_configurations_were_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("beltrami.config.recipe.recipes.TRIED", {("blend", "photo"): 40})
    runs = plan(STUDIES["random"], datasets=["photo", "cora"], methods=["blend"], splits=1)
    assert [run.record("failed").tried for run in runs] == [40, None]


def test_runs_of_other_settings_are_not_added_to_a_cell() -> None:
    study: Study = STUDIES["random"]
    runs = plan(study, datasets=["cora"], methods=["blend"], splits=1)
    others = plan(study, datasets=["cora"], methods=["blend"], splits=1, settings=["train.epochs=3"])
    held = [run.record("failed") for run in runs]
    check_setups(runs, held)
    with pytest.raises(DataError, match=r"runs of 'blend' on 'cora' with other settings"):
        check_setups(others, held)
