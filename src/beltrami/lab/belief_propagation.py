"""Belief propagation: the best possible classification of a block model whose parameters are known."""

import torch
from torch import Tensor

from beltrami.data import Dataset, Split
from beltrami.data.block_model import BlockModel

CERTAIN = 60.0  # the log-odds of a known label, and the largest of a message
ROUNDS, DAMPING, TOLERANCE = 300, 0.3, 1e-8


def belief_propagation(field: Tensor, edge_index: Tensor, *, edge: float, absence: float = 0.0) -> Tensor:
    r"""Return the marginal log-odds of spins s = +1, -1 with the distribution

    .. math:: P(s) \propto \prod_i e^{b_i s_i / 2} \prod_{i \sim j} (1 + t s_i s_j) \prod_{i \nsim j} (1 + q s_i s_j)

    by messages along edges,

    .. math:: m_{j \to i} = b_j + \sum_{k \sim j, k \ne i} 2 \operatorname{artanh}(t \tanh(m_{k \to j} / 2)),

    and the mean effect of the pairs without an edge (Decelle et al. 2011). Exact on a tree with q = 0; on sparse random
    graphs, whose short cycles are few, exact in the limit of many nodes.

    Args:
        field: b, log-odds of each node by itself, (n,).
        edge_index: both directions of every edge, in lexicographic order, (2, m).
        edge: t, from -1 to 1.
        absence: q, of order 1 / n.
    """
    n, (j, i) = len(field), edge_index
    reverse = (i * n + j).argsort()  # edges are in the order of j n + i: the k-th of these is the reverse of edge k
    field = field.double().clamp(-CERTAIN, CERTAIN)
    message, total = field[j], field
    for _ in range(ROUNDS):
        arriving = _through(message, edge)
        total = field + _absent(total, j, i, absence) + torch.zeros_like(field).index_add(0, i, arriving)
        new = (total[j] - arriving[reverse]).clamp(-CERTAIN, CERTAIN)
        change = float((new - message).abs().max()) if len(j) else 0.0
        message = DAMPING * message + (1 - DAMPING) * new
        if change < TOLERANCE:
            break
    return total


def best_log_odds(model: BlockModel, dataset: Dataset, split: Split) -> Tensor:
    """Return the log-odds of class 1 at each node, given the features, the graph, the labels of the training nodes and
    the parameters of the model that the dataset was drawn from."""
    within, between = model.probabilities
    field = model.feature_log_odds(dataset.x)
    field = torch.where(split.train, (2.0 * dataset.y - 1) * CERTAIN, field)
    absence = (between - within) / (2 - within - between)
    return belief_propagation(field, dataset.edge_index, edge=2 * model.homophily - 1, absence=absence)


def _through(message: Tensor, coupling: float) -> Tensor:
    """Return what log-odds at one end of a pair say of the other end."""
    return 2 * torch.atanh((coupling * torch.tanh(message / 2)).clamp(-1 + 1e-15, 1 - 1e-15))


def _absent(total: Tensor, j: Tensor, i: Tensor, absence: float) -> Tensor:
    """Return the sum over the nodes that are no neighbours of what their marginals say, (n,)."""
    each = _through(total, absence)
    return each.sum() - each - torch.zeros_like(each).index_add(0, i, each[j])
