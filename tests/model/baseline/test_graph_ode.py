"""Baselines that are equations: closed forms, one Euler step as a residual layer, and gradients by every adjoint."""

import pytest
import torch
from checks import crooked, dense, normal
from torch import Tensor

from beltrami.graph import Edges
from beltrami.model.baseline import Architecture, GraphODE, cgnn, gde, gode
from beltrami.model.baseline.base import symmetric_weights
from beltrami.model.baseline.graph_ode import CGNNField, ConvolutionField
from beltrami.model.baseline.layered import GCNLayer
from beltrami.scheme import (
    PID,
    RK4,
    Checkpointed,
    ConstantSteps,
    Continuous,
    Dopri5,
    Euler,
    Scheme,
    TimeStepping,
    solve,
)
from beltrami.stencil import Loops
from beltrami.train import seeded

WIDTH = 3
ARCHITECTURE = Architecture(5, 2, width=WIDTH, input_dropout=0.0, dropout=0.0, stencil=Loops())
EXACT = Scheme(Dopri5(), PID(1e-10, 1e-10))
MAKERS = {"cgnn": cgnn, "gde": gde, "gode": gode}


def cgnn_field(*, mixing: bool) -> CGNNField:
    with seeded(1):
        return CGNNField(WIDTH, mixing=mixing).double()


def adjacency(edges: Edges) -> Tensor:
    """Return the symmetrically normalised adjacency matrix, dense."""
    a = dense(torch.ones(edges.num_edges).double(), edges)
    return a / (a.sum(1)[:, None] * a.sum(0)).sqrt()


@pytest.mark.parametrize("mixing", [False, True])
def test_cgnn_is_the_solution_of_its_linear_equation(mixing: bool) -> None:
    """vec H(t) = e^{Mt} h0 + M^-1 (e^{Mt} - I) h0 with M = I (x) (A - I) + (W - I)' (x) I."""
    edges, h0, field, t = crooked(), normal(6, WIDTH), cgnn_field(mixing=mixing), 2.5
    alpha, eye, small = torch.sigmoid(field.alpha), torch.eye(6).double(), torch.eye(WIDTH).double()
    found_w = field.mixing_matrix()
    w = small if found_w is None else found_w
    a = alpha / 2 * (eye + adjacency(edges))
    m = torch.kron(small, a - eye) + torch.kron((w - small).T.contiguous(), eye)
    flow, start = torch.matrix_exp(m * t), h0.T.reshape(-1)
    expected = flow @ start + torch.linalg.solve(m, (flow - torch.eye(len(m))) @ start)
    h = solve(field.bind(h0, edges), h0, (0.0, t), EXACT).ys[-1]
    torch.testing.assert_close(h, expected.view(WIDTH, 6).T, rtol=1e-7, atol=1e-7)


@pytest.mark.slow
def test_cgnn_without_mixing_converges_to_its_equilibrium() -> None:
    edges, h0, field = crooked(), normal(6, WIDTH), cgnn_field(mixing=False)
    a = torch.sigmoid(field.alpha) / 2 * (torch.eye(6) + adjacency(edges))
    rest = torch.linalg.solve(torch.eye(6).double() - a, h0)
    h = solve(field.bind(h0, edges), h0, (0.0, 300.0), EXACT).ys[-1]
    torch.testing.assert_close(h, rest, rtol=1e-5, atol=1e-6)


def test_cgnn_mixing_matrix_is_symmetric_with_eigenvalues_in_the_unit_interval() -> None:
    field = cgnn_field(mixing=True)
    w = field.mixing_matrix()
    assert w is not None
    assert field.scale is not None
    torch.testing.assert_close(w, w.T)
    torch.testing.assert_close(torch.linalg.eigvalsh(w), torch.sigmoid(field.scale).sort().values)


