"""Label propagation: the fixed point, weighted means for every task, nodes without labels, and refusals."""

import pytest
import torch
from dense_diffusion import walk_matrix
from torch import Tensor

from beltrami.auto import propagation
from beltrami.auto.propagation import propagate_labels
from beltrami.data import Split
from beltrami.graph import Edges
from beltrami.train import Classification, MultiLabel, Regression, Task

# A path 0 - 1 - 2 - 3 - 4 with weights 1, 2, 3, 4; an edge 5 - 6 without labels; and an isolated node 7.
PAIRS = torch.tensor([[0, 1], [1, 2], [2, 3], [3, 4], [5, 6]]).T
WEIGHT = torch.tensor([1.0, 2.0, 3.0, 4.0, 1.0])
EDGES = Edges.build(torch.cat((PAIRS, PAIRS.flip(0)), 1), num_nodes=8, weight=WEIGHT.repeat(2))
UNREACHED = [5, 6, 7]
Y = torch.tensor([0, 0, 1, 1, 0, -1, -1, -1])


def split_of(train: list[int], val: list[int]) -> Split:
    masks = [
        torch.zeros(8, dtype=torch.bool).index_fill(0, torch.tensor(nodes, dtype=torch.long), True)
        for nodes in (train, val)
    ]
    return Split(masks[0], masks[1], torch.zeros(8, dtype=torch.bool), "test", 0)


SPLIT = split_of([0, 2, 3], [1, 4])


def weighted_mean(values: Tensor, alpha: float) -> Tensor:
    """The mean over training nodes with the weights of the fixed point (1 - alpha) (I - alpha P)^-1."""
    kernel = torch.linalg.inv(torch.eye(8) - alpha * walk_matrix(EDGES))[:, SPLIT.train]
    mean: Tensor = kernel @ values.double() / kernel.sum(1, keepdim=True)
    return mean


def propagated(task: Task, y: Tensor, alpha: float = 0.7) -> Tensor:
    return propagate_labels(EDGES, y, [SPLIT], task=task, alphas=[alpha]).outputs[0].double()


def test_class_probabilities_are_weighted_shares() -> None:
    found = propagated(Classification(2), Y).softmax(-1)
    expected = weighted_mean(torch.tensor([[1, 0], [0, 1], [0, 1]]), 0.7)
    torch.testing.assert_close(found[:5], expected[:5], rtol=0, atol=1e-5)


def test_label_probabilities_are_weighted_shares() -> None:
    y = torch.tensor([[1, 0], [0, 0], [1, 1], [0, 1], [0, 0], [0, 0], [0, 0], [0, 0]])
    found = propagated(MultiLabel(2), y).sigmoid()
    torch.testing.assert_close(found[:5], weighted_mean(y[SPLIT.train], 0.7)[:5], rtol=0, atol=1e-5)
    torch.testing.assert_close(found[UNREACHED], torch.full((3, 2), 2 / 3, dtype=torch.float64), rtol=0, atol=1e-5)


def test_numbers_are_weighted_means_and_their_mean_where_no_label_arrives() -> None:
    y = torch.tensor([1e4, 1e4 + 1, 1e4 + 2, 1e4 + 6, 1e4, torch.nan, torch.nan, torch.nan])
    found = propagated(Regression(), y)
    torch.testing.assert_close(found[:5], weighted_mean(y[SPLIT.train][:, None], 0.7)[:5], rtol=0, atol=5e-3)
    assert found[UNREACHED, 0].tolist() == pytest.approx([1e4 + 8 / 3] * 3)


def test_nodes_that_no_label_reaches_have_the_shares_of_the_classes() -> None:
    found = propagated(Classification(2), Y).softmax(-1)
    torch.testing.assert_close(found[UNREACHED], torch.tensor([[1 / 3, 2 / 3]] * 3, dtype=torch.float64))


def test_a_label_too_far_away_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(propagation, "MOST_STEPS", 2)  # one product: from node 3 to its neighbours
    split = split_of([3, 4], [2])
    y = torch.tensor([0, 0, 1, 1, 0, 0, 0, 0])
    found = propagate_labels(EDGES, y, [split], task=Classification(2)).outputs[0].softmax(-1)
    assert found[2, 1] > 0.99
    assert found[0].tolist() == pytest.approx([0.5, 0.5])


def test_alpha_is_chosen_by_the_mean_score_of_the_splits() -> None:
    splits = [SPLIT, split_of([1, 2, 4], [0, 3])]
    each = [propagate_labels(EDGES, Y, splits, task=Classification(2), alphas=[a]) for a in (0.3, 0.6, 0.9)]
    best = max(each, key=lambda found: found.score)
    found = propagate_labels(EDGES, Y, splits, task=Classification(2), alphas=(0.3, 0.6, 0.9))
    assert (found.alpha, found.score) == (best.alpha, best.score)
    assert len(found.outputs) == 2
    accuracy = [float((out.argmax(1) == Y)[s.val].float().mean()) for out, s in zip(found.outputs, splits, strict=True)]
    assert found.validation == pytest.approx(sum(accuracy) / 2)


def test_arguments_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one split"):
        propagate_labels(EDGES, Y, [], task=Classification(2))
    with pytest.raises(ValueError, match="`alphas` must be between 0 and 1"):
        propagate_labels(EDGES, Y, [SPLIT], task=Classification(2), alphas=[1.0])
    with pytest.raises(ValueError, match="no validation nodes"):
        propagate_labels(EDGES, Y, [split_of([0, 2], [])], task=Classification(2))
