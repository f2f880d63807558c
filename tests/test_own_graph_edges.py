"""From files to predictions: the rules for edges, weights, components and isolated nodes (docs/own-graphs.md)."""

from pathlib import Path

import pytest
from own_graph import fit, from_files, predicted, right, two_groups, unchanged

from beltrami.data.graph_reader import read_graph
from beltrami.data.graph_table import Dropped
from beltrami.errors import DataError
from beltrami.predict.predictions import NO_LABEL


@pytest.mark.slow
def test_directions_do_not_count(tmp_path: Path) -> None:
    files = two_groups()
    files.edges = [{"source": row["target"], "target": row["source"]} for row in files.edges]
    assert from_files(tmp_path, files) == unchanged()
    assert right(unchanged(), files) >= 0.95


@pytest.mark.slow
def test_repeated_edges_and_both_directions_count_once(tmp_path: Path) -> None:
    files = two_groups()
    back = [{"source": row["target"], "target": row["source"]} for row in files.edges]
    files.edges = [*files.edges, *files.edges, *back]
    assert from_files(tmp_path, files) == unchanged()
    counts = read_graph(tmp_path).counts
    assert counts["repeated edges merged"] == counts["edges given in both directions, counted once"] == 81


@pytest.mark.slow
def test_self_loops_are_removed(tmp_path: Path) -> None:
    files = two_groups()
    files.edges += [{"source": node, "target": node} for node in files.truth]
    assert from_files(tmp_path, files) == unchanged()
    assert read_graph(tmp_path).counts["self-loops removed"] == 40


@pytest.mark.slow
def test_edges_to_unknown_ids_are_dropped_and_reported_with_file_and_line(tmp_path: Path) -> None:
    files = two_groups()
    files.edges.insert(1, {"source": "n0", "target": "nobody"})
    assert from_files(tmp_path, files) == unchanged()
    assert read_graph(tmp_path).drops == [Dropped("edges.csv", 3, "'nobody' is no node")]


@pytest.mark.slow
def test_isolated_nodes_are_kept_and_predicted_from_their_columns_on_demand(tmp_path: Path) -> None:
    files = two_groups()
    files.edges = [row for row in files.edges if "n39" not in row.values()]
    files.nodes[39] |= {"f0": "2", "f1": "2"}
    assert from_files(tmp_path / "a", files)["n39"]["prediction"] == NO_LABEL
    assert from_files(tmp_path / "b", files, from_features=True)["n39"]["prediction"] == "dog"


@pytest.mark.slow
def test_weights_count(tmp_path: Path) -> None:
    """Node 39, a dog, is joined to four dogs and to six cats; without columns the weights of the latter decide."""
    files = two_groups(columns=0)
    for weight, group in (("0.01", "dog"), ("100", "cat")):
        files.edges = two_groups(columns=0).edges
        for row in files.edges:
            row["weight"] = "1"
        files.edges += [{"source": "n39", "target": f"n{k}", "weight": weight} for k in range(0, 12, 2)]
        assert from_files(tmp_path / group, files)["n39"]["prediction"] == group


@pytest.mark.slow
def test_the_largest_of_several_weights_counts_and_an_empty_weight_drops_the_row(tmp_path: Path) -> None:
    files = two_groups()
    for k, row in enumerate(files.edges):
        row["weight"] = str(1 + k % 3)
    once = from_files(tmp_path / "once", files)
    files.edges += [{**row, "weight": "0.5"} for row in files.edges]
    files.edges.append({"source": "n0", "target": "n7", "weight": ""})
    files.edges.append({"source": "n0", "target": "n9", "weight": "0"})
    assert from_files(tmp_path / "twice", files) == once
    graph = read_graph(tmp_path / "twice")
    assert graph.drops == [Dropped("edges.csv", 164, "no weight")]
    assert graph.counts["edges of weight zero removed"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_the_unit_of_weights_does_not_count(tmp_path: Path, unit: float) -> None:
    files = two_groups()
    for k, row in enumerate(files.edges):
        row["weight"] = str(1 + k % 3)
    given = from_files(tmp_path / "given", files)
    for k, row in enumerate(files.edges):
        row["weight"] = str(unit * (1 + k % 3))
    rows = from_files(tmp_path / "scaled", files)
    for node, row in rows.items():
        assert float(row["p_cat"]) == pytest.approx(float(given[node]["p_cat"]), abs=1e-3)


def test_negative_weights_are_refused_with_file_and_line(tmp_path: Path) -> None:
    files = two_groups()
    for row in files.edges:
        row["weight"] = "1"
    files.edges[2]["weight"] = "-1"
    with pytest.raises(DataError, match=r"edges\.csv, line 4: the weight -1 is negative or beyond"):
        from_files(tmp_path, files)


@pytest.mark.slow
def test_all_components_are_kept(tmp_path: Path) -> None:
    files = two_groups()
    files.edges = files.edges[:-1]  # the edge that joins the groups
    rows = from_files(tmp_path, files)
    assert len(rows) == 40
    assert right(rows, files) == 1


@pytest.mark.slow
def test_a_component_without_labels_is_said_to_have_none_or_predicted_from_its_columns(tmp_path: Path) -> None:
    files = two_groups()
    files.edges = [row for row in files.edges if not {"n36", "n38"} & {*row.values()}]
    files.edges.append({"source": "n36", "target": "n38"})
    rows = from_files(tmp_path / "a", files)
    assert rows["n36"]["prediction"] == rows["n38"]["prediction"] == NO_LABEL
    rows = from_files(tmp_path / "b", files, from_features=True)
    assert rows["n36"]["prediction"] == rows["n38"]["prediction"] == "cat"
    assert "reached" not in rows["n36"]


@pytest.mark.slow
def test_without_columns_a_component_without_labels_is_said_to_have_none(tmp_path: Path) -> None:
    files = two_groups(columns=0)
    files.edges = [row for row in files.edges if not {"n36", "n38"} & {*row.values()}]
    files.edges.append({"source": "n36", "target": "n38"})
    rows = from_files(tmp_path, files)
    assert rows["n36"]["prediction"] == rows["n38"]["prediction"] == NO_LABEL == "no label reaches this node"
    assert (rows["n36"]["probability"], rows["n36"]["reached"]) == ("", "false")
    assert rows["n39"]["prediction"] == "dog"


@pytest.mark.slow
def test_an_edge_list_alone_needs_a_table_of_labels(tmp_path: Path) -> None:
    files = two_groups(columns=0)
    files.write(tmp_path)
    with pytest.raises(ValueError, match=r"no label column was found"):
        fit(tmp_path / "edges.csv")
    rows = predicted(fit(tables={"nodes": tmp_path / "nodes.csv", "edges": tmp_path / "edges.csv"}), tmp_path)
    assert right(rows, files) == 1


@pytest.mark.slow
def test_an_edge_list_without_a_header_is_understood(tmp_path: Path) -> None:
    files = two_groups(columns=0)
    files.write(tmp_path)
    (tmp_path / "edges.csv").unlink()
    (tmp_path / "edges.txt").write_text("".join(f"{row['source']} {row['target']}\n" for row in files.edges))
    assert right(from_files(tmp_path), files) == 1
