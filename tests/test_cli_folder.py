"""The commands ``convert``, and ``encode`` and ``rewire`` on graph folders."""

from pathlib import Path

import numpy as np
import pytest
from shell import Beltrami

from beltrami.data.graph_folder import GraphFolder
from beltrami.memory import parse_bytes

KARATE = Path(__file__).parents[1] / "docs" / "tutorials" / "data" / "karate"


@pytest.fixture
def club(beltrami: Beltrami, tmp_path: Path) -> Path:
    """The graph folder of the karate club, which also has features."""
    found = beltrami("convert", str(KARATE), "--out", str(tmp_path / "club"), "--memory", "1MiB")
    assert found.code == 0, found.err
    np.save(tmp_path / "club" / "x.npy", np.random.default_rng(0).standard_normal((34, 3), dtype=np.float32))
    return tmp_path / "club"


def test_tables_are_converted(beltrami: Beltrami, tmp_path: Path) -> None:
    tables = ["--nodes", str(KARATE / "nodes.csv"), "--edges", str(KARATE / "edges.csv"), "--label", "class"]
    found = beltrami("convert", *tables, "--out", str(tmp_path / "club"))
    assert found.code == 0
    assert "156" in found.out  # directed edges
    folder = GraphFolder.open(tmp_path / "club")
    assert (folder.num_nodes, folder.num_edges) == (34, 156)


