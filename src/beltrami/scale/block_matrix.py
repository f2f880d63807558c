"""The matrix B of a frozen flow in row blocks: products with it and its transpose, and the random walk's matrix."""

import torch
from torch import Tensor

from beltrami.graph.ops.row_block import RowTerms, Scaled, write_rows
from beltrami.scale.edge_blocks import BlockArray, EdgeBlocks


class BlockMatrix:
    r"""The matrix :math:`B_{ij} = s_i (a_{ij} + l_i \delta_{ij})` on the edges of row blocks.

    For the transposed product the pattern must be symmetric: ``transposed`` holds the weights of the reverse edges, so
    that both products sum over rows, in a fixed order.

    Args:
        edges: the pattern, of n nodes.
        diagonal: l (n,).
        scale: s (n,), None for one.
        a: weights of the edges, None for one on each.
        transposed: weights of their reverse edges; not needed without ``a``.
    """

    def __init__(
        self,
        edges: EdgeBlocks,
        diagonal: Tensor,
        *,
        scale: Tensor | None = None,
        a: BlockArray | None = None,
        transposed: BlockArray | None = None,
    ) -> None:
        self.edges, self.diagonal, self.scale, self.a, self.transposed = edges, diagonal, scale, a, transposed
        self.products = 0

    @torch.no_grad()
    def advance(self, out: Tensor, y: Tensor, *, factor: float = 1.0, previous: Scaled | None = None) -> None:
        r"""Write :math:`c B y + k\,b` into ``out`` (n, k), which may be b; c is ``factor``, ``previous`` (k, b)."""
        self._product(self.a, out, y, self.scale, factor=factor, previous=previous)

    @torch.no_grad()
    def pull(
        self, out: Tensor, p: Tensor, *, factor: float = 1.0, previous: Scaled | None = None,
        cotangent: Scaled | None = None,
    ) -> None:  # fmt: skip
        r"""Write :math:`c B^\top p + k\,b + d\,g` into ``out``, which may be b; ``cotangent`` is (d, g)."""
        scaled = p if self.scale is None else p * self.scale[:, None]
        self._product(self.transposed, out, scaled, None, factor=factor, previous=previous, cotangent=cotangent)

    def _product(
        self, values: BlockArray | None, out: Tensor, y: Tensor, scale: Tensor | None, *, factor: float,
        previous: Scaled | None, cotangent: Scaled | None = None,
    ) -> None:  # fmt: skip
        self.products += 1
        for _, block, weights in self.edges.walk(*(() if values is None else (values,))):
            rows = block.rows
            terms = RowTerms(
                weights[0] if weights else None,
                own=y[rows],
                diagonal=self.diagonal[rows],
                scale=None if scale is None else scale[rows],
                factor=factor,
                previous=None if previous is None else (previous[0], previous[1][rows]),
                cotangent=None if cotangent is None else (cotangent[0], cotangent[1][rows]),
            )
            write_rows(block, out[rows], y, terms)


@torch.no_grad()
def random_walk(
    edges: EdgeBlocks, *, loops: float, dtype: torch.dtype, weight: BlockArray | None = None
) -> BlockMatrix:
    r"""Return the transition matrix of the random walk, :math:`w_{ij} / \sum_k w_{ik}`, with a self-loop of weight
    ``loops`` at every node in place of existing ones; for 0 existing ones are kept, and a node without edges stays.

    Without weights no array of the size of the edges is made.
    """
    ones, total = None, edges.degree.to(dtype)
    if weight is not None:
        ones = BlockMatrix(edges, torch.zeros_like(total), a=weight)
        sums = torch.empty_like(total)[:, None]
        ones.advance(sums, torch.ones_like(sums))
        total = sums[:, 0]
    own = _loops_of(edges, weight, dtype) if loops else torch.zeros_like(total)
    total = total - own + loops
    isolated = total == 0
    scale = torch.where(isolated, 1.0, 1.0 / torch.where(isolated, 1.0, total))
    diagonal = torch.where(isolated, 1.0, loops - own if loops else torch.zeros_like(own))
    return BlockMatrix(edges, diagonal, scale=scale, a=weight)


def _loops_of(edges: EdgeBlocks, weight: BlockArray | None, dtype: torch.dtype) -> Tensor:
    """Return the weight of the self-loops of each node in the pattern, (n,); on the CPU, where sums have an order."""
    total = torch.zeros(edges.num_nodes, dtype=dtype)
    for _, block, values in edges.walk(*(() if weight is None else (weight,))):
        places = (block.index == block.receivers).nonzero()[:, 0]
        if len(places):
            nodes = block.index[places].long().cpu()
            found = torch.ones(len(nodes), dtype=dtype) if not values else values[0][places].cpu().to(dtype)
            total.index_add_(0, nodes, found)
    return total.to(edges.device)
