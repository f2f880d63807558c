"""DeepWalk on a graph folder learns the positions of DeepWalk in memory."""

from pathlib import Path

import numpy as np
import pytest
import torch
from external_folders import folder_of

from beltrami.data import undirected
from beltrami.errors import DataError
from beltrami.external.walk_positions import write_deepwalk
from beltrami.graph import Edges
from beltrami.position import DeepWalk


def graph(*, weighted: bool) -> Edges:
    random = torch.Generator().manual_seed(0)
    edge_index = undirected(torch.randint(38, (2, 90), generator=random), num_nodes=40)  # 38 and 39 have no edges
    low, high = edge_index.amin(0), edge_index.amax(0)
    return Edges.build(edge_index, num_nodes=40, weight=1.0 + (low * 7 + high) % 3 if weighted else None)


@pytest.mark.parametrize("weighted", [False, True])
def test_positions_are_those_in_memory_to_the_bit(tmp_path: Path, weighted: bool) -> None:
    edges = graph(weighted=weighted)
    encoding = DeepWalk(5, walk_length=6, context=3, walks_per_node=1, epochs=2)
    folder = folder_of(edges, tmp_path / "graph")
    found = write_deepwalk(folder, tmp_path, encoding, generator=torch.Generator().manual_seed(3), memory=10**6)
    expected = encoding(edges, torch.Generator().manual_seed(3))
    assert np.array_equal(found, expected.numpy())
    assert not found[38:].any()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["graph", "pos.npy"]


def test_every_round_starts_a_walk_at_every_node_with_edges(tmp_path: Path) -> None:
    seen: list[tuple[str, int, int | None]] = []
    encoding = DeepWalk(3, walk_length=4, context=2, walks_per_node=3, progress=lambda *report: seen.append(report))
    edges = graph(weighted=False)
    starts = int((edges.out_degree() > 0).sum())
    folder = folder_of(edges, tmp_path / "graph")
    found = write_deepwalk(folder, tmp_path, encoding, generator=torch.Generator().manual_seed(0), memory=10**6)
    assert seen == [("DeepWalk", k * starts, 3 * starts) for k in (1, 2, 3)]
    assert np.isfinite(found).all()
    assert found[:38].any(axis=1).sum() == starts


def test_bad_input_is_refused(tmp_path: Path) -> None:
    folder, random = folder_of(graph(weighted=False), tmp_path / "graph"), torch.Generator()
    with pytest.raises(ValueError, match="a graph folder has no link prediction"):
        write_deepwalk(folder, tmp_path, DeepWalk(3, tuned=True), generator=random, memory=10**6)
    with pytest.raises(DataError, match=r"DeepWalk on 40 nodes needs 2.5 KiB, and 100 bytes are allowed"):
        write_deepwalk(folder, tmp_path, DeepWalk(3), generator=random, memory=100)
    assert [path.name for path in tmp_path.iterdir()] == ["graph"]
