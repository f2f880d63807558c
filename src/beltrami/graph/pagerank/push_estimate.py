"""What push works with: the walk on a graph, and the sparse estimate of PageRank that it builds."""

from dataclasses import dataclass

import torch
from torch import Tensor

from beltrami.graph.edges import Edges
from beltrami.graph.ops import collect
from beltrami.graph.pagerank.kernel import symmetric_weights

MARGIN = 1e-4  # relative, beyond what rounding does to a score
Entries = tuple[Tensor, Tensor, Tensor]  # row, column, value


@dataclass(frozen=True, eq=False)
class Walk:
    r"""(1 - rho) S by rows, in single precision, the residual that a push needs, and the eigenvector of what has mixed.

    Shapes:
        ``ptr`` (n + 1,), ``index``, ``step`` (m,): the nodes around each node and their entries of (1 - rho) S;
        ``threshold`` (n,): :math:`\varepsilon \sqrt{d}`; ``v`` (n,): :math:`(d / \sum d)^{1/2}`, the sum over the
        node's component.
    """

    ptr: Tensor
    index: Tensor
    step: Tensor
    threshold: Tensor
    v: Tensor
    restart: float

    @staticmethod
    def on(edges: Edges, *, restart: float, tolerance: float) -> "Walk":
        weight = torch.ones(edges.num_edges, device=edges.device) if edges.weight is None else edges.weight.detach()
        degree = collect(weight[:, None], edges)[:, 0].double()
        component = _components(edges)
        volume = torch.zeros_like(degree).index_add_(0, component, degree)[component]
        return Walk(
            ptr=edges.rows.ptr.long(),
            index=edges.rows.index,
            step=((1 - restart) * symmetric_weights(edges).detach()).float(),
            threshold=(tolerance * degree.sqrt()).float(),
            v=torch.where(volume > 0, degree / volume, 0.0).sqrt().float(),
            restart=restart,
        )

    @property
    def num_nodes(self) -> int:
        return len(self.v)


@dataclass(frozen=True, eq=False)
class Estimate:
    r"""P by rows, each from its largest entry down, with its diagonal and :math:`\ell = v - P v`.

    Shapes:
        ``ptr`` (n + 1,), ``index``, ``value`` (e,); ``diagonal``, ``left`` (n,).
    """

    ptr: Tensor
    index: Tensor
    value: Tensor
    diagonal: Tensor
    left: Tensor

    @staticmethod
    def of(walk: Walk, count: Tensor, index: Tensor, value: Tensor) -> "Estimate":
        """From how many entries each row has, (n,), and the entries, row after row."""
        ptr = torch.cat((count.new_zeros(1), count.cumsum(0)))
        diagonal, mixed = torch.zeros_like(walk.v), torch.zeros_like(walk.v)
        nodes = torch.arange(walk.num_nodes, device=ptr.device)
        for rows in nodes.split(max(1, walk.num_nodes // 16)):  # in pieces: row numbers would take twice what P does
            begin, end = int(ptr[rows[0]]), int(ptr[rows[-1] + 1])
            row = torch.repeat_interleave(rows, count[rows])
            column, entry = index[begin:end], value[begin:end]
            own = row == column
            diagonal[row[own]] = entry[own]
            mixed.index_add_(0, row, entry * walk.v[column])
        return Estimate(ptr=ptr, index=index, value=value, diagonal=diagonal, left=walk.v - mixed)


def _components(edges: Edges) -> Tensor:
    """The number of each node's connected component, (n,)."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    rows = edges.rows
    ones = torch.ones(edges.num_edges, dtype=torch.int8)
    pattern = (ones.numpy(), rows.index.cpu().numpy(), rows.ptr.cpu().numpy())
    _, component = connected_components(csr_array(pattern, shape=(edges.num_nodes, edges.num_nodes)), directed=False)
    return torch.from_numpy(component).long().to(edges.device)
