"""Encoders with dense and sparse inputs, the decoder on one state or many, and fresh parameters."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from beltrami.diffusivity import RandomWalk
from beltrami.energy import Gauss, PolyakovAction
from beltrami.flow import Attachment, ChebyshevFlow, Flow, LinearFlow, OnsagerFlow, PolyakovFlow, Rate, Source
from beltrami.graph import SparseMatrix
from beltrami.model import Decoder, Dropout, Encoder
from beltrami.model.coder import reset_parameters
from beltrami.train import seeded


def copier(width: int, *, dropout: float) -> Encoder:
    """Return an encoder with the identity map, which shows the entries dropped."""
    encoder = Encoder(width, width, dropout=dropout)
    with torch.no_grad():
        encoder.linear.weight.copy_(torch.eye(width))
        encoder.linear.bias.zero_()
    return encoder


def half_zero() -> Tensor:
    x = torch.arange(1.0, 401.0).reshape(20, 20)
    return x * (torch.arange(400).reshape(20, 20) % 2)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_input_dropout_drops_nonzeros_and_scales_the_others(sparse: bool) -> None:
    x, encoder = half_zero(), copier(20, dropout=0.5)
    with seeded(0):
        out = encoder(SparseMatrix.of(x) if sparse else x)
    kept = out != 0
    assert torch.equal(out[kept], 2 * x[kept])
    assert not bool(kept[x == 0].any())
    assert 0.3 < float(kept[x != 0].float().mean()) < 0.7


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_dropout_differs_between_calls_and_is_off_in_evaluation(sparse: bool) -> None:
    x, encoder = half_zero(), copier(20, dropout=0.5)
    inputs = SparseMatrix.of(x) if sparse else x
    with seeded(0):
        assert not torch.equal(encoder(inputs), encoder(inputs))
    assert torch.equal(encoder.eval()(inputs), x)


def test_dropout_does_not_change_the_sparse_input() -> None:
    inputs = SparseMatrix.of(half_zero())
    before = inputs.values.clone()
    copier(20, dropout=0.9)(inputs)
    assert torch.equal(inputs.values, before)


def test_sparse_and_dense_inputs_give_the_same_gradients() -> None:
    with seeded(0):
        x, encoder = half_zero().double(), Encoder(20, 3).double()
    gradients = []
    for inputs in (x, SparseMatrix.of(x)):
        encoder.zero_grad()
        encoder(inputs).square().sum().backward()
        gradients.append([p.grad.clone() for p in encoder.parameters() if p.grad is not None])
    assert len(gradients[0]) == 2
    for dense, sparse in zip(*gradients, strict=True):
        assert torch.allclose(dense, sparse, rtol=1e-10)


def test_hidden_layer_has_relu_dropout_and_a_second_map() -> None:
    with seeded(0):
        x, encoder = half_zero(), Encoder(20, 3, dropout=0.5, hidden=7)
    assert encoder.second is not None
    first, last = encoder.linear, encoder.second[2]
    assert isinstance(last, nn.Linear)
    expected = nn.functional.linear(
        torch.relu(nn.functional.linear(x, first.weight, first.bias)), last.weight, last.bias
    )
    assert torch.allclose(encoder.eval()(x), expected, atol=1e-4)
    assert torch.allclose(encoder(SparseMatrix.of(x)), expected, atol=1e-4)
    assert not torch.equal(encoder.train()(x), encoder(x))
    with pytest.raises(ValueError, match=r"Encoder needs `hidden` at least 1 and below .*; got 0"):
        Encoder(20, 3, hidden=0)


def test_decoder_is_relu_and_a_linear_map() -> None:
    with seeded(0):
        decoder, z = Decoder(4, 3), torch.randn(5, 4)
    expected = nn.functional.linear(z.clamp(min=0), decoder.linear.weight, decoder.linear.bias)
    assert torch.allclose(decoder(z), expected, atol=1e-6)


def test_decoder_maps_a_trajectory_state_by_state() -> None:
    with seeded(0):
        decoder, ys = Decoder(4, 3), torch.randn(6, 5, 4)
    assert torch.allclose(decoder(ys), torch.stack([decoder(y) for y in ys]), atol=1e-6)


@pytest.mark.parametrize("dropout", [-0.1, 1.0, float("nan")])
@pytest.mark.parametrize("kind", [Encoder, Decoder])
def test_dropout_out_of_range_is_refused(kind: type[Encoder] | type[Decoder], dropout: float) -> None:
    with pytest.raises(ValueError, match=r"`dropout` must be at least 0 and below 1; got"):
        kind(4, 3, dropout=dropout)


@pytest.mark.parametrize(
    "flow",
    [
        lambda: LinearFlow(RandomWalk(), rate=Rate(0.3), source=Source(0.2)),
        lambda: PolyakovFlow(PolyakovAction(Gauss(1.0)), attachment=Attachment(0.4)),
        lambda: OnsagerFlow(LinearFlow(RandomWalk()), 3),
        lambda: ChebyshevFlow(LinearFlow(RandomWalk()), 3, terms=3),
    ],
    ids=["rate and source", "attachment", "mixing", "polynomial"],
)
def test_reset_parameters_gives_a_flow_its_start(flow: Callable[[], Flow]) -> None:
    fresh, used = flow(), flow()
    for parameter in used.parameters():
        nn.init.constant_(parameter, 7.0)
    reset_parameters(nn.ModuleList([used]))
    for ours, expected in zip(used.parameters(), fresh.parameters(), strict=True):
        torch.testing.assert_close(ours, expected, rtol=0, atol=0)


def test_reset_dropout_draws_its_masks_again() -> None:
    dropout, x, masks = Dropout(0.5), torch.ones(50), []
    for _ in range(2):
        with seeded(3):
            dropout.reset_parameters()
        masks.append(torch.stack((dropout(x), dropout(x))))
    assert torch.equal(*masks)
    dropout.reset_parameters()
    assert not torch.equal(dropout(x), masks[0][0])
