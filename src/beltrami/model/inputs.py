"""The inputs of a model: features, positions and a graph, checked and converted to the type of its weights."""

import sys
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_compiling

from beltrami.arguments import checked
from beltrami.errors import check_matrix
from beltrami.graph import Edges, SparseMatrix
from beltrami.graph.edge_values import unpack_graph
from beltrami.model.coder import Matrix


@checked
@dataclass(frozen=True)
class Inputs:
    """The checked inputs of a model: features (n, f) and positions (n, p), dense or sparse, and the graph."""

    x: Matrix
    edges: Edges
    pos: Matrix | None = None
    given: Edges | None = None  # the graph before the model rewired it

    @property
    def needs_grad(self) -> bool:
        """Whether a gradient by features or positions is wanted."""
        tensors = (x.values if isinstance(x, SparseMatrix) else x for x in (self.x, self.pos))
        return any(tensor is not None and tensor.requires_grad for tensor in tensors)

    @property
    def arrays(self) -> dict[str, Matrix | None]:
        """The features, the positions and the weights of the edges, by what they are called in messages."""
        return {"features": self.x, "positions": self.pos, "weights of edges": self.edges.weight}

    @property
    def num_nodes(self) -> int:
        return self.edges.num_nodes

    @property
    def device(self) -> torch.device:
        return self.edges.device

    @property
    def graph(self) -> int:
        """The fingerprint of the graph as it was given."""
        return (self.edges if self.given is None else self.given).fingerprint


def unpack(
    data: Any, *, positions: int, edge_dim: int
) -> tuple[Matrix, Tensor, Tensor | None, Matrix | None, Tensor | None]:
    """Return x, edge_index, edge_weight, pos and edge_attr of a PyG ``Data`` or ``Batch`` object; those of its edges by
    ``unpack_graph``, positions and edge features only for a model that takes them."""
    if not ("torch_geometric.data" in sys.modules and isinstance(data, sys.modules["torch_geometric.data"].Data)):
        raise ValueError(f"pass `x` and `edge_index`, or one `Data` object of PyG; got {type(data).__name__} alone.")
    graph, weight, features = unpack_graph(data)
    return data.x, graph, weight, data.pos if positions else None, features if edge_dim else None


def check_edge_attr(edge_dim: int, edge_attr: Tensor | None) -> None:
    """Refuse edge features that a module does not take, the lack of those that it takes, and other widths."""
    if edge_attr is not None and not edge_dim:
        raise ValueError("this module takes no edge features: leave `edge_attr` out, or build it with `edge_dim=`.")
    if edge_dim and edge_attr is None:
        raise ValueError(f"this module takes {edge_dim} edge features: pass `edge_attr`, (edges, {edge_dim}).")
    if edge_attr is not None and (edge_attr.dim() != 2 or edge_attr.shape[1] != edge_dim):
        raise ValueError(f"`edge_attr` must have shape (edges, {edge_dim}); got {tuple(edge_attr.shape)}.")


def checked_matrix(x: Matrix, name: str, like: Tensor | None, *, columns: int, rows: int | None = None) -> Matrix:
    """Return an input of a model in the type of its weights ``like``, after checking device, shape and values; sparse
    tensors become ``SparseMatrix``."""
    values = x.values if isinstance(x, SparseMatrix) else x
    if like is not None and values.device != like.device:
        raise ValueError(f"`{name}` is on {values.device} and the model on {like.device}: move one with `.to(...)`.")
    if like is not None and values.dtype != like.dtype and values.dtype.is_floating_point:
        x = x.with_values(values.to(like.dtype)) if isinstance(x, SparseMatrix) else x.to(like.dtype)
    if isinstance(x, SparseMatrix):
        expected = (x.shape[0] if rows is None else rows, columns)
        if x.shape != expected:
            raise ValueError(f"`{name}` has shape {x.shape} where {expected} is expected.")
        if not (is_compiling() or bool(torch.isfinite(x.values).all())):
            raise ValueError(f"`{name}` holds values that are NaN or infinite: clean or impute them first.")
        return x
    check_matrix(x, name=name, rows=rows, columns=columns)
    return x if x.layout == torch.strided else SparseMatrix.of(x)