def test_dropped_rows_are_printed(beltrami: Beltrami, tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("id\na\nb\n")
    (tmp_path / "edges.csv").write_text("source,target\na,b\na,a\na,q\n")
    found = beltrami("convert", str(tmp_path), "--out", str(tmp_path / "graph"))
    assert found.code == 0
    assert "self-loops removed" in found.out
    assert "edges.csv, 4: 'q' is no node" in found.out


def test_a_dataset_is_converted(beltrami: Beltrami, tmp_path: Path) -> None:
    found = beltrami("convert", "digits", "--out", str(tmp_path / "digits"))
    assert found.code == 0, found.err
    folder = GraphFolder.open(tmp_path / "digits")
    assert folder.x is not None
    assert folder.y is not None


def test_positions_and_graphs_of_a_folder(beltrami: Beltrami, club: Path, tmp_path: Path) -> None:
    pytest.importorskip("numba")
    ppr = ["--encoding", "ppr", "--set", "position.top=4", "--tolerance", "1e-4", "--memory", "1MiB"]
    found = beltrami("encode", str(club), *ppr, "--out", str(tmp_path / "rows"))
    assert found.code == 0, found.err
    assert np.load(tmp_path / "rows" / "ppr-index.npy").shape == (34, 4)
    walks = ["--encoding", "deepwalk", "--set", "position.channels=3", "--set", "position.walk_length=20"]
    found = beltrami("encode", str(club), *walks, "--seed", "1", "--out", str(club))
    assert found.code == 0, found.err
    assert GraphFolder.open(club).pos is not None
    for name, options in {
        "digl": ["--set", "stencil.k=5"],
        "knn": ["--set", "stencil.k=3"],
        "knn by positions": ["--set", "stencil.k=3", "--positions", str(club / "pos.npy")],
    }.items():
        out = tmp_path / name
        found = beltrami("rewire", str(club), "--stencil", name[:4].strip(), *options, "--out", str(out))
        assert found.code == 0, found.err
        made = GraphFolder.open(out)
        made.verify()
        assert made.num_nodes == 34
        assert made.y is not None
        assert (made.weight is None) == name.startswith("knn")
        assert name == "digl" or np.diff(made.ptr).tolist() == [3] * 34


REFUSED = {
    "no edges": (["convert", "--nodes", "nodes.csv", "--out", "new"], "`convert` needs a table of edges"),
    "two sources": (["convert", "cora", "--edges", "e.csv", "--out", "new"], "give one or the other"),
    "column of a dataset": (
        ["convert", "digits", "--label", "y", "--out", "new"],
        "`--label` names a column of tables",
    ),
    "no folder": (["convert", "nowhere", "--out", "new"], "there is no folder nowhere"),
    "a file": (["convert", __file__, "--out", "new"], "test_cli_folder.py is a file: name a folder with nodes.*"),
    "in use": (["convert", str(KARATE), "--out", str(KARATE)], "is not empty: choose a new folder"),
    "out is a file": (["convert", str(KARATE), "--out", __file__], "is a file: choose another folder"),
    "memory": (["convert", "digits", "--memory", "much", "--out", "new"], "`--memory` takes a size such as 8GiB"),
    "memory of a dataset": (
        ["encode", "digits", "--encoding", "ppr", "--memory", "1GiB", "--out", "u"],
        "`--memory` is for graph folders, and digits is none",
    ),
}


@pytest.mark.parametrize(("arguments", "message"), REFUSED.values(), ids=REFUSED)
def test_bad_usage_is_one_line(
    beltrami: Beltrami, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    found = beltrami(*arguments)
    assert found.code in (1, 2)
    assert message in found.err
    assert len(found.err.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_bad_usage_on_a_folder_is_one_line(beltrami: Beltrami, club: Path, tmp_path: Path) -> None:
    out = ["--out", str(tmp_path / "new")]
    for arguments, message in (
        (["encode", str(club), "--encoding", "heat"], "`--encoding heat` needs the graph in memory"),
        (
            ["encode", str(club), "--encoding", "ppr", "--set", "position.top=null"],
            "whole rows of PageRank do not fit",
        ),
        (["encode", str(club), "--encoding", "ppr", "--component", "all"], "`--component` is for datasets"),
        (["rewire", str(club), "--stencil", "radius"], "`--stencil radius` needs the graph in memory"),
        (
            ["rewire", str(club), "--stencil", "digl", "--set", "stencil.loops=1"],
            "`stencil.loops` is a setting of train",
        ),
        (["rewire", str(club), "--stencil", "knn", "--positions", str(club / "y.npy")], "y.npy has shape (34,)"),
        (["convert", str(club)], "club is a graph folder already: train on it"),
    ):
        found = beltrami(*arguments, *out)
        assert found.code in (1, 2)
        assert message in found.err
        assert len(found.err.strip().splitlines()) == 1
    assert not (tmp_path / "new").exists()


def test_invalid_edges_are_one_line_and_leave_no_files(beltrami: Beltrami, club: Path, tmp_path: Path) -> None:
    pytest.importorskip("numba")
    np.save(club / "index.npy", np.where(np.arange(156) == 3, 99, np.load(club / "index.npy")))
    out = ["--out", str(tmp_path / "new")]
    for arguments in (
        ["encode", str(club), "--encoding", "ppr", "--set", "position.top=4"],
        ["encode", str(club), "--encoding", "deepwalk", "--set", "position.walk_length=20"],
        ["rewire", str(club), "--stencil", "digl", "--set", "stencil.k=4"],
    ):
        found = beltrami(*arguments, *out)
        assert found.code == 1
        assert found.err == f"beltrami: index of {club}: edge 3 comes from node 99, and nodes run from 0 to 33.\n"
    assert not (tmp_path / "new").exists()


def test_an_output_in_use_is_refused_before_anything_is_computed(
    beltrami: Beltrami, club: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("beltrami.external.rewired_graph.write_nearest_rows", lambda *_, **__: pytest.fail("computed"))
    found = beltrami("rewire", str(club), "--stencil", "knn", "--set", "stencil.k=3", "--out", str(club))
    assert found.code == 1
    assert "club is not empty: choose a new folder for the graph with `--out`" in found.err


@pytest.mark.parametrize(
    ("text", "count"), [("8GiB", 8 * 2**30), ("1.5 kib", 1536), ("2GB", 2 * 10**9), ("700", 700), ("3M", 3 * 10**6)]
)
def test_sizes_are_read(text: str, count: int) -> None:
    assert parse_bytes(text) == count


@pytest.mark.parametrize("text", ["", "GiB", "-1GiB", "0", "1 XiB", "nan"])
def test_bad_sizes_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="`--memory` takes a size such as 8GiB or 500MB"):
        parse_bytes(text)
