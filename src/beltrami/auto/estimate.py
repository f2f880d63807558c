"""Estimates of the time and memory of training on a user's graph, from its sizes alone."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from beltrami.auto.fit_graph import BUDGET
from beltrami.auto.linear import STORED_BYTES
from beltrami.auto.selection import LARGEST_SIMILARITY
from beltrami.data import Split
from beltrami.data.labelled_graph import LabelledGraph
from beltrami.predict.trained_models import CHANNELS

NUMBER = 4  # bytes of a float32
PROGRAM = 450 * 2**20  # bytes of Python, torch and scikit-learn, and of fitted linear models
TRAINING = 200 * 2**20  # bytes that training adds on the smallest graph
STATES = 80  # states of a node, of CHANNELS numbers, that training holds: solver vectors, gradients, dropout
EDGE = 400  # bytes of an edge in one direction: patterns by rows and by columns, weights and scores of four heads
FEATURE = 16  # bytes of an entry of a dense matrix: as read, in double precision, scaled, and weighted by tf-idf
NONZERO = 40  # bytes of a non-zero of a sparse matrix: values and both patterns
DIFFUSED_STATES = 12  # states of a node that linear diffusion holds

START = 2.0  # seconds to import and to fit logistic regressions of a few hundred labels
PRODUCT = 7e-8  # seconds of linear diffusion for each edge and column
LABEL = 2e-7  # seconds of regressions for each label, feature and output


@dataclass(frozen=True)
class Estimate:
    """Seconds at most, and bytes of memory of the process at its peak; measured figures are within a factor of two.

    ``baselines`` are the seconds without the budget.
    """

    seconds: float
    baselines: float
    memory: int


def estimate(
    graph: LabelledGraph, splits: Sequence[Split] = (), *, budget: float = BUDGET, fast: bool = False
) -> Estimate:
    """Estimate the time and memory of :func:`~beltrami.auto.fit_graph.fit_graph`, on one core.

    Time is the budget, unless ``fast``, and the time of the baselines, which grows with the edges times the smaller of
    features and labelled nodes.
    """
    nodes, features = graph.x.shape
    labels = sum(int((split.train | split.val).sum()) for split in splits)
    edges, outputs = graph.edges.num_edges, 1 if graph.targets is None else len(graph.targets.names)
    columns = min(features, labels) if labels else features
    baselines = START + PRODUCT * edges * (columns + 2 * outputs) + LABEL * labels * columns * outputs
    seconds = baselines + (0.0 if fast else budget)
    memory = PROGRAM + _feature_bytes(graph, fast=fast) + EDGE * edges // (4 if fast else 1)
    memory += NUMBER * CHANNELS * nodes * (DIFFUSED_STATES if fast else STATES)
    memory += min(STORED_BYTES, 7 * NUMBER * labels * features) + (0 if fast else TRAINING)
    return Estimate(seconds, baselines, memory)


def _feature_bytes(graph: LabelledGraph, *, fast: bool) -> int:
    """Return the bytes of the features; members that compare nodes by them hold them dense if they are not too many."""
    nodes, features = graph.x.shape
    dense = graph.x.layout == torch.strided
    if dense or (not fast and nodes * features <= LARGEST_SIMILARITY and nodes != features):
        return FEATURE * nodes * features
    return NONZERO * graph.x._nnz()
