"""The command line: exit codes 0, 1 and 2, and one line for whatever goes wrong."""

import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from shell import Beltrami, Outcome

from beltrami import __version__
from beltrami.cli import main
from beltrami.config import RECIPES, RunConfig, load_recipe, override
from beltrami.config.recipe.aids import aids_of
from beltrami.data import CATALOGUE
from beltrami.model.zoo import TABLE

REQUIRED = {
    "dataset",
    "recipe",
    "seed",
    "split",
    "val_accuracy",
    "test_accuracy",
    "best_time",
    "epochs",
    "train_seconds",
    "evaluations",
    "parameters",
    "attention_spread",
    "versions",
}


def check_refused(outcome: Outcome, *, code: int, match: str) -> None:
    """One line on the error stream, none on the other."""
    assert (outcome.code, outcome.out) == (code, "")
    assert "Traceback" not in outcome.err
    assert outcome.err.startswith("beltrami: ")
    assert outcome.err.count("\n") == 1
    assert re.search(match, outcome.err), outcome.err


def test_help_names_the_verbs(beltrami: Beltrami) -> None:
    outcome = beltrami("--help")
    assert outcome.code == 0
    for verb in ("train", "evaluate", "datasets", "encode", "rewire"):
        assert re.search(rf"^\W*{verb}\b", outcome.out, flags=re.MULTILINE)


def test_version_is_printed(beltrami: Beltrami) -> None:
    assert beltrami("--version").out == f"beltrami {__version__}\n"


def test_several_settings_that_do_not_apply_end_with_one_line(beltrami: Beltrami) -> None:
    settings = ["stencil.radius=3", "baseline.kernels=9", "position.walk_length=7"]
    outcome = beltrami("train", "digits", *(word for setting in settings for word in ("--set", setting)))
    check_refused(outcome, code=2, match=r"`stencil.radius` is a setting of `stencil.kind=radius`")


