"""Graph folders and array files are read as they were written, and damaged ones are refused."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from toy import two_cliques

from beltrami.data import Dataset
from beltrami.data.array_file import new_array, open_array
from beltrami.data.graph_folder import (
    HEADER,
    GraphFolder,
    finish_graph_folder,
    is_graph_folder,
    new_folder,
    write_graph_folder,
)
from beltrami.errors import DataError
from beltrami.graph import Edges

VALUES = np.arange(12, dtype=np.float32).reshape(4, 3)


def toy_folder(path: Path) -> GraphFolder:
    toy = two_cliques()
    return write_graph_folder(path, Dataset("toy", toy.x, toy.edge_index, toy.y), toy.split)


def test_a_dataset_is_read_back_unchanged(tmp_path: Path) -> None:
    toy, folder = two_cliques(), toy_folder(tmp_path / "toy")
    folder.verify()
    edges = Edges.build(toy.edge_index, num_nodes=len(toy.x))
    assert is_graph_folder(tmp_path / "toy")
    assert torch.equal(folder.edges().edge_index, edges.edge_index)
    assert folder.x is not None
    assert np.array_equal(folder.x, toy.x.numpy())
    assert folder.y is not None
    assert np.array_equal(folder.y, toy.y.numpy())
    assert folder.role is not None
    assert [np.flatnonzero(folder.role == k).tolist() for k in (1, 2, 3)] == [
        chosen.nonzero()[:, 0].tolist() for chosen in toy.split.masks.values()
    ]
    assert isinstance(folder.index, np.memmap)


@pytest.mark.parametrize("suffix", ["npy", "safetensors", "parquet"])
def test_arrays_of_every_format_are_memory_maps_of_the_same_values(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BELTRAMI_CACHE", str(tmp_path / "cache"))
    path = tmp_path / f"x.{suffix}"
    if suffix == "npy":
        np.save(path, VALUES)
    elif suffix == "safetensors":
        save_file({"x": torch.from_numpy(VALUES)}, path)
    else:
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        pq.write_table(pa.table({f"c{k}": VALUES[:, k] for k in range(3)}), path, row_group_size=2)
    for _ in range(2):  # a Parquet file is converted by the first call
        found = open_array(path)
        assert isinstance(found, np.memmap)
        assert found.dtype == np.float32
        assert np.array_equal(found, VALUES)


def test_a_parquet_column_of_lists_is_a_matrix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BELTRAMI_CACHE", str(tmp_path / "cache"))
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"x": pa.array(VALUES.tolist(), pa.list_(pa.float32()))}), tmp_path / "x.parquet")
    assert np.array_equal(open_array(tmp_path / "x.parquet"), VALUES)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.npy", b"no array", "is no npy file .*: write it again with `numpy.save`"),
        ("x.npy", b"\0" * 500, "is no npy file .*magic string is not correct"),
        ("x.npy", b"", "is no npy file"),
        ("x.safetensors", b"\xff" * 20, "header has"),
        ("x.safetensors", (2).to_bytes(8, "little") + b"{}", "must hold one tensor"),
        ("x.parquet", b"PAR1 no table", "is no table of numbers"),
        ("x.csv", b"1,2", "is no array file"),
    ],
)
def test_damaged_arrays_are_refused(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        open_array(tmp_path / name)


def test_a_tensor_larger_than_its_file_is_refused(tmp_path: Path) -> None:
    header = json.dumps({"x": {"dtype": "F32", "shape": [1000], "data_offsets": [0, 4000]}}).encode()
    (tmp_path / "x.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"\0" * 8)
    with pytest.raises(DataError, match="does not fit"):
        open_array(tmp_path / "x.safetensors")


def test_objects_and_columns_first_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.save(tmp_path / "columns.npy", np.asfortranarray(VALUES))
    with pytest.raises(DataError, match="is no npy file of numbers"):
        open_array(tmp_path / "objects.npy")
    with pytest.raises(DataError, match="stored by columns"):
        open_array(tmp_path / "columns.npy")


def test_an_array_that_is_not_written_to_its_end_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(KeyError), new_array(tmp_path / "x.npy", shape=(4, 3), dtype=np.float32):
        raise KeyError
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_an_error_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with (
        pytest.raises(OSError, match=r"48 bytes cannot be written .* make room"),
        new_array(tmp_path / "x.npy", shape=(4, 3), dtype=np.float32),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


def replace_array(folder: GraphFolder, name: str, values: np.ndarray) -> None:
    (folder.path / f"{name}.npy").unlink()
    np.save(folder.path / f"{name}.npy", values)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("index", lambda a: np.full_like(a, 99), "edge 0 comes from node 99"),
        ("ptr", lambda a: np.r_[a[0], a[2], a[1], a[3:]], "ptr .* decreases after node 1"),
        ("y", lambda a: a - 3, "class -3; unlabelled nodes have -1"),
        ("role", lambda a: a + 4, "roles run from 0 to 3"),
        ("role", lambda a: a.astype(np.int64) - 2, "node 0 has -1; roles run from 0 to 3"),
    ],
)
def test_values_that_cannot_be_are_refused(tmp_path: Path, name: str, change: object, message: str) -> None:
    folder = toy_folder(tmp_path / "toy")
    assert callable(change)
    replace_array(folder, name, change(np.array(getattr(folder, name))))
    with pytest.raises(DataError, match=message):
        GraphFolder.open(folder.path).verify()


def test_weights_must_be_positive(tmp_path: Path) -> None:
    folder = toy_folder(tmp_path / "toy")
    np.save(folder.path / "weight.npy", np.linspace(-1, 1, folder.num_edges, dtype=np.float32))
    with pytest.raises(DataError, match="edge 0 has -1"):
        GraphFolder.open(folder.path).verify()


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("x", VALUES[:2], r"x of .* has shape \(2, 3\)"),
        ("index", VALUES[0], "index of .* type float32; by graph.json it must hold integers"),
        ("y", np.zeros(20), r"y of .* type float64; by graph.json it must hold integers, \(20,\)"),
        ("ptr", np.zeros(3, dtype=np.int64), r"ptr of .* must hold integers, \(21,\)"),
    ],
)
def test_arrays_of_other_shapes_are_refused(tmp_path: Path, name: str, values: np.ndarray, message: str) -> None:
    folder = toy_folder(tmp_path / "toy")
    replace_array(folder, name, values)
    with pytest.raises(DataError, match=message):
        GraphFolder.open(folder.path)


def test_folders_that_are_no_graphs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"has no graph\.json"):
        GraphFolder.open(tmp_path)
    for content, message in {"{": "is damaged", '{"schema": 9, "num_nodes": 1, "num_edges": 0}': "schema 9"}.items():
        (tmp_path / HEADER).write_text(content)
        with pytest.raises(DataError, match=message):
            GraphFolder.open(tmp_path)
    with pytest.raises(DataError, match=r"has no ptr\.npy"):
        finish_graph_folder(tmp_path, num_nodes=2, num_edges=1)
    with pytest.raises(DataError, match="is not empty: choose a new folder for the graph with `--out`"):
        toy_folder(tmp_path)
    with pytest.raises(OSError, match=r"cannot (make|write to) /proc.*: choose another folder with `--out`"):
        toy_folder(Path("/proc/toy"))
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="file is a file: choose another folder"):
        toy_folder(tmp_path / "file")


def test_a_graph_without_nodes_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "ptr.npy", np.zeros(1, np.int64))
    np.save(tmp_path / "index.npy", np.zeros(0, np.int32))
    with pytest.raises(DataError, match="has no nodes: a graph needs at least one"):
        finish_graph_folder(tmp_path, num_nodes=0, num_edges=0)


def test_a_graph_that_is_not_written_to_its_end_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("beltrami.data.graph_folder.finish_graph_folder", interrupted)
    with pytest.raises(KeyboardInterrupt):
        toy_folder(tmp_path / "toy")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_replaced_is_one_sentence(tmp_path: Path) -> None:
    with (
        pytest.raises(OSError, match=r"cannot be moved to .*toy \(Directory not empty\): name a folder that does not"),
        new_folder(tmp_path / "toy"),
    ):
        (tmp_path / "toy" / "of another process").mkdir(parents=True)


@pytest.mark.parametrize("name", ["x", "pos"])
def test_rows_that_are_not_finite_are_refused(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = toy_folder(tmp_path / "toy")
    values = np.ones((20, 2), np.float32)
    np.save(folder.path / f"{name}.npy", values)
    monkeypatch.setattr("beltrami.data.graph_folder.CHUNK", 6)
    GraphFolder.open(folder.path).verify_rows("x", "pos")
    values[13, 1] = np.inf
    np.save(folder.path / f"{name}.npy", values)
    with pytest.raises(DataError, match=rf"{name} of .*: node 13 has a value that is NaN or infinite: clean or impute"):
        GraphFolder.open(folder.path).verify_rows("x", "pos")


def test_two_files_for_one_array_are_refused(tmp_path: Path) -> None:
    folder = toy_folder(tmp_path / "toy")
    save_file({"x": torch.from_numpy(VALUES)}, folder.path / "x.safetensors")
    with pytest.raises(DataError, match=r"x\.npy and x\.safetensors: keep one"):
        GraphFolder.open(folder.path)
