"""Stencils by name: each trains, looks where it is told to, and is asked no more often than it must be."""

from collections.abc import Iterator
from copy import deepcopy

import pytest
import torch
from checks import kite, pairs
from torch import Tensor
from toy import small_config, toy_problem

from beltrami.config import RunConfig, override
from beltrami.config.build import build_model, check_settings
from beltrami.config.build_stencil import FIXED, LOOKING, STENCILS, build_stencil
from beltrami.config.spec import StencilConfig
from beltrami.errors import UnknownName
from beltrami.geometry import PoincareBall
from beltrami.graph import Edges
from beltrami.joint import Joint
from beltrami.model import BLEND, Inputs
from beltrami.run import Problem, run_config
from beltrami.stencil import KNN, Chain, Fixed, Keep, Loops, Radius, Stencil, TopK
from beltrami.train import seeded

JOINT = Joint(2, 3)
BALL = ["flow.positions=hyperbolic", "flow.frozen=false", "diffusivity.score=gaussian"]


def configured(*settings: str) -> RunConfig:
    return override(small_config(), ["stencil.k=3", "stencil.radius=2", "stencil.least=0.02", *settings])


def built(problem: Problem, *settings: str) -> tuple[BLEND, Inputs]:
    with seeded(0):
        model = problem.model(configured(*settings)).eval()
    assert isinstance(model, BLEND)
    return model, model.prepare(problem.x, problem.edges, problem.pos)


def mesh(model: BLEND, inputs: Inputs) -> Edges:
    (segment,) = model.evolution.evolve(model.encode(inputs), inputs.edges).segments
    return segment.edges


@pytest.mark.parametrize("on", ["u", "x", "z"])
@pytest.mark.parametrize("kind", STENCILS)
def test_every_stencil_trains(kind: str, on: str) -> None:
    settings = [f"stencil.kind={kind}", f"stencil.on={on}", "stencil.symmetric=true", "stencil.remesh=0.7"]
    result, _ = run_config(configured(*settings, "stencil.strongest=0.6"), problem=toy_problem(positions=True))
    assert result.epochs == 2
    assert result.evaluations["forward"] > 0


@pytest.mark.parametrize("on", ["u", "x"])
@pytest.mark.parametrize("kind", sorted(LOOKING))
def test_stencils_train_in_the_ball(kind: str, on: str) -> None:
    config = configured(*BALL, f"stencil.kind={kind}", f"stencil.on={on}")
    assert run_config(config, problem=toy_problem(positions=True))[0].epochs == 2


@pytest.mark.parametrize("kind", ["knn", "radius"])
@pytest.mark.parametrize("on", ["u", "x", "z"])
def test_neighbours_are_those_of_the_encoded_channels(kind: str, on: str) -> None:
    model, inputs = built(toy_problem(positions=True), f"stencil.kind={kind}", f"stencil.on={on}", "stencil.loops=0")
    z = model.encode(inputs).detach()
    seen = {"u": z[:, :4], "x": z[:, 4:], "z": z}[on]
    stencil = KNN(3) if kind == "knn" else Radius(2.0)
    assert pairs(mesh(model, inputs)) == pairs(stencil(seen, inputs.edges))


def test_neighbours_in_the_ball_are_those_of_the_points() -> None:
    settings = [*BALL, "stencil.kind=knn", "stencil.on=u", "stencil.loops=0"]
    model, inputs = built(toy_problem(positions=True), *settings)
    u = 2 * model.encode(inputs).detach()[:, :4]
    r = u.norm(dim=1, keepdim=True)
    expected = KNN(3, metric=PoincareBall())(torch.tanh(r) * u / r, inputs.edges)
    found = model.evolution.stencil(torch.cat((u, torch.zeros(20, 8)), 1), inputs.edges)
    assert pairs(found) == pairs(expected)
    assert pairs(found) != pairs(KNN(3)(u, inputs.edges))


def test_ball_and_features_are_not_measured_together() -> None:
    with pytest.raises(ValueError, match=r"`stencil.on=z` mixes positions in the ball with features"):
        build_model(configured(*BALL, "stencil.kind=knn"), features=6, positions=3, num_classes=2)


def test_stencil_of_the_defaults_is_the_graph_with_loops() -> None:
    loops = build_stencil(StencilConfig(), JOINT)
    assert isinstance(loops, Loops)
    assert loops.weight == 1.0
    assert isinstance(build_stencil(StencilConfig(loops=0.0), JOINT), Keep)


