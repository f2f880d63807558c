"""The recipe precomputed on the command line: train, resume, predict and evaluate, and every refusal."""

import csv
import json
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from row_examples import toy_folder
from shell import Beltrami

from beltrami.train import Checkpoints

TRAIN = ("train", "toy", "--recipe", "precomputed", "--set", "times=0,0.5,3", "--set", "train.batch=3")


@pytest.fixture
def toy(beltrami: Beltrami, tmp_path: Path) -> Iterator[Path]:
    """A graph folder, toy, in the current folder."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell in the background ignores
    yield toy_folder(tmp_path / "toy").path
    signal.signal(signal.SIGINT, before)


@pytest.mark.slow
def test_a_folder_is_trained_on_predicted_and_evaluated(beltrami: Beltrami, toy: Path) -> None:
    trained = beltrami(*TRAIN)
    assert trained.code == 0, trained.err
    assert "(validation 100.00%)" in trained.out
    assert "error of the flow    at most" in trained.out
    assert "of the largest value of a feature" in trained.out
    assert "saved in runs/toy-precomputed-0\n" in trained.out
    run = Path("runs/toy-precomputed-0")
    names = ["config.json", "epochs.jsonl", "model.safetensors", "predictions.npy", "probability.npy", "result.json"]
    assert sorted(path.name for path in run.iterdir()) == names
    assert beltrami("predict", str(run), "--out", "p.csv").out == "20 rows written to p.csv\n"
    with Path("p.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["id"]) for row in rows] == list(range(20))
    assert [int(row["prediction"]) for row in rows] == np.load(run / "predictions.npy").tolist()
    assert all(0.5 <= float(row["probability"]) <= 1 for row in rows)
    assert "as recorded" in beltrami("evaluate", str(run)).out


def test_a_limit_of_memory_changes_nothing_but_the_blocks(beltrami: Beltrami, toy: Path) -> None:
    beltrami(*TRAIN, "--set", "train.epochs=2", "--out", "a")
    shutil.rmtree(toy / "diffused")
    limited = beltrami(*TRAIN, "--set", "train.epochs=2", "--out", "b", "--memory", "1MiB")
    assert limited.code == 0, limited.err
    assert Path("a/model.safetensors").read_bytes() == Path("b/model.safetensors").read_bytes()


@pytest.mark.slow
def test_a_second_training_reads_the_diffused_features(
    beltrami: Beltrami, toy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beltrami(*TRAIN, "--out", "a")
    monkeypatch.setattr("beltrami.scale.diffused_rows.diffuse_columns", None)
    assert beltrami(*TRAIN, "--out", "b", "--seed", "1", "--json").code == 0


def test_a_run_that_was_stopped_goes_on_to_the_same_bits(
    beltrami: Beltrami, toy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = beltrami(*TRAIN, "--set", "train.epochs=9", "--out", "whole")
    assert whole.code == 0, whole.err
    after = Checkpoints.after

    def stop(self: Checkpoints, epoch: Any, fitting: Any) -> None:
        if epoch.number == 4:
            signal.raise_signal(signal.SIGINT)
        after(self, epoch, fitting)

    with monkeypatch.context() as patched:
        patched.setattr(Checkpoints, "after", stop)
        stopped = beltrami(*TRAIN, "--set", "train.epochs=9", "--out", "part")
    assert stopped.code == 130
    assert "stopped after epoch 4" in stopped.err
    other = beltrami(*TRAIN, "--set", "train.epochs=8", "--out", "part", "--resume")
    assert "has other settings (train.epochs)" in other.err
    assert beltrami(*TRAIN, "--set", "train.epochs=9", "--out", "part", "--resume").code == 0
    for name in ("model.safetensors", "predictions.npy", "probability.npy"):
        assert Path("part", name).read_bytes() == Path("whole", name).read_bytes()
    assert Path("part/epochs.jsonl").read_text() == Path("whole/epochs.jsonl").read_text()


@pytest.mark.slow
def test_a_dataset_is_trained_on(beltrami: Beltrami) -> None:
    found = beltrami("train", "digits", "--recipe", "precomputed", "--set", "train.epochs=3", "--json")
    assert found.code == 0, found.err
    assert json.loads(found.out)["dataset"] == "digits"
    assert Path("runs/digits-precomputed-0/result.json").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*TRAIN, "--label", "y"), "`--label` does not apply to a graph folder: leave it out."),
        ((*TRAIN, "--split", "digl"), "`--split` does not apply to a graph folder: leave it out."),
        ((*TRAIN, "--check"), "`--check` does not apply to a graph folder: leave it out."),
        (("train", "--recipe", "precomputed", "--compare", "3"), "`--compare` is not for the recipe precomputed"),
        (("train", "--recipe", "precomputed", "--memory", "1GiB"), "`--memory` is for a graph folder with a graph.js"),
        ((*TRAIN, "--set", "scheme.time=3"), "unknown setting 'scheme.time'"),
        ((*TRAIN, "--set", "train.time_grid.kind=grid"), "unknown setting 'train.time_grid.kind'"),
        ((*TRAIN, "--set", "data.path=else"), "`data.path` is no setting: name the graph as an argument."),
        ((*TRAIN, "--set", "times=3,1"), "`times` must be increasing, finite and at least 0; got 3.0, 1.0."),
        ((*TRAIN, "--set", "times=1,soon"), "`times.1` takes float; got 'soon'."),
        ((*TRAIN, "--set", "times=1e9"), "terms for a time of 1e+09, and at most 2000 are allowed"),
        ((*TRAIN, "--set", "rtol=0"), "`rtol` must be positive and finite; got 0.0."),
        ((*TRAIN, "--set", "train.batch=0"), "`train.batch` must be at least 1 and below 2**31; got 0."),
        (("train", "table", "--recipe", "precomputed"), "takes a dataset or a graph folder, with graph.json"),
    ],
)
def test_what_cannot_be_is_refused(beltrami: Beltrami, toy: Path, arguments: tuple[str, ...], message: str) -> None:
    (toy.parent / "table").mkdir()
    (toy.parent / "table" / "nodes.csv").write_text("id,a\n0,1\n")
    refused = beltrami(*arguments)
    assert refused.code == 2
    assert message in refused.err
    assert refused.err.count("\n") == 1
    assert not Path("runs").exists()


def test_other_commands_refuse_such_a_run_in_a_sentence(beltrami: Beltrami, toy: Path) -> None:
    beltrami(*TRAIN, "--set", "train.epochs=1", "--out", "a")
    shown = (("report", "a"), ("watch", "a"), ("explain", "a", "3"), ("compare", "a", "a"))
    for arguments in (*shown, ("train", "cora", "--recipe", "a/config.json")):
        refused = beltrami(*arguments)
        assert refused.code != 0
        assert "belongs to a run of the recipe precomputed, which this command does not support" in refused.err
        assert refused.err.count("\n") == 1
    refused = beltrami("predict", "a", "--out", "p.csv", "--coverage", "0.9")
    assert "`--coverage` is not for a run of the recipe precomputed: leave it out." in refused.err


def test_a_folder_that_has_changed_is_not_evaluated(beltrami: Beltrami, toy: Path) -> None:
    beltrami(*TRAIN, "--set", "train.epochs=1", "--out", "a")
    np.save(toy / "x.npy", 1 + np.load(toy / "x.npy"))
    assert "is not as it was when the run began" in beltrami("evaluate", "a").err
    Path("a/predictions.npy").write_bytes(b"")
    assert "a/predictions.npy has changed since the run was saved" in beltrami("predict", "a", "--out", "p.csv").err
