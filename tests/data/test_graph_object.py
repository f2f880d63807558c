"""networkx graphs, GraphML, npz archives and PyG `Data` become graphs by the same rules as tables."""

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from graph_files import listed
from scipy.sparse import csr_array

from beltrami.data.graph_reader import read_graph
from beltrami.data.graph_table import Dropped
from beltrami.data.table import Numbers
from beltrami.errors import DataError, UnknownName

EDGES = np.array([[0, 1, 2, 2], [1, 0, 2, 0]])
PAIRS = [[0, 0, 1, 2], [1, 2, 0, 0]]


def graph_with_attributes() -> Any:
    graph = nx.MultiDiGraph()
    graph.add_node("ann", age=3, job="cook", member=True, label=1)
    graph.add_node(7, age=2.5, job="smith", member=False)
    graph.add_node("cy", job="NA", label=0)
    graph.add_edge("ann", 7, weight=2)
    graph.add_edge("ann", 7, weight=5)
    graph.add_edge("cy", "cy", weight=1)
    graph.add_edge(7, "cy")
    return graph


def test_attributes_of_a_networkx_graph_are_columns() -> None:
    graph = read_graph(graph_with_attributes())
    assert graph.ids == ["ann", "7", "cy"]
    assert graph.edge_index is not None
    assert graph.edge_index.tolist() == [[0, 1], [1, 0]]
    assert graph.weight is not None
    assert graph.weight.tolist() == [5, 5]
    assert graph.drops == [Dropped("the networkx graph", 3, "no weight")]
    age = graph.columns["age"]
    assert isinstance(age, Numbers)
    np.testing.assert_array_equal(age.values, [3, 2.5, np.nan])
    assert listed(graph.columns["job"]) == ["cook", "smith", None]
    assert listed(graph.columns["member"]) == ["true", "false", None]
    assert listed(graph.label) == ["1", None, "0"]
    assert list(read_graph(graph_with_attributes(), label="job", features="age").columns) == ["age"]


def test_vectors_of_a_networkx_graph_are_a_matrix() -> None:
    graph = nx.path_graph(3)
    nx.set_node_attributes(graph, {0: [1.0, 2.0], 2: np.array([3.0, 4.0])}, "x")
    x = read_graph(graph).x
    assert x is not None
    np.testing.assert_array_equal(x.numpy(), [[1, 2], [np.nan, np.nan], [3, 4]])
    graph.nodes[1]["x"] = [1.0]
    with pytest.raises(DataError, match=r"the vectors in 'x' have lengths \[1, 2\]"):
        read_graph(graph)


def test_networkx_ids_that_differ_only_in_type_are_refused() -> None:
    graph = nx.Graph([(1, "1")])
    with pytest.raises(DataError, match="the id '1'"):
        read_graph(graph)
    with pytest.raises(ValueError, match="has its own ids and weights"):
        read_graph(nx.path_graph(3), id="age")


def test_graphml_is_read_alone_and_in_a_folder(tmp_path: Path) -> None:
    nx.write_graphml(nx.Graph(graph_with_attributes()), tmp_path / "g.graphml")
    for source in (tmp_path, tmp_path / "g.graphml"):
        graph = read_graph(source, label="job")
        assert graph.source == "g.graphml"
        assert graph.ids == ["ann", "7", "cy"]
        assert set(graph.columns) == {"age", "member", "label"}
    (tmp_path / "g.graphml").write_text("<graphml><graph>")
    with pytest.raises(DataError, match="cannot be read as GraphML"):
        read_graph(tmp_path)


