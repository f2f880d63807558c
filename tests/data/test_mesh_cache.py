"""Graphs kept on disk are those that the stencil makes, and are made once."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from beltrami.data.mesh import kept
from beltrami.graph import Edges
from beltrami.stencil import KNN, AddEdges, Stencil

Z = torch.randn(9, 3, generator=torch.Generator().manual_seed(0))
EDGES = Edges.build(torch.tensor([[0, 1, 2], [1, 0, 3]]), num_nodes=9)


class Counted(Stencil):
    """A stencil that counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, z: Tensor, edges: Edges) -> Edges:
        self.asked += 1
        return AddEdges(KNN(2), weight=0.5)(z, edges)


def same(one: Edges, other: Edges) -> bool:
    assert one.weight is not None
    assert other.weight is not None
    return torch.equal(one.edge_index, other.edge_index) and torch.equal(one.weight, other.weight)


def test_asked_once_and_answered_alike(tmp_path: Path) -> None:
    stencil, wanted = Counted(), AddEdges(KNN(2), weight=0.5)(Z, EDGES)
    for _ in range(2):
        assert same(kept(stencil, Z, EDGES, by="near", folder=tmp_path), wanted)
    assert stencil.asked == 1


def test_other_points_another_graph_or_other_words_are_asked_anew(tmp_path: Path) -> None:
    stencil = Counted()
    other = Edges.build(torch.tensor([[0, 1], [1, 0]]), num_nodes=9)
    for z, edges, by in ((Z, EDGES, "near"), (Z + 1e-3, EDGES, "near"), (Z, other, "near"), (Z, EDGES, "far")):
        kept(stencil, z, edges, by=by, folder=tmp_path)
    assert stencil.asked == 4


def test_a_damaged_file_is_made_anew(tmp_path: Path) -> None:
    stencil = Counted()
    first = kept(stencil, Z, EDGES, by="near", folder=tmp_path)
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-3])
    assert same(kept(stencil, Z, EDGES, by="near", folder=tmp_path), first)
    assert same(kept(stencil, Z, EDGES, by="near", folder=tmp_path), first)
    assert stencil.asked == 2


def test_a_folder_that_cannot_be_written_costs_a_warning(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.warns(UserWarning, match="a graph could not be kept at .* name another folder in BELTRAMI_CACHE"):
        found = kept(Counted(), Z, EDGES, by="near", folder=tmp_path / "file")
    assert same(found, AddEdges(KNN(2), weight=0.5)(Z, EDGES))
