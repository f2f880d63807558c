"""SkipGram: positions from which the nodes met along a walk can be guessed."""

import torch
from torch import Tensor

from beltrami.graph.edges import Compressed
from beltrami.graph.ops import dispatch

SHARED = 32  # noise nodes that all positions of a walk are set against
TINY = 1e-10  # keeps a row without gradient where it is


class SkipGram:
    r"""Skip-gram with negative sampling on walks, one table of positions u for nodes and contexts alike. It descends

    .. math:: -\sum_{0 < |s - t| < c} \Big( \log \sigma \langle u_{w_s}, u_{w_t} \rangle
        + k \, \mathbb{E}_{v \sim \text{noise}} \log \sigma(-\langle u_{w_s}, u_v \rangle) \Big)

    over the nodes w_1, ..., w_l of each walk, by Adagrad with one scale a row. The pairs of a walk are one product of
    (l, d) with itself, and its noise nodes are shared by all its places, so that an update moves O(l d) numbers for
    its O(l c) pairs; only rows that occur are touched.

    Args:
        noise: how often each node is drawn as noise, up to a factor, (n,); not all zero.
        channels: width d of the positions.
        context: c; pairs lie at most c - 1 steps apart.
        negatives: k, noise pairs for each pair.
        generator: draws the first positions; on the device of ``noise``, as every generator here.

    Shapes:
        ``u`` (n, d).
    """

    def __init__(
        self, noise: Tensor, channels: int, *, context: int, negatives: int, generator: torch.Generator
    ) -> None:
        self.context = context
        self.negatives = negatives
        shape = (len(noise), channels)
        self.u = torch.randn(shape, generator=generator, device=noise.device) / channels**0.5
        self._squares = torch.zeros(len(noise), 1, device=noise.device)
        self._noise = noise.double().cpu().cumsum(0).to(noise.device)  # where the order of summation is fixed

    def update(self, walks: Tensor, *, rate: float, generator: torch.Generator) -> None:
        """One step of Adagrad on a batch of walks (b, l)."""
        noise = self._draw((walks.shape[0], SHARED), generator)
        x, y = self.u[walks], self.u[noise]
        near = self._near(walks.shape[1])
        far = self.negatives / SHARED * near.sum(1, keepdim=True)  # weight of each noise node at each place
        pull = torch.bmm(x, x.mT).neg_().sigmoid_().mul_(near).mul_(-2)  # a pair counts from both its ends
        push = torch.bmm(x, y.mT).sigmoid_().mul_(far)
        gradient = torch.cat((
            torch.baddbmm(torch.bmm(push, y), pull, x).flatten(0, 1),
            torch.bmm(push.mT, x).flatten(0, 1),
        ))  # fmt: skip
        self._descend(torch.cat((walks.flatten(), noise.flatten())), gradient, rate=rate)

    def _descend(self, nodes: Tensor, gradient: Tensor, *, rate: float) -> None:
        rows, total = _sum_by(nodes, gradient)
        squares = self._squares[rows] + total.square().mean(1, keepdim=True)
        self._squares[rows] = squares
        self.u[rows] -= rate * total * (squares + TINY).rsqrt()

    def _near(self, length: int) -> Tensor:
        place = torch.arange(length, device=self.u.device)
        distance = (place - place[:, None]).abs()
        return ((distance > 0) & (distance < self.context)).float()

    def _draw(self, shape: tuple[int, int], generator: torch.Generator) -> Tensor:
        unit = torch.rand(shape, generator=generator, device=generator.device, dtype=torch.float64)
        last = len(self._noise) - 1
        return torch.searchsorted(self._noise, unit * self._noise[-1], right=True).clamp(max=last)


def _sum_by(nodes: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """The distinct nodes and the sum of the values at each, (k,), (k, d) -> (r,), (r, d).

    Row sums have a fixed order of summation on every device, which ``index_add`` has not.
    """
    ordered, order = nodes.sort(stable=True)
    rows, counts = ordered.unique_consecutive(return_counts=True)
    ptr = torch.cat((counts.new_zeros(1), counts.cumsum(0))).int()
    return rows, dispatch.row_sums(Compressed(ptr, order.int(), order.int()), values)
