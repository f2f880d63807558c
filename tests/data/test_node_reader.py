"""Tables of nodes: ids, features, labels and split are found and checked."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graph_files import EDGES, NODES, listed, write

from beltrami.data.graph_reader import read_graph
from beltrami.data.table import Numbers, Words
from beltrami.errors import DataError, UnknownName


@pytest.mark.parametrize("name", ["id", "node_id", "NODE", ":ID", "personId:ID(Person)", "~id", "Name"])
def test_usual_names_of_the_ids_are_understood_in_any_column(name: str, tmp_path: Path) -> None:
    write(tmp_path, nodes=f"age,{name}\n1,a\n2,b\n", edges="source,target\na,b\n")
    graph = read_graph(tmp_path)
    assert graph.ids == ["a", "b"]
    assert list(graph.columns) == ["age"]


def test_the_first_column_is_the_id_if_the_edges_use_it(tmp_path: Path) -> None:
    write(tmp_path, nodes="paper,year\n7,2001\n9,2002\n", edges="source,target\n9,7\n")
    graph = read_graph(tmp_path)
    assert graph.ids == ["7", "9"]
    assert list(graph.columns) == ["year"]


def test_ids_are_row_numbers_if_no_column_holds_them(tmp_path: Path) -> None:
    write(tmp_path, nodes="size,year\n7,2001\n9,2002\n", edges="source,target\n0,1\n")
    graph = read_graph(tmp_path)
    assert graph.ids == ["0", "1"]
    column = graph.columns["size"]
    assert isinstance(column, Numbers)
    assert column.values.tolist() == [7, 9]
    assert graph.num_edges == 1


def test_an_index_that_pandas_wrote_is_the_id_and_never_a_feature(tmp_path: Path) -> None:
    write(tmp_path, a=",acid,class\n5,1,a\n7,2,b\n", b=",id,acid,class\n0,p,1,a\n1,q,2,b\n")
    assert read_graph(tmp_path / "a.csv").ids == ["5", "7"]
    graph = read_graph(tmp_path / "b.csv")
    assert graph.ids == ["p", "q"]
    assert list(graph.columns) == ["acid"]


def test_a_repeated_id_is_refused_with_both_lines(tmp_path: Path) -> None:
    write(tmp_path, nodes="id,age\na,1\nb,2\na,3\n")
    with pytest.raises(DataError, match=r"nodes\.csv, line 4: the id 'a' in column 'id' is already on line 2"):
        read_graph(tmp_path)


def test_labels_are_words_sorted_by_value(tmp_path: Path) -> None:
    write(tmp_path, nodes="id,class\na,10\nb,-1\nc,9\nd,\ne,007\n")
    label = read_graph(tmp_path).label
    assert isinstance(label, Words)
    assert label.names == ["-1", "007", "9", "10"]
    assert label.codes.tolist() == [3, 0, 2, -1, 1]


def test_several_labels_split_and_features_are_named(tmp_path: Path) -> None:
    write(tmp_path, nodes='id,"a,b",red,blue,set,age,class\np,0,yes,1,train,3,k\nq,1,no,,test,4,k\nr,2,,0,,5,k\n')
    graph = read_graph(tmp_path, label="red, blue", split="set")
    assert list(graph.labels) == ["red", "blue"]
    assert listed(graph.labels["red"]) == ["yes", "no", None]
    assert listed(graph.labels["blue"]) == ["1", None, "0"]
    assert listed(graph.split) == ["train", "test", None]
    assert list(graph.columns) == ["a,b", "age", "class"]
    assert list(read_graph(tmp_path, label=["red"], features="a,b").columns) == ["a,b"]
    assert list(read_graph(tmp_path, label="a,b", features=("age",)).labels) == ["a,b"]
    assert read_graph(tmp_path, label=()).labels == {}
    assert read_graph(tmp_path, features=()).columns == {}


def test_numbers_with_fractions_in_frames_are_labels_but_no_ids() -> None:
    pd: Any = pytest.importorskip("pandas")
    graph = read_graph(pd.DataFrame({"size": [1, 2], "y": [0.5, None]}))
    assert isinstance(graph.label, Numbers)
    np.testing.assert_array_equal(graph.label.values, [0.5, np.nan])
    with pytest.raises(DataError, match="the ids in 'id' must be words or integers"):
        read_graph(pd.DataFrame({"id": [0.5, 1.5]}))
    with pytest.raises(DataError, match="'src' must hold ids"):
        read_graph(edges=pd.DataFrame({"src": [0.5, 1.5], "dst": [1, 2]}))
    with pytest.raises(DataError, match="split column 's' must hold words"):
        read_graph(pd.DataFrame({"id": [1, 2], "s": [0.5, 1.5]}), split="s")


def test_unknown_columns_are_refused_with_the_known_ones(tmp_path: Path) -> None:
    write(tmp_path, nodes=NODES, edges=EDGES)
    for roles in ({"label": "clas"}, {"id": "key"}, {"features": "age,jab"}, {"split": "set"}, {"weight": "w"}):
        with pytest.raises(UnknownName, match="unknown column"):
            read_graph(tmp_path, **roles)


def test_a_column_has_one_role(tmp_path: Path) -> None:
    write(tmp_path, nodes=NODES)
    for roles in (
        {"label": "job", "features": "age,job"},
        {"label": "id", "id": "id"},
        {"split": "job", "label": "job"},
    ):
        with pytest.raises(ValueError, match="a column has one role"):
            read_graph(tmp_path, **roles)


def test_the_first_column_is_the_id_only_if_half_the_ends_are_in_it(tmp_path: Path) -> None:
    write(tmp_path, nodes="paper,year\na,1\nb,2\n", edges="source,target\na,b\nb,x\nx,y\n")
    assert read_graph(tmp_path).ids == ["a", "b"]
    write(tmp_path, edges="source,target\na,0\n0,1\n1,2\n")
    graph = read_graph(tmp_path)
    assert graph.ids == ["0", "1"]
    assert listed(graph.columns["paper"]) == ["a", "b"]


def test_a_first_column_that_is_not_the_id_obeys_the_named_features(tmp_path: Path) -> None:
    write(tmp_path, nodes="size,year\n7,1\n7,2\n")
    assert read_graph(tmp_path, features=()).columns == {}
    assert list(read_graph(tmp_path, features="year").columns) == ["year"]
    assert list(read_graph(tmp_path, features="size").columns) == ["size"]
