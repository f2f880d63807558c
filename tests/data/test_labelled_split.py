"""Splits of a user's labels: shares, strata, folds, and sets named by a column."""

import numpy as np
import pytest
import torch
from torch import Tensor

from beltrami.data.labelled_split import check_training, labelled, split_labels
from beltrami.data.table import Words

MANY = torch.tensor([i % 4 for i in range(400)] + [-1] * 100)
FEW = torch.tensor([0] * 6 + [1] * 5 + [2] + [-1] * 30)


def counts(y: Tensor, mask: Tensor) -> list[int]:
    return torch.bincount(y[mask], minlength=int(y.max()) + 1).tolist()


def test_shares_of_many_labels_are_the_stated_ones() -> None:
    (split,) = split_labels(MANY, seed=0)
    assert split.calibration is not None
    assert int(split.calibration.sum()) == 80
    assert int(split.val.sum()) == pytest.approx(80, abs=2)
    assert int((split.train | split.val | split.calibration).sum()) == 400
    assert not bool(split.test.any())


def test_validation_nodes_are_stratified() -> None:
    (split,) = split_labels(MANY, seed=0)
    for train, val in zip(counts(MANY, split.train), counts(MANY, split.val), strict=True):
        assert val == round(0.25 * (train + val))


def test_calibration_nodes_are_drawn_uniformly() -> None:
    """Of labels 90 to 10, the share of the rare class among calibration nodes is 10% in the mean over seeds."""
    y = torch.tensor([0] * 360 + [1] * 40)
    shares = [counts(y, split_labels(y, seed=seed)[0].calibration)[1] / 80 for seed in range(60)]  # type: ignore[arg-type]
    assert np.mean(shares) == pytest.approx(0.1, abs=4 * 0.034 / 60**0.5)
    assert np.std(shares) > 0.02, "a stratified draw would not vary"


def test_few_labels_are_cross_validated_and_none_is_set_aside() -> None:
    splits = split_labels(FEW, seed=0)
    assert len(splits) == 5
    for split in splits:
        assert not bool(split.calibration.any())  # type: ignore[union-attr]
        assert min(counts(FEW, split.train)) >= 1, "every class trains in every fold"
        assert bool(split.val.any())
    validated = torch.stack([split.val for split in splits]).sum(0)
    assert validated.tolist() == [1] * 11 + [0] * 31, "each label validates once, the single one never"


def test_a_class_always_keeps_two_labels() -> None:
    y = torch.tensor([0] * 300 + [1] * 2)
    for seed in range(20):
        (split,) = split_labels(y, seed=seed)
        assert counts(y, split.train)[1] == 1
        assert counts(y, split.val)[1] == 1


def test_the_seed_decides() -> None:
    first, again, other = (split_labels(MANY, seed=seed)[0] for seed in (0, 0, 1))
    assert first.hash == again.hash != other.hash


def test_a_column_names_the_sets() -> None:
    words = Words(np.array([0, 1, 2, 3] * 100 + [-1] * 100), ["Train", "validation", "calibration", "test"])
    (split,) = split_labels(MANY, seed=0, column=words)
    for k, mask in enumerate((split.train, split.val, split.calibration, split.test)):
        assert torch.equal(mask, torch.from_numpy(words.codes == k))  # type: ignore[arg-type]


def test_sets_that_no_word_names_are_drawn_from_the_training_nodes() -> None:
    words = Words(np.array([0, 0, 0, 1] * 100 + [-1] * 100), ["train", "test"])
    (split,) = split_labels(MANY, seed=0, column=words)
    assert torch.equal(split.test, torch.from_numpy(words.codes == 1))
    assert int(split.calibration.sum()) == 60  # type: ignore[union-attr]


def test_calibration_nodes_are_drawn_from_named_validation_nodes_and_training_nodes_are_kept() -> None:
    words = Words(np.array([0, 1, 1, 1] * 100 + [-1] * 100), ["train", "val"])
    (split,) = split_labels(MANY, seed=0, column=words)
    assert torch.equal(split.train, torch.from_numpy(words.codes == 0))
    assert split.calibration is not None
    assert int(split.calibration.sum()) == 60
    assert torch.equal(split.val | split.calibration, torch.from_numpy(words.codes == 1))


def test_numbers_are_split_without_strata() -> None:
    y = torch.arange(300.0)
    y[250:] = torch.nan
    (split,) = split_labels(y, seed=0, calibration=0.5)
    assert int(labelled(y).sum()) == 250
    assert int(split.calibration.sum()) == 125  # type: ignore[union-attr]


def test_splits_that_cannot_be_made_are_refused() -> None:
    with pytest.raises(ValueError, match="nodes have labels to train on"):
        split_labels(torch.tensor([0, -1, -1]), seed=0)
    with pytest.raises(ValueError, match="every class has a single label"):
        split_labels(torch.tensor([0, 1, 2, -1]), seed=0)
    with pytest.raises(ValueError, match="names no labelled node `train`"):
        split_labels(MANY, seed=0, column=Words(np.zeros(500, dtype=np.int64), ["here"]))
    with pytest.raises(ValueError, match="share of calibration nodes"):
        split_labels(MANY, seed=0, calibration=1.5)


def test_rare_labels_among_several_keep_a_training_node() -> None:
    y = torch.zeros(60, 3)
    y[::2, 0] = 1
    y[[4, 8], 1] = 1
    y[5, 2] = 1
    for seed in range(20):
        splits = split_labels(y, seed=seed, calibration=0.4)
        check_training(("a", "b", "c"), y, splits)
        assert all(bool(split.train[5]) for split in splits)


def test_a_class_without_training_nodes_is_refused_by_name() -> None:
    y = torch.arange(40) % 2
    y[7] = 2
    words = Words(np.where(np.arange(40) == 7, 1, 0), ["train", "test"])
    splits = split_labels(y, seed=0, column=words)
    with pytest.raises(ValueError, match=r"no training node has the label 'owl': give it some"):
        check_training(("cat", "dog", "owl"), y, splits)
