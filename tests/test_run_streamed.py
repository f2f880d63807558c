"""Runs in blocks on a graph folder: they equal training in memory, stop, go on, are read again, and refuse."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from shell import Beltrami
from toy import two_cliques

from beltrami.config.build import build_model, build_training
from beltrami.config.run_kind import run_kind
from beltrami.config.spec_rows import BlockConfig
from beltrami.data import Dataset
from beltrami.data.graph_folder import TEST, VAL, GraphFolder, write_graph_folder
from beltrami.errors import DataError
from beltrami.graph import Edges
from beltrami.result import RunResult
from beltrami.run_streamed import block_config, evaluate_streamed, read_block_config, run_streamed, streamed_config
from beltrami.train import TrainingState, fit, seeded

EPOCHS = 4
QUICK = ("train", "graph", "--set", f"train.epochs={EPOCHS}", "--set", "model.feat=8", "--set", "scheme.time=2")


@pytest.fixture
def folder(tmp_path: Path) -> GraphFolder:
    toy = two_cliques()
    return write_graph_folder(tmp_path / "graph", Dataset("toy", toy.x, toy.edge_index, toy.y), toy.split)


def losses(path: Path) -> list[float]:
    return [json.loads(line)["loss"] for line in path.read_text().splitlines()]


def config_of(folder: GraphFolder) -> BlockConfig:
    return block_config(GraphFolder.open(folder.path), streamed_config(folder.path, settings=QUICK[3::2]))


def test_a_saved_run_is_read_and_evaluated_again(folder: GraphFolder, tmp_path: Path) -> None:
    config, run = config_of(folder), tmp_path / "run"
    result = run_streamed(config, run, memory=2**20)
    assert run_kind(run / "config.json") == "blocks"
    assert read_block_config(run / "config.json") == config
    assert RunResult.read(run / "result.json") == result
    assert evaluate_streamed(run) == (result, result.val_accuracy, result.test_accuracy)
    found, probability = np.load(run / "predictions.npy"), np.load(run / "probability.npy")
    y, role = two_cliques().y.numpy(), np.array(folder.role)
    for number, accuracy in ((VAL, result.val_accuracy), (TEST, result.test_accuracy)):
        assert accuracy == pytest.approx(100 * np.mean(found[role == number] == y[role == number]))
    assert bool(np.all((probability >= 0.5) & (probability <= 1)))


def test_a_graph_that_has_changed_or_moved_is_not_evaluated(folder: GraphFolder, tmp_path: Path) -> None:
    run, moved = tmp_path / "run", tmp_path / "moved"
    run_streamed(config_of(folder), run)
    np.save(folder.path / "pos.npy", np.zeros((20, 2), dtype=np.float32))
    with pytest.raises(DataError, match="is not as it was when the run began: restore its files, or train again"):
        evaluate_streamed(run)
    (folder.path / "pos.npy").unlink()
    folder.path.rename(moved)
    with pytest.raises(DataError, match=r"is not at .*graph: move it back, or put a link to it there"):
        evaluate_streamed(run)
    folder.path.symlink_to(moved)
    assert evaluate_streamed(run)[0].dataset == "graph"


def test_a_run_is_evaluated_and_predicted_by_the_command_line(folder: GraphFolder, beltrami: Beltrami) -> None:
    assert beltrami(*QUICK, "--memory", "1MiB").code == 0
    run = "runs/graph-blend-0"
    assert "as recorded" in beltrami("evaluate", run).out
    assert beltrami("predict", run, "--out", "p.csv").out == "20 rows written to p.csv\n"
    with Path("p.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["id"]) for row in rows] == list(range(20))
    assert [int(row["prediction"]) for row in rows] == np.load(f"{run}/predictions.npy").tolist()
    assert all(0.5 <= float(row["probability"]) <= 1 for row in rows)
    refused = beltrami("predict", run, "--out", "p.csv", "--coverage", "0.9")
    assert "`--coverage` is not for a run in blocks on a graph folder: leave it out." in refused.err
    for arguments in (("report", run), ("watch", run), ("explain", run, "3"), ("compare", run, run)):
        refused = beltrami(*arguments)
        assert refused.code == 1
        assert "belongs to a run in blocks on a graph folder, which this command does not support" in refused.err
        assert refused.err.count("\n") == 1


@pytest.mark.slow
def test_a_run_has_the_losses_of_training_in_memory(folder: GraphFolder, beltrami: Beltrami) -> None:
    done = beltrami(*QUICK, "--memory", "64MiB", "--out", "run")
    assert done.code == 0, done.err
    assert "test accuracy" in done.out
    toy, config = two_cliques(), streamed_config(Path("graph"), settings=QUICK[3::2])
    with seeded(0):
        model = build_model(config, features=6, positions=0, num_classes=2)
    inputs = model.prepare(toy.x, Edges.build(toy.edge_index, num_nodes=20))
    expected: list[float] = []
    with seeded(0):
        found = fit(
            model,
            inputs,
            toy.y,
            toy.split,
            build_training(config.train),
            callbacks=[lambda e: expected.append(e.losses[0])],
        )
    assert losses(Path("run/epochs.jsonl")) == pytest.approx(expected, rel=1e-5)
    result = json.loads(Path("run/result.json").read_text())
    assert result["best_epoch"] == found.best_epoch
    predictions = np.load("run/predictions.npy")
    right = predictions[toy.split.test.numpy()] == toy.y[toy.split.test].numpy()
    assert result["test_accuracy"] == pytest.approx(100 * right.mean())
    assert result["graph"] == f"{inputs.graph % 2**64:016x}"


@pytest.mark.slow
def test_a_run_that_was_stopped_goes_on_to_the_same_bits(
    folder: GraphFolder, beltrami: Beltrami, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert beltrami(*QUICK, "--memory", "1MiB", "--out", "a").code == 0
    stops = iter([False, True])

    def after(self: Any, epoch: Any, fitting: Any) -> None:
        state: TrainingState = fitting.checkpoint()
        state.values["about"] = dict(self.about)
        state.write(Path(self.path))
        if next(stops, False):
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("beltrami.train.checkpoint.Checkpoints.after", after)
        assert beltrami(*QUICK, "--memory", "1MiB", "--out", "b").code == 130
    assert not Path("b/result.json").exists()
    x = np.load("graph/x.npy")
    np.save("graph/x.npy", 1 + x)
    refused = beltrami(*QUICK, "--memory", "1MiB", "--out", "b", "--resume")
    assert "the unfinished run in b has other settings (graph.digest)" in refused.err
    np.save("graph/x.npy", x)
    assert beltrami(*QUICK, "--memory", "1MiB", "--out", "b", "--resume").code == 0
    assert losses(Path("b/epochs.jsonl")) == losses(Path("a/epochs.jsonl"))
    assert Path("b/model.safetensors").read_bytes() == Path("a/model.safetensors").read_bytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--memory", "3KiB"), "one column of 20 nodes needs about"),
        (("--memory", "much"), "`--memory` takes a size such as 8GiB"),
        (("--recipe", "gcn"), "unknown recipe for a graph folder 'gcn'"),
        (("--label", "class"), "`--label` does not apply to a graph folder"),
        (("--compare", "2"), "`--compare` does not apply to a graph folder"),
        (("--set", "train.self_training=5"), "training in blocks has none of `train.consistency`"),
        (("--set", "position.kind=ppr"), "the positions of a graph folder are in its pos.npy"),
        (("--set", "model.batch_norm=true"), "needs no batch norm"),
        (("--set", "model.kind=gcn"), "here `model.kind=gcn`"),
    ],
)
def test_what_cannot_be_done_in_blocks_is_refused(
    options: tuple[str, ...], message: str, folder: GraphFolder, beltrami: Beltrami
) -> None:
    refused = beltrami("train", "graph", *options, "--out", "run")
    assert refused.code in (1, 2)
    assert message in refused.err
    assert len(refused.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("index", lambda old: np.where(np.arange(len(old)) == 5, 99, old), "edge 5 comes from node 99"),
        ("y", lambda old: np.where(np.arange(len(old)) == 0, -1, old), "node 0 of graph has a role and no class"),
        ("y", lambda old: old + 1, "class 0 of graph has no training nodes: number the classes from 0"),
        ("y", lambda old: np.where(np.arange(len(old)) == 0, 10**12, old), "of graph has no training nodes"),
        ("role", lambda old: np.where(old == 1, 0, old), "graph has no training nodes: give some nodes the role 1"),
        ("role", lambda old: np.full_like(old, 9), "role of graph: node 0 has 9; roles run from 0 to 3"),
        ("x", lambda old: old[:3], "by graph.json it must hold numbers, (20, any)"),
        ("x", lambda old: np.where(np.arange(20)[:, None] == 4, np.nan, old), "x of graph: node 4 has a value that is"),
        ("x", None, "graph has no features: write them as x.npy"),
        ("role", None, "graph has no role.npy, which training needs: add this file"),
        ("ptr", None, "graph has no ptr.npy"),
    ],
)
def test_damaged_folders_are_refused(
    name: str, values: Any, message: str, folder: GraphFolder, beltrami: Beltrami
) -> None:
    path, array = Path(f"graph/{name}.npy"), np.array(getattr(folder, name))
    path.unlink()
    if values is not None:
        np.save(path, values(array).astype(array.dtype))
    refused = beltrami("train", "graph", "--out", "run", "--set", "model.feat=8")
    assert refused.code in (1, 2)
    assert message in refused.err
    assert not Path("run/result.json").exists()


def test_memory_needs_a_graph_folder(beltrami: Beltrami) -> None:
    assert "`--memory` is for a graph folder with a graph.json" in beltrami("train", "digits", "--memory", "1GiB").err


def test_settings_of_a_folder_name_it(folder: GraphFolder) -> None:
    config = streamed_config(folder.path, recipe="uniform", seed=3)
    assert (config.dataset, config.recipe, config.seed, config.diffusivity.kind) == ("graph", "uniform", 3, "uniform")
    assert torch.get_default_dtype() == torch.float32
