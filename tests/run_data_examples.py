"""Runs for the tests of pages: a few nodes, with names that are markup, formulas and several lines."""

from dataclasses import replace
from typing import Any

import numpy

from beltrami.report.run_data import AlongTime, FlowData, Mesh, NodeData, Reasons, RunData, Share

NASTY = (
    "<script>alert(1)</script>",
    '"quoted" and \'single\' & "more"',
    "two\nlines",
    "=1+1",
    "@SUM(A1)",
    "-2+3",
    "</title></svg><img src=x onerror=alert(1)>",
)
CLASSES = ("Theory", NASTY[0], "=1+1")


def class_run(*, n: int = 60, seed: int = 0, classes: tuple[str, ...] = CLASSES) -> RunData:
    """Return a run with classes, sets, times, energies, explanations and baselines; the first ids are ``NASTY``."""
    random = numpy.random.default_rng(seed)
    count = len(classes)
    label = random.integers(0, count, n)
    label[: n // 10] = -1
    logits = random.normal(size=(n, count)) + 2.5 * numpy.eye(count)[label]
    p = numpy.exp(logits) / numpy.exp(logits).sum(axis=1, keepdims=True)
    part = random.choice([1, 2, 3, 3, 4], n)
    part[label < 0] = 0
    nodes = NodeData(
        ids=[*NASTY, *(f"node {k}" for k in range(n - len(NASTY)))],
        part=part,
        label=label,
        predicted=p.argmax(axis=1),
        probabilities=p.astype(numpy.float32),
        sets=p > 0.1,
        degree=random.geometric(0.2, n) - 1,
    )
    times = numpy.linspace(0, 4, 21)
    curve = 0.3 + 0.5 * (1 - numpy.exp(-times))
    epochs = numpy.arange(1.0, 101.0)
    reasons = {
        k: Reasons(
            k,
            classes[int(nodes.predicted[k])],
            classes[1],
            1.5,
            "Exact shares, which sum to the margin.",
            [Share(0, 0.9), Share(1, -0.2)],
            [Share(0, 0.5, 1), Share(3, 0.1, k)],
        )
        for k in (0, 3, 9)
    }
    return RunData(
        title=f"graph of {NASTY[0]} / blend",
        folder="runs/<b>graph</b>",
        kind="classes",
        names=classes,
        metric="accuracy",
        facts={"nodes": f"{n:,}", "edges": "240", "device": "cpu", "<i>name</i>": NASTY[6]},
        settings={
            "scheme": {"solver": {"kind": "dopri5"}, "time": 4.0},
            "seed": seed,
            "name": NASTY[0],
            "list": [1, 2],
        },
        scores={"validation": 0.81, "test": 0.8 + 0.01 * seed},
        nodes=nodes,
        epochs={
            "epoch": epochs,
            "loss": 2 * numpy.exp(-epochs / 30) + 0.1,
            "validation": 0.8 - 0.5 * numpy.exp(-epochs / 10),
            "time": epochs * 0.1,
        },
        along=AlongTime(
            times,
            {"train": curve + 0.1, "validation": curve, "test": curve - 0.05},
            {"Dirichlet": 8 * numpy.exp(-times), "total variation": 3 * numpy.exp(-0.4 * times)},
            3.2,
        ),
        solver={"steps": 12, "rejected steps": 3, "evaluations of f": 92, "largest step": 0.73},
        weights=random.random(400) ** 3,
        coverage=0.9,
        baselines=[("this run", 0.81, 0.8), (NASTY[0], 0.7, 0.69), ("MLP", 0.55, None)],
        reasons=reasons,
        notes=["The test labels were read once.", NASTY[0]],
    )


def with_flow(data: RunData) -> RunData:
    """Return the run with a flow of two times and one edge."""
    n = len(data.nodes.ids)
    positions = numpy.random.default_rng(1).normal(size=(2, n, 2))
    mesh = Mesh(0.0, 4.0, numpy.array([[0, 1]]), numpy.full((1, 2, 2), 0.5))
    predicted = numpy.stack([data.nodes.predicted] * 2)
    flow = FlowData(
        numpy.array([0.0, 4.0]),
        positions,
        ("first principal component", "second principal component"),
        "The two principal components of the state at all times.",
        False,
        predicted,
        numpy.full((2, n), 0.7),
        [mesh],
    )
    return replace(data, flow=flow)


def moving_run() -> RunData:
    """Return a run of 12 nodes on a grid of 4 x 3 at time 0, mirrored from left to right at time 4, with key frames at
    0, 2 and 4. Pairs (7, 8) and (0, 4) are joined until time 2, (0, 4) and (10, 11) from then on."""
    data = class_run(n=12)
    data.nodes.predicted[8] = (data.nodes.label[8] + 1) % 3  # one is wrong
    k = numpy.arange(12)
    start = numpy.stack((k % 4 - 1.5, 1.0 - k // 4), axis=1)
    end = start * (-1, 1)
    weights = numpy.stack((numpy.full((2, 2), 0.5), numpy.array([[0.25, 0.5], [0.125, 0.125]])))
    flow = FlowData(
        times=numpy.array([0.0, 2.0, 4.0]),
        positions=numpy.stack((start, (start + end) / 2, end)),
        axes=("first position", "second position"),
        projection="Each node is drawn at its position.",
        disc=False,
        predicted=numpy.stack([numpy.zeros(12, dtype=int), data.nodes.predicted, data.nodes.predicted]),
        confidence=numpy.stack([numpy.full(12, 0.4), numpy.full(12, 0.7), numpy.full(12, 1.0)]),
        meshes=[
            Mesh(0.0, 2.0, numpy.array([[7, 8], [0, 4]]), weights),
            Mesh(2.0, 4.0, numpy.array([[0, 4], [10, 11]]), weights[::-1]),
        ],
    )
    return replace(data, flow=flow)


def label_run(*, n: int = 50) -> RunData:
    """Return a run with several labels for each node."""
    random = numpy.random.default_rng(2)
    label = (random.random((n, 3)) < 0.4).astype(int)
    p = numpy.clip(0.7 * label + 0.4 * random.random((n, 3)) - 0.05, 0.01, 0.99)
    label[:4] = -1
    base = class_run(n=n)
    nodes = replace(base.nodes, label=label, predicted=(p > 0.5).astype(int), probabilities=p, sets=p > 0.2)
    return replace(base, kind="labels", metric="micro F1", nodes=nodes)


def number_run(*, n: int = 80) -> RunData:
    """Return a run that predicts a number with intervals, without a log and without a flow."""
    random = numpy.random.default_rng(3)
    label = random.normal(20, 5, n)
    predicted = label + random.normal(0, 2, n)
    label[:5] = numpy.nan
    base = class_run(n=n)
    change: dict[str, Any] = {"label": label, "predicted": predicted, "probabilities": None, "sets": None}
    nodes = replace(base.nodes, **change, interval=numpy.stack([predicted - 3, predicted + 3], axis=1))
    facts: dict[str, Any] = {"kind": "numbers", "names": ["=price"], "metric": "root mean squared error"}
    return replace(base, **facts, nodes=nodes, scores={"test": 2.1}, epochs={}, along=None, reasons={}, baselines=())
