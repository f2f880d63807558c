"""The area under the receiver operating characteristic is the share of pairs in the right order."""

import pytest
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor

from beltrami.data.dataset import Split
from beltrami.train import Classification
from beltrami.train.ranking import roc_auc


def by_pairs(scores: Tensor, y: Tensor) -> float:
    pairs = [(float(a), float(b)) for a in scores[y == 1] for b in scores[y == 0]]
    return sum((a > b) + 0.5 * (a == b) for a, b in pairs) / len(pairs)


def drawn(n: int = 40) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(0)
    scores = torch.randint(-4, 5, (3, n), generator=random).double() / 2  # many ties
    return scores, torch.randint(0, 2, (n,), generator=random)


def test_area_is_the_share_of_ordered_pairs() -> None:
    scores, y = drawn()
    area = roc_auc(scores, y)
    for row, found in zip(scores, area.tolist(), strict=True):
        assert found == pytest.approx(by_pairs(row, y), abs=1e-12)
        assert found == pytest.approx(roc_auc_score(y.numpy(), row.numpy()), abs=1e-12)


def test_limits_of_the_area() -> None:
    y = torch.tensor([0, 0, 1, 1])
    assert roc_auc(y.double(), y) == 1
    assert roc_auc(-y.double(), y) == 0
    assert roc_auc(torch.zeros(4), y) == 0.5
    assert roc_auc(torch.zeros(4), torch.ones(4, dtype=torch.long)) == 0  # no pair


def test_nodes_that_do_not_count_change_nothing() -> None:
    scores, y = drawn()
    counted = torch.arange(40) % 3 > 0
    assert torch.equal(roc_auc(scores, y, counted=counted), roc_auc(scores[:, counted], y[counted]))
    mapped = torch.vmap(lambda s, c: roc_auc(s, y, counted=c))(scores, counted.expand(3, -1))
    assert torch.equal(mapped, roc_auc(scores, y, counted=counted))


def test_classification_scored_by_the_area() -> None:
    scores, y = drawn()
    task = Classification(2, scored_by="roc-auc")
    outputs = torch.stack((0.3 - scores, torch.full_like(scores, 0.3)), -1)
    assert torch.equal(task.metric(outputs, y), roc_auc(scores, y))
    with pytest.raises(ValueError, match="roc-auc is for two classes; got 3: use accuracy"):
        Classification(3, scored_by="roc-auc")


def test_a_class_may_be_missing_where_the_task_says_so() -> None:
    flags = torch.eye(3, dtype=torch.bool)
    split, y = Split(flags[0], flags[1], flags[2], "pei", 0), torch.tensor([0, 1, 1])
    Classification(2, complete=False).check(y, split)
    with pytest.raises(ValueError, match="class 1 has no training nodes"):
        Classification(2).check(y, split)
