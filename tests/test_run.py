"""Runs are reproducible, alone and together, report what they did, and can be evaluated again from their folders."""

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from sklearn.metrics import roc_auc_score
from toy import small_blend, small_config, toy_problem

from beltrami import train
from beltrami.config import RunConfig, load_recipe, override
from beltrami.config.build import build_training
from beltrami.data import Dataset, Split
from beltrami.data.block_model import BlockModel
from beltrami.data.dataset import even_rows
from beltrami.errors import DataError
from beltrami.graph import Edges, SparseMatrix
from beltrami.model import BLEND
from beltrami.result import RunResult
from beltrami.run import Problem, evaluate_run, load_problem, run_config, run_configs, save_run
from beltrami.stencil import FeatureSimilarity, tf_idf
from beltrami.train import save_weights, seeded

SHORT = ["train.epochs=4", "train.validate_every=2", "scheme.time=2", "model.feat=16"]
SHORT += ["scheme.kind=constant", "scheme.solver=rk4", "scheme.dt=1"]  # the same steps for one run and for many


def facts(result: RunResult) -> dict[str, Any]:
    """All of a result but how long it took."""
    return {name: value for name, value in asdict(result).items() if name != "train_seconds"}


def digits(*settings: str) -> RunConfig:
    """Three epochs of the recipe, with the settings that the tests below rely on."""
    relied_on = ["train.epochs=3", "position.kind=none", "flow.source=true"]
    return override(load_recipe("blend", "digits", protocol="shchur"), [*relied_on, *settings])


def test_result_describes_the_run() -> None:
    config, problem = override(small_config(), ["seed=5"]), toy_problem()
    result, model = run_config(config, problem=problem)
    assert (result.dataset, result.recipe, result.seed, result.device) == ("toy", "blend", 5, "cpu")
    assert result.split == {"protocol": "toy", "seed": 0, "hash": problem.split.hash}
    assert (result.epochs, result.parameters) == (2, sum(p.numel() for p in model.parameters()))
    assert 0 <= result.val_accuracy <= 100
    assert 0 <= result.test_accuracy <= 100
    assert result.evaluations == {"forward": 2 * 8, "backward": 0}  # two epochs of two RK4 steps
    assert result.attention_spread > 0
    assert result.best_time > 0
    assert len(result.per_class_accuracy) == 2
    per_class = [each for each in result.per_class_accuracy if each is not None]
    assert sum(per_class) / 2 == pytest.approx(result.test_accuracy)  # as many test nodes in either class


def test_checkpointed_run_counts_its_backward_evaluations() -> None:
    result, _ = run_config(small_config("checkpointed"), problem=toy_problem())
    assert result.evaluations["backward"] > 0


def test_same_seed_gives_the_same_result_bit_by_bit() -> None:
    (one, model), (other, again) = (run_config(small_config(), problem=toy_problem()) for _ in range(2))
    assert facts(one) == facts(other)
    expected = model.state_dict()
    assert all(torch.equal(tensor, expected[name]) for name, tensor in again.state_dict().items())


def test_another_seed_starts_from_other_weights() -> None:
    one, other = (run_config(override(small_config(), [f"seed={seed}"]), problem=toy_problem())[1] for seed in (0, 1))
    assert not torch.equal(one.get_parameter("psi.linear.weight"), other.get_parameter("psi.linear.weight"))


def test_run_leaves_the_callers_random_state_as_it_was() -> None:
    before = torch.get_rng_state()
    run_config(small_config(), problem=toy_problem())
    assert torch.equal(torch.get_rng_state(), before)


def test_run_does_not_depend_on_the_callers_random_state() -> None:
    results = []
    for seed in (0, 1):
        with seeded(seed):
            results.append(facts(run_config(small_config(), problem=toy_problem())[0]))
    assert results[0] == results[1]