def test_values_of_the_kernel_weigh_the_edges_unless_all_count_alike() -> None:
    z = torch.zeros(4, 5)
    weighted, alike = (
        build_stencil(StencilConfig("digl", k=3, weighted=weighted, loops=0.0), JOINT)(z, kite())
        for weighted in (True, False)
    )
    assert weighted.weight is not None
    assert weighted.weight.unique().numel() > 2
    assert alike.weight is None
    assert pairs(alike) == pairs(weighted)


def test_symmetric_stencils_have_both_directions_and_loops_come_last() -> None:
    config = StencilConfig("digl", k=2, symmetric=True, loops=0.5)
    edges = build_stencil(config, JOINT)(torch.zeros(4, 5), kite())
    found = set(pairs(edges))
    assert found == {(j, i) for i, j in found} >= {(k, k) for k in range(4)}
    assert edges.weight is not None
    assert bool((edges.weight[edges.i == edges.j] == 0.5).all())


def test_strongest_edges_are_kept_while_training_and_all_when_judged() -> None:
    model, inputs = built(toy_problem(), "stencil.strongest=0.5", "stencil.kind=knn", "stencil.on=x", "stencil.k=4")
    assert mesh(model, inputs).num_edges == 20 * 4 + 20
    model.train()
    assert mesh(model, inputs).num_edges == 20 * 2 + 20
    model.eval()
    assert mesh(model, inputs).num_edges == 20 * 4 + 20


def test_copy_of_a_model_drops_edges_by_its_own_switch() -> None:
    model, inputs = built(toy_problem(), "stencil.strongest=0.5")
    averaged = deepcopy(model)  # as a running average of the weights is made
    model.train()
    assert mesh(model, inputs).num_edges < mesh(averaged, inputs).num_edges
    assert run_config(configured("stencil.strongest=0.5", "train.average=0.5"), problem=toy_problem())[0].epochs == 2


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the stencils below were asked for."""
    calls: list[str] = []
    search, rewire = KNN.__call__, TopK.rewire

    def searched(self: KNN, z: Tensor, edges: Edges) -> Edges:
        calls.append("knn")
        return search(self, z, edges)

    def rewired(self: TopK, edges: Edges) -> Edges:
        calls.append("digl")
        return rewire(self, edges)

    monkeypatch.setattr(KNN, "__call__", searched)
    monkeypatch.setattr(TopK, "rewire", rewired)
    return calls


def test_neighbours_are_looked_for_once_a_solve(asked: list[str]) -> None:
    model, inputs = built(toy_problem(), "stencil.kind=knn", "scheme.time=2", "scheme.dt=0.25")
    model.run(inputs)
    assert asked == ["knn"]
    model.logits_along(inputs, (0.0, 1.0, 2.0, 3.0))
    assert asked == ["knn"] * 2


def test_neighbours_are_looked_for_again_at_each_remeshing(asked: list[str]) -> None:
    model, inputs = built(toy_problem(), "stencil.kind=knn", "scheme.time=2", "stencil.remesh=0.5")
    model.run(inputs)
    assert asked == ["knn"] * 4


def test_stencil_of_the_graph_is_computed_once_a_training(asked: list[str]) -> None:
    run_config(configured("stencil.kind=digl", "stencil.remesh=0.5", "train.epochs=4"), problem=toy_problem())
    assert asked == ["digl"]


def parts(stencil: Stencil) -> Iterator[Stencil]:
    if isinstance(stencil, Chain):
        for part in stencil.stencils:
            yield from parts(part)
    else:
        yield stencil


@pytest.mark.parametrize("kind", sorted(FIXED))
def test_stencils_that_do_not_look_at_the_state_keep_what_they_made(kind: str) -> None:
    stencil = build_stencil(StencilConfig(kind, k=2, symmetric=True, weighted=False), JOINT)
    assert all(isinstance(part, Fixed) for part in parts(stencil))
    edges = kite()
    assert stencil(torch.zeros(4, 5), edges) is stencil(torch.ones(4, 5), edges)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("stencil.kind=dgl", r"unknown stencil.kind 'dgl': did you mean 'digl'\?"),
        ("stencil.on=y", r"unknown stencil.on 'y'.* Known: u, x, z"),
    ],
)
def test_unknown_name_is_refused_before_data_are_read(setting: str, message: str) -> None:
    with pytest.raises(UnknownName, match=message):
        check_settings(configured(setting))