@pytest.mark.parametrize("depth", [1, 2])
def test_euler_step_of_convolutions_is_a_residual_network(depth: int) -> None:
    edges, h0 = crooked().with_loops(1.0), normal(6, WIDTH)
    field = ConvolutionField(WIDTH, depth=depth).double()
    expected = h0
    for layer in field.layers:
        assert isinstance(layer, GCNLayer)
        expected = torch.tanh(adjacency(edges) @ expected @ layer.project.linear.weight.T + layer.bias)
    h1 = solve(field.bind(h0, edges), h0, (0.0, 1.0), Scheme(Euler(), ConstantSteps(1.0))).ys[-1]
    torch.testing.assert_close(h1, h0 + expected)


@pytest.mark.parametrize("name", ["gde", "gode"])
def test_gde_and_gode_with_one_euler_step_are_residual_gcns(name: str) -> None:
    model = model_of(name, Scheme(Euler(), ConstantSteps(1.0)))
    x, edges = normal(6, 5), crooked()
    a = adjacency(edges.with_loops(1.0))
    first, *middle, last = (tensor for key, tensor in model.named_parameters() if key.endswith("weight"))
    h = inner = torch.relu(a @ x @ first.T)  # biases are zero at the start
    for weight in middle:
        inner = torch.tanh(a @ inner @ weight.T)
    assert len(middle) == {"gde": 1, "gode": 2}[name]
    torch.testing.assert_close(model(x, edges), a @ (h + inner) @ last.T)


def model_of(name: str, scheme: TimeStepping) -> GraphODE:
    with seeded(0):
        made: GraphODE = MAKERS[name](ARCHITECTURE, scheme=scheme, time=1.0).double()
        return made


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("adjoint", [Checkpointed(), Continuous()], ids=["checkpointed", "continuous"])
def test_every_adjoint_gives_the_gradients_of_direct(adjoint: Checkpointed | Continuous, name: str) -> None:
    gradients = []
    for scheme in (Scheme(RK4(), ConstantSteps(0.05)), Scheme(RK4(), ConstantSteps(0.05), adjoint)):
        model = model_of(name, scheme)
        model(normal(6, 5), crooked()).square().sum().backward()
        gradients.append({key: p.grad for key, p in model.named_parameters()})
    for key, expected in gradients[0].items():
        assert expected is not None
        torch.testing.assert_close(gradients[1][key], expected, rtol=1e-4, atol=1e-6, msg=key)


@pytest.mark.parametrize("name", MAKERS)
def test_scores_along_time_end_with_the_scores(name: str) -> None:
    model = model_of(name, EXACT)
    inputs = model.prepare(normal(6, 5), crooked())
    assert model.time == 1.0
    along = model.logits_along(inputs, (0.0, 0.4, 1.0), nodes=torch.tensor([4, 1]))
    assert along.shape == (3, 2, 2)
    output = model.run(inputs)
    torch.testing.assert_close(along[-1], output.logits[[4, 1]], rtol=1e-6, atol=1e-8)
    assert output.stats.evaluations > 0
    assert not torch.allclose(along[0], along[-1])


def test_synchronising_models_say_so() -> None:
    steps = Scheme(RK4(), ConstantSteps(0.5))
    assert not model_of("gde", steps).synchronises
    assert not cgnn(ARCHITECTURE, scheme=steps, time=1.0, mixing=False).synchronises
    assert cgnn(ARCHITECTURE, scheme=steps, time=1.0, mixing=True).synchronises
    assert model_of("gode", EXACT).synchronises


def test_print_shows_scheme_and_time() -> None:
    text = str(model_of("gde", EXACT))
    for part in (f"scheme={EXACT!r}", "time=1.0", "stencil=", "(field): ConvolutionField"):
        assert part in text


def test_time_must_be_positive() -> None:
    with pytest.raises(ValueError, match=r"GraphODE needs a positive, finite terminal `time`; got 0"):
        gde(ARCHITECTURE, scheme=EXACT, time=0.0)


def test_symmetric_weights_agree_with_the_dense_matrix() -> None:
    edges = crooked()
    torch.testing.assert_close(dense(symmetric_weights(edges, torch.float64), edges), adjacency(edges))
