"""Estimates of the time and memory of training on a user's graph, from its sizes alone."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from beltrami.auto.fit_graph import BUDGET
from beltrami.auto.linear import STORED_BYTES
from beltrami.auto.selection import LARGEST_SIMILARITY, MEMORY_SHARE, STATES
from beltrami.data import Split
from beltrami.data.labelled_graph import LabelledGraph
from beltrami.memory import free_memory
from beltrami.predict.trained_models import CHANNELS

NUMBER = 4  # bytes of a float32
PROGRAM = 450 * 2**20  # bytes of Python, torch and scikit-learn, and of fitted linear models
TRAINING = 200 * 2**20  # bytes that training adds on the smallest graph
EDGE = 300  # bytes of an edge in one direction: patterns by rows and by columns, weights and scores of four heads
FEATURE = 16  # bytes of an entry of a dense matrix: as read, in double precision, scaled, and weighted by tf-idf
NONZERO = 40  # bytes of a non-zero of a sparse matrix: values and both patterns
DIFFUSED_STATES = 12  # states of a node, of CHANNELS numbers, that linear diffusion holds
NETWORK_STATES = 20  # those that training without a flow holds, where flows do not fit into memory

START = 2.0  # seconds to import and to fit logistic regressions of a few hundred labels
PRODUCT = 7e-8  # seconds of linear diffusion for each edge, in one direction, and column
WALK = 3e-6  # seconds of label propagation for each edge
EPOCH = 1e-5  # seconds of the longest epoch for each edge: the budget does not interrupt it
PAIR = 6e-11  # seconds of the search for similar nodes for each pair of nodes and feature; nor this search
PAIR_FEATURES = 50  # features that the sorting of similarities counts for
LABEL = 2e-7  # seconds of regressions for each label, feature and output


@dataclass(frozen=True)
class CostEstimate:
    """Seconds on one core, and bytes of memory of the process at its peak; measured runs were within a factor of two.

    ``baselines`` are the seconds of the baselines alone. Small graphs are done before the budget is spent.
    """

    seconds: float
    baselines: float
    memory: int


def estimate_cost(
    graph: LabelledGraph, splits: Sequence[Split] = (), *, budget: float = BUDGET, fast: bool = False
) -> CostEstimate:
    """Estimate the time and memory of :func:`~beltrami.auto.fit_graph.fit_graph`.

    Time is that of the baselines, which grows with the edges times the smaller of features and labelled nodes, and
    unless ``fast`` the budget and what goes on when it is spent: an epoch, or the search for similar nodes, counted up
    to half the budget, as on large graphs it is often not begun. Flows that the portfolio leaves out because of their
    memory are not counted. The time to read the files is not part of it.
    """
    nodes, features = graph.x.shape
    labels = sum(int((split.train | split.val).sum()) for split in splits)
    edges, outputs = graph.edges.num_edges, 1 if graph.targets is None else len(graph.targets.names)
    columns = min(features, labels) if labels else features
    baselines = START + (PRODUCT * columns + WALK) * edges + LABEL * labels * columns * outputs
    state = NUMBER * CHANNELS * nodes
    flows = not fast and STATES * state <= MEMORY_SHARE * free_memory("cpu")
    states = STATES if flows else DIFFUSED_STATES if fast else NETWORK_STATES
    seconds = baselines + (0.0 if fast else budget)
    if flows:
        compared = PAIR * nodes**2 * (features + PAIR_FEATURES) if _compares(graph) else 0.0
        seconds += EPOCH * edges + min(compared, budget / 2)
    memory = PROGRAM + _feature_bytes(graph, fast=fast) + EDGE * edges // (1 if flows else 4) + states * state
    memory += min(STORED_BYTES, 7 * NUMBER * labels * features) + (0 if fast else TRAINING)
    return CostEstimate(seconds, baselines, memory)


def _feature_bytes(graph: LabelledGraph, *, fast: bool) -> int:
    """Return the bytes of the features; members that compare nodes by them hold them dense if they are not too many."""
    nodes, features = graph.x.shape
    dense = graph.x.layout == torch.strided
    if dense or (not fast and _compares(graph)):
        return FEATURE * nodes * features
    return NONZERO * graph.x._nnz()


def _compares(graph: LabelledGraph) -> bool:
    """Return whether members of the portfolio compare nodes by their features."""
    nodes, features = graph.x.shape
    return nodes * features <= LARGEST_SIMILARITY and nodes != features