def test_test_labels_change_the_test_accuracy_alone() -> None:
    problem = toy_problem()
    y, test = problem.dataset.y, problem.split.test
    mirrored = replace(problem, dataset=replace(problem.dataset, y=torch.where(test, 1 - y, y)))
    right, wrong = (facts(run_config(small_config(), problem=each)[0]) for each in (problem, mirrored))
    assert wrong.pop("test_accuracy") == pytest.approx(100 - right.pop("test_accuracy"))
    expected = [100 - each for each in reversed(right.pop("per_class_accuracy"))]
    assert wrong.pop("per_class_accuracy") == pytest.approx(expected)
    assert right == wrong


@pytest.mark.slow
def test_features_are_scaled_as_asked() -> None:
    raw, rows, unit = (load_problem(digits(f"data.features={scaling}")) for scaling in ("raw", "rows", "unit"))
    assert isinstance(rows.x, torch.Tensor)
    assert isinstance(unit.x, torch.Tensor)
    assert raw.x is raw.dataset.x
    mean = raw.dataset.x.sum(1).mean()
    assert torch.allclose(rows.x.abs().sum(1), mean.expand(1797), rtol=1e-5)
    assert torch.allclose(unit.x.abs().sum(1), torch.ones(1797), rtol=1e-5)


def test_rows_without_features_stay_without() -> None:
    x = torch.tensor([[1.0, 3.0], [0.0, 0.0], [0.0, -2.0]])
    assert torch.equal(even_rows(x), torch.tensor([[0.5, 1.5], [0.0, 0.0], [0.0, -2.0]]))


@pytest.mark.slow
def test_loaded_digits_have_the_split_of_the_seed() -> None:
    problem, again, other = load_problem(digits()), load_problem(digits()), load_problem(digits("data.split_seed=1"))
    assert (problem.dataset.num_nodes, problem.edges.num_nodes, problem.x.shape) == (1797, 1797, (1797, 64))
    assert (problem.split.protocol, problem.split.seed) == ("shchur", 0)
    assert problem.split.hash == again.split.hash != other.split.hash
    assert problem.pos is None


@pytest.mark.slow
def test_inputs_become_sparse_where_that_pays() -> None:
    ppr = load_problem(digits("position.kind=ppr", "position.top=8"))
    assert isinstance(ppr.pos, SparseMatrix)
    assert ppr.pos.shape == (1797, 1797)
    assert isinstance(ppr.x, torch.Tensor)
    model = ppr.model(digits())
    assert isinstance(model, BLEND)
    assert model.phi is not None
    assert model.phi.linear.in_features == 1797


def test_dense_positions_stay_dense() -> None:
    laplacian = load_problem(digits("position.kind=laplacian", "position.channels=4"))
    assert isinstance(laplacian.pos, torch.Tensor)
    assert laplacian.pos.shape == (1797, 4)


