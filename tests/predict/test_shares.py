"""Explanations list the largest shares, count labels, measure distances and can be averaged."""

from dataclasses import replace

import pytest
import torch

from beltrami.predict.shares import EdgeShare, Explanation, Margin, NodeShare

# 0 -> 1 -> 2 and 3 -> 2, a loop at 2, and node 4 apart
EXPLANATION = Explanation(
    node=2,
    predicted=1,
    other=0,
    margin=4.0,
    constant=0.5,
    remainder=0.0,
    method="exact",
    node_shares=torch.tensor([0.5, -1.0, 3.0, 1.0, 0.0], dtype=torch.float64),
    edge_index=torch.tensor([[0, 1, 2, 3], [1, 2, 2, 2]]),
    edge_shares=torch.tensor([0.5, -2.0, 9.0, 1.0], dtype=torch.float64),
)


def test_largest_absolute_shares_come_first_and_zeros_are_left_out() -> None:
    assert EXPLANATION.top_nodes(2) == [NodeShare(2, 3.0), NodeShare(1, -1.0)]
    assert EXPLANATION.top_nodes(9) == [NodeShare(2, 3.0), NodeShare(1, -1.0), NodeShare(3, 1.0), NodeShare(0, 0.5)]


def test_edges_are_listed_by_direction_without_self_loops() -> None:
    assert EXPLANATION.top_edges(2) == [EdgeShare(1, 2, -2.0), EdgeShare(3, 2, 1.0)]
    assert len(EXPLANATION.top_edges(9)) == 3
    assert replace(EXPLANATION, edge_shares=None).top_edges(2) == []


def test_contributing_nodes_are_the_fewest_that_have_the_asked_part() -> None:
    assert EXPLANATION.contributing(3.0 / 5.5).tolist() == [2]
    assert EXPLANATION.contributing(0.6).tolist() == [2, 1]
    assert EXPLANATION.contributing(0.9).tolist() == [2, 1, 3]
    assert EXPLANATION.contributing(1.0).tolist() == [2, 1, 3, 0]
    nothing = replace(EXPLANATION, node_shares=torch.zeros(5, dtype=torch.float64))
    assert nothing.contributing().tolist() == []


def test_labels_of_contributing_nodes_are_compared_with_the_prediction() -> None:
    y, labelled = torch.tensor([1, 1, 1, 0, 1]), torch.tensor([True, True, True, True, True])
    found = EXPLANATION.agreement(y, labelled)
    assert found.agree == (NodeShare(1, -1.0),)  # neither node 0, below nine tenths, nor node 2, the explained one
    assert found.disagree == (NodeShare(3, 1.0),)
    assert EXPLANATION.agreement(y, torch.zeros(5, dtype=torch.bool)).disagree == ()


def test_several_labels_agree_if_the_predicted_one_is_among_them() -> None:
    y = torch.tensor([[1, 1, 0], [1, 0, 1], [0, 0, 0], [1, 1, 1], [0, 0, 0]])
    found = EXPLANATION.agreement(y, torch.ones(5, dtype=torch.bool), cover=1.0)
    assert [node for node, _ in found.agree] == [3, 0]
    assert [node for node, _ in found.disagree] == [1]


def test_hops_follow_the_direction_of_edges() -> None:
    assert EXPLANATION.hops().tolist() == [2, 1, 0, 1, -1]
    assert replace(EXPLANATION, node=0).hops().tolist() == [0, -1, -1, -1, -1]


def test_the_mean_joins_edges_and_keeps_the_weakest_method() -> None:
    second = replace(
        EXPLANATION,
        margin=2.0,
        constant=-0.5,
        remainder=0.25,
        method="linearised",
        node_shares=torch.tensor([1.0, 0.0, 1.0, 0.0, 0.25], dtype=torch.float64),
        edge_index=torch.tensor([[4, 1], [2, 2]]),
        edge_shares=torch.tensor([1.0, 4.0], dtype=torch.float64),
    )
    mean = Explanation.mean([EXPLANATION, second])
    assert (mean.margin, mean.constant, mean.remainder, mean.method) == (3.0, 0.0, 0.125, "linearised")
    assert mean.node_shares.tolist() == [0.75, -0.5, 2.0, 0.5, 0.125]
    assert mean.edge_shares is not None
    shares = dict(zip(map(tuple, mean.edge_index.T.tolist()), mean.edge_shares.tolist(), strict=True))
    assert shares == {(0, 1): 0.25, (1, 2): 1.0, (2, 2): 4.5, (3, 2): 0.5, (4, 2): 0.5}
    assert Explanation.mean([EXPLANATION, replace(second, edge_shares=None)]).edge_shares is None


def test_means_of_nothing_or_of_different_margins_are_refused() -> None:
    with pytest.raises(ValueError, match="needs at least one"):
        Explanation.mean([])
    with pytest.raises(ValueError, match="same node, `predicted` and `other`"):
        Explanation.mean([EXPLANATION, replace(EXPLANATION, other=2)])


@pytest.mark.parametrize("cover", [0.0, 1.1, float("nan")])
def test_a_bad_cover_is_refused(cover: float) -> None:
    with pytest.raises(ValueError, match="`cover` must be above 0 and at most 1"):
        EXPLANATION.contributing(cover)


def test_the_margin_is_that_of_the_two_largest_logits_unless_classes_are_named() -> None:
    logits = torch.tensor([1.0, 4.0, 2.5])
    assert Margin.of(logits) == Margin(1, 2)
    assert Margin.of(logits, other=0) == Margin(1, 0)
    assert Margin.of(logits, predicted=2) == Margin(2, 1)
    assert Margin.of(logits, exclusive=False) == Margin(1, None)
    assert Margin.of(torch.tensor([-3.0])) == Margin(0, None)
    assert float(Margin(1, 2)(logits)) == 1.5
    assert float(Margin(1, None)(logits)) == 4.0


def test_classes_that_do_not_exist_and_equal_classes_are_refused() -> None:
    logits = torch.tensor([1.0, 4.0])
    with pytest.raises(ValueError, match=r"`predicted` must be a class from 0 to 1; got 2\."):
        Margin.of(logits, predicted=2)
    with pytest.raises(ValueError, match=r"`other` must be a class from 0 to 1; got -1\."):
        Margin.of(logits, other=-1)
    with pytest.raises(ValueError, match="must differ from the predicted class; got 1 for both"):
        Margin.of(logits, other=1)
