"""Runs on rows: results, predictions of all nodes, bounded memory, and every refusal of a graph folder."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from row_examples import TIMES, ring_folder, toy_folder
from toy import two_cliques

from beltrami.config.graph_source import folder_spec
from beltrami.config.recipe.precomputed import dataset_spec, precomputed
from beltrami.config.run_kind import run_kind
from beltrami.config.spec_rows import RowConfig
from beltrami.data import Dataset
from beltrami.data.graph_folder import TEST, VAL, GraphFolder
from beltrami.errors import DataError
from beltrami.graph import Edges
from beltrami.node_predictions import PREDICTIONS, PROBABILITY
from beltrami.result import RunResult
from beltrami.rows.row_problem import dataset_folder, load_row_problem
from beltrami.rows.row_run import evaluate_rows, read_row_config, run_rows

QUICK = ("train.epochs=4", "train.batch=3", f"times={','.join(map(str, TIMES))}")


def config_of(folder: Path, *settings: str) -> RowConfig:
    return precomputed(folder_spec(GraphFolder.open(folder)), settings=[*QUICK, *settings])


def test_accuracies_are_those_of_the_saved_predictions(tmp_path: Path) -> None:
    graph, run = toy_folder(tmp_path / "toy"), tmp_path / "run"
    result = run_rows(config_of(graph.path), run)
    found, probability = np.load(run / PREDICTIONS), np.load(run / PROBABILITY)
    y, role = two_cliques().y.numpy(), np.array(graph.role)
    for number, accuracy in ((VAL, result.val_accuracy), (TEST, result.test_accuracy)):
        assert accuracy == pytest.approx(100 * np.mean(found[role == number] == y[role == number]))
    assert result.per_class_accuracy == [100 * np.mean(found[(role == TEST) & (y == c)] == c) for c in range(2)]
    assert bool(np.all((probability >= 0.5) & (probability <= 1)))
    assert result.diffused is not None
    assert result.diffused["times"] == list(TIMES)
    assert 0 < result.diffused["error_bound"] <= 1e-5
    assert sum(result.diffused["shares"]) == pytest.approx(1)


def test_a_saved_run_is_read_and_evaluated_again(tmp_path: Path) -> None:
    graph, run = toy_folder(tmp_path / "toy"), tmp_path / "run"
    config = config_of(graph.path)
    result = run_rows(config, run)
    assert run_kind(run / "config.json") == "rows"
    assert read_row_config(run / "config.json") == config
    assert RunResult.read(run / "result.json") == result
    assert evaluate_rows(run) == (result, result.val_accuracy, result.test_accuracy)


def test_the_same_seed_gives_the_same_files_and_another_seed_others(tmp_path: Path) -> None:
    graph = toy_folder(tmp_path / "toy")
    runs = [tmp_path / name for name in ("a", "b", "c")]
    for run, seed in zip(runs, (0, 0, 1), strict=True):
        run_rows(precomputed(folder_spec(graph), seed=seed, settings=QUICK), run)
    first, second, third = ((run / "model.safetensors").read_bytes() for run in runs)
    assert first == second
    assert first != third


def test_test_classes_are_not_read_before_the_training_has_ended(tmp_path: Path) -> None:
    graph = toy_folder(tmp_path / "toy")
    right = run_rows(config_of(graph.path), tmp_path / "a")
    y = np.array(graph.y)
    y[np.array(graph.role) == TEST] = 7  # a class that no training node has
    np.save(graph.path / "y.npy", y)
    wrong = run_rows(config_of(graph.path), tmp_path / "b")
    assert (tmp_path / "a" / "model.safetensors").read_bytes() == (tmp_path / "b" / "model.safetensors").read_bytes()
    assert right.val_accuracy == wrong.val_accuracy
    assert (wrong.test_accuracy, wrong.per_class_accuracy) == (0.0, [None, None])


def test_a_dataset_is_written_once_and_keeps_its_edges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BELTRAMI_CACHE", str(tmp_path))
    toy = two_cliques()
    dataset = Dataset("toy", toy.x, toy.edge_index, toy.y)
    folder = dataset_folder(dataset)
    written = (folder.path / "x.npy").stat().st_mtime_ns
    assert dataset_folder(dataset).path == folder.path
    assert (folder.path / "x.npy").stat().st_mtime_ns == written
    expected = Edges.build(toy.edge_index, num_nodes=len(toy.x))
    assert bool((folder.edges().edge_index == expected.edge_index).all())
    assert [path.name for path in (tmp_path / "graphs").iterdir()] == [folder.path.name]


@pytest.mark.slow
def test_the_recipe_learns_digits(tmp_path: Path) -> None:
    spec = dataset_spec("digits", protocol=None, split_seed=None, seed=0)
    result = run_rows(precomputed(spec, settings=["train.epochs=20"]), tmp_path)
    assert (result.dataset, result.split["protocol"], result.split["seed"]) == ("digits", "shchur", 0)
    assert result.test_accuracy > 90


@pytest.mark.slow
def test_memory_stays_below_a_fraction_of_the_features(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("beltrami.scale.diffused_rows.CHUNK_BYTES", 1 << 20)
    monkeypatch.setattr("beltrami.train.row_program.BLOCK_BYTES", 1 << 20)
    graph = ring_folder(tmp_path / "ring", nodes=60_000, features=64)
    config = config_of(graph.path, "train.batch=256", "train.epochs=2")
    tracemalloc.start()
    try:
        result = run_rows(config, tmp_path / "run")
        peak = tracemalloc.get_traced_memory()[1]  # numpy's arrays; memory maps are not counted
    finally:
        tracemalloc.stop()
    assert graph.x is not None
    assert peak < graph.x.nbytes / 2
    assert result.test_accuracy > 90


def changed(folder: Path, name: str, at: int, value: int) -> None:
    array = np.load(folder / f"{name}.npy")
    array[at] = value
    np.save(folder / f"{name}.npy", array)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: (folder / "y.npy").unlink(), "has no y.npy, the class of each node: add this file"),
        (lambda folder: (folder / "role.npy").unlink(), "has no role.npy, the role .1 training, 2 validation"),
        (lambda folder: np.save(folder / "role.npy", np.ones(20, np.uint8)), "has no validation nodes: give some"),
        (lambda folder: changed(folder, "y", 0, -1), "node 0 of toy is a training node without a class"),
        (lambda folder: changed(folder, "y", 2, 5), "class 2 of toy has no training nodes: number the classes from 0"),
        (lambda folder: changed(folder, "y", 2, 10**12), "class 2 of toy has no training nodes"),
        (lambda folder: changed(folder, "index", 0, 99), "edge 0 comes from node 99, and nodes run from 0 to 19"),
    ],
)
def test_graph_folders_that_cannot_be_trained_on_are_refused(tmp_path: Path, change: object, message: str) -> None:
    folder = toy_folder(tmp_path / "toy").path
    change(folder)  # type: ignore[operator]
    with pytest.raises(DataError, match=message):
        run_rows(config_of(folder), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_folder_that_has_changed_is_refused(tmp_path: Path) -> None:
    folder = toy_folder(tmp_path / "toy").path
    config = config_of(folder)
    changed(folder, "y", 19, 0)
    with pytest.raises(DataError, match="is not as it was when the run began: restore its files, or train again"):
        load_row_problem(config.data)


def test_chunks_of_roles_are_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = toy_folder(tmp_path / "toy").path
    problem = load_row_problem(folder_spec(GraphFolder.open(folder)))
    whole = problem.nodes(TEST)
    monkeypatch.setattr("beltrami.rows.row_problem.CHUNK", 7)
    assert (
        problem.nodes(TEST).nodes.tolist() == whole.nodes.tolist() == np.flatnonzero(two_cliques().split.test).tolist()
    )


def test_positions_of_a_folder_are_not_ignored_silently(tmp_path: Path) -> None:
    folder = toy_folder(tmp_path / "toy").path
    np.save(folder / "pos.npy", np.zeros((20, 2), dtype=np.float32))
    with pytest.warns(UserWarning, match="holds positions, pos, which the recipe precomputed does not use"):
        load_row_problem(folder_spec(GraphFolder.open(folder)))
