"""Quality of positions: how well they tell the edges of a graph from its non-edges."""

from collections.abc import Callable

import torch
from torch import Tensor

from beltrami.graph import Edges

Score = Callable[[Tensor, Tensor], Tensor]


def held_out(edges: Edges, *, share: float, generator: torch.Generator) -> tuple[Edges, Tensor, Tensor]:
    """Hide a share of the undirected edges, both directions of each, and draw as many pairs that are no edges.

    Non-edges are pairs of two nodes joined in neither direction by the whole graph, uniform and without repetition.
    Self-loops stay where they are. A node may lose all its edges: nothing keeps the training graph connected.

    Args:
        edges: a graph; {i, j} is an edge of it if either direction is there.
        share: of the undirected edges, rounded to a whole number of them; between 0 and 1.
        generator: the one source of randomness.

    Returns:
        The training graph, the hidden edges (2, k) and the non-edges (2, k).
    """
    if not 0 < share < 1:
        raise ValueError(f"`share` must lie between 0 and 1; got {share}.")
    n, key = edges.num_nodes, _keys(edges)
    pairs = key[edges.i != edges.j].unique()
    hidden = round(share * len(pairs))
    free = n * (n - 1) // 2 - len(pairs)
    if not 0 < hidden <= free:
        raise ValueError(
            f"`share` {share} hides {hidden} of {len(pairs)} edges: at least one is needed, and as many of the "
            f"{free} pairs that are no edges."
        )
    order = torch.randperm(len(pairs), generator=generator, device=generator.device).to(edges.device)
    positive = pairs[order[:hidden]]
    negative = _non_edges(pairs, num_nodes=n, count=hidden, generator=generator)
    kept = ~torch.isin(key, positive)
    weight = None if edges.weight is None else edges.weight[kept]
    training = Edges.build(edges.edge_index[:, kept], num_nodes=n, weight=weight)
    return training, _ends(positive, n), _ends(negative, n)


def link_auc(score: Score, positive: Tensor, negative: Tensor) -> float:
    """Probability that an edge scores above a non-edge, a tie counting half: the area under the ROC curve.

    Args:
        score: of pairs of nodes, index tensors (k,), (k,) -> (k,); larger where an edge is likelier.
        positive: pairs that are edges, (2, k).
        negative: pairs that are not, (2, l).
    """
    if not (positive.shape[1] and negative.shape[1]):
        raise ValueError(
            f"`positive` and `negative` must hold a pair each; got {positive.shape[1]} and {negative.shape[1]}."
        )
    yes, no = score(positive[0], positive[1]), score(negative[0], negative[1]).sort().values
    if not bool(torch.isfinite(yes).all() & torch.isfinite(no).all()):
        raise ValueError("`score` must be finite on every pair; it gave NaN or infinity.")
    below, not_above = torch.searchsorted(no, yes), torch.searchsorted(no, yes, right=True)
    return float((below + not_above).double().mean() / (2 * len(no)))


def reconstruction_map(score: Score, edges: Edges, *, block: int = 256) -> float:
    r"""Mean average precision of the neighbours of every node among all other nodes.

    .. math:: \frac1{|V|} \sum_i \frac1{|N_i|} \sum_{j \in N_i}
        \frac{|\{k \in N_i : s_{ik} \ge s_{ij}\}|}{|\{k \ne i : s_{ik} \ge s_{ij}\}|}

    over the nodes i with neighbours. Ties count against: positions that all coincide reconstruct nothing.

    Args:
        score: of pairs of nodes; broadcasts, (b, 1), (1, n) -> (b, n).
        edges: the graph; N_i are the senders into i, self-loops apart.
        block: nodes done at once; memory is that of ``score`` on (block, n) pairs.
    """
    other = edges.i != edges.j
    i, j = edges.i[other], edges.j[other]
    if not len(i):
        raise ValueError("`edges` joins no two nodes: there is nothing to reconstruct.")
    nodes, total = torch.arange(edges.num_nodes, device=edges.device), 0.0
    for rows in i.unique().split(block):
        s = score(rows[:, None], nodes[None, :])
        s = s.masked_fill(nodes == rows[:, None], -torch.inf)
        here = torch.isin(i, rows)
        neighbour = torch.zeros_like(s, dtype=torch.bool)
        neighbour[torch.searchsorted(rows, i[here]), j[here]] = True
        among_neighbours = _at_least(s.masked_fill(~neighbour, -torch.inf), s)
        precision = (among_neighbours / _at_least(s, s)).masked_fill(~neighbour, 0.0)
        total += float((precision.sum(1) / neighbour.sum(1)).sum())
    return total / len(i.unique())


def _at_least(values: Tensor, thresholds: Tensor) -> Tensor:
    """How many of its row's ``values`` reach each threshold, (b, n), (b, n) -> (b, n)."""
    return values.shape[1] - torch.searchsorted(values.sort(1).values, thresholds.contiguous())


def _keys(edges: Edges) -> Tensor:
    """One number for each edge, the same for both its directions, (m,)."""
    return torch.minimum(edges.i, edges.j) * edges.num_nodes + torch.maximum(edges.i, edges.j)


def _ends(key: Tensor, num_nodes: int) -> Tensor:
    return torch.stack((key // num_nodes, key % num_nodes))


def _non_edges(pairs: Tensor, *, num_nodes: int, count: int, generator: torch.Generator) -> Tensor:
    """Keys of ``count`` pairs i < j that are not among ``pairs``: draw and reject."""
    found = pairs[:0]
    while len(found) < count:
        shape = (2, 4 * count)
        i, j = torch.randint(num_nodes, shape, generator=generator, device=generator.device).to(pairs.device)
        drawn = (i * num_nodes + j)[i < j]
        found = torch.cat((found, drawn[~torch.isin(drawn, pairs)])).unique()
    order = torch.randperm(len(found), generator=generator, device=generator.device).to(pairs.device)
    return found[order[:count]]
