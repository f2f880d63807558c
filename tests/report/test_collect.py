"""The data of a report say what the run, the model and the graph say, computed here in another way."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from toy import small_config, toy_problem

from beltrami.config import RunConfig, override
from beltrami.config.spec import TerminalSpec, TrainSpec
from beltrami.config.spec_graph import NoneSpec
from beltrami.config.spec_model import LayeredSpec
from beltrami.energy import PolyakovAction
from beltrami.errors import DataError
from beltrami.model import BLEND
from beltrami.predict.explain import explain
from beltrami.report import collect_recipe, flow_data
from beltrami.report.collect import LoadedRun
from beltrami.report.flow_data import key_frames
from beltrami.report.run_data import PARTS, FlowData, Mesh, RunData
from beltrami.run import evaluate_run, run_config, save_run
from beltrami.run_folder import CHECKPOINT
from beltrami.train import JSONLines

LIVE = ("flow.kind=live",)
MOVING = ("stencil.kind=knn", "stencil.k=3", "stencil.remesh=0.75")


def train_toy(folder: Path, *settings: str, positions: bool = False, config: RunConfig | None = None) -> None:
    """Train on the toy problem in a folder, as the command line does."""
    problem = toy_problem(positions=positions)
    config = override(small_config() if config is None else config, settings)
    result, model = run_config(config, problem=problem, callbacks=[JSONLines(folder / "epochs.jsonl")])
    save_run(folder, config, result, model)


def load_toy(folder: Path, monkeypatch: pytest.MonkeyPatch, *, positions: bool = False) -> LoadedRun:
    """Load a run on the toy problem, which no file of a dataset describes."""

    def problem(config: RunConfig, **_: Any) -> Any:
        return replace(toy_problem(positions=positions), config=config)

    monkeypatch.setattr("beltrami.run.load_problem", problem)
    monkeypatch.setattr(collect_recipe, "MOST_ENTRIES", 0)  # without baselines, which are tested once
    return LoadedRun.load(folder)


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that trains and loads a run on the toy problem."""

    def make(*settings: str, positions: bool = False, config: RunConfig | None = None) -> LoadedRun:
        train_toy(tmp_path / "run", *settings, positions=positions, config=config)
        return load_toy(tmp_path / "run", monkeypatch, positions=positions)

    return make


def flow_of(data: RunData) -> FlowData:
    assert data.flow is not None
    return data.flow


def states_of(run: LoadedRun, times: Any) -> torch.Tensor:
    """Return the states of the model at some times, in double precision."""
    model, inputs = run.shown.model, run.shown.inputs
    assert isinstance(model, BLEND)
    with torch.no_grad():
        return model.evolution.trajectory(model.encode(inputs), inputs.edges, [float(t) for t in times]).ys.double()


def test_scores_are_those_of_the_evaluation(toy: Any, tmp_path: Path) -> None:
    data = toy().data(seconds=0)
    result, validation, test = evaluate_run(tmp_path / "run")
    assert 100 * data.scores["validation"] == pytest.approx(validation) == pytest.approx(result.val_accuracy)
    assert 100 * data.scores["test"] == pytest.approx(test)
    right, part = data.nodes.label == data.nodes.predicted, data.nodes.part
    for name, score in data.scores.items():
        assert right[part == PARTS.index(name)].mean() == pytest.approx(score)
    assert data.along is not None
    chosen = data.along.times.tolist().index(data.along.chosen)
    assert data.along.accuracy["test"][chosen] == pytest.approx(data.scores["test"])
    assert data.title == "toy / blend"
    assert data.facts["parameters"] == f"{result.parameters:,}"
    assert data.settings == json.loads((tmp_path / "run" / "config.json").read_text())
    assert data.solver["evaluations of f in training"] == result.evaluations["forward"]


def test_solver_statistics_are_those_of_one_solve(toy: Any) -> None:
    data = toy("train.time_grid.kind=terminal").data(seconds=0)
    assert (data.solver["accepted steps"], data.solver["evaluations of f"]) == (2, 8)  # RK4 from 0 to 2 by steps of 1


