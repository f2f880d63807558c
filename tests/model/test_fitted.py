"""A fitted model carries the time that its training chose and the fingerprint of its graph."""

import copy
from pathlib import Path

import pytest
import torch
from toy import small_blend, two_cliques

from beltrami.errors import DataError
from beltrami.graph import Edges
from beltrami.model import BLEND, OtherGraphWarning
from beltrami.train import Fit, TimeGrid, Training, fit, fit_many, load_weights, predict, save_weights

TOY = two_cliques()
TRAINING = Training(4, lambda groups: torch.optim.Adam(groups, lr=0.03), time_grid=TimeGrid(3.0), validate_every=1)


def fitted_at_another_time() -> tuple[BLEND, Fit]:
    """Return a model whose training chose another time than T."""
    model = small_blend(dropout=0.5)
    model.xi.linear.bias.data[0] = 3.0  # one class until the flow has averaged: late times are better
    found = fit(model, model.prepare(TOY.x, TOY.edge_index), TOY.y, TOY.split, TRAINING)
    assert found.best.time != model.time
    return model, found


@pytest.mark.slow
def test_a_fitted_model_stops_at_the_time_that_was_chosen() -> None:
    model, found = fitted_at_another_time()
    inputs = model.prepare(TOY.x, TOY.edge_index)
    assert torch.equal(model(TOY.x, TOY.edge_index), predict(model, inputs, time=found.best.time))
    assert not torch.allclose(model(TOY.x, TOY.edge_index), model.run(inputs).logits)


def test_a_model_in_training_mode_stops_at_the_terminal_time() -> None:
    model = small_blend()
    fit(model, model.prepare(TOY.x, TOY.edge_index), TOY.y, TOY.split, TRAINING)
    inputs = model.prepare(TOY.x, TOY.edge_index)
    assert torch.equal(model.train()(TOY.x, TOY.edge_index), model.run(inputs).logits)


@pytest.mark.slow
def test_the_time_is_in_the_weights(tmp_path: Path) -> None:
    model, _ = fitted_at_another_time()
    expected = model(TOY.x, TOY.edge_index)
    save_weights(model, tmp_path / "model.safetensors")
    loaded, other = small_blend(dropout=0.5), small_blend(dropout=0.5)
    load_weights(loaded, tmp_path / "model.safetensors")
    other.load_state_dict(model.state_dict())
    for each in (loaded.eval(), other.eval(), copy.deepcopy(model)):
        assert each.fitted == model.fitted
        assert torch.equal(each(TOY.x, TOY.edge_index), expected)


@pytest.mark.slow
def test_models_trained_together_carry_their_times() -> None:
    models = [small_blend(), small_blend()]
    fits = fit_many(models, models[0].prepare(TOY.x, TOY.edge_index), TOY.y, [TOY.split] * 2, TRAINING)
    for model, found in zip(models, fits, strict=True):
        assert isinstance(found, Fit)
        assert model.fitted is not None
        assert model.fitted.time == found.best.time


def test_weights_of_an_earlier_version_are_read(tmp_path: Path) -> None:
    weights = {name: value for name, value in small_blend().state_dict().items() if name != "_extra_state"}
    model = small_blend()
    model.load_state_dict(weights)
    assert model.fitted is None


@pytest.mark.parametrize("text", [b"{", b"[]", b'{"time": -1.0, "graph": 1}', b'{"time": 1.0}', b"\xff"])
def test_a_damaged_record_of_the_training_is_refused(text: bytes, tmp_path: Path) -> None:
    from safetensors.torch import save_file

    weights = small_blend().state_dict() | {"_extra_state": torch.tensor(list(text), dtype=torch.uint8)}
    save_file(weights, tmp_path / "model.safetensors")
    with pytest.raises(DataError, match="are of another model"):
        load_weights(small_blend(), tmp_path / "model.safetensors")


@pytest.mark.filterwarnings("ignore::beltrami.errors.DirectedGraphWarning")
def test_another_graph_is_announced() -> None:
    model = small_blend()
    fit(model, model.prepare(TOY.x, TOY.edge_index), TOY.y, TOY.split, TRAINING)
    model(TOY.x, TOY.edge_index[:, torch.randperm(TOY.edge_index.shape[1])])  # the same graph
    directed = TOY.edge_index[:, TOY.edge_index[0] < TOY.edge_index[1]]
    with pytest.warns(OtherGraphWarning, match="fitted on another graph"):
        model(TOY.x, directed)


def test_a_fingerprint_depends_on_nodes_edges_directions_and_weights() -> None:
    def of(pairs: list[tuple[int, int]], n: int = 5, weight: list[float] | None = None) -> int:
        edge_index = torch.tensor(pairs).t().reshape(2, -1)
        return Edges.build(edge_index, num_nodes=n, weight=None if weight is None else torch.tensor(weight)).fingerprint

    base = of([(0, 1), (1, 2)])
    assert base == of([(1, 2), (0, 1)])
    others = [
        of([(1, 0), (1, 2)]),
        of([(0, 1)]),
        of([(0, 2), (1, 1)]),
        of([(0, 1), (1, 2), (1, 2)]),
        of([(0, 1), (1, 2)], n=6),
        of([(0, 1), (1, 2)], weight=[1.0, 2.0]),
        of([(0, 1), (1, 2)], weight=[2.0, 1.0]),
    ]
    assert len({base, *others}) == 8
