"""A report lists the least certain predictions and the least likely labels."""

from typing import Any

import numpy as np

from beltrami.report.listed_nodes import suspicious, uncertain
from beltrami.report.run_data import PARTS, NodeData, RunData

UNLABELLED, TRAIN, VALIDATION, TEST, CALIBRATION = range(len(PARTS))


def run(kind: str, part: list[int], label: Any, predicted: Any, p: Any = None, reached: Any = None) -> RunData:
    n = len(part)
    nodes = NodeData(
        ids=[str(k) for k in range(n)],
        part=np.array(part),
        label=np.array(label),
        predicted=np.array(predicted),
        probabilities=None if p is None else np.array(p),
        degree=np.zeros(n, dtype=int),
        reached=None if reached is None else np.array(reached),
    )
    return RunData("", "", kind, ("a", "b"), "", {}, {}, {}, nodes)


def two_classes(part: list[int], label: list[int], first: list[float], **options: Any) -> RunData:
    p = np.stack((first, 1 - np.array(first)), axis=1)
    return run("classes", part, label, p.argmax(1), p, **options)


def test_the_least_certain_of_the_nodes_to_predict_come_first() -> None:
    data = two_classes([TEST, UNLABELLED, TRAIN, TEST, VALIDATION], [0, -1, 0, 1, 0], [0.9, 0.6, 0.5, 0.3, 0.5])
    assert uncertain(data).tolist() == [1, 3, 0]
    assert uncertain(data, 1).tolist() == [1]


def test_without_nodes_to_predict_those_of_validation_are_listed() -> None:
    data = two_classes([TRAIN, VALIDATION, CALIBRATION], [0, 0, 0], [0.5, 0.6, 0.55])
    assert uncertain(data).tolist() == [2, 1]


def test_nodes_that_no_label_reaches_are_not_listed() -> None:
    reached = [True, False, True, False]
    data = two_classes([TEST, TEST, TRAIN, TRAIN], [0, 0, 1, 1], [0.6, 0.5, 0.9, 0.9], reached=reached)
    assert uncertain(data).tolist() == [0]
    assert suspicious(data).tolist() == [2]


def test_labels_of_the_lowest_probability_are_suspicious_if_they_are_contradicted() -> None:
    data = two_classes([TRAIN, TRAIN, TEST, UNLABELLED, TRAIN], [0, 1, 0, -1, 0], [0.4, 0.9, 0.2, 0.1, 0.6])
    assert suspicious(data).tolist() == [1, 2, 0]
    assert suspicious(data, 2).tolist() == [1, 2]


def test_one_label_of_several_makes_a_node_uncertain_or_suspicious() -> None:
    p = [[0.9, 0.55], [0.8, 0.2], [0.1, 0.9]]
    data = run("labels", [TEST, TEST, TRAIN], [[1, 1], [1, 0], [1, 1]], [[1, 1], [1, 0], [0, 1]], p)
    assert uncertain(data).tolist() == [0, 1]
    assert suspicious(data).tolist() == [2]


def test_numbers_are_suspicious_by_their_errors() -> None:
    data = run("numbers", [TRAIN, TRAIN, TEST, UNLABELLED], [1.0, 2.0, 3.0, np.nan], [1.0, 5.0, 2.0, 4.0])
    assert suspicious(data).tolist() == [1, 2]
    assert uncertain(data).tolist() == []