def test_baselines_are_beside_the_run(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run = toy()
    monkeypatch.setattr(collect_recipe, "MOST_ENTRIES", 10_000)
    (name, validation, test), *others = run.data(seconds=0).baselines
    assert (name, validation, test) == ("blend", run.base.scores["validation"], run.base.scores["test"])
    assert [each for each, _, _ in others] == ["logistic regression", "label propagation", "linear diffusion"]


@pytest.mark.parametrize("settings", [(), LIVE], ids=["frozen", "live"])
def test_weights_of_pairs_are_those_of_a_loop_over_the_edges(toy: Any, settings: tuple[str, ...]) -> None:
    run = toy(*settings)
    data = run.data(seconds=0)
    (mesh,) = flow_of(data).meshes
    model, inputs = run.shown.model, run.shown.inputs
    first, last = states_of(run, (0.0, run.shown.time)).float()
    edges, diffusivity = model.evolution.mesh(first, inputs.edges), model.evolution.flow.diffusivity
    with torch.no_grad():
        start, stop = diffusivity(first, edges), diffusivity(last if settings else first, edges)
    expected = np.zeros((edges.num_nodes, edges.num_nodes, 2))
    for j, i, *both in zip(edges.j.tolist(), edges.i.tolist(), start.tolist(), stop.tolist(), strict=True):
        expected[i, j] += both
    found = np.zeros_like(expected)
    for (a, b), (receives, sends) in zip(mesh.pairs, mesh.weights, strict=True):
        assert a < b
        found[a, b], found[b, a] = receives, sends
    loops = np.eye(edges.num_nodes, dtype=bool)
    np.testing.assert_allclose(found[~loops], expected[~loops], rtol=1e-5)
    strength = mesh.weights.max((1, 2))
    assert (np.diff(strength) <= 0).all()
    assert len(mesh.pairs) == 91  # two cliques of ten nodes, and an edge
    assert data.weights is not None
    np.testing.assert_allclose(np.sort(data.weights), np.sort(start.numpy()), rtol=1e-5)
    assert (mesh.start, mesh.stop) == (0, run.shown.time)
    assert np.array_equal(mesh.weights[..., 0], mesh.weights[..., 1]) == (settings == ())


def test_positions_are_one_map_of_the_states_at_all_times(toy: Any) -> None:
    run = toy()
    flow = flow_of(run.data(seconds=0))
    z = states_of(run, flow.times)
    size = z.norm(dim=-1)
    r = math.sqrt(float(size[0].median() * size[-1].median()))
    points = (z / (size[..., None] + r)).numpy()
    columns = np.concatenate((points, np.ones((*points.shape[:2], 1))), axis=-1)
    ends = [0, -1]
    fitted, *_ = np.linalg.lstsq(columns[ends].reshape(-1, 9), flow.positions[ends].reshape(-1, 2), rcond=None)
    np.testing.assert_allclose(columns @ fitted, flow.positions, atol=1e-5)
    drawn, apart = (np.linalg.norm(each[:, :, None] - each[:, None], axis=-1) for each in (flow.positions, points))
    assert (drawn <= apart + 1e-5).all()  # a projection makes no distance longer
    assert len(flow.times) == flow_data.KEY_FRAMES
    assert (flow.times[0], flow.times[-1]) == (0, run.shown.time)


def test_predictions_along_the_frames_are_those_of_the_decoder(toy: Any) -> None:
    run = toy()
    data = run.data(seconds=0)
    flow = flow_of(data)
    with torch.no_grad():
        outputs = run.shown.model.xi(states_of(run, flow.times).float())
    assert flow.confidence is not None
    np.testing.assert_allclose(flow.confidence, outputs.softmax(-1).amax(-1), atol=1e-5)
    np.testing.assert_array_equal(flow.predicted, outputs.argmax(-1))
    np.testing.assert_array_equal(flow.predicted[-1], data.nodes.predicted)


def test_key_frames_have_about_equal_displacements() -> None:
    times = np.linspace(0, 1, 81) ** 2
    points = np.stack([np.exp(-5 * times), np.zeros(81)], axis=-1)[:, None].repeat(3, axis=1)
    chosen = key_frames(points, 16)
    steps = -np.diff(points[chosen, 0, 0])
    assert (len(chosen), chosen[0], chosen[-1]) == (16, 0, 80)
    assert steps.max() < 1.5 * steps.mean()
    assert key_frames(np.zeros((5, 2, 2)), 3) == [0, 2, 4]
    assert key_frames(points[:4], 16) == [0, 1, 2, 3]


def dirichlet_by_loop(z: torch.Tensor, edges: Any, weight: torch.Tensor) -> float:
    pairs = zip(edges.j.tolist(), edges.i.tolist(), weight.tolist(), strict=True)
    return math.fsum(0.5 * w * float((z[j] - z[i]).square().sum()) for j, i, w in pairs)


@pytest.mark.parametrize("settings", [(), LIVE], ids=["frozen", "live"])
def test_energies_are_those_of_a_loop_over_the_edges(toy: Any, settings: tuple[str, ...]) -> None:
    run = toy(*settings)
    along = run.data(seconds=0).along
    assert along is not None
    model, inputs = run.shown.model, run.shown.inputs
    k = 20
    z0, z = states_of(run, (0.0, along.times[k]))
    mesh = model.evolution.mesh(z0.float(), inputs.edges)
    with torch.no_grad():
        weight = model.evolution.flow.diffusivity((z if settings else z0).float(), mesh)
    found = [values[k] for values in along.energies.values()]
    ones = torch.ones(inputs.edges.num_edges)
    expected = [dirichlet_by_loop(z, inputs.edges, ones), dirichlet_by_loop(z, mesh, weight)]
    assert found == pytest.approx(expected, rel=1e-3)
    assert along.times[-1] == 6  # validation looks at three times the terminal time


def test_a_gradient_flow_shows_its_own_energy_which_never_grows(toy: Any) -> None:
    settings = ("diffusivity.kind=none", "flow.kind=polyakov", "flow.psi.kind=perona-malik", "flow.rate=false")
    run = toy(*settings)
    along = run.data(seconds=0).along
    assert along is not None
    own = along.energies["Polyakov energy"]
    assert (np.diff(own) <= 1e-6 * own[0]).all()
    action = run.shown.model.evolution.flow.diffusivity
    assert isinstance(action, PolyakovAction)
    z0, _ = states_of(run, (0.0, 1.0))
    with torch.no_grad():
        assert own[0] == pytest.approx(float(action.energy(z0.float(), run.shown.inputs.edges)), rel=1e-4)


def test_a_moving_graph_has_a_mesh_for_every_segment(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run = toy(*MOVING, "train.time_grid.kind=terminal")
    flow = flow_of(run.data(seconds=0))
    assert [(mesh.start, mesh.stop) for mesh in flow.meshes] == [(0, 0.75), (0.75, 1.5), (1.5, 2)]
    for z, mesh in zip(states_of(run, (0.0, 0.75, 1.5)), flow.meshes, strict=True):
        nearest = torch.cdist(z, z).argsort(1)[:, 1:4].tolist()
        pairs = {(min(i, j), max(i, j)) for i, row in enumerate(nearest) for j in row}
        assert {(a, b) for a, b in mesh.pairs.tolist()} == pairs
    monkeypatch.setattr(flow_data, "MOST_SEGMENTS", 2)
    data = run.data(seconds=0)
    assert [(mesh.start, mesh.stop) for mesh in flow_of(data).meshes] == [(0, 1.5), (1.5, 2)]
    assert data.notes == ["The graph is rebuilt 2 times; the picture shows one in 2 of its graphs."]


def test_two_dimensional_positions_are_drawn_as_they_are(toy: Any) -> None:
    run = toy("position.kind=laplacian", "model.pos=2", positions=True)
    flow = flow_of(run.data(seconds=0))
    assert not flow.disc
    np.testing.assert_allclose(flow.positions, states_of(run, flow.times)[..., :2].numpy(), atol=1e-5)


@pytest.mark.slow
def test_hyperbolic_positions_are_drawn_in_the_disc(toy: Any) -> None:
    settings = ("position.kind=hyperbolic", "model.pos=2", "flow.kind=hyperbolic", "diffusivity.kind=gaussian")
    run = toy(*settings, positions=True)
    flow = flow_of(run.data(seconds=0))
    u = states_of(run, flow.times)[..., :2]
    size = u.norm(dim=-1, keepdim=True)
    assert flow.disc
    np.testing.assert_allclose(flow.positions, torch.tanh(size) * u / size, atol=1e-5)


@pytest.mark.slow
def test_a_model_without_a_flow_has_no_picture(toy: Any) -> None:
    config = replace(
        small_config(), recipe="gcn", model=LayeredSpec(), flow=NoneSpec(), diffusivity=NoneSpec(), scheme=NoneSpec(),
        train=TrainSpec(epochs=2, time_grid=TerminalSpec()),
    )  # fmt: skip
    data = toy(config=config).data()
    assert (data.flow, data.along, data.weights) == (None, None, None)
    assert data.scores.keys() == {"train", "validation", "test"}
    assert data.reasons


def test_large_graphs_are_drawn_in_part(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run = toy()
    whole = flow_of(run.data(seconds=0))
    monkeypatch.setattr(flow_data, "MOST_NODES", 8)
    data = run.data(seconds=0)
    flow = flow_of(data)
    assert flow.nodes is not None
    assert flow.nodes.tolist() == sorted(set(flow.nodes.tolist()))
    np.testing.assert_allclose(flow.positions[[0, -1]], whole.positions[:, flow.nodes][[0, -1]])
    kept = {(a, b): w.tolist() for (a, b), w in _pairs(whole.meshes[0], range(20)) if {a, b} <= set(flow.nodes)}
    assert {pair: w.tolist() for pair, w in _pairs(flow.meshes[0], flow.nodes.tolist())} == kept
    assert "sample of 8 of the 20 nodes" in data.notes[0]
    monkeypatch.setattr(flow_data, "MOST_NODES", 20)
    monkeypatch.setattr(flow_data, "MOST_PAIRS", 5)
    data = run.data(seconds=0)
    np.testing.assert_array_equal(flow_of(data).meshes[0].pairs, whole.meshes[0].pairs[:5])
    assert data.notes == ["The picture of the flow shows the 5 strongest of its 91 edges."]


def _pairs(mesh: Mesh, names: Sequence[int]) -> list[tuple[tuple[int, int], Any]]:
    return [((names[a], names[b]), w) for (a, b), w in zip(mesh.pairs.tolist(), mesh.weights, strict=True)]


def test_explanations_are_those_of_the_library(toy: Any) -> None:
    run = toy()
    data = run.data()
    found = explain(run.shown.model, run.shown.inputs, 7, time=run.shown.time)
    reasons = run.explain(7)
    assert (reasons.margin, reasons.predicted, reasons.other) == (found.margin, str(found.predicted), str(found.other))
    assert [(each.node, each.share) for each in reasons.nodes] == [tuple(each) for each in found.top_nodes(8)]
    assert [(each.node, each.to, each.share) for each in reasons.edges] == [tuple(each) for each in found.top_edges(8)]
    assert data.reasons
    with pytest.raises(ValueError, match="`node` must be from 0 to 19; got 20"):
        run.explain(20)


def test_a_short_time_for_explanations_is_said(toy: Any) -> None:
    data = toy().data(seconds=1e-9)
    assert data.reasons == {}
    assert data.notes[-1].startswith("Within the time, 0 of ")


def test_a_damaged_log_gives_a_note(toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, log = toy().base, tmp_path / "run" / "epochs.jsonl"
    assert whole.epochs["epoch"].tolist() == [1, 2]
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert whole.epochs["loss"].tolist() == [line["loss"] for line in lines]
    assert whole.epochs["validation"].tolist() == [line["metric"] for line in lines]
    log.write_text(log.read_text().splitlines()[0].replace(f"{lines[0]['loss']}", "null") + '\n{"epoch": 2, "lo\n[3]\n')
    data = load_toy(tmp_path / "run", monkeypatch).base
    assert data.epochs["epoch"].tolist() == [1]
    assert math.isnan(data.epochs["loss"][0])
    assert data.notes == ["2 lines of the log of epochs cannot be read and were left out."]
    log.unlink()
    data = load_toy(tmp_path / "run", monkeypatch).base
    assert data.epochs == {}
    assert data.notes == ["The run has no log of epochs, epochs.jsonl: there are no learning curves."]


def test_a_folder_without_a_finished_run_is_refused_in_a_sentence(
    toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy()
    folder = tmp_path / "run"
    with pytest.raises(DataError, match=r"nowhere is no folder: name the folder that `beltrami train` wrote\.$"):
        LoadedRun.load(tmp_path / "nowhere")
    (folder / CHECKPOINT).touch()
    with pytest.raises(DataError, match=r"run holds no finished run: go on with it by .*\.$"):
        LoadedRun.load(folder)
    (folder / CHECKPOINT).unlink()
    (folder / "config.json").write_text("{}")
    with pytest.raises(DataError, match=r"config\.json has changed since the run was saved: .* train again\.$"):
        load_toy(folder, monkeypatch)
