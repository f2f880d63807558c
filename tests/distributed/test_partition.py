"""Partitions cover the nodes, are balanced, cut few edges, and files of others are refused."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from toy import two_cliques

from beltrami.distributed import check_partition, greedy_partition, partition_nodes, read_partition
from beltrami.errors import DataError
from beltrami.graph import Edges

TOY = two_cliques(10)
EDGES = Edges.build(TOY.edge_index, num_nodes=20)


def grid(width: int) -> Edges:
    """A square lattice of width x width nodes."""
    node = torch.arange(width * width).reshape(width, width)
    right, down = torch.stack((node[:, :-1], node[:, 1:])), torch.stack((node[:-1], node[1:]))
    pairs = torch.cat((right.flatten(1), down.flatten(1)), dim=1)
    return Edges.build(torch.cat((pairs, pairs.flip(0)), dim=1), num_nodes=width * width)


@pytest.mark.parametrize("parts", [1, 3, 7, 20])
def test_greedy_parts_cover_the_nodes_and_differ_by_one_node_at_most(parts: int) -> None:
    found = greedy_partition(EDGES, parts)
    counts = torch.bincount(found, minlength=parts)
    assert int(counts.sum()) == 20
    assert int(counts.max() - counts.min()) <= 1
    assert int(counts.min()) >= 1


@pytest.mark.parametrize("partition", [partition_nodes, greedy_partition])
def test_two_cliques_are_the_two_parts(partition: Callable[[Edges, int], Tensor]) -> None:
    part = partition(EDGES, 2)
    assert part[:10].unique().tolist() != part[10:].unique().tolist()
    assert len(part[:10].unique()) == len(part[10:].unique()) == 1


def test_greedy_parts_of_a_lattice_cut_far_fewer_edges_than_random_ones() -> None:
    edges = grid(24)
    part = greedy_partition(edges, 4)
    cut = float((part[edges.i] != part[edges.j]).float().mean())
    assert cut < 0.25  # random parts cut 3/4 of the edges


def test_there_are_never_more_parts_than_nodes_and_none_is_empty() -> None:
    for parts in (5, 19, 100):
        found = partition_nodes(EDGES, parts)
        check_partition(found, num_nodes=20)
        assert len(found.unique()) == min(parts, 20)


def test_metis_balances_parts_to_a_few_percent() -> None:
    pytest.importorskip("pymetis")
    counts = torch.bincount(partition_nodes(grid(24), 8), minlength=8)
    assert int(counts.max()) <= 1.1 * 576 / 8


def test_directions_weights_and_loops_do_not_matter() -> None:
    one = Edges.build(TOY.edge_index[:, TOY.edge_index[0] < TOY.edge_index[1]], num_nodes=20)
    assert torch.equal(greedy_partition(one, 3), greedy_partition(EDGES.with_loops(2.0), 3))


def test_a_partition_is_read_from_a_file(tmp_path: Path) -> None:
    np.save(tmp_path / "parts.npy", np.arange(20) % 3)
    assert torch.equal(read_partition(tmp_path / "parts.npy", num_nodes=20), torch.arange(20) % 3)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (np.arange(19) % 3, "cover 19 nodes where the graph has 20"),
        (np.r_[-1, np.arange(19) % 3], "do not cover node 0"),
        (2 * (np.arange(20) % 3), "a part has no nodes"),
        (np.r_[2**40, np.arange(19)], "a part has no nodes"),
        (np.zeros(20), "one array \\(n,\\) of integers"),
        (np.zeros((20, 1), dtype=int), "one array \\(n,\\) of integers"),
    ],
)
def test_parts_that_do_not_cover_the_nodes_are_refused(part: np.ndarray, message: str, tmp_path: Path) -> None:
    np.save(tmp_path / "parts.npy", part)
    with pytest.raises((ValueError, DataError), match=message):
        read_partition(tmp_path / "parts.npy", num_nodes=20)


def test_files_that_are_no_arrays_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there is no array file at .*parts\.npy: check the name"):
        read_partition(tmp_path / "parts.npy", num_nodes=20)
    np.save(tmp_path / "parts.npy", np.array([object()]), allow_pickle=True)
    with pytest.raises(DataError, match="is no npy file of numbers, or it is damaged"):
        read_partition(tmp_path / "parts.npy", num_nodes=20)
    (tmp_path / "parts.npy").write_bytes(b"")
    with pytest.raises(DataError, match="is no npy file of numbers, or it is damaged"):
        read_partition(tmp_path / "parts.npy", num_nodes=20)
