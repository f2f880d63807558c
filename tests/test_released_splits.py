"""The splits of the released code, against its rule written out node by node, and averages of all subsets of flows."""

import numpy as np
import pytest
import torch
from model_average import averages
from released_splits import released_split

from beltrami.data import Dataset
from beltrami.data.protocol import DEVELOPMENT, TRAIN_PER_CLASS
from beltrami.predict import ModelAverage

NODES, CLASSES = 2000, 3


def problem() -> Dataset:
    y = torch.arange(NODES) * 7 % CLASSES
    return Dataset("cora", torch.ones(NODES, 1), torch.tensor([[0, 1], [1, 0]]), y)


@pytest.mark.parametrize("seed", [0, 12345])
def test_a_released_split_follows_its_rule_node_by_node(seed: int) -> None:
    dataset = problem()
    split = released_split(dataset, seed)
    y = dataset.y.tolist()
    development = [int(node) for node in np.random.RandomState(seed).choice(NODES, DEVELOPMENT, replace=False)]
    stream, train = np.random.RandomState(seed), set()
    for label in range(CLASSES):
        nodes = [node for node in development if y[node] == label]
        train |= {nodes[k] for k in stream.choice(len(nodes), TRAIN_PER_CLASS, replace=False)}
    found = {name: set(mask.nonzero().flatten().tolist()) for name, mask in split.masks.items()}
    assert found == {
        "train": train,
        "val": set(development) - train,
        "test": set(range(NODES)) - set(development),
    }
    assert len(train) == CLASSES * TRAIN_PER_CLASS


def test_every_subset_of_flows_is_averaged_once() -> None:
    generator = torch.Generator().manual_seed(0)
    y = torch.randint(CLASSES, (60,), generator=generator)
    logits = {name: torch.randn(60, CLASSES, generator=generator) for name in ("a", "b", "c")}
    val, rest = torch.arange(60) < 30, torch.arange(60) >= 30
    found = averages(logits, y, val, rest)
    assert set(found) == {"a+b", "a+c", "b+c", "a+b+c"}
    average = ModelAverage.fit([logits["a"][val], logits["c"][val]], y[val])
    predicted = average.probabilities([logits["a"], logits["c"]]).argmax(1)
    expected = [100 * float((predicted[nodes] == y[nodes]).float().mean()) for nodes in (val, rest)]
    assert found["a+c"] == pytest.approx(expected, abs=1e-3)
