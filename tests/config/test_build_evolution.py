"""Diffusivities, flows, stencils and schemes are built from their settings and train."""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Literal

import pytest
import torch
from checks import kite, pairs
from torch import Tensor
from toy import small_config, toy_problem

from beltrami.config import RunConfig, override
from beltrami.config.build import build_model
from beltrami.config.build_evolution import (
    NORMALISERS,
    PSIS,
    SOLVERS,
    build_costs,
    build_diffusivity,
    build_flow,
    build_scheme,
    build_stencil,
)
from beltrami.config.spec_graph import DIGLSpec, KeepSpec, StencilSpec, kinds_of
from beltrami.config.spec_model import (
    ConstantStartSpec,
    DiffusivitySpec,
    FrozenSpec,
    LiveSpec,
    ScaledDotSpec,
    UniformSpec,
)
from beltrami.diffusivity import Gaussian
from beltrami.energy import PolyakovAction
from beltrami.flow import BeltramiFlow, HyperbolicFlow, LinearFlow, PolyakovFlow, degree
from beltrami.geometry import PoincareBall
from beltrami.graph import Edges
from beltrami.joint import Joint
from beltrami.model import BLEND, Inputs
from beltrami.run import Problem, run_config
from beltrami.scheme import (
    PID,
    ConstantSteps,
    Continuous,
    Dopri5,
    EnergyDecreasing,
    Exponential,
    ImplicitEuler,
    Scheme,
    TorchDiffEq,
)
from beltrami.stencil import KNN, Chain, Fixed, Keep, Loops, Radius, Stencil, TopK
from beltrami.train import seeded

JOINT = Joint(2, 3)
TOLERANCES = ["scheme.rtol=1e-3", "scheme.atol=1e-3"]
BALL = ["flow.kind=hyperbolic", "diffusivity.kind=gaussian"]
SCORES = [kind for kind in kinds_of(DiffusivitySpec) if kind != "none"]
STENCILS = [kind for kind in kinds_of(StencilSpec) if kind not in ("none", "file")]
IMPLICIT = ("implicit-euler", "crank-nicolson")
GAUSS = ["flow.kind=polyakov", "flow.psi.kind=gauss", "diffusivity.kind=none"]


def configured(*settings: str) -> RunConfig:
    return override(small_config(), ["model.pos=4", *settings])


def check_trains(settings: Sequence[str], *, positions: bool = False) -> None:
    """Two epochs on the toy run through."""
    result, _ = run_config(configured(*settings), problem=toy_problem(positions=positions))
    assert result.epochs == 2
    assert result.evaluations["forward"] > 0


def built(problem: Problem, *settings: str) -> tuple[BLEND, Inputs]:
    with seeded(0):
        model = problem.model(configured(*settings)).eval()
    assert isinstance(model, BLEND)
    return model, model.prepare(problem.x, problem.edges, pos=problem.pos)


def mesh(model: BLEND, inputs: Inputs) -> Edges:
    (found,) = model.evolution.evolve(model.encode(inputs), inputs.edges).meshes
    return found


# Schemes.


