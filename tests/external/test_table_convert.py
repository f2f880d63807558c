"""Tables converted in chunks give the graph that ``read_graph`` gives; what cannot be converted is refused."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from beltrami.data import table_reader
from beltrami.data.graph_folder import GraphFolder, is_graph_folder
from beltrami.data.graph_reader import read_graph
from beltrami.data.graph_table import GraphTable
from beltrami.data.roles import Roles
from beltrami.data.table import Numbers, Words
from beltrami.errors import DataError
from beltrami.external.ogb_convert import convert_ogb, is_ogb_folder
from beltrami.external.table_convert import convert_tables, find_tables
from beltrami.graph import Edges

TUTORIALS = Path(__file__).parents[2] / "docs" / "tutorials" / "data"
SMALL = 300  # bytes: every table is sorted in many buckets


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_reader, "CHUNK_FIELDS", 20)


def write(folder: Path, **tables: str) -> dict[str, Any]:
    for name, text in tables.items():
        (folder / f"{name}.csv").write_text(text)
    return {name: folder / f"{name}.csv" for name in tables}


def assert_equal(folder: GraphFolder, table: GraphTable) -> None:
    """Compare a graph folder with a graph that was read as a whole."""
    folder.verify()
    assert table.edge_index is not None
    expected = Edges.build(table.edge_index, num_nodes=table.num_nodes, weight=table.weight)
    assert torch.equal(folder.edges().edge_index, expected.edge_index)
    assert (folder.weight is None) == (expected.weight is None)
    if expected.weight is not None:
        assert np.array_equal(folder.weight, expected.weight.numpy())  # type: ignore[arg-type]
    columns = [column.values for column in table.columns.values() if isinstance(column, Numbers)]
    if columns:
        assert np.array_equal(folder.x, np.stack(columns, 1).astype(np.float32))  # type: ignore[arg-type]
    if isinstance(table.label, Words):
        assert np.array_equal(folder.y, table.label.codes)  # type: ignore[arg-type]
    assert (folder.path / "ids.csv").read_text().splitlines()[1:] == table.ids


def test_the_karate_club_is_that_of_the_ordinary_reader(tmp_path: Path) -> None:
    nodes, edges = find_tables(TUTORIALS / "karate")
    found = convert_tables(nodes, edges, tmp_path / "graph", roles=Roles(), memory=SMALL)
    assert_equal(found.folder, read_graph(TUTORIALS / "karate"))
    assert (tmp_path / "graph" / "names.json").read_text() == '{"features": [], "classes": ["Mr. Hi", "Officer"]}'
    assert [path.name for path in tmp_path.iterdir()] == ["graph"]


def test_wines_with_edges_are_those_of_the_ordinary_reader(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    rows = [f"wine-{a:03},wine-{b:03}" for a, b in random.integers(1, 179, size=(300, 2))]
    edges = write(tmp_path, edges="\n".join(["source,target", *rows]))["edges"]
    nodes = TUTORIALS / "wine.csv"
    found = convert_tables(nodes, edges, tmp_path / "graph", roles=Roles(label="class"), memory=SMALL)
    table = read_graph(nodes=nodes, edges=edges, label="class")
    assert_equal(found.folder, table)
    shared = ("self-loops removed", "edges to unknown ids dropped")
    assert {rule: found.log.counts[rule] for rule in shared} == {rule: table.counts.get(rule, 0) for rule in shared}


IDS = {
    "in order": [str(k) for k in range(30)],
    "integers": [str(7 * k % 101 - 40) for k in range(30)],
    "words": [f"n{k * 17 % 30}" for k in range(30)],
    "one word": [*(str(k) for k in range(29)), "07"],
    "large": [str(2**63 - 1 - k) for k in range(29)] + [str(-(2**63))],
}


@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
@pytest.mark.parametrize("suffix", ["csv", "parquet", "csv.gz"])
def test_ids_of_every_kind_are_joined_as_by_the_ordinary_reader(tmp_path: Path, ids: list[str], suffix: str) -> None:
    """Duplicates, self-loops, unknown and empty ends, weights of every kind."""
    random = np.random.default_rng(1)
    known = [*ids, "7", "unknown", "", "99999999999999999999"]
    ends = [(known[a], known[b]) for a, b in random.integers(len(known), size=(150, 2))]
    weights = random.choice(["1", "2.5", "0", ""], 150)
    edges = "\n".join(["from,to,w", *(f"{a},{b},{w}" for (a, b), w in zip(ends, weights, strict=True))])
    labels = random.choice(["10", "9", ""], 31)
    sets = random.choice(["train", "VALID", "test", "other", ""], 31)
    rows = [f"{name},{k / 4},{-k},{labels[k]},{sets[k]}" for k, name in enumerate([*ids, ""])]
    paths = write(tmp_path, nodes="\n".join(["id,a,b,y,set", *rows]), edges=edges)
    table = read_graph(**paths, split="set")
    if suffix == "csv.gz":
        for name, path in paths.items():
            paths[name] = path.with_suffix(".csv.gz")
            paths[name].write_bytes(gzip.compress(path.read_bytes()))
    if suffix == "parquet":
        pa, csv = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.csv")
        parquet = pytest.importorskip("pyarrow.parquet")
        text = {name: pa.string() for name in ("id", "from", "to", "set", "y")}
        for name, path in paths.items():
            frame = csv.read_csv(path, convert_options=csv.ConvertOptions(column_types=text))
            paths[name] = path.with_suffix(".parquet")
            parquet.write_table(frame, paths[name], row_group_size=7)
    found = convert_tables(**paths, out=tmp_path / "graph", roles=Roles(split="set"), memory=SMALL)
    assert_equal(found.folder, table)
    assert found.log.counts["rows without an id dropped"] == 1
    if suffix != "parquet":  # which has rows, not lines
        listed, expected = (
            sorted((drop.line, drop.reason) for drop in each) for each in (found.log.drops, table.drops)
        )
        assert listed == expected
    role = {"train": 1, "VALID": 2, "test": 3}
    assert found.folder.role is not None
    assert found.folder.role.tolist() == [role.get(word, 0) for word in sets[:30]]


@pytest.mark.parametrize("text", ["5 3\n3 -2\n-2 5\n10 10\n", "# links\nsource target\n5 3\n3 70\n"])
def test_an_edge_list_alone_gives_its_integers_as_nodes(tmp_path: Path, text: str) -> None:
    (tmp_path / "links.edgelist").write_text(text)
    found = convert_tables(None, tmp_path / "links.edgelist", tmp_path / "graph", roles=Roles(), memory=SMALL)
    assert_equal(found.folder, read_graph(edges=tmp_path / "links.edgelist"))


def test_a_first_line_of_ids_is_an_edge(tmp_path: Path) -> None:
    paths = write(tmp_path, nodes="id\na\nb\nc\n", edges="a,b\nb,c\nc,a\n")
    found = convert_tables(**paths, out=tmp_path / "graph", roles=Roles(), memory=SMALL)
    assert_equal(found.folder, read_graph(**paths))
    assert found.folder.num_edges == 6


NODES = "id,size,class\na,1,x\nb,2,y\nc,3,x\n"
EDGES = "source,target\na,b\n"
REFUSED = {
    "no edge joins": ({"edges": "source,target\nq,r\n"}, {}, "no row of edges.csv joins two nodes of nodes.csv"),
    "ragged edges": ({"edges": "source,target\na,b\na,b,c\n"}, {}, "line 3, has 3 fields where the header has 2"),
    "ragged nodes": ({"nodes": "id,size\na,1\nb\n"}, {}, "line 3, has 1 fields where the header has 2"),
    "repeated id": ({"nodes": NODES + "b,4,x\n"}, {}, "the nodes 2 and 4, counted from 1, have the same id"),
    "repeated number": ({"nodes": "id\n5\n9\n5\n", "edges": "source,target\n5,9\n"}, {}, "the nodes 1 and 3"),
    "words": ({}, {"features": "class"}, "the column 'class' holds words such as 'x': make numbers of it"),
    "one word": ({"nodes": "id,size\na,1\nb,big\n"}, {}, "the column 'size' holds words such as 'big'"),
    "missing": ({"nodes": "id,size\na,1\nb,\n"}, {}, "nodes.csv, line 3: the value of 'size' is missing or not finite"),
    "no id": ({"nodes": "size,class\n1,x\n"}, {}, "no column with a usual name of ids"),
    "two labels": ({}, {"label": "size,class"}, "name one column as label; got 2"),
    "negative weight": ({"edges": "source,target,w\na,b,-1\n"}, {}, "line 2: the weight -1 is negative"),
    "calibration": ({"nodes": "id,set\na,calibration\nb,\n"}, {"split": "set"}, "has no calibration nodes"),
    "no nodes": ({"nodes": "id,size\n"}, {}, "nodes.csv has no nodes"),
    "unknown column": ({}, {"label": "colour"}, "colour"),
}


@pytest.mark.parametrize(("tables", "roles", "message"), REFUSED.values(), ids=REFUSED)
def test_bad_tables_are_refused_and_leave_no_graph(
    tmp_path: Path, tables: dict[str, str], roles: dict[str, str], message: str
) -> None:
    paths = write(tmp_path, **{"nodes": NODES, "edges": EDGES, **tables})
    given = Roles(label=(), **roles) if "features" in roles else Roles(**roles)
    with pytest.raises((DataError, ValueError), match=message):
        convert_tables(**paths, out=tmp_path / "graph", roles=given, memory=SMALL)
    assert not is_graph_folder(tmp_path / "graph")
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


def test_words_without_a_table_of_nodes_are_refused(tmp_path: Path) -> None:
    edges = write(tmp_path, edges=EDGES)["edges"]
    for text, word in ((EDGES, "a"), ("source,target\n0,1\n1,99999999999999999999\n", "99999999999999999999")):
        edges.write_text(text)
        with pytest.raises(DataError, match=f"ids that are no 64-bit integers, such as '{word}': give a table of node"):
            convert_tables(None, edges, tmp_path / "graph", roles=Roles(), memory=SMALL)
    with pytest.raises(ValueError, match="without a table of nodes leave out `--label`"):
        convert_tables(None, edges, tmp_path / "graph", roles=Roles(label="y"), memory=SMALL)


def test_a_damaged_gzip_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "edges.csv.gz"
    path.write_bytes(gzip.compress((EDGES * 50).encode())[:-20])
    with pytest.raises(DataError, match=r"edges.csv.gz is no gzip file, or it is damaged"):
        convert_tables(None, path, tmp_path / "graph", roles=Roles(), memory=SMALL)


def ogb(folder: Path, **changes: str) -> Path:
    """Write the raw files of a graph of four nodes."""
    tables = {
        "raw/edge": "0,1\n1,0\n2,3\n3,3\n",
        "raw/num-node-list": "4\n",
        "raw/node-feat": "0.5,0.5\n1,2\n3,4\n5,6\n",
        "raw/node-label": "1\n0\nnan\n2\n",
        "split/time/train": "0\n3\n",
        "split/time/valid": "1\n",
        "split/time/test": "2\n",
        **changes,
    }
    for name, text in tables.items():
        path = folder / f"{name}.csv.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text.encode()))
    return folder


def test_raw_tables_of_ogb_are_converted(tmp_path: Path) -> None:
    assert is_ogb_folder(ogb(tmp_path / "ogb"))
    folder = convert_ogb(tmp_path / "ogb", tmp_path / "graph", memory=SMALL).folder
    folder.verify()
    assert folder.edges().edge_index.tolist() == [[1, 0, 3, 2], [0, 1, 2, 3]]
    assert folder.x is not None
    assert folder.x.tolist() == [[0.5, 0.5], [1, 2], [3, 4], [5, 6]]
    assert folder.y is not None
    assert folder.y.tolist() == [1, 0, -1, 2]
    assert folder.role is not None
    assert folder.role.tolist() == [1, 2, 3, 1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"raw/num-node-list": ""}, r"num-node-list\.csv\.gz is empty or starts with an empty line"),
        ({"raw/num-node-list": "4.5\n"}, "must hold the number of nodes of one graph, from 1 to .*; it holds 4.5"),
        ({"raw/num-node-list": "nan\n"}, "must hold the number of nodes of one graph, .*; it holds nan"),
        ({"raw/num-node-list": "0\n"}, "must hold the number of nodes of one graph, .*; it holds 0"),
        ({"raw/num-node-list": "4\n4\n"}, "must hold the number of nodes of one graph, .*; it holds 4, 4"),
        ({"raw/node-feat": "1,2\n"}, "has 1 rows, and the graph has 4 nodes"),
        ({"raw/node-label": "1\n" * 5}, "has over 4 rows, and the graph has 4 nodes"),
        ({"raw/node-feat": "1,x\n" * 4}, "must hold numbers alone"),
        ({"split/time/test": "4\n"}, "names node 4, and the graph has 4 nodes"),
        ({"split/random/test": "1\n"}, "has several splits"),
    ],
)
def test_damaged_tables_of_ogb_are_refused(tmp_path: Path, change: dict[str, str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        convert_ogb(ogb(tmp_path / "ogb", **change), tmp_path / "graph", memory=SMALL)
    assert not is_graph_folder(tmp_path / "graph")
