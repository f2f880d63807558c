"""Callbacks hear of every epoch of one run or of many, and are closed however training ends."""

import json
import sys
from pathlib import Path

import pytest
import torch
from toy import small_blend, two_cliques

from beltrami.train import Callback, Epoch, Fit, JSONLines, TensorBoard, TimeGrid, Training, ValidationScore, fit_many
from beltrami.train import fit as fit_one

TOY = two_cliques()
TRAINING = Training(3, lambda groups: torch.optim.Adam(groups, lr=0.02), time_grid=TimeGrid(1.0))


class Log(Callback):
    """Keeps the epochs, and fails at one of them."""

    def __init__(self, fails_at: int = 0) -> None:
        self.epochs, self.closed, self.fails_at = list[Epoch](), 0, fails_at

    def on_epoch(self, epoch: Epoch) -> None:
        self.epochs.append(epoch)
        if epoch.number == self.fails_at:
            raise KeyboardInterrupt

    def close(self) -> None:
        self.closed += 1


def train(runs: int, *callbacks: Callback) -> list[Fit]:
    """Train one model by ``fit``, or many by ``fit_many``."""
    models = [small_blend() for _ in range(runs)]
    inputs = models[0].prepare(TOY.x, TOY.edge_index)
    if runs == 1:
        return [fit_one(models[0], inputs, TOY.y, TOY.split, TRAINING, callbacks=callbacks)]
    found = fit_many(models, inputs, TOY.y, [TOY.split] * runs, TRAINING, callbacks=callbacks)
    return [each for each in found if isinstance(each, Fit)]


@pytest.mark.slow
@pytest.mark.parametrize("runs", [1, 2])
def test_callback_is_closed_once_however_training_ends(runs: int) -> None:
    log, failing = Log(), Log(fails_at=2)
    train(runs, log)
    assert (len(log.epochs), log.closed) == (3, 1)
    with pytest.raises(KeyboardInterrupt):
        train(runs, failing)
    assert (len(failing.epochs), failing.closed) == (2, 1)


@pytest.mark.slow
@pytest.mark.parametrize("runs", [1, 2])
def test_json_lines_have_a_line_per_epoch_and_run(tmp_path: Path, runs: int) -> None:
    path, log = tmp_path / "new" / "log.jsonl", Log()
    for _ in range(2):  # the second training replaces the file of the first
        found = train(runs, JSONLines(path), log)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["epoch"], line["run"]) for line in lines] == [(e, r) for e in (1, 2, 3) for r in range(runs)]
    epochs = log.epochs[3:]
    assert [line["loss"] for line in lines] == [loss for epoch in epochs for loss in epoch.losses]
    assert [line["metric"] for line in lines] == [score.metric for epoch in epochs for score in epoch.scores]
    assert [line["val_loss"] for line in lines] == [-score.minus_loss for epoch in epochs for score in epoch.scores]
    assert [line["best_metric"] for line in lines[-runs:]] == [each.best.metric for each in found]
    assert lines[-1]["evaluations"] == sum(each.stats.evaluations for each in found)


def test_json_lines_write_null_for_numbers_that_are_not_finite(tmp_path: Path) -> None:
    log, score = JSONLines(tmp_path / "log.jsonl"), ValidationScore(-torch.inf, torch.nan, 1.0)
    log.on_epoch(Epoch(1, (4,), (torch.inf,), (score,), (score,), 0, 1))
    line = json.loads((tmp_path / "log.jsonl").read_text())  # readable before the file is closed
    log.close()
    assert (line["run"], line["loss"], line["metric"], line["val_loss"], line["time"]) == (4, None, None, None, 1.0)


@pytest.mark.parametrize("runs", [1, 2])
def test_tensorboard_has_a_folder_per_run(tmp_path: Path, runs: int) -> None:
    pytest.importorskip("tensorboardX")
    train(runs, TensorBoard(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"run-{k}" for k in range(runs)]
    for folder in tmp_path.iterdir():
        (events,) = folder.iterdir()
        content = events.read_bytes()
        for name in ("loss", "metric", "val_loss", "time", "best_metric", "best_time"):
            assert content.count(b"\x0a" + bytes([len(name)]) + name.encode()) >= 3  # one scalar per epoch


def test_missing_tensorboard_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(ImportError, match=r"TensorBoard logs need tensorboardX: run `pip install beltrami\[log\]`"):
        TensorBoard(tmp_path)