def test_npz_with_features_edges_labels_and_masks_is_a_graph(tmp_path: Path) -> None:
    masks = {"train_mask": np.array([1, 0, 0]), "val_mask": np.array([False, True, False])}
    x = np.arange(6).reshape(3, 2)
    np.savez(tmp_path / "g.npz", allow_pickle=False, x=x, edge_index=EDGES, y=np.array([10, -1, 9]), **masks)
    graph = read_graph(tmp_path)
    assert graph.ids == ["0", "1", "2"]
    assert graph.x is not None
    assert graph.x.tolist() == x.tolist()
    assert graph.x.dtype == torch.float32
    assert graph.edge_index is not None
    assert graph.edge_index.tolist() == PAIRS
    assert listed(graph.label) == ["10", None, "9"]
    assert listed(graph.split) == ["train", "val", None]
    assert graph.counts["self-loops removed"] == 1


def test_npz_of_sparse_parts_stays_sparse(tmp_path: Path) -> None:
    adjacency, words = csr_array(np.array([[0, 2, 0], [0, 1, 0], [0, 3, 0]])), csr_array(np.eye(3, 4))
    parts: dict[str, Any] = {"labels": np.array([0, 1, 1]), "names": np.array([{}], dtype=object)}
    for name, matrix in (("adj", adjacency), ("attr", words)):
        parts |= {f"{name}_{part}": getattr(matrix, part) for part in ("data", "indices", "indptr", "shape")}
    np.savez(tmp_path / "g.npz", allow_pickle=True, **parts)
    graph = read_graph(tmp_path / "g.npz")
    assert graph.x is not None
    assert graph.x.layout == torch.sparse_coo
    assert graph.x.to_dense().tolist() == words.toarray().tolist()
    assert graph.edge_index is not None
    assert graph.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert graph.weight is not None
    assert graph.weight.tolist() == [2, 2, 3, 3]
    assert listed(graph.label) == ["0", "1", "1"]


