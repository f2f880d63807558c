"""Return probabilities of the random walk as positions."""

import torch
from torch import Tensor

from beltrami.graph import Edges, aggregate, collect
from beltrami.position.base import Encoding, Progress, announce

BLOCK = 512  # columns solved at once


class ReturnProbabilities(Encoding):
    r"""How likely the random walk is back where it began after 1, ..., ``steps`` steps:

    .. math:: u_i = (P_{ii}, (P^2)_{ii}, \dots, (P^{\text{steps}})_{ii}), \qquad P = D^{-1} A.

    What surrounds a node rather than where it is: nodes that no symmetry of the graph tells apart share a position,
    and there is no sign to choose. The walk goes along the edges and stays on a node that none leaves. Exact, in
    O(n m steps) time and O(n) memory: for graphs of some ten thousand nodes.

    Args:
        steps: the longest walk, d'.
        progress: told how many nodes are done.

    Shapes:
        -> (n, steps).
    """

    def __init__(self, steps: int, *, progress: Progress | None = None) -> None:
        if steps < 1:
            raise ValueError(f"ReturnProbabilities needs `steps` at least 1; got {steps}.")
        self.steps = steps
        self.progress = progress

    def __call__(self, edges: Edges, generator: torch.Generator | None = None) -> Tensor:
        w = torch.ones(edges.num_edges, device=edges.device) if edges.weight is None else edges.weight
        total = collect(w[:, None], edges, senders=True)
        p = w / total[edges.j, 0]
        stuck = (total == 0).to(w.dtype)
        done = announce(self.progress, "ReturnProbabilities", edges.num_nodes)
        found = []
        for nodes in torch.arange(edges.num_nodes, device=edges.device).split(BLOCK):
            here = torch.arange(len(nodes), device=edges.device)
            power = torch.zeros(edges.num_nodes, len(nodes), dtype=w.dtype, device=edges.device)
            power[nodes, here] = 1
            returns = []
            for _ in range(self.steps):
                power = aggregate(p, power, edges, transposed=True) + stuck * power
                returns.append(power[nodes, here])
            found.append(torch.stack(returns, dim=1))
            done(int(nodes[-1]) + 1)
        return torch.cat(found).float()
