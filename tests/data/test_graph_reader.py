"""Files, folders and frames become graphs."""

from pathlib import Path
from typing import Any

import pytest
from graph_files import EDGES, NODES, edges_of, listed, write

from beltrami.data.graph_reader import read_graph
from beltrami.data.graph_table import Dropped
from beltrami.errors import DataError


def test_a_folder_of_two_tables_is_a_graph(tmp_path: Path) -> None:
    write(tmp_path, nodes=NODES, edges=EDGES)
    graph = read_graph(tmp_path)
    assert graph.source == tmp_path.name
    assert graph.ids == ["b", "a", "c"]
    assert edges_of(graph) == {("a", "b"), ("b", "c")}
    assert list(graph.columns) == ["age", "job"]
    assert listed(graph.columns["job"]) == ["x", "y", "x"]
    assert listed(graph.label) == ["u", None, "v"]
    assert graph.roles == {"id": "id", "label": "class", "source": "source", "target": "target"}
    assert (graph.weight, graph.split, graph.x) == (None, None, None)
    assert graph.drops == []


def test_nodes_and_edges_may_be_named_as_text_or_paths(tmp_path: Path) -> None:
    write(tmp_path, people=NODES, ties=EDGES)
    graph = read_graph(nodes=str(tmp_path / "people.csv"), edges=tmp_path / "ties.csv", label="job", features="age")
    assert graph.source == "people.csv and ties.csv"
    assert list(graph.columns) == ["age"]
    assert list(graph.labels) == ["job"]


def test_a_table_alone_has_no_edges_and_its_first_words_are_ids(tmp_path: Path) -> None:
    write(
        tmp_path,
        wines="wine,acid,class\nred,1,NA\nwhite,2,b\n",
        numbers="acid,class\n1,a\n2,b\n",
        words="kind,class\nNA,a\nx,b\nx,a\n",
    )
    graph = read_graph(tmp_path / "wines.csv")
    assert graph.edge_index is None
    assert graph.ids == ["red", "white"]
    assert list(graph.columns) == ["acid"]
    assert listed(graph.label) == [None, "b"]
    assert read_graph(tmp_path / "numbers.csv").ids == ["0", "1"]
    kinds = read_graph(tmp_path / "words.csv")
    assert kinds.ids == ["0", "1", "2"]
    assert listed(kinds.columns["kind"]) == [None, "x", "x"]


def test_frames_are_tables() -> None:
    pd: Any = pytest.importorskip("pandas")
    nodes = pd.DataFrame({"age": [1.0, 2.0, None], "class": ["u", None, "v"]}, index=["p", "q", "r"])
    edges = pd.DataFrame({"src": ["p", "q", "q"], "dst": ["q", "r", "z"], "w": [1, 2, 3]})
    graph = read_graph(nodes=nodes, edges=edges)
    assert graph.source == "nodes and edges"
    assert graph.ids == ["p", "q", "r"]
    assert edges_of(graph) == {("p", "q"), ("q", "r")}
    assert graph.drops == [Dropped("edges", 3, "'z' is no node")]
    assert listed(graph.label) == ["u", None, "v"]
    assert read_graph(nodes).edge_index is None
    numbered = read_graph(nodes=nodes.reset_index(drop=True), edges=pd.DataFrame({"src": [0.0, 1.0], "dst": [1, 2]}))
    assert edges_of(numbered) == {("0", "1"), ("1", "2")}


def test_parquet_tables_in_a_folder_are_read(tmp_path: Path) -> None:
    pa: Any = pytest.importorskip("pyarrow")
    pq: Any = pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"id": [2**60 + 1, 2**60], "age": [1, 2]}), tmp_path / "nodes.parquet")
    write(tmp_path, edges=f"source,target\n{2**60},{2**60 + 1}\n")
    graph = read_graph(tmp_path)
    assert graph.ids == [str(2**60 + 1), str(2**60)]
    assert graph.num_edges == 1


def test_arguments_that_do_not_apply_are_refused(tmp_path: Path) -> None:
    write(tmp_path, nodes=NODES, edges=EDGES)
    with pytest.raises(ValueError, match="either `source` or the tables"):
        read_graph(tmp_path, nodes=tmp_path / "nodes.csv")
    with pytest.raises(ValueError, match="either `source` or the tables"):
        read_graph()
    with pytest.raises(ValueError, match=r"edges\.csv is a list of edges without a table of nodes"):
        read_graph(edges=tmp_path / "edges.csv", label="class")
    with pytest.raises(ValueError, match="`weight` names a column of the edge table"):
        read_graph(nodes=tmp_path / "nodes.csv", weight="age")
    with pytest.raises(ValueError, match="got list for nodes"):
        read_graph([1, 2])


def test_folders_and_files_without_a_graph_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"has no graph: it needs nodes\.\* and edges\.\*.*\.csv.*\.graphml or \.npz"):
        read_graph(tmp_path)
    write(tmp_path, nodes=NODES)
    (tmp_path / "nodes.tsv").write_text(NODES)
    with pytest.raises(DataError, match=r"has both nodes\.csv and nodes\.tsv"):
        read_graph(tmp_path)
    with pytest.raises(DataError, match="there is no file or folder"):
        read_graph(tmp_path / "none.csv")
    (tmp_path / "a.doc").write_text("")
    with pytest.raises(DataError, match=r"extension '\.doc': a graph is read from \.csv"):
        read_graph(tmp_path / "a.doc")
    write(tmp_path, edges="source\na\n", empty="id,age\n")
    with pytest.raises(DataError, match=r"edges\.csv has one column, 'source'"):
        read_graph(edges=tmp_path / "edges.csv")
    with pytest.raises(DataError, match=r"empty\.csv has no nodes"):
        read_graph(tmp_path / "empty.csv")