def test_npz_has_ids_edges_as_rows_and_named_labels(tmp_path: Path) -> None:
    arrays: dict[str, Any] = {
        "ids": np.array(["a", "b", "c"]),
        "edges": EDGES.T,
        "kind": np.array(["u", "NA", "v"]),
        "part": np.array(["train", "", "test"]),
        "value": np.array([0.5, np.nan, 1.0]),
    }
    np.savez(tmp_path / "g.npz", allow_pickle=False, **arrays)
    graph = read_graph(tmp_path, label="kind", split="part")
    assert graph.ids == ["a", "b", "c"]
    assert graph.edge_index is not None
    assert graph.edge_index.tolist() == PAIRS
    assert listed(graph.label) == ["u", None, "v"]
    assert listed(graph.split) == ["train", None, "test"]
    assert isinstance(read_graph(tmp_path, label="value").label, Numbers)
    assert read_graph(tmp_path, label=()).labels == {}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"edge_index": EDGES.T}, r"edge_index must hold integers \(2, m\)"),
        ({"edge_index": EDGES + 1}, "the edges name node 3, but there are 3 nodes"),
        ({"edge_weight": np.ones(2)}, "edge_weight has 2 values for 4 edges"),
        ({"edge_weight": np.array([1, -1, 1, 1])}, r"g\.npz, edge 2: the weight -1 is negative"),
        ({"adj_indptr": np.array([0, 1]), "edge_index": None}, r"the arrays adj_\.\.\. are no sparse matrix"),
        ({"x": np.ones(3)}, r"x must be a matrix \(nodes, features\)"),
        ({"y": np.ones((3, 1, 1))}, "'y' must have shape"),
        ({"y": np.ones(2)}, "'y' has 2 rows where the graph has 3 nodes"),
        ({"ids": np.array(["a", "b", "a"])}, "`ids` holds an id twice"),
        ({"train_mask": np.ones(3, dtype=bool), "test_mask": np.ones(3, dtype=bool)}, "sets must be disjoint"),
        ({"train_mask": np.ones(3, dtype=bool), "val_mask": np.ones(2, dtype=bool)}, "must have one length"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    arrays: dict[str, Any] = {"x": np.ones((3, 2)), "edge_index": EDGES, "y": np.array([0, 1, 0])} | change
    arrays = {name: array for name, array in arrays.items() if array is not None}
    np.savez(tmp_path / "g.npz", allow_pickle=False, **arrays)
    with pytest.raises(DataError, match=message):
        read_graph(tmp_path)


def test_archives_without_a_graph_and_broken_ones_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "g.npz"
    np.savez(path, allow_pickle=False, z=np.ones(3))
    with pytest.raises(DataError, match=r"g\.npz has none of x, edge_index and y: it has z"):
        read_graph(path)
    with pytest.raises(UnknownName, match="unknown array"):
        read_graph(path, label="kind")
    with pytest.raises(UnknownName, match="unknown array"):
        read_graph(path, split="set")
    with pytest.raises(ValueError, match="arrays without column names"):
        read_graph(path, features="a")
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(DataError, match="cannot be read as npz"):
        read_graph(path)
    np.save(tmp_path / "single.npy", np.ones(3))
    (tmp_path / "single.npy").rename(path)
    with pytest.raises(DataError, match="cannot be read as npz"):
        read_graph(path)


def pyg(**parts: Any) -> Any:
    data: Any = pytest.importorskip("torch_geometric.data")
    return data.Data(**parts)


@pytest.mark.slow
def test_pyg_data_is_a_graph() -> None:
    edge_index, y = torch.from_numpy(EDGES), torch.tensor([[2], [-1], [0]])
    masks = {"train_mask": torch.tensor([True, False, False]), "test_mask": torch.tensor([False, False, True])}
    graph = read_graph(pyg(x=torch.eye(3), edge_index=edge_index, y=y, edge_weight=torch.full((4,), 2.0), **masks))
    assert graph.x is not None
    assert graph.x.tolist() == torch.eye(3).tolist()
    assert graph.edge_index is not None
    assert graph.edge_index.tolist() == PAIRS
    assert graph.weight is not None
    assert graph.weight.tolist() == [2] * 4
    assert listed(graph.label) == ["2", None, "0"]
    assert listed(graph.split) == ["train", None, "test"]


@pytest.mark.slow
def test_pyg_data_may_be_sparse_have_several_labels_and_several_splits() -> None:
    sparse = torch.eye(3).to_sparse_coo()
    adjacency = torch.tensor([[0.0, 1, 0], [1, 0, 0], [0, 0, 0]]).to_sparse_coo()
    y = torch.tensor([[1.0, 0], [0, 1], [float("nan"), 1]])
    graph = read_graph(pyg(x=sparse, adj_t=adjacency, y=y, train_mask=torch.ones(3, 10, dtype=torch.bool)))
    assert graph.x is not None
    assert graph.x.layout == torch.sparse_coo
    assert graph.num_edges == 1
    assert graph.weight is None
    assert list(graph.labels) == ["y[0]", "y[1]"]
    assert listed(graph.labels["y[0]"]) == ["1", "0", None]
    assert graph.split is None
    with pytest.raises(DataError, match="`adj_t` must be a sparse tensor of torch"):
        read_graph(pyg(x=torch.eye(3), adj_t=[1]))


@pytest.mark.slow
def test_pyg_data_without_features_keeps_isolated_nodes() -> None:
    graph = read_graph(pyg(edge_index=torch.tensor([[0], [1]]), num_nodes=4))
    assert graph.num_nodes == 4
    assert graph.x is None


def test_an_attribute_of_graphml_without_a_type_is_text(tmp_path: Path) -> None:
    key = '<key id="d0" for="node" attr.name="colour" />'
    nodes = "".join(f'<node id="{name}"><data key="d0">{name}1</data></node>' for name in "ab")
    graph = f'<graph edgedefault="undirected">{nodes}<edge source="a" target="b" /></graph>'
    text = f'<graphml xmlns="http://graphml.graphdrawing.org/xmlns">{key}{graph}</graphml>'
    (tmp_path / "a.graphml").write_text(text)
    assert listed(read_graph(tmp_path / "a.graphml").columns["colour"]) == ["a1", "b1"]
