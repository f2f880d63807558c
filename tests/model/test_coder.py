"""Encoders drop entries of their input while training, whatever its form; the decoder reads any number of states."""

import pytest
import torch
from torch import Tensor, nn

from beltrami.graph import SparseMatrix
from beltrami.model import Decoder, Encoder
from beltrami.train import seeded


def copier(width: int, *, dropout: float) -> Encoder:
    """An encoder that hands its input on, so that what was dropped can be seen."""
    encoder = Encoder(width, width, dropout=dropout)
    with torch.no_grad():
        encoder.linear.weight.copy_(torch.eye(width))
        encoder.linear.bias.zero_()
    return encoder


def half_zero() -> Tensor:
    x = torch.arange(1.0, 401.0).reshape(20, 20)
    return x * (torch.arange(400).reshape(20, 20) % 2)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_input_dropout_drops_nonzeros_and_scales_the_kept(sparse: bool) -> None:
    x, encoder = half_zero(), copier(20, dropout=0.5)
    with seeded(0):
        out = encoder(SparseMatrix.of(x) if sparse else x)
    kept = out != 0
    assert torch.equal(out[kept], 2 * x[kept])
    assert not bool(kept[x == 0].any())
    assert 0.3 < float(kept[x != 0].float().mean()) < 0.7


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_each_pass_drops_other_entries_until_evaluation(sparse: bool) -> None:
    x, encoder = half_zero(), copier(20, dropout=0.5)
    given = SparseMatrix.of(x) if sparse else x
    with seeded(0):
        assert not torch.equal(encoder(given), encoder(given))
    assert torch.equal(encoder.eval()(given), x)


def test_dropout_leaves_the_sparse_input_itself_alone() -> None:
    given = SparseMatrix.of(half_zero())
    before = given.values.clone()
    copier(20, dropout=0.9)(given)
    assert torch.equal(given.values, before)


def test_sparse_and_dense_inputs_send_the_same_gradient_to_the_weights() -> None:
    with seeded(0):
        x, encoder = half_zero().double(), Encoder(20, 3).double()
    gradients = []
    for given in (x, SparseMatrix.of(x)):
        encoder.zero_grad()
        encoder(given).square().sum().backward()
        gradients.append([p.grad.clone() for p in encoder.parameters() if p.grad is not None])
    assert len(gradients[0]) == 2
    for dense, sparse in zip(*gradients, strict=True):
        assert torch.allclose(dense, sparse, rtol=1e-10)


def test_hidden_layer_is_rectified_dropped_and_mapped_again() -> None:
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
    with pytest.raises(ValueError, match=r"Encoder needs a `hidden` layer of one channel or more; got 0"):
        Encoder(20, 3, hidden=0)


def test_decoder_rectifies_then_maps() -> None:
    with seeded(0):
        decoder, z = Decoder(4, 3), torch.randn(5, 4)
    expected = nn.functional.linear(z.clamp(min=0), decoder.linear.weight, decoder.linear.bias)
    assert torch.allclose(decoder(z), expected, atol=1e-6)


def test_decoder_reads_a_whole_trajectory_as_state_by_state() -> None:
    with seeded(0):
        decoder, ys = Decoder(4, 3), torch.randn(6, 5, 4)
    assert torch.allclose(decoder(ys), torch.stack([decoder(y) for y in ys]), atol=1e-6)


@pytest.mark.parametrize("dropout", [-0.1, 1.0, 1.5, float("nan")])
@pytest.mark.parametrize("kind", [Encoder, Decoder])
def test_dropout_outside_its_range_is_refused(kind: type[Encoder] | type[Decoder], dropout: float) -> None:
    with pytest.raises(ValueError, match=r"`dropout` must be at least 0 and below 1; got"):
        kind(4, 3, dropout=dropout)
