"""The data of a report: all that the page, the figures and the flow viewer show of a run, as numpy arrays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy
from numpy.typing import NDArray

PARTS = ("other", "train", "validation", "test", "calibration")
"""The parts of a split; ``NodeData.part`` counts in this order."""
SCORE_ORDER = ("test", "validation", "calibration", "train")
"""The parts in the order in which scores are shown; the first that is known is the headline."""

Floats = NDArray[numpy.floating[Any]]
Integers = NDArray[numpy.integer[Any]]


@dataclass(frozen=True, eq=False)
class NodeData:
    """Labels and predictions at n nodes.

    Args:
        ids: the user's names of the nodes; any text.
        part: (n,) the part of the split of each node, an index into ``PARTS``.
        label: for classes (n,) with -1 where unknown; for labels (n, C) of 0 and 1 with -1 where unknown; for numbers
            (n,) with NaN where unknown.
        predicted: for classes (n,), for labels (n, C) of 0 and 1, for numbers (n,).
        probabilities: (n, C), calibrated where the run has a calibration; None for numbers.
        sets: (n, C) conformal sets, or None.
        interval: (n, 2) of numbers, or None.
        degree: (n,) the number of neighbours in the graph of the data, without loops.
        reached: (n,) whether a label is in the node's connected component, without which the prediction means nothing;
            None if all predictions count.
    """

    ids: Sequence[str]
    part: Integers
    label: NDArray[Any]
    predicted: NDArray[Any]
    probabilities: Floats | None
    degree: Integers
    sets: NDArray[numpy.bool_] | None = None
    interval: Floats | None = None
    reached: NDArray[numpy.bool_] | None = None


@dataclass(frozen=True, eq=False)
class Mesh:
    """The graph of the flow from time ``start`` to ``stop``.

    Args:
        pairs: (m, 2) nodes, ``pairs[k, 0] < pairs[k, 1]``, each pair once, without loops; the strongest first.
        weights: (m, 2, 2) diffusivities: ``weights[k, 0]`` is that with which node ``pairs[k, 0]`` receives from
            ``pairs[k, 1]``, ``weights[k, 1]`` the reverse; the last axis is at ``start`` and at ``stop``. Zero where
            there is no edge in that direction.
    """

    start: float
    stop: float
    pairs: Integers
    weights: Floats


@dataclass(frozen=True, eq=False)
class FlowData:
    """The flow of a trained model at K times from 0 to its terminal time.

    Args:
        times: (K,) increasing from 0.
        positions: (K, n, 2) where to draw the nodes: one fixed map of the states for all times.
        axes: the names of the two axes, such as "first principal component".
        projection: one sentence that says what the picture shows.
        disc: whether the positions lie in the Poincare disc.
        predicted: (K, n) class by the decoder at each time; for numbers (K, n) values.
        confidence: (K, n) probability of that class; None for numbers.
        meshes: the graph, in segments that cover all times in order; one unless the graph is rebuilt.
        nodes: (n,) the nodes that are drawn, ascending, where they are a sample of all; None for all. The arrays above
            and the pairs of the meshes count the nodes that are drawn.
    """

    times: Floats
    positions: Floats
    axes: tuple[str, str]
    projection: str
    disc: bool
    predicted: NDArray[Any]
    confidence: Floats | None
    meshes: Sequence[Mesh]
    nodes: Integers | None = None


@dataclass(frozen=True, eq=False)
class AlongTime:
    """Quantities at L times from 0 to the end of the model's own time interval, and the time that was chosen.

    Args:
        times: (L,).
        accuracy: by the name of the part of the split, (L,) accuracies (or errors for numbers) from 0 to 1.
        energies: by name, (L,) energies of the state, such as the Dirichlet energy.
        chosen: the terminal time that validation chose.
    """

    times: Floats
    accuracy: Mapping[str, Floats]
    energies: Mapping[str, Floats]
    chosen: float


@dataclass(frozen=True)
class Share:
    """A node's or an edge's share in the margin of a prediction; an edge goes from ``node`` to ``to``."""

    node: int
    share: float
    to: int | None = None


@dataclass(frozen=True)
class Reasons:
    """The explanation of one prediction: ``margin`` of the predicted class over class ``other``, as a sum of shares."""

    node: int
    predicted: str
    other: str
    margin: float
    method: str  # a sentence that says what the shares are
    nodes: Sequence[Share]  # the largest first, a few
    edges: Sequence[Share]


@dataclass(frozen=True, eq=False)
class RunData:
    """A trained run.

    Args:
        title: such as "cora / blend".
        folder: the folder of the run, as the user named it.
        kind: "classes", "labels" or "numbers".
        names: the classes or labels; for numbers the name of the column.
        metric: the name of the score, such as "accuracy".
        facts: the summary, name and text, in the order to show.
        settings: the configuration, as JSON values.
        scores: the score by part of the split, from 0 to 1 (numbers: an error in the units of the label).
        epochs: columns of equal length, one row for each epoch: "epoch", "loss", "validation", "time" (seconds since
            the start) and others; empty if the run has no log.
        solver: statistics of a solve from 0 to the terminal time, and totals of the training, by name.
        weights: (m,) all diffusivities of the flow's graph at time 0, loops included; None without a flow.
        coverage: the probability with which a set or interval was asked to hold the truth, or None.
        baselines: name, validation score and test score (None if not known) of the models beside it; the run is first.
        flow: None for a model without a flow.
        reasons: explanations by node, of some nodes.
        notes: sentences for the reader.
    """

    title: str
    folder: str
    kind: str
    names: Sequence[str]
    metric: str
    facts: Mapping[str, str]
    settings: Mapping[str, Any]
    scores: Mapping[str, float]
    nodes: NodeData
    epochs: Mapping[str, Floats] = field(default_factory=dict)
    along: AlongTime | None = None
    solver: Mapping[str, float] = field(default_factory=dict)
    weights: Floats | None = None
    coverage: float | None = None
    baselines: Sequence[tuple[str, float, float | None]] = ()
    flow: FlowData | None = None
    reasons: Mapping[int, Reasons] = field(default_factory=dict)
    notes: Sequence[str] = ()
