"""Link prediction: how well positions distinguish the edges of a graph from its non-edges."""

from collections.abc import Callable

import torch
from torch import Tensor

from beltrami.graph import Edges

Score = Callable[[Tensor, Tensor], Tensor]


def held_out(edges: Edges, *, share: float, generator: torch.Generator) -> tuple[Edges, Tensor, Tensor]:
    """Hold out a share of the undirected edges, both directions of each, and draw as many pairs that are no edges.

    Non-edges are pairs of two nodes that the whole graph joins in neither direction, drawn uniformly, none twice.
    Self-loops are never held out. The training graph may be disconnected, and a node may lose all its edges. Return the
    training graph, the held-out edges (2, k) and the non-edges (2, k).
    """
    if not 0 < share < 1:
        raise ValueError(f"`share` must lie between 0 and 1; got {share}.")
    n = edges.num_nodes
    key = torch.minimum(edges.i, edges.j) * n + torch.maximum(edges.i, edges.j)  # the same for both directions
    pairs = key[edges.i != edges.j].unique()
    count, free = round(share * len(pairs)), n * (n - 1) // 2 - len(pairs)
    if not 0 < count <= free:
        raise ValueError(
            f"`share` {share} holds out {count} of {len(pairs)} edges: there must be at least one, and at most as many "
            f"as the {free} pairs that are no edges."
        )
    order = torch.randperm(len(pairs), generator=generator, device=generator.device).to(edges.device)
    positive = pairs[order[:count]]
    negative = _non_edges(pairs, num_nodes=n, count=count, generator=generator)
    kept = ~torch.isin(key, positive)
    weight = None if edges.weight is None else edges.weight[kept]
    training = Edges.build(edges.edge_index[:, kept], num_nodes=n, weight=weight)
    return training, torch.stack((positive // n, positive % n)), torch.stack((negative // n, negative % n))


def link_auc(score: Score, positive: Tensor, negative: Tensor) -> float:
    """Return the area under the ROC curve: the probability that an edge scores above a non-edge, a tie counting half.

    ``score`` maps pairs of nodes (k,), (k,) -> (k,); ``positive`` (2, k) are edges, ``negative`` (2, l) are not.
    """
    if not (positive.shape[1] and negative.shape[1]):
        raise ValueError(f"`positive` and `negative` need a pair each; got {len(positive.T)} and {len(negative.T)}.")
    of_edges, others = score(positive[0], positive[1]), score(negative[0], negative[1]).sort().values
    if not bool(torch.isfinite(of_edges).all() & torch.isfinite(others).all()):
        raise ValueError("`score` must be finite on every pair; it returned NaN or infinity.")
    below, not_above = torch.searchsorted(others, of_edges), torch.searchsorted(others, of_edges, right=True)
    return float((below + not_above).double().mean() / (2 * len(others)))


def _non_edges(pairs: Tensor, *, num_nodes: int, count: int, generator: torch.Generator) -> Tensor:
    """Return the keys of ``count`` pairs i < j that are not in ``pairs``, by rejection sampling."""
    found = pairs[:0]
    while len(found) < count:
        shape = (2, 4 * count)
        i, j = torch.randint(num_nodes, shape, generator=generator, device=generator.device).to(pairs.device)
        drawn = (i * num_nodes + j)[i < j]
        found = torch.cat((found, drawn[~torch.isin(drawn, pairs)])).unique()
    order = torch.randperm(len(found), generator=generator, device=generator.device).to(pairs.device)
    return found[order[:count]]
