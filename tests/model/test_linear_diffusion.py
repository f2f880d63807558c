"""Linear diffusion: the matrix exponential, sparse features, times, training as any other model, and refusals."""

import pytest
import torch
from checks import bare, crooked, normal, ragged
from dense_diffusion import diffusion_matrix
from toy import two_cliques

from beltrami.graph import Edges, SparseMatrix
from beltrami.model import linear_diffusion
from beltrami.model.linear_diffusion import LinearDiffusion
from beltrami.scheme import Exponential
from beltrami.train import TimeGrid, Training, fit, fit_many, predict, seeded

EXACT = Exponential(rtol=1e-12, atol=1e-12)
WEIGHTED = ragged(weighted=True)


def made(time: float, *, features: int = 3, outputs: int = 2) -> LinearDiffusion:
    with seeded(0):
        return LinearDiffusion(features, outputs, time=time, scheme=EXACT).double().eval()


@pytest.mark.parametrize("edges", [WEIGHTED, crooked(), bare()], ids=["weighted", "crooked", "bare"])
@pytest.mark.parametrize("time", [0.0, 0.7, 20.0])
def test_logits_are_those_of_the_matrix_exponential(edges: Edges, time: float) -> None:
    model, x = made(time), normal(edges.num_nodes, 3)
    weight, bias = model.encoder.linear.weight.detach(), model.encoder.linear.bias.detach()
    expected = diffusion_matrix(edges, time) @ x @ weight.T + bias
    torch.testing.assert_close(model(x, edges).detach(), expected, rtol=0, atol=1e-9)


def test_an_isolated_node_keeps_its_features() -> None:
    model, x = made(5.0), normal(6, 3)
    torch.testing.assert_close(model(x, WEIGHTED)[5], model.encoder(x)[5])


def test_sparse_features_give_the_same_logits() -> None:
    model, x = made(2.0), normal(6, 3)
    x[x.abs() < 0.5] = 0
    torch.testing.assert_close(model(SparseMatrix.of(x), WEIGHTED), model(x, WEIGHTED))


def test_logits_along_the_flow_agree_with_models_of_each_time() -> None:
    x, ts = normal(6, 3), (0.0, 0.5, 3.0)
    model = made(3.0)
    inputs = model.prepare(x, WEIGHTED)
    along = model.logits_along(inputs, ts, nodes=torch.tensor([4, 1]))
    for time, logits in zip(ts, along, strict=True):
        torch.testing.assert_close(logits, made(time)(x, WEIGHTED)[[4, 1]])


def test_outputs_are_diffused_in_blocks_of_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = made(3.0, outputs=5), normal(6, 3)
    expected = model(x, WEIGHTED).detach()
    monkeypatch.setattr(linear_diffusion, "MOST_COLUMNS", 2)
    torch.testing.assert_close(predict(model, model.prepare(x, WEIGHTED), time=3.0), expected)


def test_a_model_of_time_zero_is_evaluated_at_time_zero() -> None:
    model, x = made(0.0), normal(6, 3)
    inputs = model.prepare(x, WEIGHTED)
    torch.testing.assert_close(predict(model, inputs, time=0.0), model.encoder(x).detach())
    assert model.run(inputs).solves == ()


@pytest.mark.slow
@pytest.mark.parametrize("time", [0.0, 3.0])
def test_it_trains_by_gradient_and_stacked_training_is_the_same(time: float) -> None:
    toy = two_cliques()
    training = Training(8, lambda groups: torch.optim.Adam(groups, lr=0.1), time_grid=TimeGrid(2.0, 2))
    models = []
    for seed in range(4):
        with seeded(seed % 2):
            models.append(LinearDiffusion(6, 2, time=time, input_dropout=0.2))
    edges = Edges.build(toy.edge_index, num_nodes=len(toy.y))
    inputs = models[0].prepare(toy.x, edges)
    stacked = fit_many(models[:2], inputs, toy.y, [toy.split] * 2, training)
    for seed, (model, other) in enumerate(zip(models[2:], models[:2], strict=True)):
        with seeded(seed):
            found = fit(model, inputs, toy.y, toy.split, training)
        assert found.best.accuracy >= 0.8
        assert stacked[seed].best.metric == found.best.metric  # type: ignore[union-attr]
        torch.testing.assert_close(other.encoder.linear.weight, model.encoder.linear.weight, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("time", [-1.0, float("inf"), float("nan")])
def test_an_impossible_time_is_refused(time: float) -> None:
    with pytest.raises(ValueError, match="finite terminal `time` of at least 0"):
        LinearDiffusion(3, 2, time=time)


def test_positions_are_refused() -> None:
    with pytest.raises(ValueError, match="takes no positions"):
        made(1.0)(normal(6, 3), WEIGHTED, pos=normal(6, 2))
