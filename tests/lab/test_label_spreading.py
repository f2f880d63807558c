"""Label spreading uses the labels of training nodes and no others."""

from dataclasses import replace

import torch
from toy import toy_problem

from beltrami.lab.label_spreading import spread_labels


def test_label_spreading_learns_the_toy() -> None:
    problem = toy_problem()
    found = spread_labels(problem.dataset, problem.split)
    assert found.keys() == {"rbf", "knn"}
    assert found["knn"] >= 90


def test_label_spreading_does_not_use_test_or_validation_labels() -> None:
    problem = toy_problem()
    right = spread_labels(problem.dataset, problem.split)
    y = problem.dataset.y
    mirrored = replace(problem.dataset, y=torch.where(problem.split.train, y, 1 - y))
    assert spread_labels(mirrored, problem.split) == {kernel: 100 - share for kernel, share in right.items()}
