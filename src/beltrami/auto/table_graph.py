"""The graph of a table without edges: the scale of its columns and the number of neighbours, by validation."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from beltrami.auto.diffused import diffused_features
from beltrami.auto.linear import STRENGTHS, TIMES
from beltrami.auto.regression import Array, Coordinates
from beltrami.data import Split
from beltrami.data.graph_table import GraphTable
from beltrami.data.labelled_graph import LabelledGraph
from beltrami.data.preprocess import Preprocessing
from beltrami.data.target import Targets
from beltrami.graph.sparse_matrix import sparse_where_it_pays
from beltrami.predict.trained_models import fitting_threads

NEIGHBOUR_COUNTS = (5, 10)
TABLE_TIMES = (*TIMES, 64.0, 128.0)
MOST_LABELS = 5000  # of more labels so many, drawn evenly, choose


@dataclass(frozen=True, eq=False)
class TableGraph:
    """A graph made from a table, its preprocessing, and the times that are worth trying for linear diffusion."""

    graph: LabelledGraph
    preprocessing: Preprocessing
    times: tuple[float, ...]


def choose_graph(table: GraphTable, targets: Targets, splits: Sequence[Split]) -> TableGraph:
    """Return the graph of a table without edges on which a ridge regression of diffused features validates best.

    Candidates: columns divided each by its own spread or all by one number, times 5 or 10 neighbours. The score of a
    candidate is the least mean squared error, over times and strengths, of the ridge regression onto the targets
    (classes as unit vectors) at the validation nodes. Times worth trying are 0, the chosen time and the two beside it.
    """
    best: tuple[float, TableGraph] | None = None
    for graph, preprocessing in _candidates(table, targets):
        with fitting_threads(graph.num_nodes):
            error, time = _least_error(graph, targets, splits)
        if best is None or error < best[0]:
            place = TABLE_TIMES.index(time)
            times = sorted({0.0, *TABLE_TIMES[max(0, place - 1) : place + 2]})
            best = error, TableGraph(graph, preprocessing, tuple(times))
    assert best is not None
    return best[1]


def _candidates(table: GraphTable, targets: Targets) -> Iterator[tuple[LabelledGraph, Preprocessing]]:
    rules = [Preprocessing.learn(table.columns, table.x, ids=table.ids, one_unit=each) for each in (False, True)]
    for preprocessing in rules if rules[0] != rules[1] else rules[:1]:
        for k in NEIGHBOUR_COUNTS if table.num_nodes > min(NEIGHBOUR_COUNTS) + 1 else NEIGHBOUR_COUNTS[:1]:
            yield LabelledGraph.of_table(table, preprocessing, targets, neighbours=k), preprocessing


def _least_error(graph: LabelledGraph, targets: Targets, splits: Sequence[Split]) -> tuple[float, float]:
    """Return the least validated error over times and strengths, and its time."""
    known = torch.stack([split.train | split.val for split in splits]).any(0)
    nodes = known.nonzero()[:, 0]
    nodes = nodes[:: -(-len(nodes) // MOST_LABELS)]
    y = _as_numbers(targets, nodes)
    sets = [(split.train[nodes].numpy(), split.val[nodes].numpy()) for split in splits]
    features = diffused_features(sparse_where_it_pays(graph.x), graph.edges, nodes, TABLE_TIMES)
    found = []
    for time, each in zip(TABLE_TIMES, features, strict=True):
        inputs = Coordinates.of(each)(each)
        errors = [ridge_errors(inputs[train], y[train], inputs[val], y[val], STRENGTHS) for train, val in sets]
        found.append((float(np.mean(errors, 0).min()), time))
    return min(found)


def ridge_errors(inputs: Array, y: Array, others: Array, truth: Array, strengths: Sequence[float]) -> Array:
    r"""Return the mean squared error at other nodes of ridge regressions with an intercept, for each strength C.

    W minimises :math:`\|W\|^2 + C \|X W + b - Y\|^2`, solved for all C by one eigendecomposition of :math:`X^\top X`.

    Shapes:
        ``inputs`` (k, r), ``y`` (k, outputs), ``others`` (l, r), ``truth`` (l, outputs) -> (strengths,).
    """
    centre, mean = inputs.mean(0), y.mean(0)
    x = inputs - centre
    values, vectors = np.linalg.eigh(x.T @ x)
    right, left = vectors.T @ (x.T @ (y - mean)), (others - centre) @ vectors
    errors = []
    for strength in strengths:
        predicted = left @ (right / (values.clip(min=0) + 1 / strength)[:, None]) + mean
        errors.append(np.square(predicted - truth).mean())
    return np.array(errors)


def _as_numbers(targets: Targets, nodes: Tensor) -> Array:
    """Return the targets of labelled nodes as numbers, (k, outputs); measured ones in units of their deviation."""
    y = targets.y[nodes]
    if targets.kind == "classes":
        return np.asarray(F.one_hot(y, len(targets.names)).double().numpy())
    y = y.double()
    return np.asarray((y / y.std(0, correction=0).clamp(min=1e-30) if targets.kind == "numbers" else y).numpy())