@pytest.mark.slow
def test_train_checks_settings_and_loads_files_and_builds_the_model_once(
    beltrami: Beltrami, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def counted(name: str, *, of: str) -> None:
        function = getattr(sys.modules[of], name)

        def call(*arguments: Any, **named: Any) -> Any:
            calls.append(name)
            return function(*arguments, **named)

        monkeypatch.setattr(f"{of}.{name}", call)

    counted("build_classifier", of="beltrami.run")
    counted("resolve_files", of="beltrami.run")
    counted("check_settings", of="beltrami.run")
    counted("check_settings", of="beltrami.config")
    outcome = beltrami("train", "digits", "--recipe", "gcn", "--set", "train.epochs=1")
    assert (outcome.code, outcome.err) == (0, "")
    assert sorted(calls) == ["build_classifier", "check_settings", "resolve_files"]


@pytest.mark.slow
def test_every_epoch_is_passed_to_the_logs(beltrami: Beltrami, tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    lines, events = tmp_path / "epochs.jsonl", tmp_path / "events"
    logs = ["--log", str(lines), "--log", str(events)]
    assert beltrami("train", "digits", "--recipe", "gcn", "--set", "train.epochs=2", *logs).code == 0
    assert [json.loads(line)["epoch"] for line in lines.read_text().splitlines()] == [1, 2]
    assert any(path.stat().st_size > 0 for path in events.rglob("*tfevents*"))


def test_no_arguments_are_answered_with_help(beltrami: Beltrami) -> None:
    outcome = beltrami()
    assert "Usage: beltrami" in outcome.out + outcome.err


@pytest.mark.parametrize(
    ("verb", "words"),
    [
        (
            "train",
            [
                "--recipe",
                "--split",
                "--split-seed",
                "--seed",
                "--set",
                "--log",
                "--out",
                "--device",
                "--compare",
                "cora",
            ],
        ),
        ("evaluate", ["DIR", "--device"]),
        ("datasets", ["List the datasets"]),
        ("encode", ["--encoding", "--out", "--component", "--seed", "--set", "--device", "position.path=FILE"]),
        ("rewire", ["--stencil", "--out", "--positions", "--component", "--set", "--device", "stencil.path=FILE"]),
    ],
)
def test_help_of_a_verb_names_its_options(beltrami: Beltrami, verb: str, words: list[str]) -> None:
    outcome = beltrami(verb, "--help")
    assert outcome.code == 0
    for word in words:
        assert word in outcome.out


def test_aids_are_those_of_the_configuration_that_is_trained(
    beltrami: Beltrami, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[RunConfig] = []
    monkeypatch.setattr("beltrami.cli.commands.train_recipe", lambda config, *_, **__: seen.append(config))
    for given in (["citeseer"], ["citeseer", "--aids", "none"], ["citeseer", "--recipe", "gcn", "--aids", "same"]):
        assert beltrami("train", *given).code == 0
    assert [aids_of(config) for config in seen[:2]] == [["consistency", "self-training", "ema", "similarity"], []]
    assert aids_of(seen[2]) == aids_of(seen[0])
    assert seen[2].train.consistency == seen[0].train.consistency
    assert beltrami("train", "cora", "--aids", "none", "--set", "train.ema=0.5").code == 0
    assert aids_of(seen[3]) == ["ema"]  # settings come after the aids


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (["digts"], r"unknown dataset 'digts': did you mean 'digits'\?"),
        (["digits", "--recipe", "blnd"], r"unknown recipe 'blnd': did you mean 'blend'\?"),
        (["digits", "--split", "shchr"], r"unknown protocol 'shchr': did you mean 'shchur'\?"),
        (["digits", "--split", "planetoid"], r"the dataset 'digits' has no published split: use the protocol"),
        (["digits", "--set", "train.epoch=2"], r"unknown setting 'train.epoch': did you mean 'train.epochs'\?"),
        (["digits", "--set", "train.epochs=two"], r"`train.epochs` takes int; got 'two'"),
        (["digits", "--set", "train.epochs"], r"`--set` takes name=value"),
        (["digits", "--set", "scheme.kind=constants"], r"unknown scheme.kind 'constants': did you mean 'constant'\?"),
        (["digits", "--set", "stencil.radius=3"], r"`stencil.radius` is a setting of `stencil.kind=radius`, and here"),
        (["digits", "--set", "position.walk_length=7"], r"is a setting of `position.kind=deepwalk`, and here"),
        (
            ["digits", "--set", "baseline.kernels=9"],
            r"'baseline.kernels': it is called 'model.kernels' now",
        ),
        (["digits", "--set", "flow.kind=live"], r"`scheme.kind=exponential` solves frozen flows without costs"),
        (["digits", "--set", "scheme.time=-1"], r"`scheme.time` must be at least 0 and finite; got -1.0"),
        (["digits", "--set", "data.component=some"], r"unknown data.component 'some'"),
        (["digits", "--set", "stencil.kind=knm"], r"unknown stencil.kind 'knm': did you mean 'knn'\?"),
        (["digits", "--set", "stencil.kind=knn", "--set", "stencil.on=u"], r"`stencil.on=u` looks at positions"),
        (["digits", "--set", "stencil.strongest=2"], r"`stencil.strongest` must be above 0 and at most 1; got 2.0"),
        (["digits", "--device", "tpu"], r"`--device` takes cpu, cuda or cuda:N; got 'tpu'"),
        (["digits", "--device", "cuda:x"], r"`--device` takes cpu, cuda or cuda:N; got 'cuda:x'"),
        (["digits", "--seed", "-1"], r"`--seed` must be from 0"),
        (["digits", "--aids", "all"], r"unknown training aid 'all'.* Known: .*none.*same"),
        (["digits", "--recipe", "auto", "--aids", "none"], r"`--aids`"),
        (["digits", "--recipe", "paper"], r"unknown dataset for recipe 'paper' 'digits'"),
        (["ogbn-arxiv", "--recipe", "gcn"], r"unknown dataset for recipe 'gcn' 'ogbn-arxiv'"),
    ],
)
def test_bad_usage_of_train_is_one_line_and_exit_code_2(beltrami: Beltrami, arguments: list[str], match: str) -> None:
    check_refused(beltrami("train", *arguments), code=2, match=match)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (["encode", "digts", "--encoding", "ppr"], r"unknown dataset 'digts': did you mean 'digits'\?"),
        (["encode", "digits", "--encoding", "pp"], r"unknown encoding 'pp': did you mean 'ppr'\?"),
        (["encode", "digits", "--encoding", "ppr", "--component", "al"], r"unknown component 'al'"),
        (["encode", "digits", "--encoding", "ppr", "--set", "position.top=0"], r"`position.top` must be at least 1"),
        (
            ["encode", "digits", "--encoding", "ppr", "--set", "train.lr=1"],
            r"`train.lr` is not a setting of",
        ),
        (["encode", "digits", "--encoding", "ppr", "--device", "tpu"], r"`--device` takes cpu"),
        (["rewire", "digits", "--stencil", "nkk"], r"unknown stencil 'nkk'"),
        (["rewire", "digits", "--stencil", "knn", "--set", "stencil.k=0"], r"`stencil.k` must be at least 1"),
        (
            ["rewire", "digits", "--stencil", "knn", "--set", "stencil.k=2000"],
            r"`stencil.k` must be at most 1796 on",
        ),
        (
            ["rewire", "digits", "--stencil", "digl", "--positions", "u"],
            r"`--positions` is for knn and radius",
        ),
    ],
)
def test_bad_usage_of_encode_and_rewire_is_one_line_and_exit_code_2(
    beltrami: Beltrami, tmp_path: Path, arguments: list[str], match: str
) -> None:
    check_refused(beltrami(*arguments, "--out", "file"), code=2, match=match)
    assert os.listdir(tmp_path) == []


