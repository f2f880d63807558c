"""The summary of a graph: columns and their rules, components, labels, homophily and the split."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from graph_files import write

from beltrami.data.graph_reader import read_graph
from beltrami.data.graph_summary import ColumnSummary, columns_of, summarise
from beltrami.data.graph_table import GraphTable
from beltrami.data.preprocess import Preprocessing
from beltrami.data.table import Numbers, Words


def words(values: str) -> Words:
    """Return a column of one-letter words, missing where there is a dot."""
    names = sorted({*values} - {"."})
    return Words(np.array([names.index(each) if each != "." else -1 for each in values]), names)


def numbers(*values: float) -> Numbers:
    return Numbers(np.array(values, dtype=np.float64))


def summarised(**columns: Numbers | Words) -> dict[str, ColumnSummary]:
    rows = len(next(iter(columns.values())))
    table = GraphTable("table", [str(k) for k in range(rows)], columns=dict(columns))
    learned = Preprocessing.learn(table.columns, ids=table.ids)
    found = columns_of(table, learned)
    assert sum(column.features for column in found) + len(learned.nodes) == learned.num_features
    return {column.name: column for column in found}


def test_every_rule_for_columns_is_stated() -> None:
    nan = float("nan")
    found = summarised(
        plain=numbers(1, 2, 3, 4),
        gaps=numbers(1, nan, 3, 4),
        flat=numbers(7, 7, 7, 7),
        presence=numbers(7, nan, 7, nan),
        nothing=numbers(nan, nan, nan, nan),
        colour=words("rrb."),
        names=words("abcd"),
        same=words("aaaa"),
        empty=words("...."),
    )
    says = {name: (column.kind, column.missing, column.features, column.says) for name, column in found.items()}
    assert says == {
        "plain": ("numbers", 0, 1, "scaled"),
        "gaps": ("numbers", 1, 2, "scaled; median where missing, and a feature that says where"),
        "flat": ("numbers", 0, 0, "left out: the same value in every row"),
        "presence": ("numbers", 2, 1, "one value: a feature says where it is missing"),
        "nothing": ("numbers", 4, 0, "left out: every value is missing"),
        "colour": ("words", 1, 2, "one feature for each word"),
        "names": ("words", 0, 0, "left out: 4 different words in 4 rows"),
        "same": ("words", 0, 0, "left out: the same value in every row"),
        "empty": ("words", 4, 0, "left out: every value is missing"),
    }


def test_counts_and_rare_words_are_named() -> None:
    columns = {f"w{k}": numbers(*(float(row % 20 == k) for row in range(300))) for k in range(20)}
    codes = np.arange(300) % 120
    found = summarised(**columns, tag=Words(codes, [f"t{code}" for code in range(120)]))
    assert found["w3"].says == "a count, scaled with its row"
    assert (found["tag"].features, found["tag"].says) == (
        100,
        "one feature for each word, the most frequent of 120 words",
    )


def test_feature_matrix_counts_as_one_column() -> None:
    x = torch.eye(4).index_fill(1, torch.tensor([3]), 5.0)
    table = GraphTable("arrays", list("abcd"), x=x)
    (column,) = columns_of(table, Preprocessing.learn({}, x))
    assert (column.name, column.kind, column.features) == ("x", "4 numbers", 3)
    assert column.says == "each column scaled; 1 constant columns left out"


def test_components_isolated_nodes_and_homophily_are_counted(tmp_path: Path) -> None:
    nodes = "id,class\na,u\nb,u\nc,v\nd,\ne,v\nf,v\n"
    write(tmp_path, nodes=nodes, edges="source,target\na,b\nb,c\nc,d\nb,a\n")
    found = summarise(read_graph(tmp_path))
    assert (found.components, found.largest, found.isolated) == (3, 4, 2)
    assert found.labels is not None
    assert (found.labels.known, dict(found.labels.counts)) == (5, {"u": 2, "v": 3})
    assert (found.labels.pairs, found.labels.homophily) == (2, 0.5)  # a-b agree, b-c do not, c-d is not known
    assert len(found.splits) == 5


def test_homophily_without_labelled_pairs_is_undefined(tmp_path: Path) -> None:
    write(tmp_path, nodes="id,class\na,u\nb,\nc,v\nd,u\n", edges="source,target\na,b\n")
    found = summarise(read_graph(tmp_path))
    assert found.labels is not None
    assert found.labels.pairs == 0
    assert math.isnan(found.labels.homophily)


def test_table_alone_is_summarised_with_its_nearest_neighbours(tmp_path: Path) -> None:
    write(tmp_path, nodes="id,x,class\na,0,u\nb,1,v\nc,2,u\nd,3,v\n")
    found = summarise(read_graph(tmp_path))
    assert (found.graph.edges.num_edges, found.components) == (12, 1)


@pytest.mark.parametrize(
    ("field", "task", "counts"), [("tags", "labels", {"p": 2, "q": 1}), ("price", "numbers", {})], ids=str
)
def test_several_labels_are_counted_and_numbers_are_not(
    tmp_path: Path, field: str, task: str, counts: dict[str, int]
) -> None:
    write(tmp_path, nodes="id,x,tags,price\na,0,p;q,1.5\nb,1,p,2.5\nc,2,,0.5\n", edges="source,target\na,b\n")
    found = summarise(read_graph(tmp_path, label=field))
    assert found.targets is not None
    assert found.labels is not None
    assert (found.targets.kind, dict(found.labels.counts)) == (task, counts)


def test_graph_without_labels_has_no_split(tmp_path: Path) -> None:
    write(tmp_path, edges="source,target\na,b\n")
    found = summarise(read_graph(tmp_path))
    assert (found.labels, found.splits, found.preprocessing.num_features) == (None, (), 2)
