"""A network on diffused rows equals the network whose flow is on the graph, and BLEND with one time."""

from pathlib import Path

import pytest
import torch
from row_examples import TIMES, double_network, toy_folder
from torch import Tensor
from toy import two_cliques

from beltrami.graph import SparseMatrix
from beltrami.model import BLEND, Decoder, Encoder
from beltrami.model.linear_diffusion import random_walk_evolution
from beltrami.model.row_network import RowNetwork
from beltrami.scale.diffused_rows import diffuse_rows
from beltrami.scheme import Exponential
from beltrami.train import seeded

EXACT = Exponential(rtol=1e-13, atol=0.0)


def rows_of(path: Path, times: tuple[float, ...] = TIMES) -> Tensor:
    return diffuse_rows(toy_folder(path), times=times, rtol=1e-13).read(slice(0, 20))


@pytest.mark.parametrize("hidden", [None, 5])
@pytest.mark.parametrize("standardise", [False, True])
def test_rows_and_graph_give_the_same_scores(tmp_path: Path, hidden: int | None, standardise: bool) -> None:
    toy = two_cliques()
    mean, scale = (toy.x.mean(0), toy.x.std(0)) if standardise else (None, None)
    model = double_network(hidden=hidden, mean=mean, scale=scale, scheme=EXACT, dropout=0.5, input_dropout=0.5).eval()
    inputs = model.prepare(toy.x.double(), toy.edge_index)
    assert torch.allclose(model.run(inputs).logits, model.from_rows(rows_of(tmp_path)), rtol=0, atol=1e-10)


def test_rows_and_graph_give_the_same_gradients_without_dropout_of_the_inputs(tmp_path: Path) -> None:
    toy, model = two_cliques(), double_network(scheme=EXACT)
    inputs, found = model.prepare(toy.x.double(), toy.edge_index), []
    for logits in (model.run(inputs).logits, model.from_rows(rows_of(tmp_path))):
        loss = torch.nn.functional.cross_entropy(logits, toy.y)
        found.append(torch.autograd.grad(loss, list(model.parameters())))
    assert all(torch.allclose(a, b, rtol=0, atol=1e-10) for a, b in zip(*found, strict=True))


def test_rows_at_one_time_give_the_scores_of_blend(tmp_path: Path) -> None:
    toy, time = two_cliques(), 3.0
    with seeded(0):
        psi, xi = Encoder(6, 8), Decoder(8, 2)
    blend = BLEND.from_parts(psi, random_walk_evolution(time=time, scheme=EXACT), xi).double().eval()
    model = RowNetwork(6, 2, times=(time,), feat=8).double().eval()
    model.encoder.load_state_dict(psi.state_dict())
    model.decoder.load_state_dict(xi.state_dict())
    scores = blend(toy.x.double(), toy.edge_index)
    assert torch.allclose(model.from_rows(rows_of(tmp_path, (time,))), scores, rtol=0, atol=1e-10)


def test_dropout_of_the_inputs_makes_a_difference_in_training(tmp_path: Path) -> None:
    toy, model = two_cliques(), double_network(input_dropout=0.5)
    inputs, rows = model.prepare(toy.x.double(), toy.edge_index), rows_of(tmp_path)
    assert not torch.allclose(model.run(inputs).logits, model.from_rows(rows), atol=1e-2)


def test_constant_rows_are_mixed_to_themselves() -> None:
    model = double_network().eval()
    row = torch.randn(1, 6, dtype=torch.float64)
    assert torch.allclose(model.from_rows(row.expand(3, 4, 6)), model.decode(model.encoder(row)).expand(4, 2))
    assert float(model.shares.detach().sum()) == pytest.approx(1.0)
    assert 0 < model.mean_time < TIMES[-1]


def test_sparse_features_give_the_scores_of_dense_ones() -> None:
    toy = two_cliques()
    for mean in (None, toy.x.mean(0)):
        model = double_network(mean=mean).eval()
        dense, sparse = (model.prepare(x, toy.edge_index) for x in (toy.x.double(), SparseMatrix.of(toy.x.double())))
        assert torch.allclose(model.run(dense).logits, model.run(sparse).logits)


def test_the_network_without_diffusion_needs_no_edges() -> None:
    model = RowNetwork(6, 2, times=(0.0,), feat=8).eval()
    x = torch.randn(4, 6)
    inputs = model.prepare(x, torch.empty(2, 0, dtype=torch.long))
    assert torch.allclose(model.run(inputs).logits, model.from_rows(x[None]))
    assert model.logits_along(inputs, (0.0, 1.0), nodes=torch.tensor([1])).shape == (2, 1, 2)


def test_times_that_do_not_increase_are_refused() -> None:
    with pytest.raises(ValueError, match="`times` must be increasing, finite and at least 0; got 2, 1"):
        RowNetwork(6, 2, times=(2, 1))
