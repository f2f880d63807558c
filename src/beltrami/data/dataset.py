"""Datasets: a graph with features and classes at its nodes; splits: the nodes for training, validation and test."""

import hashlib
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from beltrami.arguments import Seed, checked
from beltrami.errors import as_classes, check_graph, check_matrix

Metric = Literal["accuracy", "roc-auc"]


@checked
@dataclass(frozen=True, eq=False)
class Split:
    """Disjoint sets of nodes as boolean masks (n,); nodes in none of them are unused.

    The labels of ``train`` are used in training, ``val`` selects the epoch and the settings, and the accuracy on
    ``test`` is reported. ``protocol`` names the rule that made the sets, with its random ``seed``. The labels of
    ``calibration``, if there are any, are used for prediction sets alone.
    """

    train: Tensor
    val: Tensor
    test: Tensor
    protocol: str
    seed: Seed
    calibration: Tensor | None = None

    def __post_init__(self) -> None:
        for name, chosen in self.masks.items():
            if chosen.dtype != torch.bool or chosen.dim() != 1 or chosen.shape != self.train.shape:
                found = f"`{name}` is {chosen.dtype}, shape {tuple(chosen.shape)}"
                raise ValueError(
                    f"Split needs boolean masks of one length; {found}. For node numbers, use "
                    "`beltrami.data.dataset.mask(nodes, num_nodes=n)`."
                )
        shared = int((torch.stack(list(self.masks.values())).sum(0) > 1).sum())
        if shared:
            raise ValueError(f"Split needs disjoint masks; {shared} nodes are in two of them.")

    @property
    def masks(self) -> dict[str, Tensor]:
        """The sets by name."""
        sets = {"train": self.train, "val": self.val, "test": self.test}
        return sets if self.calibration is None else {**sets, "calibration": self.calibration}

    @property
    def num_nodes(self) -> int:
        return self.train.shape[0]

    @property
    def hash(self) -> str:
        """The first 16 hexadecimal digits of the SHA-256 of the number of nodes and the packed masks."""
        digest = hashlib.sha256(str(self.num_nodes).encode())
        for chosen in self.masks.values():
            digest.update(np.packbits(chosen.cpu().numpy()).tobytes())
        return digest.hexdigest()[:16]

    @property
    def facts(self) -> dict[str, Any]:
        """The protocol, the seed and the hash, as results record them."""
        return {"protocol": self.protocol, "seed": self.seed, "hash": self.hash}

    def restrict(self, nodes: Tensor) -> "Split":
        """Return the split of the subgraph on ``nodes`` (k,), in their order."""
        return self._with({name: chosen[nodes] for name, chosen in self.masks.items()})

    def to(self, device: torch.device | str) -> "Split":
        return self._with({name: chosen.to(device) for name, chosen in self.masks.items()})

    def _with(self, masks: dict[str, Tensor]) -> "Split":
        return Split(**masks, protocol=self.protocol, seed=self.seed)


def mask(nodes: Tensor, *, num_nodes: int) -> Tensor:
    """Return the boolean mask (num_nodes,) of the node indices ``nodes`` (k,)."""
    if nodes.numel() and (int(nodes.min()) < 0 or int(nodes.max()) >= num_nodes):
        raise ValueError(f"node indices run from {int(nodes.min())} to {int(nodes.max())}, of {num_nodes} nodes.")
    chosen = torch.zeros(num_nodes, dtype=torch.bool, device=nodes.device)
    chosen[nodes] = True
    return chosen


