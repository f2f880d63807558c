"""Predictions in blocks: accuracies of hand-made nodes, and the files of a run."""

from pathlib import Path

import numpy as np
import torch

from beltrami.data.graph_folder import TEST, TRAIN, VAL
from beltrami.node_predictions import PREDICTIONS, PROBABILITY, KnownNodes

Y, ROLE = np.array([0, 1, 1, 0, 2, -1, 1]), np.array([TRAIN, VAL, VAL, TEST, TEST, TEST, TEST], dtype=np.uint8)
LOGITS = torch.tensor([[1, 0], [0, 1], [1, 0], [2, 0], [0, 1], [0, 1], [0, 3]], dtype=torch.float32)
BLOCKS = [(slice(0, 3), LOGITS[:3]), (slice(3, 7), LOGITS[3:])]


def test_accuracies_count_known_classes_only() -> None:
    found = KnownNodes(Y, ROLE, 2).accuracies_of(BLOCKS)
    assert found.val == 50
    assert found.test == 100 * 2 / 3  # the class 2, of no training node, is wrong; the unlabelled node does not count
    assert found.per_class == [100, 100]


def test_a_class_without_test_nodes_has_no_accuracy() -> None:
    role = np.where(ROLE == TEST, 0, ROLE)
    found = KnownNodes(Y, role, 2).accuracies_of(BLOCKS)
    assert (found.val, found.test, found.per_class) == (50, 0, [None, None])


def test_files_have_the_class_of_every_node_and_its_probability(tmp_path: Path) -> None:
    known = KnownNodes(Y, ROLE, 2)
    assert known.write(tmp_path, BLOCKS) == known.accuracies_of(BLOCKS)
    assert np.load(tmp_path / PREDICTIONS).tolist() == [0, 1, 0, 0, 1, 1, 1]
    np.testing.assert_allclose(np.load(tmp_path / PROBABILITY), LOGITS.softmax(-1).amax(-1).numpy(), rtol=1e-6)
