"""Files of positions and rewired graphs are read back unchanged, for their own graph only."""

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
    Provenance,
    graph_digest,
    load_positions,
    load_stencil,
    read_header,
    save_positions,
    save_stencil,
)
from beltrami.errors import DataError
from beltrami.graph import Edges

POSITIONS_MADE = Provenance(POSITIONS, "kite", "largest", "by hand")
STENCIL_MADE = Provenance(STENCIL, "kite", "all", "by hand")


def points() -> Tensor:
    return torch.randn(4, 3, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("u", [points(), (points() * (points() > 0)).to_sparse(), points().double()], ids=repr)
def test_positions_are_read_back_unchanged(tmp_path: Path, u: Tensor) -> None:
    path = tmp_path / "below" / "u.safetensors"
    made = Provenance(POSITIONS, "kite", "largest", "by hand", BALL)
    digest = save_positions(path, u, kite(), made)
    found, found_made = load_positions(path, kite())
    assert found.layout == u.layout
    assert found.dtype == u.dtype
    assert torch.equal(found.to_dense(), u.to_dense())
    assert found_made == made
    header = read_header(path, kind=POSITIONS)
    assert (header.made, header.nodes, header.graph, header.digest) == (made, 4, graph_digest(kite()), digest)


@pytest.mark.parametrize("mesh", [crooked(), ragged(), ragged(weighted=True), crooked().with_loops(0.3)], ids=repr)
def test_graphs_are_read_back_unchanged(tmp_path: Path, mesh: Edges) -> None:
    save_stencil(tmp_path / "mesh", mesh, crooked(), STENCIL_MADE)
    found = load_stencil(tmp_path / "mesh", crooked())
    assert pairs(found) == pairs(mesh)
    assert (found.weight is None) == (mesh.weight is None)
    if found.weight is not None and mesh.weight is not None:
        assert torch.equal(found.weight, mesh.weight)


def test_digest_depends_on_content_graph_and_provenance_not_on_the_path(tmp_path: Path) -> None:
    one, again = (save_positions(tmp_path / name, points(), kite(), POSITIONS_MADE) for name in "ab")
    assert one == again
    others = [
        save_positions(tmp_path / "c", points() + 1, kite(), POSITIONS_MADE),
        save_positions(tmp_path / "d", points(), bare(), POSITIONS_MADE),
        save_positions(tmp_path / "e", points(), kite(), Provenance(POSITIONS, "kite", "largest", "by hand", BALL)),
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
    save_positions(tmp_path / "u", points(), kite(), POSITIONS_MADE)
    save_stencil(tmp_path / "mesh", kite(), kite(), STENCIL_MADE)
    message = (
        r"belongs to another graph \(kite, component largest, 4 nodes\) than this one of . nodes: run `beltrami encode`"
    )
    with pytest.raises(DataError, match=message):
        load_positions(tmp_path / "u", other)
    with pytest.raises(
        DataError, match=r"belongs to another graph \(kite, component all, 4 nodes\) .*`beltrami rewire`"
    ):
        load_stencil(tmp_path / "mesh", other)


def test_file_of_the_other_kind_is_refused(tmp_path: Path) -> None:
    save_positions(tmp_path / "u", points(), kite(), POSITIONS_MADE)
    save_stencil(tmp_path / "mesh", kite(), kite(), STENCIL_MADE)
    with pytest.raises(DataError, match=r"u is a positions file, not a stencil file: `beltrami rewire` writes those"):
        load_stencil(tmp_path / "u", kite())
    with pytest.raises(DataError, match=r"mesh is a stencil file, not a positions file: `beltrami encode`"):
        read_header(tmp_path / "mesh", kind=POSITIONS)


def flipped(content: bytes) -> bytes:
    return content[:-1] + bytes([content[-1] ^ 1])


@pytest.mark.parametrize(
    "damage",
    [lambda content: b"", lambda content: content[:-5], flipped, lambda content: b"no tensors"],
    ids=["empty", "truncated", "one bit", "foreign"],
)
def test_damaged_file_is_refused(tmp_path: Path, damage: Any) -> None:
    path = tmp_path / "u"
    save_positions(path, points(), kite(), POSITIONS_MADE)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataError, match=r"damaged: .*`beltrami encode`"):
        load_positions(path, kite())


def test_altered_header_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "u"
    save_positions(path, points(), kite(), POSITIONS_MADE)
    path.write_bytes(path.read_bytes().replace(b"largest", b"biggest"))
    with pytest.raises(DataError, match="is damaged"):
        load_positions(path, kite())


@pytest.mark.parametrize("header", [None, "[]", "{}", "{", '{"made": 3}', json.dumps({"made": {"kind": "positions"}})])
def test_other_safetensors_files_are_refused(tmp_path: Path, header: str | None) -> None:
    path = tmp_path / "weights.safetensors"
    save_file({"dense": points()}, path, metadata=None if header is None else {"beltrami": header})
    with pytest.raises(DataError, match=r"is not a positions file, or it is damaged: `beltrami encode` writes one"):
        load_positions(path, kite())


def test_missing_file_and_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there is no positions file at .*nowhere: `beltrami encode` writes one"):
        load_positions(tmp_path / "nowhere", kite())
    with pytest.raises(DataError, match=r"stencil file"):
        load_stencil(tmp_path, kite())
