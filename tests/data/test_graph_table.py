"""Edges are cleaned by the stated rules, and every rule that was applied is recorded."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from beltrami.data.dataset import undirected
from beltrami.data.graph_table import DROPS_LISTED, DropLog, Dropped, GraphTable, clean_edges, node_numbers
from beltrami.data.table import Column, DataTable, Numbers, WordCodes, Words
from beltrami.errors import DataError


def clean(
    pairs: list[tuple[int, int]], weight: list[float] | None = None, nodes: int = 4
) -> tuple[dict[tuple[int, int], float], DropLog]:
    """Return the weight of every directed edge (1 without weights), and the record."""
    log = DropLog()
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    rows = DataTable({}, "e.csv", np.arange(len(pairs)) + 2, "line")
    column = None if weight is None else Numbers(np.array(weight))
    edge_index, values = clean_edges(ends, column, rows=rows, num_nodes=nodes, log=log)
    found = [1.0] * edge_index.shape[1] if values is None else values.tolist()
    return dict(zip(map(tuple, edge_index.T.tolist()), found, strict=True)), log


def test_an_edge_is_used_in_both_directions_once() -> None:
    edges, log = clean([(0, 1), (1, 0), (0, 1), (2, 3)])
    assert set(edges) == {(0, 1), (1, 0), (2, 3), (3, 2)}
    assert log.counts == {
        "repeated edges merged": 1,
        "edges given in both directions, counted once": 1,
        "edges given in one direction, used in both": 1,
    }


def test_self_loops_and_edges_of_weight_zero_are_removed() -> None:
    edges, log = clean([(0, 0), (0, 1), (1, 2)], [1, 0, 2])
    assert edges == {(1, 2): 2, (2, 1): 2}
    assert log.counts["self-loops removed"] == log.counts["edges of weight zero removed"] == 1


def test_an_edge_without_its_weight_is_dropped_with_its_line() -> None:
    edges, log = clean([(0, 1), (1, 2)], [np.nan, 2])
    assert set(edges) == {(1, 2), (2, 1)}
    assert log.drops == [Dropped("e.csv", 2, "no weight")]


def test_cleaning_agrees_with_a_loop_over_the_rows() -> None:
    random = np.random.default_rng(0)
    ends: NDArray[np.int64] = random.integers(0, 9, (2, 200))
    weight = random.integers(0, 4, 200).astype(float)
    expected: dict[tuple[int, int], float] = {}
    for a, b, w in zip(*ends.tolist(), weight.tolist(), strict=True):
        if a != b and w > 0:
            for pair in ((a, b), (b, a)):
                expected[pair] = max(w, expected.get(pair, 0))
    edges, _ = clean(list(zip(*ends.tolist(), strict=True)), weight.tolist(), nodes=9)
    assert edges == expected
    plain, _ = clean(list(zip(*ends.tolist(), strict=True)), nodes=9)
    assert list(plain) == [tuple(pair) for pair in undirected(torch.from_numpy(ends), num_nodes=9).T.tolist()]


def test_no_edges_at_all_are_an_empty_graph() -> None:
    assert clean([])[0] == clean([], [])[0] == {}


@pytest.mark.parametrize("weight", [-1.0, float("inf")])
def test_negative_and_infinite_weights_are_refused_with_their_line(weight: float) -> None:
    with pytest.raises(DataError, match=r"e\.csv, line 3: the weight -?(1|inf) is negative or beyond"):
        clean([(0, 1), (1, 2)], [1, weight])


def test_a_weight_that_is_no_number_is_refused_with_its_line() -> None:
    rows = DataTable({}, "e.csv", np.array([2, 3]), "line")
    weight: Column = Words(np.array([0, 1]), ["1", "heavy"])
    with pytest.raises(DataError, match=r"e\.csv, line 3: the weight 'heavy' is no number"):
        clean_edges(np.array([[0, 1], [1, 2]]), weight, rows=rows, num_nodes=3, log=DropLog())


def test_dropped_rows_are_listed_up_to_a_limit_and_all_counted() -> None:
    log = DropLog()
    many = DROPS_LISTED + 5
    log.drop(DataTable({}, "n.csv", np.arange(many) + 2), np.arange(many), "rows dropped", lambda row: f"row {row}")
    assert len(log.drops) == DROPS_LISTED
    assert log.drops[1] == Dropped("n.csv", 3, "row 1")
    assert log.counts == {"rows dropped": many}


def test_words_are_found_among_the_nodes() -> None:
    encoder = WordCodes({""})
    words = Words(encoder.encode(["b", "", "c", "a"]), encoder.names)
    assert node_numbers(words, {"a": 0, "b": 1}).tolist() == [1, -1, -1, 0]


def test_parts_of_other_lengths_and_empty_graphs_are_refused() -> None:
    with pytest.raises(DataError, match="'a' has 1 rows where the graph has 2 nodes"):
        GraphTable("g", ["p", "q"], columns={"a": Numbers(np.zeros(1))})
    with pytest.raises(DataError, match="'x' has 3 rows"):
        GraphTable("g", ["p", "q"], x=torch.zeros(3, 1))
    with pytest.raises(DataError, match="g has no nodes"):
        GraphTable("g", [])


def test_a_single_label_is_the_label() -> None:
    a, b = Words(np.array([0, -1]), ["u"]), Words(np.array([0, 0]), ["v"])
    assert GraphTable("g", ["p", "q"], labels={"a": a}).label is a
    assert GraphTable("g", ["p", "q"], labels={"a": a, "b": b}).label is None
    assert GraphTable("g", ["p", "q"]).num_edges == 0
