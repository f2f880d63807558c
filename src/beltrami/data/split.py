"""Splits: the nodes for training, validation and testing."""

import hashlib
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Split:
    """Three disjoint sets of nodes; nodes in none of them are unused.

    Args:
        train: nodes whose labels are used in training.
        val: nodes that select the epoch and the settings.
        test: nodes whose accuracy is reported.
        protocol: the name of the rule that made the sets.
        seed: the random seed of the rule; published sets do not depend on it.

    Shapes:
        ``train``, ``val``, ``test`` (n,) boolean.
    """

    train: Tensor
    val: Tensor
    test: Tensor
    protocol: str
    seed: int

    def __post_init__(self) -> None:
        for name, chosen in (("train", self.train), ("val", self.val), ("test", self.test)):
            if chosen.dtype != torch.bool or chosen.shape != (self.train.shape[0],):
                raise ValueError(
                    f"Split needs boolean masks of one length; `{name}` is {chosen.dtype}, shape {tuple(chosen.shape)}."
                )
        shared = int(((self.train & self.val) | (self.train & self.test) | (self.val & self.test)).sum())
        if shared:
            raise ValueError(f"Split needs disjoint masks; {shared} nodes are in two of them.")

    @property
    def num_nodes(self) -> int:
        return self.train.shape[0]

    @property
    def hash(self) -> str:
        """The first 16 hexadecimal digits of the SHA-256 of the number of nodes and the packed masks."""
        digest = hashlib.sha256(str(self.num_nodes).encode())
        for chosen in (self.train, self.val, self.test):
            digest.update(np.packbits(chosen.cpu().numpy()).tobytes())
        return digest.hexdigest()[:16]

    def restrict(self, nodes: Tensor) -> "Split":
        """Return the split of the subgraph on ``nodes`` (k,), in their order."""
        return Split(self.train[nodes], self.val[nodes], self.test[nodes], self.protocol, self.seed)

    def to(self, device: torch.device | str) -> "Split":
        return Split(self.train.to(device), self.val.to(device), self.test.to(device), self.protocol, self.seed)


def mask(nodes: Tensor, *, num_nodes: int) -> Tensor:
    """Return the boolean mask (num_nodes,) of the node indices ``nodes`` (k,)."""
    if nodes.numel() and (int(nodes.min()) < 0 or int(nodes.max()) >= num_nodes):
        raise ValueError(f"node indices run from {int(nodes.min())} to {int(nodes.max())}, of {num_nodes} nodes.")
    chosen = torch.zeros(num_nodes, dtype=torch.bool, device=nodes.device)
    chosen[nodes] = True
    return chosen
