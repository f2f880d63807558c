"""Archives of OGB converted in chunks give the graph that the ordinary reader gives; damaged ones are refused."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ogb_files import write_archives, write_table
from shell import Beltrami

from beltrami import file_limits as limits
from beltrami.data import npz_reader
from beltrami.data.graph_folder import GraphFolder, is_graph_folder, roles_of
from beltrami.data.npz_reader import open_npz_arrays
from beltrami.data.ogb import read_ogb_archives
from beltrami.errors import DataError
from beltrami.external.ogb_convert import convert_ogb, is_ogb_folder

SMALL = 1000  # bytes: chunks of a few values, and many buckets
NODES, EDGES = 40, 300


def random_archives(folder: Path, *, deflated: bool, dtype: type[np.floating[Any]] = np.float32) -> Path:
    """Write a graph with repeated edges and self-loops, most of whose nodes have no class."""
    random = np.random.default_rng(0)
    label = np.where(np.arange(NODES) < 12, np.arange(NODES) % 3, np.nan)[:, None].astype(np.float32)
    write_archives(
        folder,
        deflated=deflated,
        edge_index=random.integers(NODES, size=(2, EDGES)),
        node_feat=random.standard_normal((NODES, 7)).astype(dtype),
        node_year=np.zeros((NODES, 1), np.int64),
        num_nodes_list=np.array([NODES]),
        num_edges_list=np.array([EDGES]),
        node_label=label,
    )
    for name, nodes in {"train": range(6), "valid": range(6, 9), "test": range(9, 12)}.items():
        write_table(folder, f"split/time/{name}.csv.gz", "".join(f"{node}\n" for node in nodes))
    return folder


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("deflated", [False, True], ids=["stored", "deflated"])
def test_archives_give_the_graph_of_the_ordinary_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deflated: bool, dtype: type[np.floating[Any]]
) -> None:
    monkeypatch.setattr(npz_reader, "PIECE", 100)  # several pieces in every chunk
    source = random_archives(tmp_path / "papers", deflated=deflated, dtype=dtype)
    expected = read_ogb_archives(source, name="papers", sizes=(NODES, EDGES, 7, 3))
    steps = list[tuple[str, int, int | None]]()
    found = convert_ogb(source, tmp_path / "graph", memory=SMALL, progress=lambda *step: steps.append(step))
    folder = found.folder
    folder.verify()
    pairs = folder.edges().edge_index
    order = (pairs[0] * NODES + pairs[1]).argsort()
    assert torch.equal(pairs[:, order], expected.edge_index)
    assert folder.x is not None
    assert folder.x.dtype == dtype
    assert np.array_equal(folder.x, expected.x.numpy())
    assert np.array_equal(folder.y, expected.y.numpy())  # type: ignore[arg-type]
    assert expected.published is not None
    assert np.array_equal(folder.role, roles_of(expected.published).numpy())  # type: ignore[arg-type]
    loops = open_npz_arrays(source / "raw" / "data.npz", names=("edge_index",))["edge_index"]
    (ends,) = loops.chunks(0, 2 * EDGES, size=2 * EDGES)
    assert found.log.counts["self-loops removed"] == (ends[:EDGES] == ends[EDGES:]).sum()
    assert ("rows of edges", EDGES, EDGES) in steps
    assert ("rows of features", NODES, NODES) in steps
    assert sorted(path.name for path in tmp_path.iterdir()) == ["graph", "papers"]


def test_the_command_converts_the_folder_or_its_folder_raw(beltrami: Beltrami, tmp_path: Path) -> None:
    write_archives(tmp_path / "papers")
    for name in ("papers", "papers/raw"):
        assert is_ogb_folder(tmp_path / name)
        out = tmp_path / name.replace("/", "-graph-")
        found = beltrami("convert", str(tmp_path / name), "--out", str(out if "raw" in name else tmp_path / "graph"))
        assert found.code == 0, found.err
    folders = [GraphFolder.open(tmp_path / name) for name in ("graph", "papers-graph-raw")]
    assert [folder.role is not None and folder.role.tolist() for folder in folders] == [[2, 3, 1, 0, 0]] * 2
    found = beltrami("convert", str(tmp_path / "papers"), "--label", "y", "--out", str(tmp_path / "other"))
    assert "has its own columns" in found.err


def test_a_graph_of_self_loops_has_no_edges(tmp_path: Path) -> None:
    write_archives(tmp_path / "papers", edge_index=np.zeros((2, 4), np.int64))
    assert convert_ogb(tmp_path / "papers", tmp_path / "graph", memory=SMALL).folder.num_edges == 0


OBJECTS = np.array([[{}]], dtype=object)
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "pickled edges": ({"edge_index": OBJECTS}, r"data\.npz is damaged.*'edge_index' is no array of plain values"),
    "pickled features": ({"node_feat": OBJECTS}, "'node_feat' is no array of plain values, and pickled"),
    "pickled labels": ({"node_label": OBJECTS}, r"node-label\.npz is damaged.*pickled objects are not read"),
    "no edges": ({"edge_index": None}, r"data\.npz is damaged .*it has no array 'edge_index'"),
    "fortran": ({"node_feat": np.zeros((5, 2), np.float32, order="F")}, "'node_feat' is stored by columns: save it"),
    "transposed": ({"edge_index": np.zeros((4, 2), np.int64)}, r"shape \(4, 2\) and type int64, not \(2, 4\)"),
    "edge type": ({"edge_index": np.zeros((2, 4))}, "edge_index has .* type float64, not .* type int64 or int32"),
    "edge count": ({"num_edges_list": np.array([7])}, r"edge_index has shape \(2, 4\) .*, not \(2, 7\)"),
    "many graphs": ({"num_nodes_list": np.array([2, 3])}, r"must hold the size of one graph.* shape \(2,\)"),
    "count type": ({"num_nodes_list": np.array([5.0])}, "num_nodes_list must hold the size of one graph, an integer"),
    "no nodes": ({"num_nodes_list": np.array([0])}, "states 0 nodes: a graph folder has from 1 to"),
    "too many nodes": ({"num_nodes_list": np.array([2**31])}, "states 2147483648 nodes"),
    "few features": ({"node_feat": np.zeros((4, 2), np.float32)}, r"node_feat has shape \(4, 2\).*, not \(5, 2\)"),
    "flat features": ({"node_feat": np.zeros(5, np.float32)}, r"node_feat has shape \(5,\)"),
    "no features": ({"node_feat": np.zeros((5, 0), np.float32)}, r"node_feat has shape \(5, 0\)"),
    "one number": ({"node_feat": np.float32(1)}, r"node_feat has shape \(\)"),
    "feature type": ({"node_feat": np.zeros((5, 2), np.int64)}, "type int64, not .* type float32 or float16"),
    "byte order": ({"node_feat": np.zeros((5, 2), ">f4")}, "type >f4, not"),
    "infinite": ({"node_feat": np.full((5, 2), np.inf, np.float32)}, "row 0 has a missing or infinite feature"),
    "few labels": ({"node_label": np.zeros((4, 1))}, r"node_label has shape \(4, 1\).*, not \(5, 1\) or \(5,\)"),
    "wide labels": ({"node_label": np.zeros((5, 2))}, r"node_label has shape \(5, 2\)"),
    "label type": ({"node_label": np.array(["a"] * 5)}, "type <U1, not"),
    "fractional label": ({"node_label": np.array([0, 1, 1.5, 0, 0])}, "row 2 has label 1.5; it must be a whole"),
    "infinite label": ({"node_label": np.array([0, np.inf, 1, 0, 0])}, "row 1 has label inf"),
    "negative label": ({"node_label": np.array([0, 1, 1, 0, -7.0])}, "row 4 has label -7"),
    "large id": (
        {"edge_index": np.array([[0, 1, 2, 3], [1, 0, 5, 1]])},
        "edge 2 of edge_index names node 5, and nodes",
    ),
    "negative id": ({"edge_index": np.array([[0, 1, 2, -1], [1, 0, 3, 1]])}, "edge 3 of edge_index names node -1"),
}


def assert_refused(folder: Path, message: str) -> None:
    """Convert a folder, and check the error and that nothing was left behind."""
    out = folder.parent / "graph"
    with pytest.raises(DataError, match=message) as caught:
        convert_ogb(folder, out, memory=100)  # chunks of one edge
    assert "\n" not in str(caught.value)
    assert not is_graph_folder(out)
    assert [path.name for path in folder.parent.rglob("*") if path.name.endswith(".tmp")] == []
    assert not out.exists() or not list(out.iterdir())


@pytest.mark.parametrize(("changes", "message"), REFUSED.values(), ids=REFUSED)
def test_arrays_that_are_no_graph_are_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    assert_refused(write_archives(tmp_path / "papers", **changes), message)


@pytest.mark.parametrize("name", ["data", "node-label"])
@pytest.mark.parametrize("deflated", [False, True], ids=["stored", "deflated"])
def test_damaged_archives_are_refused(tmp_path: Path, name: str, deflated: bool) -> None:
    folder = random_archives(tmp_path / "papers", deflated=deflated)
    path = folder / "raw" / f"{name}.npz"
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], b"", b"<html>not found</html>"):
        path.write_bytes(content)
        assert_refused(folder, rf"{name}\.npz is damaged or of another kind \(.+\): get it again")
    path.unlink()
    if name == "node-label":
        assert_refused(folder, r"there is no archive at .*node-label\.npz")


@pytest.mark.parametrize("member", ["edge_index", "node_feat", "node_label"])
@pytest.mark.parametrize("deflated", [False, True], ids=["stored", "deflated"])
def test_an_altered_value_is_found_by_the_checksum(tmp_path: Path, member: str, deflated: bool) -> None:
    """Its bytes are in the first half: of edges among the senders, which a stream of their own reads."""
    folder = random_archives(tmp_path / "papers", deflated=deflated)
    path = folder / "raw" / ("node-label.npz" if member == "node_label" else "data.npz")
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo(f"{member}.npy")
        start, size = info.header_offset, info.compress_size
    content = bytearray(path.read_bytes())
    if deflated:
        place = start + 30 + len(info.filename) + size // 2
        content[place] ^= 255
    else:
        values = content.index(b"\n", content.index(b"NUMPY", start)) + 1
        content[values] ^= 1  # the lowest bit: another node, another feature, another class
    path.write_bytes(bytes(content))
    valid = not deflated and member != "node_label"  # the checksum alone can tell
    assert_refused(folder, "Bad CRC-32" if valid else "is damaged|names node|has label|infinite feature")


def test_limits_hold_for_archives_that_are_read_in_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory is no limit, since no array is read whole; the sizes that an archive states are."""
    folder = write_archives(tmp_path / "papers")
    monkeypatch.setattr(limits, "check_memory", lambda *_, **__: pytest.fail("memory was asked for"))
    assert open_npz_arrays(folder / "raw" / "data.npz", names=("node_feat",))["node_feat"].shape == (5, 2)
    monkeypatch.setattr(limits, "ARCHIVE_BYTES", 100)
    assert_refused(folder, "it expands to .*, and at most 100 bytes are read")
    monkeypatch.setattr(limits, "ARCHIVE_BYTES", 2**30)
    monkeypatch.setattr(limits, "DEFLATE_RATIO", 0)
    assert_refused(folder, r"'edge_index\.npy' claims to expand \d+ to \d+ bytes")


def test_nodes_of_two_sets_and_unknown_nodes_are_refused(tmp_path: Path) -> None:
    folder = write_archives(tmp_path / "papers")
    for text, message in {
        "2\n": r"test\.csv\.gz names node 2, which is in another set too",
        "-1\n": "names node -1, and the graph has 5 nodes",
        "1.5\n": r"names node 1\.5, and the graph has 5 nodes",
    }.items():
        write_table(folder, "split/time/test.csv.gz", text)
        assert_refused(folder, message)
