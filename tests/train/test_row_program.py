"""Training on rows: minibatches give the gradients of the loss, an interrupted training goes on to the same bits."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import get_ident

import numpy as np
import pytest
import torch
from row_examples import TIMES, double_network, toy_folder
from toy import two_cliques

from beltrami.data.array_file import Array
from beltrami.errors import Interrupted
from beltrami.model.row_network import RowNetwork
from beltrami.scale.diffused_rows import DiffusedRows, diffuse_rows
from beltrami.train import Checkpoints, Consistency, Epoch, Training, seeded
from beltrami.train.row_program import LabelledNodes, RowProgram, fit_rows, outputs_at, prefetched

SGD = partial(torch.optim.SGD, lr=0.1)
ADAM = partial(torch.optim.Adam, lr=0.02)


def labelled(chosen: torch.Tensor) -> LabelledNodes:
    nodes = chosen.nonzero()[:, 0]
    return LabelledNodes(nodes.numpy(), two_cliques().y[nodes])


SPLIT = two_cliques().split
TRAIN, VAL = labelled(SPLIT.train | SPLIT.test), labelled(SPLIT.val)


@pytest.fixture
def rows(tmp_path: Path) -> DiffusedRows:
    return diffuse_rows(toy_folder(tmp_path), times=TIMES, rtol=1e-8)


def program(
    model: RowNetwork, rows: DiffusedRows, *, batch: int, optimiser: Callable[..., torch.optim.Optimizer]
) -> RowProgram:
    return RowProgram(model, rows, TRAIN, VAL, Training(5, optimiser), batch=batch, seed=0)


def test_one_batch_takes_the_step_of_the_whole_loss(rows: DiffusedRows) -> None:
    trained, plain = double_network(), double_network()
    (loss,) = program(trained, rows, batch=100, optimiser=SGD).step(1)
    whole = torch.nn.functional.cross_entropy(plain.from_rows(rows.read(TRAIN.nodes)), TRAIN.y)
    whole.backward()
    assert loss == pytest.approx(float(whole.detach()), abs=1e-14)
    for after, before in zip(trained.parameters(), plain.parameters(), strict=True):
        assert before.grad is not None
        assert torch.allclose(after, before - 0.1 * before.grad, rtol=0, atol=1e-14)


def test_gradients_of_the_batches_sum_to_that_of_the_whole_loss(rows: DiffusedRows) -> None:
    seen: list[torch.Tensor] = []

    class Recording(torch.optim.SGD):
        def step(self, closure: object = None) -> None:  # type: ignore[override]
            assert closure is None
            seen.append(torch.cat([p.grad.flatten() for group in self.param_groups for p in group["params"]]))

    model = double_network()
    training = program(model, rows, batch=4, optimiser=partial(Recording, lr=0.1))
    training.step(1)
    sizes = [4, 4, 4, 2]
    loss = torch.nn.functional.cross_entropy(model.from_rows(rows.read(TRAIN.nodes)), TRAIN.y)
    whole = torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(model.parameters()))])
    mean = sum(size / 14 * gradient for size, gradient in zip(sizes, seen, strict=True))
    assert torch.allclose(torch.as_tensor(mean), whole, rtol=0, atol=1e-14)


def test_every_epoch_reads_every_training_node_once_in_another_order(
    rows: DiffusedRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Array] = []
    trained = program(double_network(), rows, batch=4, optimiser=SGD)
    plain = trained._read

    def recorded(chosen: Array) -> torch.Tensor:
        read.append(chosen)
        return plain(chosen)

    monkeypatch.setattr(trained, "_read", recorded)
    trained.step(1)
    trained.step(2)
    first, second = np.concatenate(read[:4]), np.concatenate(read[4:])
    assert sorted(first) == sorted(second) == list(range(14))
    assert not np.array_equal(first, second)
    assert all(np.all(np.diff(batch) > 0) for batch in read)


def test_a_network_learns_and_validation_chooses_its_epoch(rows: DiffusedRows) -> None:
    model = double_network()
    epochs: list[Epoch] = []
    found = fit_rows(model, rows, TRAIN, VAL, Training(30, ADAM), batch=5, callbacks=[epochs.append])
    assert found.best.metric == 1.0
    assert found.best_epoch == max(epochs, key=lambda epoch: epoch.scores[0]).number
    (outputs,) = [logits for _, logits in outputs_at(model, rows, VAL.nodes)]
    assert -found.best.minus_loss == pytest.approx(float(torch.nn.functional.cross_entropy(outputs, VAL.y)), rel=1e-9)


@pytest.mark.parametrize("ema", [0.0, 0.5])
def test_an_interrupted_training_goes_on_to_the_same_bits(rows: DiffusedRows, tmp_path: Path, ema: float) -> None:
    training = Training(8, ADAM, weight_decay=1e-3, ema=ema)

    def trained(checkpoints: Checkpoints | None, stop_after: int = 0) -> tuple[object, list[torch.Tensor]]:
        def stop(epoch: Epoch) -> None:
            if checkpoints is not None and epoch.number == stop_after:
                checkpoints.stop = True

        with seeded(3):
            model = double_network(dropout=0.3, input_dropout=0.3)
            kept = {"checkpoints": checkpoints}
            found = fit_rows(model, rows, TRAIN, VAL, training, batch=5, seed=3, callbacks=[stop], **kept)
        return (found.best, found.best_epoch, found.epochs), [p.detach().clone() for p in model.parameters()]

    whole, weights = trained(None)
    path = tmp_path / "checkpoint.safetensors"
    with pytest.raises(Interrupted, match="stopped after epoch 3"):
        trained(Checkpoints(path), stop_after=3)
    again, resumed = trained(Checkpoints(path))
    assert again == whole
    assert all(torch.equal(a, b) for a, b in zip(weights, resumed, strict=True))


def test_outputs_are_the_same_in_blocks(rows: DiffusedRows, monkeypatch: pytest.MonkeyPatch) -> None:
    model = double_network()
    ((_, whole),) = outputs_at(model, rows)
    monkeypatch.setattr("beltrami.train.row_program.BLOCK_BYTES", 8 * len(TIMES) * 6 * 7)  # seven rows
    blocks = list(outputs_at(model, rows))
    assert [block for block, _ in blocks] == [slice(0, 7), slice(7, 14), slice(14, 20)]
    assert torch.allclose(torch.cat([logits for _, logits in blocks]), whole, rtol=0, atol=1e-14)


def test_items_are_read_in_order_by_another_thread() -> None:
    found = list(prefetched(lambda item: (item * item, get_ident()), range(5)))
    assert [(item, square) for item, (square, _) in found] == [(k, k * k) for k in range(5)]
    assert get_ident() not in {thread for _, (_, thread) in found}
    assert list(prefetched(lambda item: item, [])) == []


def test_an_error_of_the_reading_thread_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        list(prefetched(lambda item: 1 // item, [1, 0]))


def test_a_loss_that_is_not_finite_names_the_weights(rows: DiffusedRows) -> None:
    model = double_network()
    torch.nn.init.constant_(model.decoder.linear.weight, float("nan"))
    assert program(model, rows, batch=5, optimiser=SGD).first_nonfinite() == "the weights `decoder.linear.weight`"


def test_unfit_arguments_are_refused(rows: DiffusedRows) -> None:
    model, training = double_network(), Training(2, ADAM)
    empty = LabelledNodes(np.empty(0, dtype=np.int64), torch.empty(0, dtype=torch.long))
    with pytest.raises(ValueError, match="`val` needs at least one node"):
        fit_rows(model, rows, TRAIN, empty, training, batch=5)
    with pytest.raises(ValueError, match="`train` has class 2; the network's 2 are counted from 0"):
        fit_rows(model, rows, LabelledNodes(TRAIN.nodes, TRAIN.y + 1), VAL, training, batch=5)
    with pytest.raises(ValueError, match="the network is for 6 features at the times"):
        fit_rows(RowNetwork(6, 2, times=(0.0,)), rows, TRAIN, VAL, training, batch=5)
    with pytest.raises(ValueError, match="training on rows has none of `consistency`"):
        fit_rows(model, rows, TRAIN, VAL, Training(2, ADAM, consistency=Consistency(1.0)), batch=5)
