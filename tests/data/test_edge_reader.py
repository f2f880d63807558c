"""Tables of edges: usual names, first lines, weights, and rows that join no nodes."""

from pathlib import Path
from typing import Any

import pytest
from graph_files import NODES, edges_of, write

from beltrami.data.graph_reader import read_graph
from beltrami.data.graph_table import Dropped
from beltrami.data.table import Numbers
from beltrami.errors import DataError


@pytest.mark.parametrize(
    ("names", "ends"),
    [
        ("source,target,since", ("source", "target")),
        ("since,SRC,Dst", ("SRC", "Dst")),
        ("src_id,dst_id,since", ("src_id", "dst_id")),
        ("From,To,since", ("From", "To")),
        (":START_ID,:TYPE,:END_ID", (":START_ID", ":END_ID")),
        (":START_ID(P),:END_ID(P),since", (":START_ID(P)", ":END_ID(P)")),
        ("~id,~from,~to", ("~from", "~to")),
        ("one,other,since", ("one", "other")),
    ],
)
def test_usual_names_of_the_ends_are_understood(names: str, ends: tuple[str, str], tmp_path: Path) -> None:
    row = ["k"] * 3
    for name, value in zip(ends, "ab", strict=True):
        row[names.split(",").index(name)] = value
    write(tmp_path, nodes=NODES, edges=f"{names}\n{','.join(row)}\n")
    graph = read_graph(tmp_path)
    assert edges_of(graph) == {("a", "b")}
    assert (graph.roles["source"], graph.roles["target"]) == ends


def test_an_edge_list_alone_is_a_graph_without_features(tmp_path: Path) -> None:
    write(tmp_path, edges="source,target,w\n10,9,2\n9,1,3\n")
    graph = read_graph(tmp_path)
    assert graph.ids == ["1", "9", "10"]
    assert graph.columns == graph.labels == {}
    assert graph.weight is not None
    assert dict(zip(map(tuple, graph.edge_index.T.tolist()), graph.weight.tolist(), strict=True)) == {  # type: ignore[union-attr]
        (0, 1): 3, (1, 0): 3, (1, 2): 2, (2, 1): 2,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text", "edges"),
    [
        ("e.edgelist", "# comment\n0 1\n1 2\n", {("0", "1"), ("1", "2")}),
        ("e.csv", "0,1\n1,2\n", {("0", "1"), ("1", "2")}),
        ("e.csv", "0,1,0.5\n1,2,2\n", {("0", "1"), ("1", "2")}),
        ("e.edges", "ann bob\nbob cy\ncy ann\n", {("ann", "bob"), ("bob", "cy"), ("ann", "cy")}),
    ],
)
def test_the_first_line_of_an_edge_list_may_be_an_edge(name: str, text: str, edges: set[Any], tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    graph = read_graph(tmp_path / name)
    assert edges_of(graph) == edges
    assert (graph.weight is not None) == ("0.5" in text)


def test_rows_without_id_and_edges_to_nowhere_are_dropped_with_their_lines(tmp_path: Path) -> None:
    write(tmp_path, nodes="id,age\na,1\n,2\nb,3\nNA,4\n", edges="source,target\na,b\na,z\n,a\nz,y\nNA,a\n")
    graph = read_graph(tmp_path)
    assert graph.ids == ["a", "b", "NA"]
    assert isinstance(graph.columns["age"], Numbers)
    assert graph.columns["age"].values.tolist() == [1, 3, 4]
    assert graph.drops == [
        Dropped("nodes.csv", 3, "no id"),
        Dropped("edges.csv", 4, "an end is empty"),
        Dropped("edges.csv", 3, "'z' is no node"),
        Dropped("edges.csv", 5, "'z' and 'y' are no nodes"),
    ]
    assert graph.counts["edges to unknown ids dropped"] == 2
    assert graph.num_edges == 2


def test_isolated_nodes_and_components_are_kept(tmp_path: Path) -> None:
    write(tmp_path, nodes="id\na\nb\nc\nd\ne\n", edges="source,target\na,b\nc,d\n")
    graph = read_graph(tmp_path)
    assert graph.num_nodes == 5
    assert graph.num_edges == 2


def test_edges_that_join_no_nodes_are_refused_with_examples(tmp_path: Path) -> None:
    write(tmp_path, nodes="id,age\na,1\nb,2\n", edges="source,target\n1,2\n")
    with pytest.raises(DataError, match=r"no row of edges\.csv joins two nodes of nodes\.csv.*'1'.*'a'.*`id`"):
        read_graph(tmp_path)


def test_an_edge_table_without_rows_leaves_isolated_nodes(tmp_path: Path) -> None:
    write(tmp_path, nodes=NODES, edges="source,target\n")
    graph = read_graph(tmp_path)
    assert graph.edge_index is not None
    assert graph.num_edges == 0


def test_weights_follow_the_rules_with_lines(tmp_path: Path) -> None:
    rows = "source,target,weight\na,b,1\nb,a,4\na,c,0\n\nb,c,\n"
    write(tmp_path, nodes=NODES, edges=rows)
    graph = read_graph(tmp_path)
    assert edges_of(graph) == {("a", "b")}
    assert graph.weight is not None
    assert graph.weight.tolist() == [4, 4]
    assert graph.drops == [Dropped("edges.csv", 6, "no weight")]
    write(tmp_path, edges=rows + "b,c,-1\n")
    with pytest.raises(DataError, match=r"edges\.csv, line 7: the weight -1 is negative"):
        read_graph(tmp_path)
    write(tmp_path, edges=rows + "b,c,strong\n")
    with pytest.raises(DataError, match=r"edges\.csv, line 7: the weight 'strong' is no number"):
        read_graph(tmp_path)


def test_a_named_weight_is_used_and_the_usual_one_is_not(tmp_path: Path) -> None:
    write(tmp_path, nodes=NODES, edges="source,target,weight,calls\na,b,1,7\n")
    graph = read_graph(tmp_path, weight="calls")
    assert graph.weight is not None
    assert graph.weight.tolist() == [7, 7]
