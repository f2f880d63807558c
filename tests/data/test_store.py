"""Files of positions and rewired graphs come back as they were, and on no other graph."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from checks import bare, crooked, kite, pairs, ragged, undirected
from safetensors.torch import save_file
from torch import Tensor

from beltrami.data.store import (
    BALL,
    POSITIONS,
    STENCIL,
    Made,
    graph_digest,
    load_positions,
    load_stencil,
    read_header,
    save_positions,
    save_stencil,
)
from beltrami.errors import DataError
from beltrami.graph import Edges

PLACED = Made(POSITIONS, "kite", "largest", "by hand")
REWIRED = Made(STENCIL, "kite", "all", "by hand")


def points() -> Tensor:
    return torch.randn(4, 3, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("u", [points(), (points() * (points() > 0)).to_sparse(), points().double()], ids=repr)
def test_positions_come_back_as_they_were(tmp_path: Path, u: Tensor) -> None:
    path = tmp_path / "below" / "u.safetensors"
    made = Made(POSITIONS, "kite", "largest", "by hand", BALL)
    digest = save_positions(path, u, kite(), made)
    found, told = load_positions(path, kite())
    assert found.layout == u.layout
    assert found.dtype == u.dtype
    assert torch.equal(found.to_dense(), u.to_dense())
    assert told == made
    header = read_header(path, kind=POSITIONS)
    assert (header.made, header.nodes, header.graph, header.digest) == (made, 4, graph_digest(kite()), digest)


@pytest.mark.parametrize("mesh", [crooked(), ragged(), ragged(weighted=True), crooked().with_loops(0.3)], ids=repr)
def test_graphs_come_back_as_they_were(tmp_path: Path, mesh: Edges) -> None:
    save_stencil(tmp_path / "mesh", mesh, crooked(), REWIRED)
    found = load_stencil(tmp_path / "mesh", crooked())
    assert pairs(found) == pairs(mesh)
    assert (found.weight is None) == (mesh.weight is None)
    if found.weight is not None and mesh.weight is not None:
        assert torch.equal(found.weight, mesh.weight)


def test_digest_is_that_of_the_content_and_not_of_its_place(tmp_path: Path) -> None:
    one, again = (save_positions(tmp_path / name, points(), kite(), PLACED) for name in "ab")
    assert one == again
    others = [
        save_positions(tmp_path / "c", points() + 1, kite(), PLACED),
        save_positions(tmp_path / "d", points(), bare(), PLACED),
        save_positions(tmp_path / "e", points(), kite(), Made(POSITIONS, "kite", "largest", "by hand", BALL)),
    ]
    assert len({one, *others}) == 4


@pytest.mark.parametrize(
    "other",
    [
        undirected([(0, 1), (0, 2), (1, 2), (1, 3)], num_nodes=4),
        Edges.build(kite().edge_index, num_nodes=5),
        Edges.build(kite().edge_index, num_nodes=4, weight=torch.full((8,), 2.0)),
    ],
    ids=repr,
)
def test_files_of_another_graph_are_refused(tmp_path: Path, other: Edges) -> None:
    save_positions(tmp_path / "u", points(), kite(), PLACED)
    save_stencil(tmp_path / "mesh", kite(), kite(), REWIRED)
    message = (
        r"is of another graph \(kite, component largest, 4 nodes\) than this one of . nodes: run `beltrami encode`"
    )
    with pytest.raises(DataError, match=message):
        load_positions(tmp_path / "u", other)
    with pytest.raises(DataError, match=r"is of another graph \(kite, component all, 4 nodes\) .*`beltrami rewire`"):
        load_stencil(tmp_path / "mesh", other)


def test_either_kind_is_not_taken_for_the_other(tmp_path: Path) -> None:
    save_positions(tmp_path / "u", points(), kite(), PLACED)
    save_stencil(tmp_path / "mesh", kite(), kite(), REWIRED)
    with pytest.raises(DataError, match=r"u is a positions file and no stencil file: `beltrami rewire` writes those"):
        load_stencil(tmp_path / "u", kite())
    with pytest.raises(DataError, match=r"mesh is a stencil file and no positions file: `beltrami encode`"):
        read_header(tmp_path / "mesh", kind=POSITIONS)


def flipped(content: bytes) -> bytes:
    return content[:-1] + bytes([content[-1] ^ 1])


@pytest.mark.parametrize(
    "damage",
    [lambda content: b"", lambda content: content[:-5], flipped, lambda content: b"no tensors", lambda c: c[:40]],
    ids=["empty", "cut off", "one bit", "foreign", "header cut"],
)
def test_damaged_file_is_refused(tmp_path: Path, damage: Any) -> None:
    path = tmp_path / "u"
    save_positions(path, points(), kite(), PLACED)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataError, match=r"damaged: .*`beltrami encode`"):
        load_positions(path, kite())


def test_altered_header_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "u"
    save_positions(path, points(), kite(), PLACED)
    path.write_bytes(path.read_bytes().replace(b"largest", b"biggest"))
    with pytest.raises(DataError, match="is damaged"):
        load_positions(path, kite())


@pytest.mark.parametrize("header", [None, "[]", "{}", "{", '{"made": 3}', json.dumps({"made": {"kind": "positions"}})])
def test_tensors_that_are_no_store_are_refused(tmp_path: Path, header: str | None) -> None:
    path = tmp_path / "weights.safetensors"
    save_file({"dense": points()}, path, metadata=None if header is None else {"beltrami": header})
    with pytest.raises(DataError, match=r"is not a positions file, or it is damaged: `beltrami encode` writes one"):
        load_positions(path, kite())


def test_missing_file_and_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there is no positions file at .*nowhere: `beltrami encode` writes one"):
        load_positions(tmp_path / "nowhere", kite())
    with pytest.raises(DataError, match=r"stencil file"):
        load_stencil(tmp_path, kite())