def test_files_that_cannot_be_read_or_written_are_one_line_and_exit_code_1(beltrami: Beltrami, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    encode, rewire = ["encode", "digits", "--encoding", "ppr"], ["rewire", "digits", "--stencil", "knn"]
    outcome = beltrami(*encode, "--out", "folder")
    check_refused(outcome, code=1, match=r"folder is a folder: name a file in it with `--out`")
    (tmp_path / "file").write_text("in the way")
    outcome = beltrami(*rewire, "--out", "file/below")
    check_refused(outcome, code=1, match=r"cannot make file .*: choose another folder with `--out`")
    outcome = beltrami(*rewire, "--positions", "file", "--out", "mesh")
    check_refused(outcome, code=1, match=r"file is not a positions file, or it is damaged: `beltrami encode` writes")
    outcome = beltrami("train", "digits", "--set", "position.kind=file", "--set", "position.path=nowhere")
    check_refused(outcome, code=1, match=r"there is no positions file at .*nowhere: `beltrami encode` writes one")


@pytest.mark.slow
def test_run_on_encoded_positions_and_a_rewired_graph(beltrami: Beltrami, tmp_path: Path) -> None:
    encode = ["encode", "digits", "--encoding", "walk", "--set", "position.channels=5", "--out", "made/u"]
    first, again = beltrami(*encode), beltrami(*encode)
    assert (first.code, first.err) == (again.code, again.err) == (0, "")
    assert "1,797 x 5, dense" in first.out
    assert "computed" in first.out
    assert "from the cache" in again.out
    rewired = beltrami("rewire", "digits", "--stencil", "digl", "--set", "stencil.k=16", "--out", "made/mesh")
    assert (rewired.code, rewired.err) == (0, "")
    for line in (
        r"directed edges +19,858 +26,955",
        r"self-loops +0 +1,797",
        r"components +1 +\d+",
        r"of the old edges",
    ):
        assert re.search(line, rewired.out), rewired.out
    looked = beltrami("rewire", "digits", "--stencil", "knn", "--positions", "made/u", "--out", "made/near")
    assert (looked.code, looked.err) == (0, "")
    files = ["position.kind=file", "position.path=made/u", "stencil.kind=file", "stencil.path=made/mesh"]
    files = [word for setting in files for word in ("--set", setting)]
    trained = beltrami("train", "digits", *files, "--set", "train.epochs=2", "--out", "here")
    assert (trained.code, trained.err) == (0, "")
    evaluated = beltrami("evaluate", "here")
    assert (evaluated.code, evaluated.out.splitlines()[-1]) == (0, "as recorded")
    (tmp_path / "made" / "mesh").write_bytes((tmp_path / "made" / "near").read_bytes())
    check_refused(beltrami("evaluate", "here"), code=1, match=r"the stencil file .*mesh has changed since")
    (tmp_path / "made" / "u").unlink()
    check_refused(beltrami("evaluate", "here"), code=1, match=r"the positions file .*u, which .* is gone")


@pytest.mark.parametrize("cuda", ["cuda", "cuda:1"])
def test_missing_gpu_is_bad_usage(beltrami: Beltrami, monkeypatch: pytest.MonkeyPatch, cuda: str) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    check_refused(beltrami("train", "digits", "--device", cuda), code=2, match=rf"`--device {cuda}` needs a CUDA")


def test_gpu_beyond_the_last_is_bad_usage(beltrami: Beltrami, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    outcome = beltrami("train", "digits", "--device", "cuda:1")
    check_refused(outcome, code=2, match=r"`--device cuda:1`: there are 1 CUDA devices, counted from 0")


@pytest.mark.parametrize("arguments", [["nonsense"], ["train", "--nonsense"], ["train", "--seed", "x"], ["evaluate"]])
def test_usage_that_cannot_be_parsed_is_exit_code_2(beltrami: Beltrami, arguments: list[str]) -> None:
    outcome = beltrami(*arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert "Usage: beltrami" in outcome.err
    assert "Traceback" not in outcome.err


def test_datasets_lists_every_name(beltrami: Beltrami) -> None:
    outcome = beltrami("datasets")
    assert (outcome.code, outcome.err) == (0, "")
    listed = [line.split()[0] for line in outcome.out.splitlines()]
    assert set(CATALOGUE) <= set(listed)


def test_zoo_prints_every_row_of_table_1_and_how_to_train_it(beltrami: Beltrami) -> None:
    outcome = beltrami("zoo")
    assert (outcome.code, outcome.err) == (0, "")
    recipes = [line.split()[-1] for line in outcome.out.splitlines()]
    for row in TABLE:
        assert row.method in outcome.out
        assert row.diffusivity in outcome.out
        assert row.recipe in recipes
        assert row.recipe in RECIPES


@pytest.mark.slow
def test_trained_run_leaves_its_files_and_evaluates_to_the_same_accuracy(beltrami: Beltrami, tmp_path: Path) -> None:
    trained = beltrami("train", "digits", "--set", "train.epochs=2", "--seed", "3", "--out", "here")
    assert (trained.code, trained.err) == (0, "")
    assert sorted(os.listdir(tmp_path / "here")) == ["config.json", "epochs.jsonl", "model.safetensors", "result.json"]
    result = json.loads((tmp_path / "here" / "result.json").read_text())
    assert result.keys() >= REQUIRED
    assert (result["dataset"], result["recipe"], result["seed"], result["epochs"]) == ("digits", "blend", 3, 2)
    assert result["split"].keys() >= {"protocol", "seed", "hash"}
    assert result["split"]["seed"] == 3
    accuracies = f"test accuracy {result['test_accuracy']:.2f}%  (validation {result['val_accuracy']:.2f}%)"
    assert trained.out.startswith(accuracies)
    evaluated = beltrami("evaluate", "here")
    assert (evaluated.code, evaluated.err) == (0, "")
    assert evaluated.out.splitlines() == [accuracies, "as recorded"]


@pytest.mark.slow
def test_baseline_is_trained_and_evaluated_as_any_other_model(beltrami: Beltrami) -> None:
    trained = beltrami("train", "digits", "--recipe", "gcn", "--set", "train.epochs=2", "--out", "here")
    assert (trained.code, trained.err) == (0, "")
    assert re.search(r"terminal time +none, at epoch \d of 2", trained.out), trained.out
    evaluated = beltrami("evaluate", "here")
    assert (evaluated.code, evaluated.out.splitlines()[-1]) == (0, "as recorded")


@pytest.mark.slow
def test_run_without_out_goes_to_a_folder_of_its_own_and_may_be_compared(beltrami: Beltrami, tmp_path: Path) -> None:
    settings = ["--set", "train.epochs=1", "--set", "train.time_grid.kind=terminal"]
    outcome = beltrami("train", "--recipe", "uniform", "--split-seed", "5", "--compare", "2", *settings)
    assert outcome.code == 0
    result = json.loads((tmp_path / "runs" / "digits-uniform-0" / "result.json").read_text())
    assert (result["seed"], result["split"]["seed"], result["attention_spread"]) == (0, 5, 0.0)
    means = re.findall(r"^\d+\.\d\d%  (.*), mean over 2 splits$", outcome.out, flags=re.MULTILINE)
    assert means == ["uniform", *(f"LabelSpreading (scikit-learn, {kernel} kernel)" for kernel in ("rbf", "knn"))]


def test_folder_that_cannot_be_made_is_refused_before_training(
    beltrami: Beltrami, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_late(*arguments: object, **named: object) -> None:
        raise AssertionError("the data were loaded first")

    monkeypatch.setattr("beltrami.run.load_problem", too_late)
    (tmp_path / "file").write_text("in the way")
    for folder in ("file", "file/below"):
        outcome = beltrami("train", "digits", "--out", folder)
        check_refused(outcome, code=1, match=rf"cannot make {folder} \(.*\): choose another folder with `--out`")


def test_folder_that_cannot_be_written_is_refused_before_training(
    beltrami: Beltrami, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write anywhere, so a mode would not do
    outcome = beltrami("train", "digits", "--out", "here")
    check_refused(outcome, code=1, match=r"cannot write to here: choose another folder with `--out`")


def test_missing_run_is_one_line_and_exit_code_1(beltrami: Beltrami) -> None:
    check_refused(beltrami("evaluate", "nowhere"), code=1, match=r"there is no result file at nowhere.result\.json")


@pytest.mark.parametrize("content", ["", "{", "[]", '{"test_accuracy": 99}'])
def test_corrupt_run_is_one_line_and_exit_code_1(beltrami: Beltrami, tmp_path: Path, content: str) -> None:
    (tmp_path / "result.json").write_text(content)
    check_refused(beltrami("evaluate", "."), code=1, match=r"the result file result\.json cannot be read")


def test_missing_data_without_a_network_is_one_line_and_exit_code_1(
    beltrami: Beltrami, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_network(*arguments: object, **named: object) -> None:
        raise urllib.error.URLError("no network here")

    (tmp_path / "data").mkdir()
    monkeypatch.setenv("BELTRAMI_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("BELTRAMI_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(urllib.request, "urlopen", no_network)
    outcome = beltrami("train", "cora")
    check_refused(outcome, code=1, match=r"could not be downloaded .*no network here.* add to BELTRAMI_DATA=")


def test_wrong_data_folder_is_one_line_and_exit_code_1(
    beltrami: Beltrami, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BELTRAMI_DATA", str(tmp_path / "nowhere"))
    monkeypatch.setenv("BELTRAMI_CACHE", str(tmp_path / "cache"))
    check_refused(beltrami("train", "cora"), code=1, match=r"BELTRAMI_DATA names .*nowhere, which is not a folder")


def test_diverging_flow_is_a_failure(beltrami: Beltrami) -> None:
    settings = ["train.lr=1e20", "train.epochs=2", "scheme.kind=constant", "scheme.solver=rk4", "scheme.dt=1"]
    arguments = [word for setting in settings for word in ("--set", setting)]
    check_refused(beltrami("train", "digits", *arguments), code=1, match=r"not finite|became (nan|inf|NaN)")


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (ZeroDivisionError("one\ntwo"), r"ZeroDivisionError: one \(BELTRAMI_TRACEBACK=1 shows where\)"),
        (OSError("disk\nfull"), r"disk full"),
    ],
    ids=["bug", "disk"],
)
def test_any_other_failure_is_one_line_and_exit_code_1(
    beltrami: Beltrami, monkeypatch: pytest.MonkeyPatch, failure: BaseException, message: str
) -> None:
    def fail(*arguments: object, **named: object) -> None:
        raise failure

    monkeypatch.setattr("beltrami.run.evaluate_run", fail)
    check_refused(beltrami("evaluate", "here"), code=1, match=message)


def test_interrupt_ends_quietly_with_the_code_of_shells(beltrami: Beltrami, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*arguments: object, **named: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("beltrami.run.evaluate_run", interrupt)
    outcome = beltrami("evaluate", "here")
    assert (outcome.code, outcome.out) == (130, "")
    assert "Traceback" not in outcome.err


def test_traceback_is_shown_to_who_asks(beltrami: Beltrami, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BELTRAMI_TRACEBACK", "1")
    monkeypatch.setattr(sys, "argv", ["beltrami", "evaluate", str(tmp_path)])
    with pytest.raises(RuntimeError, match="no result file"):
        main()


@pytest.mark.slow
def test_module_runs_as_the_command_does(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "beltrami", "evaluate", "nowhere"]
    outcome = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    check_refused(Outcome(outcome.returncode, outcome.stdout, outcome.stderr), code=1, match="no result file")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "digits", "--out", ""], "`--out` is empty: give a value, or leave it out"),
        (["train", "digits", "--out="], "`--out` is empty"),
        (["train", "digits", "--log", " "], "`--log` is empty"),
        (["train", "--nodes", "", "--edges", "e.csv"], "`--nodes` is empty"),
        (["train", ""], "an argument is empty"),
        (["encode", "digits", "--encoding", "ppr", "--out", ""], "`--out` is empty"),
        (["denoise", "in.png", ""], "an argument is empty"),
        (["study", "random", "--datasets", ""], "`--datasets` is empty"),
        (["study", "random", "--datasets", ","], "`--datasets ,` names nothing: give names, or leave it out for all"),
        (["train", "digits", "--seed", "-1"], r"`--seed` must be from 0 to 2\*\*32 - 1; got -1"),
        (["train", "digits", "--split-seed", "-1"], r"`--split-seed` must be from 0"),
        (["encode", "digits", "--encoding", "deepwalk", "--seed", "-3", "--out", "u"], "`--seed` must be from 0"),
        (["tune", "digits", "--trials", "1", "--seed", "-3"], "`--seed` must be from 0"),
        (["train", "digits", "--set", "dataset=cora"], "`dataset` is no setting"),
        (["train", "digits", "--set", "recipe=x"], "`recipe` is no setting"),
        (["train", "digits", "--set", "tried=-4"], "`tried` is no setting"),
        (["train", "digits", "--set", "seed=-1"], "`seed` must be from 0"),
        (["train", "digits", "--set", "train.validate_every=0"], "`train.validate_every` must be at least 1"),
        (["train", "digits", "--set", "scheme.time=-1"], "`scheme.time` must be at least 0 and finite"),
    ],
)
def test_empty_arguments_bad_seeds_and_what_is_no_setting_are_refused(
    beltrami: Beltrami, tmp_path: Path, arguments: list[str], message: str
) -> None:
    check_refused(beltrami(*arguments), code=2, match=message)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_recipe_file_trains_with_its_own_seed_and_writes_nowhere_else(beltrami: Beltrami, tmp_path: Path) -> None:
    config = replace(load_recipe("blend", "digits", seed=3), recipe="mine")
    (tmp_path / "mine.json").write_text(override(config, ["train.epochs=1"]).to_json())
    assert beltrami("train", "digits", "--recipe", "mine.json", "--out", "first").code == 0
    assert json.loads((tmp_path / "first" / "result.json").read_text())["seed"] == 3
    assert beltrami("train", "digits", "--recipe", "mine.json", "--seed", "4", "--out", "second").code == 0
    assert json.loads((tmp_path / "second" / "result.json").read_text())["seed"] == 4
    (tmp_path / "evil.json").write_text(replace(config, recipe="../../../ESCAPE").to_json())
    check_refused(beltrami("train", "digits", "--recipe", "evil.json"), code=1, match="`recipe` must be at most 100")
    assert not (tmp_path / "runs").exists()
