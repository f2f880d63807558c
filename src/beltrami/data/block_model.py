"""Contextual stochastic block models: random graphs of known homophily, degree and noise."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from beltrami.arguments import Count, Positive, Seed, checked
from beltrami.data.dataset import Dataset, undirected


@checked
@dataclass(frozen=True)
class BlockModel:
    r"""Two classes s = +1 and -1, drawn independently and with equal probability (Deshpande et al. 2018).

    .. math:: P(i \sim j) = \begin{cases} 2 h d / (n - 1) & s_i = s_j \\ 2 (1 - h) d / (n - 1) & s_i \ne s_j
        \end{cases}, \qquad x_i = \tfrac{\delta}{2} s_i v + \varepsilon_i, \quad \varepsilon_i \sim N(0, I)

    Of the edges, a share h is within a class in the mean: for h = 1/2 the graph says nothing, below it neighbours
    mostly differ. v is the unit vector of equal entries; the noise looks alike in all directions, so that another
    direction would be as hard.

    Args:
        num_nodes: n.
        homophily: h, from 0 to 1.
        degree: d, the mean degree.
        distance: :math:`\delta`, between the means of the features of the classes, in standard deviations of the noise.
        features: the width of x.
    """

    num_nodes: Count
    homophily: float
    degree: Positive
    distance: float
    features: Count = 16

    def __post_init__(self) -> None:
        if not 0 <= self.homophily <= 1 or self.distance < 0 or not math.isfinite(self.distance):
            found = f"got homophily={self.homophily:g}, distance={self.distance:g}"
            raise ValueError(f"BlockModel needs `homophily` from 0 to 1 and `distance` of at least 0; {found}.")
        if self.num_nodes < 2 or 2 * self.degree > self.num_nodes - 1:
            found = f"got {self.num_nodes} nodes of degree {self.degree:g}"
            raise ValueError(f"BlockModel needs `degree` of at most half the number of other nodes; {found}.")

    @property
    def probabilities(self) -> tuple[float, float]:
        """The probabilities of an edge within a class, and between classes."""
        whole = 2 * self.degree / (self.num_nodes - 1)
        return whole * self.homophily, whole * (1 - self.homophily)

    @property
    def best_without_graph(self) -> float:
        r"""The accuracy of the best classifier that knows the model but not the graph, :math:`\Phi(\delta / 2)`."""
        return 0.5 * (1 + math.erf(self.distance / math.sqrt(8)))

    def feature_log_odds(self, x: Tensor) -> Tensor:
        r"""Return :math:`\log P(x_i | s_i = 1) / P(x_i | s_i = -1) = \delta \langle v, x_i \rangle`; (n, d) -> (n,)."""
        return self.distance * x.double().sum(1) / math.sqrt(self.features)

    @checked
    def draw(self, seed: Seed) -> Dataset:
        """Return a graph of the model; class 1 is s = +1. Time is O(n^2), memory O(n + edges)."""
        random = np.random.default_rng(seed)
        y = random.integers(0, 2, self.num_nodes)
        mean = (y - 0.5) * self.distance / math.sqrt(self.features)
        x = mean[:, None] + random.standard_normal((self.num_nodes, self.features))
        edge_index = torch.from_numpy(self._draw_edges(y, random))
        name = f"block-model-{self.homophily:g}"
        return Dataset(
            name, torch.from_numpy(x).float(), undirected(edge_index, num_nodes=self.num_nodes), torch.from_numpy(y)
        )

    def _draw_edges(self, y: NDArray[np.int64], random: np.random.Generator) -> NDArray[np.int64]:
        within, between = self.probabilities
        ends = []
        for node in range(self.num_nodes - 1):
            probability = np.where(y[node + 1 :] == y[node], within, between)
            joined = node + 1 + np.flatnonzero(random.random(probability.shape[0]) < probability)
            ends.append(np.stack((np.full_like(joined, node), joined)))
        return np.concatenate(ends, axis=1)
