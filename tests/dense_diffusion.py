"""The solution operator of linear diffusion as a dense matrix, straight from its definition."""

import torch
from scipy.linalg import expm
from torch import Tensor

from beltrami.graph import Edges


def walk_matrix(edges: Edges) -> Tensor:
    """P: weights plus a loop of weight one on every node, which replaces other loops, divided by row sums."""
    w = torch.eye(edges.num_nodes, dtype=torch.float64)
    weights = torch.ones(edges.num_edges) if edges.weight is None else edges.weight
    for (j, i), weight in zip(edges.edge_index.T.tolist(), weights.tolist(), strict=True):
        w[i, j] += weight if i != j else 0.0
    return w / w.sum(1, keepdim=True)


def diffusion_matrix(edges: Edges, time: float) -> Tensor:
    """exp(t (P - I)) by scipy."""
    return torch.from_numpy(expm(time * (walk_matrix(edges) - torch.eye(edges.num_nodes)).numpy()))