def test_result_is_written_last(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").mkdir()  # so that the weights cannot be written
    result, model = run_config(small_config(), problem=toy_problem())
    with pytest.raises(OSError, match=r"model\.safetensors"):
        save_run(tmp_path, small_config(), result, model)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "model.safetensors"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of three epochs on digits."""
    folder = tmp_path_factory.mktemp("finished")
    config = digits()
    save_run(folder, config, *run_config(config))
    return folder


@pytest.fixture
def folder(finished: Path, tmp_path: Path) -> Path:
    """A copy of it to spoil, without the digests of its files, as earlier versions left it."""
    copied = Path(shutil.copytree(finished, tmp_path / "run"))
    alter(copied / "result.json", "", "files", {})
    return copied


def alter(path: Path, group: str, name: str, value: object) -> None:
    tree = json.loads(path.read_text())
    (tree[group] if group else tree)[name] = value
    path.write_text(json.dumps(tree))


@pytest.mark.slow
def test_run_read_back_has_the_accuracies_it_recorded(folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.safetensors", "result.json"]
    result, val, test = evaluate_run(folder)
    assert (val, test) == (result.val_accuracy, result.test_accuracy)
    assert test > 15
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(99)
        assert evaluate_run(folder) == (result, val, test)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_file_that_was_exchanged_is_refused(finished: Path, tmp_path: Path, name: str) -> None:
    copied = Path(shutil.copytree(finished, tmp_path / "run"))
    assert evaluate_run(copied)[0].files.keys() == {"config.json", "model.safetensors"}
    content = (copied / name).read_bytes()
    (copied / name).write_bytes(content + b" ")
    with pytest.raises(DataError, match=rf"{name} has changed since the run was saved: the files of a run belong"):
        evaluate_run(copied)


@pytest.mark.slow
def test_a_run_on_another_graph_is_told_apart(folder: Path) -> None:
    alter(folder / "result.json", "", "graph", "0" * 16)
    with pytest.raises(DataError, match=r"the graph of .* has hash 0{16}, but today's data give \w{16}"):
        evaluate_run(folder)


@pytest.mark.slow
def test_run_on_another_split_is_told_apart(folder: Path) -> None:
    alter(folder / "config.json", "data", "split_seed", 1)
    with pytest.raises(DataError, match=r"the split of .* has hash \w{16}, but today's data give \w{16}: the dataset"):
        evaluate_run(folder)


@pytest.mark.slow
def test_recorded_hash_of_another_split_is_told_apart(folder: Path) -> None:
    alter(folder / "result.json", "split", "hash", "0" * 16)
    with pytest.raises(DataError, match=r"has hash 0{16}, but today's data give"):
        evaluate_run(folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("group", "name", "value", "message"),
    [
        ("", "dataset", "digts", r"cannot be repeated \(unknown dataset 'digts': did you mean 'digits'"),
        ("scheme", "kind", "exponentiel", r"cannot be read \(unknown scheme.kind 'exponentiel'"),
        ("scheme", "time", -1.0, r"cannot be read \(`scheme.time` must be at least 0"),
        ("model", "feat", 7, r"the weights in .* are of another model \(.*size mismatch"),
        ("flow", "source", False, r"the weights in .* are of another model \(.*Unexpected key"),
        ("model", "layers", 3, r"cannot be read \(unknown name 'model.layers'"),
    ],
)
def test_altered_configuration_is_a_data_error(
    folder: Path, group: str, name: str, value: object, message: str
) -> None:
    alter(folder / "config.json", group, name, value)
    with pytest.raises(DataError, match=message):
        evaluate_run(folder)


@pytest.mark.slow
@pytest.mark.parametrize("best_time", [-1.0, float("nan")])
def test_recorded_time_that_is_none_is_a_data_error(folder: Path, best_time: float) -> None:
    alter(folder / "result.json", "", "best_time", best_time)
    with pytest.raises(DataError, match=r"cannot be repeated \(predict needs `time`"):
        evaluate_run(folder)


@pytest.mark.slow
def test_weights_of_another_run_are_a_data_error(folder: Path) -> None:
    save_weights(small_blend(), folder / "model.safetensors")
    with pytest.raises(DataError, match=r"are of another model"):
        evaluate_run(folder)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "result.json"])
@pytest.mark.parametrize("damage", ["missing", "truncated"])
def test_damaged_folder_is_a_data_error(folder: Path, name: str, damage: str) -> None:
    path = folder / name
    content = path.read_bytes()
    path.unlink()
    if damage == "truncated":
        path.write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match=name):
        evaluate_run(folder)


@pytest.mark.data
@pytest.mark.slow
def test_short_run_on_cora_is_good_and_repeats_itself(real: Callable[[str], Dataset]) -> None:
    real("cora")
    config = override(load_recipe("blend", "cora", protocol="planetoid"), ["train.epochs=15"])
    one, other = (run_config(config)[0] for _ in range(2))
    assert one.test_accuracy > 70
    assert facts(one) == facts(other)


@pytest.mark.slow
def test_the_input_features_alter_the_input_graph() -> None:
    reweight = ["stencil.reweight.kind=similarity", "stencil.reweight.sharpness=0.5"]
    add = ["stencil.add.kind=neighbours", "stencil.add.k=2"]
    plain, reweighted, near = (load_problem(digits(*each)) for each in ([], reweight, add))
    assert plain.edges.weight is None
    assert torch.equal(reweighted.edges.edge_index, plain.edges.edge_index)
    by_hand = FeatureSimilarity(0.5)(tf_idf(plain.dataset.x), plain.edges)
    assert reweighted.edges.weight is not None
    torch.testing.assert_close(reweighted.edges.weight, by_hand.weight)
    assert near.edges.num_edges >= plain.edges.num_edges
    assert near.edges.weight is not None
    assert set(near.edges.weight.tolist()) <= {1.0, 0.5}


@pytest.mark.slow
def test_runs_trained_together_have_the_results_of_single_runs() -> None:
    configs = [override(load_recipe("blend", "digits", seed=seed), SHORT) for seed in (3, 4, 5)]
    together = run_configs(configs)
    for config, outcome in zip(configs, together, strict=True):
        assert isinstance(outcome, tuple)
        expected, found = run_config(config)[0], outcome[0]
        assert isinstance(found, RunResult)
        assert found.seed == config.seed
        assert found.split == expected.split
        assert (found.best_epoch, found.epochs) == (expected.best_epoch, expected.epochs)
        assert found.evaluations == expected.evaluations
        assert found.attention_spread == pytest.approx(expected.attention_spread, abs=1e-4)
        assert found.test_accuracy == pytest.approx(expected.test_accuracy, abs=0.2)  # three nodes of 1,297
        assert set(asdict(found)) == set(asdict(expected))


def test_configurations_that_differ_by_more_than_seeds_are_refused() -> None:
    one = override(load_recipe("blend", "digits"), SHORT)
    with pytest.raises(ValueError, match=r"run_configs needs configurations that differ by `seed`"):
        run_configs([one, override(replace(one, seed=1), ["train.lr=0.1"])])
    with pytest.raises(ValueError, match=r"run_configs needs configurations"):
        run_configs([])


def test_runs_are_saved_and_read_by_paths_that_are_strings(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    result, _, _ = evaluate_run(folder.name)
    assert RunResult.read(f"{folder.name}/result.json") == result
    with pytest.raises(ValueError, match="evaluate_run needs `folder` not to be empty"):
        evaluate_run("")


@pytest.mark.parametrize("device", [None, "", "gpu", "cuda:x", 0])
def test_a_device_that_is_none_is_refused(device: Any) -> None:
    with pytest.raises(ValueError, match=r"needs `device` (cpu, cuda or cuda:N|to be a string)"):
        run_config(small_config(), device=device)


def test_a_dataset_scored_by_the_area_under_the_curve_is_chosen_and_evaluated_by_it() -> None:
    """Alone and stacked; the training nodes of one of several published splits may lack a class."""
    data = BlockModel(90, 0.8, 5.0, 1.5).draw(0)
    part = torch.arange(90) % 3
    split = Split((part == 0) & (data.y == 0), part == 1, part == 2, "platonov", 0)
    config = override(load_recipe("gcn", "minesweeper"), ["train.epochs=4"])
    data = replace(data, splits=(split,), metric="roc-auc")
    problem = Problem(config, data, split, data.x, Edges.build(data.edge_index, num_nodes=90), None)
    result, model = run_config(config, problem=problem)
    outputs = train.predict(model, model.prepare(data.x, problem.edges), time=result.best_time)
    scores = (outputs[:, 1] - outputs[:, 0]).numpy()
    for found, chosen in ((result.val_accuracy, split.val), (result.test_accuracy, split.test)):
        assert found == pytest.approx(100 * roc_auc_score(data.y[chosen].numpy(), scores[chosen.numpy()]), abs=1e-4)
    assert (result.metric, result.metric_name) == ("roc-auc", "ROC AUC")
    with train.seeded(config.seed):
        again = problem.model(config)
    inputs, training = again.prepare(data.x, problem.edges), build_training(config.train)
    (fit,) = train.fit_many([again], inputs, data.y, [split], training, task=problem.task)
    assert isinstance(fit, train.Fit)
    assert 100 * fit.best.metric == pytest.approx(result.val_accuracy, abs=1e-3)