@pytest.mark.slow
@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_trains_by_constant_steps(name: str) -> None:
    implicit = ["scheme.kind=implicit", *TOLERANCES] if name in IMPLICIT else []
    check_trains([*implicit, f"scheme.solver={name}"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bosh3", "dopri5", "heun", "implicit-euler"])
def test_solvers_with_an_error_estimate_train_adaptively(name: str) -> None:
    settings = ["scheme.kind=adaptive", f"scheme.solver={name}", *TOLERANCES]
    scheme = build_scheme(configured(*settings).scheme)
    assert isinstance(scheme, Scheme)
    assert scheme.controller == PID(rtol=1e-3, atol=1e-3)
    assert name != "implicit-euler" or scheme.solver == ImplicitEuler(rtol=1e-4, atol=1e-4)
    check_trains(settings)


@pytest.mark.slow
@pytest.mark.parametrize("flow", ["frozen", "live"])
@pytest.mark.parametrize("name", ["direct", "checkpointed", "continuous"])
def test_every_adjoint_trains_frozen_and_live_with_costs(name: str, flow: str) -> None:
    costs = ["flow.kinetic=0.1", "flow.jacobian=0.1"]
    check_trains([f"scheme.adjoint.kind={name}", f"flow.kind={flow}", "flow.source=true", *costs])


@pytest.mark.parametrize("steps", ["adaptive", "constant"])
def test_continuous_adjoint_goes_back_by_a_scheme_of_its_own(steps: str) -> None:
    own = ["dt=0.5"] if steps == "constant" else ["rtol=1e-3", "atol=1e-3"]
    settings = [f"scheme.adjoint.{each}" for each in (f"kind=continuous-{steps}", "solver=dopri5", *own)]
    scheme = build_scheme(configured(*settings).scheme)
    assert isinstance(scheme, Scheme)
    assert isinstance(scheme.adjoint, Continuous)
    assert isinstance(scheme.adjoint.scheme, Scheme)
    assert isinstance(scheme.adjoint.scheme.solver, Dopri5)
    assert isinstance(scheme.adjoint.scheme.controller, PID if steps == "adaptive" else ConstantSteps)
    check_trains(settings)


@pytest.mark.parametrize("adjoint", ["direct", "continuous"])
def test_methods_of_torchdiffeq_train(adjoint: str) -> None:
    settings = ["scheme.kind=torchdiffeq", "scheme.method=rk4", *TOLERANCES, "scheme.step_size=0.5"]
    settings += [f"scheme.adjoint.kind={adjoint}"]
    assert isinstance(build_scheme(configured(*settings).scheme), TorchDiffEq)
    check_trains(settings)


@pytest.mark.parametrize("over", sorted(NORMALISERS))
def test_the_exponential_integrator_trains_with_its_tolerances(over: str) -> None:
    settings = ["scheme.kind=exponential", "scheme.rtol=1e-5", "scheme.atol=1e-7"]
    assert build_scheme(configured(*settings).scheme) == Exponential(rtol=1e-5, atol=1e-7)
    check_trains([*settings, f"diffusivity.over={over}", "flow.source=true"])


# Diffusivities and flows.


@pytest.mark.slow
@pytest.mark.parametrize(
    ("score", "over"), [*((score, "rows") for score in SCORES), ("scaled-dot", "columns"), ("scaled-dot", "both")]
)
def test_every_score_and_every_normaliser_trains(score: str, over: str) -> None:
    link = [] if score == "uniform" else ["diffusivity.link=squareplus"]
    check_trains([f"diffusivity.kind={score}", f"diffusivity.over={over}", *link])


@pytest.mark.slow
@pytest.mark.parametrize("score", SCORES)
def test_every_score_trains_with_positions(score: str) -> None:
    check_trains([f"diffusivity.kind={score}", "model.batch_norm=true"], positions=True)


def test_constant_start_has_the_value_of_the_setting() -> None:
    diffusivity = build_diffusivity(ScaledDotSpec(width=8, start=ConstantStartSpec(value=0.25)), Joint(0, 8))
    assert all(bool((parameter == 0.25).all()) for parameter in diffusivity.parameters())


def test_positions_in_the_ball_train() -> None:
    flow = build_model(configured(*BALL), features=6, positions=3, num_classes=2).evolution.flow
    assert isinstance(flow, HyperbolicFlow)
    assert isinstance(flow.diffusivity, Gaussian)
    assert flow.diffusivity.metric == PoincareBall()
    check_trains(BALL, positions=True)


def test_flow_is_frozen_or_live_with_the_parts_asked_for() -> None:
    frozen = build_flow(FrozenSpec(rate=True, source=False), UniformSpec(), JOINT)
    live = build_flow(LiveSpec(rate=False, source=True, storage="bfloat16"), UniformSpec(), JOINT)
    assert isinstance(frozen, LinearFlow)
    assert isinstance(live, BeltramiFlow)
    assert live.storage == torch.bfloat16
    assert dict(frozen.named_parameters()).keys() == {"rate.logit"}
    assert dict(live.named_parameters()).keys() == {"source.beta"}


def test_costs_are_built_where_they_weigh_something() -> None:
    assert build_costs(FrozenSpec()) == []
    assert [cost.weight for cost in build_costs(FrozenSpec(kinetic=0.1, jacobian=0.2))] == [0.1, 0.2]


@pytest.mark.parametrize("name", ["constant", *PSIS])
def test_polyakov_flow_learns_the_length_of_its_psi(name: str) -> None:
    psi = [f"flow.psi.kind={name}", *([] if name == "constant" else ["flow.psi.length=2.5"])]
    settings = ["flow.kind=polyakov", *psi, "diffusivity.kind=none"]
    model = build_model(configured(*settings, "flow.attachment=true"), features=6, positions=0, num_classes=2)
    flow = model.evolution.flow
    assert isinstance(flow, PolyakovFlow)
    assert isinstance(flow.diffusivity, PolyakovAction)
    lengths = [float(log_length.detach().exp()) for log_length in flow.diffusivity.parameters()]
    assert lengths == pytest.approx([] if name == "constant" else [2.5])
    assert flow.mass is degree
    assert flow.rate is not None
    assert flow.attachment is not None
    bare = build_model(configured(*settings, "flow.rate=false"), features=6, positions=0, num_classes=2).evolution.flow
    assert [child for child, _ in bare.named_children()] == ["diffusivity"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "adjoint"),
    [*((name, "direct") for name in ("constant", *PSIS)), ("gauss", "checkpointed"), ("gauss", "continuous")],
)
def test_polyakov_flow_trains_all_of_its_parameters(
    name: str, adjoint: Literal["direct", "checkpointed", "continuous"]
) -> None:
    settings = ["flow.kind=polyakov", f"flow.psi.kind={name}", "diffusivity.kind=none", "flow.attachment=true"]
    config = override(small_config(adjoint), [*settings, "scheme.energy_decreasing=true", "scheme.dt=0.5"])
    _, model = run_config(config, problem=toy_problem())
    assert isinstance(model, BLEND)
    fresh = build_model(config, features=6, positions=0, num_classes=2)
    moved = {
        name: not torch.equal(now, then)
        for (name, now), then in zip(model.evolution.named_parameters(), fresh.evolution.parameters(), strict=True)
    }
    assert all(moved.values()), moved


def test_energy_decreasing_wraps_the_scheme_and_then_steps_synchronise() -> None:
    plain, _ = built(toy_problem(), *GAUSS)
    decreasing, _ = built(toy_problem(), *GAUSS, "scheme.energy_decreasing=true")
    assert isinstance(decreasing.evolution.scheme, EnergyDecreasing)
    assert decreasing.evolution.scheme.scheme == plain.evolution.scheme
    assert not plain.synchronises
    assert decreasing.synchronises


# Stencils.


@pytest.mark.slow
@pytest.mark.parametrize("kind", STENCILS)
def test_every_stencil_trains(kind: str) -> None:
    own = {"knn": ["k=3"], "radius": ["radius=2"], "digl": ["k=3"], "threshold": ["least=0.02"]}.get(kind, [])
    symmetric = ["symmetric=true"] if kind in ("keep", "knn", "digl", "threshold") else []
    strongest = [] if kind == "isolated" else ["strongest=0.6"]
    settings = [f"kind={kind}", *own, *symmetric, *strongest, "remesh=0.7"]
    check_trains([f"stencil.{each}" for each in settings], positions=True)


@pytest.mark.slow
@pytest.mark.parametrize("on", ["u", "x"])
@pytest.mark.parametrize("kind", ["knn", "radius"])
def test_stencils_train_in_the_ball(kind: str, on: str) -> None:
    own = "stencil.k=3" if kind == "knn" else "stencil.radius=2"
    check_trains([*BALL, f"stencil.kind={kind}", f"stencil.on={on}", own], positions=True)


@pytest.mark.parametrize("kind", ["knn", "radius"])
@pytest.mark.parametrize("on", ["u", "x", "z"])
def test_neighbours_are_those_of_the_encoded_channels(kind: str, on: str) -> None:
    own = "stencil.k=3" if kind == "knn" else "stencil.radius=2"
    settings = [f"stencil.kind={kind}", f"stencil.on={on}", own, "stencil.loops=0"]
    model, inputs = built(toy_problem(positions=True), *settings)
    z = model.encode(inputs).detach()
    seen = {"u": z[:, :4], "x": z[:, 4:], "z": z}[on]
    stencil = KNN(3) if kind == "knn" else Radius(2.0)
    assert pairs(mesh(model, inputs)) == pairs(stencil(seen, inputs.edges))


def test_neighbours_in_the_ball_are_those_of_the_points() -> None:
    settings = [*BALL, "stencil.kind=knn", "stencil.on=u", "stencil.k=3", "stencil.loops=0"]
    model, inputs = built(toy_problem(positions=True), *settings)
    u = 2 * model.encode(inputs).detach()[:, :4]
    r = u.norm(dim=1, keepdim=True)
    expected = KNN(3, metric=PoincareBall())(torch.tanh(r) * u / r, inputs.edges)
    found = model.evolution.stencil(torch.cat((u, torch.zeros(20, 8)), 1), inputs.edges)
    assert pairs(found) == pairs(expected)
    assert pairs(found) != pairs(KNN(3)(u, inputs.edges))


def test_stencil_of_the_defaults_is_the_graph_with_loops() -> None:
    loops = build_stencil(KeepSpec(), JOINT)
    assert isinstance(loops, Loops)
    assert loops.weight == 1.0
    assert isinstance(build_stencil(KeepSpec(loops=0.0), JOINT), Keep)


def test_entries_of_pagerank_weight_the_edges_unless_weights_are_dropped() -> None:
    z = torch.zeros(4, 5)
    weighted, equal = (
        build_stencil(DIGLSpec(k=3, weighted=weighted, loops=0.0), JOINT)(z, kite()) for weighted in (True, False)
    )
    assert weighted.weight is not None
    assert weighted.weight.unique().numel() > 2
    assert equal.weight is None
    assert pairs(equal) == pairs(weighted)


def test_symmetric_stencils_have_both_directions_and_loops_come_last() -> None:
    edges = build_stencil(DIGLSpec(k=2, symmetric=True, loops=0.5), JOINT)(torch.zeros(4, 5), kite())
    found = set(pairs(edges))
    assert found == {(j, i) for i, j in found} >= {(k, k) for k in range(4)}
    assert edges.weight is not None
    assert bool((edges.weight[edges.i == edges.j] == 0.5).all())


def test_strongest_edges_are_kept_while_training_and_all_when_evaluated() -> None:
    settings = ["stencil.kind=knn", "stencil.on=x", "stencil.k=4", "stencil.strongest=0.5"]
    model, inputs = built(toy_problem(), *settings)
    assert mesh(model, inputs).num_edges == 20 * 4 + 20
    model.train()
    assert mesh(model, inputs).num_edges == 20 * 2 + 20
    model.eval()
    assert mesh(model, inputs).num_edges == 20 * 4 + 20


def test_copy_of_a_model_drops_edges_by_its_own_training_mode() -> None:
    model, inputs = built(toy_problem(), "stencil.strongest=0.5")
    averaged = deepcopy(model)  # as for a moving average of the weights
    model.train()
    assert mesh(model, inputs).num_edges < mesh(averaged, inputs).num_edges
    check_trains(["stencil.strongest=0.5", "train.ema=0.5"])


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the stencils that were computed."""
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


def test_neighbours_are_searched_once_a_solve(asked: list[str]) -> None:
    model, inputs = built(toy_problem(), "stencil.kind=knn", "stencil.k=3", "scheme.dt=0.25")
    model.run(inputs)
    assert asked == ["knn"]
    model.logits_along(inputs, (0.0, 1.0, 2.0, 3.0))
    assert asked == ["knn"] * 2


def test_neighbours_are_searched_again_at_each_remeshing(asked: list[str]) -> None:
    model, inputs = built(toy_problem(), "stencil.kind=knn", "stencil.k=3", "stencil.remesh=0.5")
    model.run(inputs)
    assert asked == ["knn"] * 4


def test_stencil_of_the_graph_is_computed_once_a_training(asked: list[str]) -> None:
    check_trains(["stencil.kind=digl", "stencil.k=3", "stencil.remesh=0.5"])
    assert asked == ["digl"]


def parts(stencil: Stencil) -> Iterator[Stencil]:
    if isinstance(stencil, Chain):
        for part in stencil.stencils:
            yield from parts(part)
    else:
        yield stencil


@pytest.mark.parametrize("kind", [kind for kind in STENCILS if kind not in ("knn", "radius")])
def test_stencils_that_do_not_look_at_the_state_are_fixed(kind: str) -> None:
    stencil = build_stencil(configured(f"stencil.kind={kind}").stencil, JOINT)
    assert all(isinstance(part, Fixed) for part in parts(stencil))
    edges = kite()
    assert stencil(torch.zeros(4, 5), edges) is stencil(torch.ones(4, 5), edges)
