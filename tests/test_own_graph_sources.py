"""From files and objects to predictions: formats, new nodes and changed graphs (docs/own-graphs.md)."""

from pathlib import Path
from typing import Any

import networkx as nx
import pytest
import torch
from own_graph import Files, fit, from_files, predicted, right, two_groups

from beltrami.auto.portfolio import MEMBERS
from beltrami.data.graph_reader import read_graph
from beltrami.data.graph_table import Dropped
from beltrami.errors import DataError
from beltrami.predict.predictions import NO_LABEL
from beltrami.predict.predictor import NEW_GRAPH


def _network(files: Files) -> "nx.Graph[Any]":
    graph = nx.Graph()
    for row in files.nodes:
        numbers = {name: float(row[name]) for name in row if name.startswith("f")}
        graph.add_node(row["id"], **numbers, **({"class": row["class"]} if row["class"] else {}))
    graph.add_edges_from((row["source"], row["target"]) for row in files.edges)
    return graph


@pytest.mark.slow
def test_all_formats_give_the_same_predictions(tmp_path: Path) -> None:
    """CSV with other separators and names of columns, Parquet, frames, GraphML and networkx."""
    pd: Any = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    files = two_groups()
    csv = from_files(tmp_path / "csv", files)
    nodes, edges = (pd.read_csv(tmp_path / "csv" / f"{name}.csv") for name in ("nodes", "edges"))
    (tmp_path / "tables").mkdir()
    nodes.to_csv(tmp_path / "tables" / "nodes.tsv", sep="\t", index=False)
    edges.set_axis([":START_ID", ":END_ID"], axis=1).to_parquet(tmp_path / "tables" / "edges.parquet")
    graph = _network(files)
    nx.write_graphml(graph, tmp_path / "graph.graphml")
    frames = fit(tables={"nodes": nodes, "edges": edges})
    for predictor in (frames, fit(tmp_path / "tables"), fit(tmp_path / "graph.graphml"), fit(graph)):
        rows = predicted(predictor, tmp_path)
        assert list(rows) == list(csv)
        assert [row["prediction"] for row in rows.values()] == [row["prediction"] for row in csv.values()]


@pytest.mark.slow
def test_pyg_data_is_predicted(tmp_path: Path) -> None:
    pyg: Any = pytest.importorskip("torch_geometric.data")
    files = two_groups()
    graph = read_graph(files.write(tmp_path))
    x = torch.tensor([[float(row["f0"]), float(row["f1"])] for row in files.nodes])
    y = torch.tensor([k % 2 if k < 24 else -1 for k in range(40)])
    rows = predicted(fit(pyg.Data(x=x, edge_index=graph.edge_index, y=y)), tmp_path)
    assert sum(int(rows[str(k)]["prediction"]) == k % 2 for k in range(40)) >= 38


@pytest.mark.slow
def test_new_nodes_are_predicted_and_have_no_sets(tmp_path: Path) -> None:
    files = two_groups(150, labelled=100)
    predictor = fit(files.write(tmp_path))
    assert "set" in predicted(predictor, tmp_path, coverage=0.9)["n0"]
    files.nodes.append({"id": "new", "f0": "0", "f1": "0"})
    files.edges.append({"source": "new", "target": "n0"})
    rows = predicted(predictor, tmp_path, read_graph(files.write(tmp_path / "new")), coverage=0.9)
    assert len(rows) == 151
    assert rows["new"]["prediction"] == "cat"
    assert "set" not in rows["new"]
    assert NEW_GRAPH in (tmp_path / "predictions.json").read_text()


@pytest.mark.slow
def test_a_changed_graph_is_predicted(tmp_path: Path) -> None:
    """Only other nodes, without labels, in a table of another order of columns."""
    predictor = fit(two_groups().write(tmp_path))
    files = two_groups(60)
    files.nodes = [{"f1": row["f1"], "f0": row["f0"], "id": row["id"]} for row in files.nodes]
    rows = predicted(predictor, tmp_path, read_graph(files.write(tmp_path / "other")))
    assert right(rows, files) >= 0.9


@pytest.mark.slow
def test_new_nodes_without_columns_are_predicted_from_their_neighbours(tmp_path: Path) -> None:
    files = two_groups(columns=0)
    predictor = fit(files.write(tmp_path))
    files.nodes += [{"id": "new"}, {"id": "far"}, {"id": "farther"}]
    files.edges += [{"source": "new", "target": "n1"}, {"source": "new", "target": "n3"}]
    files.edges += [{"source": "far", "target": "farther"}]
    rows = predicted(predictor, tmp_path, read_graph(files.write(tmp_path / "new")))
    assert rows["new"]["prediction"] == "dog"
    assert rows["far"]["prediction"] == rows["farther"]["prediction"] == NO_LABEL


@pytest.mark.slow
def test_a_table_of_new_rows_without_edges_is_predicted(tmp_path: Path) -> None:
    files = two_groups()
    files.edges = []
    predictor = fit(files.write(tmp_path))
    files.nodes, files.truth = files.nodes[30:], dict(list(files.truth.items())[30:])
    assert right(predicted(predictor, tmp_path, read_graph(files.write(tmp_path / "new"))), files) >= 0.8


@pytest.mark.slow
def test_new_rows_without_edges_are_refused_by_a_model_trained_with_edges(tmp_path: Path) -> None:
    predictor = fit(two_groups().write(tmp_path))
    with pytest.raises(ValueError, match=r"nodes\.csv has no edges, and the model was trained with edges"):
        predictor.predict(read_graph(tmp_path / "nodes.csv"))


@pytest.mark.slow
def test_rows_without_an_id_are_dropped_and_repeated_ids_are_refused(tmp_path: Path) -> None:
    files = two_groups()
    files.nodes.insert(1, {**files.nodes[0], "id": ""})
    assert right(from_files(tmp_path, files), files) >= 0.95
    assert read_graph(tmp_path).drops == [Dropped("nodes.csv", 3, "no id")]
    files.nodes[1]["id"] = "n0"
    with pytest.raises(DataError, match=r"nodes\.csv, line 3: the id 'n0' in column 'id' is already on line 2"):
        from_files(tmp_path, files)


@pytest.mark.slow
def test_the_portfolio_is_trained_within_a_budget_and_recorded(tmp_path: Path) -> None:
    files = two_groups()
    predictor = fit(files.write(tmp_path), fast=False, budget=1.0)
    names = [attempt["name"] for attempt in predictor.record["attempts"]]
    assert names[:2] == ["linear", "network"]
    assert predictor.record["chosen"] in names
    assert [each["name"] for each in predictor.record["baselines"]] == [
        "logistic regression",
        "label propagation",
        "linear diffusion",
    ]
    assert right(predicted(predictor, tmp_path), files) >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("labels", ["a;b", "0.5"])
def test_the_portfolio_learns_labels_and_numbers(tmp_path: Path, labels: str) -> None:
    files = two_groups()
    other = {"a;b": "b", "0.5": "1.5"}[labels]
    files.add("class", lambda k: (labels, other)[k % 2] if k < 24 else "")
    predictor = fit(files.write(tmp_path), fast=False, budget=3.0)
    assert len(predictor.record["attempts"]) == 1 + len(MEMBERS)
    rows = predicted(predictor, tmp_path)
    if labels == "0.5":
        assert sum(abs(float(rows[f"n{k}"]["prediction"]) - 0.5 - k % 2) < 0.5 for k in range(40)) >= 36
    else:
        assert sum(rows[f"n{k}"]["prediction"] == (labels, other)[k % 2] for k in range(40)) >= 36