@checked
@dataclass(frozen=True, eq=False)
class Dataset:
    """An undirected graph with a feature vector and a class at every node.

    ``x`` are features (n, d), dense float32; ``edge_index`` has both directions of every edge once, in lexicographic
    order, no self-loops (see ``undirected``); ``y`` are classes (n,), from 0, or -1 for an unknown class at a node that
    is in no set of ``published``, the published split. ``splits`` are several published splits, chosen by number.
    ``metric`` is the metric of published results.
    """

    name: str
    x: Tensor
    edge_index: Tensor
    y: Tensor
    published: Split | None = None
    splits: tuple[Split, ...] = ()
    metric: Metric = "accuracy"

    def __post_init__(self) -> None:
        if self.x.dtype in (torch.float64, torch.float16, torch.bfloat16):
            object.__setattr__(self, "x", self.x.float())
        check_matrix(self.x, name="x")
        if self.edge_index.dtype in (torch.int32, torch.int16, torch.uint8):
            object.__setattr__(self, "edge_index", self.edge_index.long())
        object.__setattr__(self, "y", as_classes(self.y))
        if self.x.dtype != torch.float32 or self.x.layout != torch.strided:
            raise ValueError(f"`x` must be dense float32; got {self.x.dtype}, {self.x.layout}. Try `x.float()`.")
        if not torch.equal(self.edge_index, undirected(self.edge_index, num_nodes=self.num_nodes)):
            what = "both directions of every edge once, in lexicographic order, as torch.int64 and without self-loops"
            raise ValueError(f"`edge_index` must list {what}: pass it through `undirected(edge_index, num_nodes=...)`.")
        if len(self.y) != self.num_nodes:
            raise ValueError(f"`y` must hold one class for each of {self.num_nodes} nodes; got {len(self.y)}.")
        for split in self.all_splits:
            if split.num_nodes != self.num_nodes:
                raise ValueError(f"`published` splits {split.num_nodes} nodes; the graph has {self.num_nodes}.")
        named = None if self.published is None else torch.stack(list(self.published.masks.values())).any(0)
        odd = self.y < 0 if named is None else (self.y < -1) | (self.y < 0) & named
        if bool(odd.any()):
            raise ValueError(f"`y` holds class {int(self.y[odd].min())}; classes start at 0.")

    @property
    def num_nodes(self) -> int:
        return self.x.shape[0]

    @property
    def all_splits(self) -> tuple[Split, ...]:
        """The published splits, one or several."""
        return self.splits if self.published is None else (self.published, *self.splits)

    @property
    def num_edges(self) -> int:
        """Undirected edges: half the columns of ``edge_index``."""
        return self.edge_index.shape[1] // 2

    @property
    def num_features(self) -> int:
        return self.x.shape[1]

    @property
    def num_classes(self) -> int:
        return int(self.y.max()) + 1

    def largest_component(self) -> "Dataset":
        """Return the largest connected component (of several, the one with the lowest node), in the old node order."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        j, i = self.edge_index.cpu().numpy()
        ones = np.ones(j.shape[0], dtype=np.int8)
        adjacency = coo_array((ones, (j, i)), shape=(self.num_nodes, self.num_nodes))
        _, component = connected_components(adjacency, directed=False)
        _, first, size = np.unique(component, return_index=True, return_counts=True)
        lowest = first[size == size.max()].min()
        nodes = torch.from_numpy(np.flatnonzero(component == component[lowest])).to(self.y.device)
        if nodes.shape[0] == self.num_nodes:
            return self
        kept = mask(nodes, num_nodes=self.num_nodes)
        renumbered = torch.cumsum(kept, 0) - 1
        edge_index = renumbered[self.edge_index[:, kept[self.edge_index[0]]]]
        published = None if self.published is None else self.published.restrict(nodes)
        splits = tuple(split.restrict(nodes) for split in self.splits)
        x, y = self.x[nodes], self.y[nodes]
        return replace(self, x=x, edge_index=edge_index, y=y, published=published, splits=splits)

    def to(self, device: torch.device | str) -> "Dataset":
        x, edge_index, y = self.x.to(device), self.edge_index.to(device), self.y.to(device)
        published = None if self.published is None else self.published.to(device)
        splits = tuple(split.to(device) for split in self.splits)
        return Dataset(self.name, x, edge_index, y, published, splits, self.metric)


@checked
def undirected(edge_index: Tensor, *, num_nodes: int) -> Tensor:
    """Return both directions of every edge once, in lexicographic order, without self-loops; (2, m) -> (2, m')."""
    check_graph(edge_index, num_nodes=num_nodes)
    j, i = edge_index.long()
    j, i = j[j != i], i[j != i]
    keys = torch.cat((j * num_nodes + i, i * num_nodes + j)).sort().values
    keys = keys[torch.diff(keys, prepend=keys.new_full((1,), -1)) > 0]
    return torch.stack((keys // num_nodes, keys % num_nodes))


def even_rows(x: Tensor, total: float | None = None) -> Tensor:
    """Return rows scaled to the same sum of absolute values, so that long texts count as short ones; ``total``: this
    sum, None for the mean of the rows' own."""
    sums = x.abs().sum(1, keepdim=True)
    return torch.where(sums > 0, x * ((sums.mean() if total is None else total) / sums), x)
