"""OGB's compressed tables and archives are read, and their sizes checked against the published ones."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ogb_files import write_archives, write_table

from beltrami.data import CATALOGUE, load, make_split, ogb
from beltrami.data.catalogue import SOURCES
from beltrami.data.ogb import read_ogb, read_ogb_archives
from beltrami.errors import DataError
from beltrami.graph import Edges
from beltrami.graph.statistics import homophily

SIZES = (4, 4, 2, 3)  # nodes, edges, features, classes
TABLES = {
    "raw/edge.csv.gz": "0,1\n1,0\n2,3\n3,1\n",
    "raw/node-feat.csv.gz": "0.5,1\n-1,2\n0,0\n1e-1,3\n",
    "raw/node-label.csv.gz": "0\n2\n1\n1\n",
    "raw/num-node-list.csv.gz": "4\n",
    "raw/num-edge-list.csv.gz": "4\n",
    "split/time/train.csv.gz": "2\n0\n",
    "split/time/valid.csv.gz": "1\n",
    "split/time/test.csv.gz": "3\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in TABLES.items():
        write_table(tmp_path, name, text)
    return tmp_path


def test_ogb_tables_give_a_dataset_with_its_split_by_year(folder: Path) -> None:
    data = read_ogb(folder, name="ogbn-arxiv", sizes=SIZES)
    assert data.x[0].tolist() == [0.5, 1.0]
    assert data.edge_index.tolist() == [[0, 1, 1, 2, 3, 3], [1, 0, 3, 3, 1, 2]]
    assert data.y.tolist() == [0, 2, 1, 1]
    assert data.published is not None
    assert data.published.protocol == "ogb"
    assert data.published.train.tolist() == [True, False, True, False]
    assert data.published.val.tolist() == [False, True, False, False]
    assert data.published.test.tolist() == [False, False, False, True]


@pytest.mark.parametrize(
    ("name", "text", "match"),
    [
        ("raw/edge.csv.gz", "0,1\n", r"\(4, 1, 2, 3\) where \(4, 4, 2, 3\) were published"),
        ("raw/node-feat.csv.gz", "1\n2\n3\n4\n", r"\(4, 4, 1, 3\)"),
        ("raw/node-label.csv.gz", "0\n1\n2\n3\n", r"\(4, 4, 2, 4\)"),
        ("raw/node-label.csv.gz", "0\n1\n2\n", "one class"),
        ("raw/num-node-list.csv.gz", "5\n", "were published"),
        ("raw/edge.csv.gz", "0,1\n1,0\n2,3\n3,9\n", "names node 9"),
        ("raw/edge.csv.gz", "0,1\n1,x\n", "edge.csv.gz is corrupt"),
        ("raw/node-label.csv.gz", "", "node-label.csv.gz is corrupt"),
        ("split/time/test.csv.gz", "0\n3\n", "leaves out or names twice"),
        ("split/time/test.csv.gz", "7\n", "run from 7 to 7, of 4 nodes"),
        ("split/time/test.csv.gz", "-1\n", "run from -1 to -1"),
    ],
)
def test_tables_unlike_the_published_ones_are_refused(folder: Path, name: str, text: str, match: str) -> None:
    write_table(folder, name, text)
    with pytest.raises(DataError, match=match):
        read_ogb(folder, name="ogbn-arxiv", sizes=SIZES)


def test_truncated_and_missing_tables_are_refused(folder: Path) -> None:
    path = folder / "raw/node-feat.csv.gz"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DataError, match=r"node-feat\.csv\.gz is corrupt.*delete it and try again"):
        read_ogb(folder, name="ogbn-arxiv", sizes=SIZES)
    path.write_bytes(b"<html>")
    with pytest.raises(DataError, match=r"node-feat\.csv\.gz is corrupt"):
        read_ogb(folder, name="ogbn-arxiv", sizes=SIZES)
    path.unlink()
    with pytest.raises(DataError, match=r"node-feat\.csv\.gz"):
        read_ogb(folder, name="ogbn-arxiv", sizes=SIZES)


def test_products_are_split_by_sales(folder: Path) -> None:
    (folder / "split/time").rename(folder / "split/sales_ranking")
    data = read_ogb(folder, name="ogbn-products", sizes=SIZES, split="sales_ranking")
    assert make_split(data, protocol="ogb", seed=0).val.tolist() == [False, True, False, False]
    with pytest.raises(DataError, match=r"split/time/train\.csv\.gz"):
        read_ogb(folder, name="ogbn-products", sizes=SIZES)


def test_archives_give_a_dataset_with_nodes_of_unknown_class(tmp_path: Path) -> None:
    data = read_ogb_archives(write_archives(tmp_path), name="ogbn-papers100M", sizes=(5, 4, 2, 3))
    assert data.y.tolist() == [0, 2, 1, -1, -1]
    assert data.num_classes == 3
    assert data.edge_index.tolist() == [[0, 1, 1, 2, 3, 3], [1, 0, 3, 3, 1, 2]]
    assert data.x[4].tolist() == [8.0, 9.0]
    assert make_split(data, protocol="ogb", seed=0).train.tolist() == [False, False, True, False, False]
    with pytest.raises(ValueError, match=r"needs a class at every node, and 2 have none.*use the protocol 'published'"):
        make_split(data, protocol="shchur", seed=0)
    edges = Edges.build(data.edge_index, num_nodes=5)
    assert homophily(edges, data.y) == 0.0  # of 0 -- 1 alone, whose ends have known classes


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"node_feat": np.zeros((4, 2), np.float32)}, r"\(4, 4, 2, 3\) where \(5, 4, 2, 3\) were published"),
        ({"num_nodes_list": np.array([4])}, "were published"),
        ({"edge_index": np.zeros((4, 2), np.int64)}, r"its arrays have shapes \(4, 2\)"),
        ({"edge_index": np.array([[0, 1, 2, 3], [1, 0, 3, 7]])}, "names node 7"),
        ({"node_label": np.array([0, 2, 1, np.nan])}, "one class"),
        ({"node_label": np.array([np.nan, 2, 1, 0, 0])}, "class -1"),
        ({"node_feat": np.array([{}], dtype=object)}, "corrupt"),
    ],
    ids=["nodes", "stated", "transposed", "edge", "labels", "unknown class in a set", "pickle"],
)
def test_archives_unlike_the_published_ones_are_refused(tmp_path: Path, changes: dict[str, Any], match: str) -> None:
    write_archives(tmp_path, **changes)
    with pytest.raises(DataError, match=match):
        read_ogb_archives(tmp_path, name="ogbn-papers100M", sizes=(5, 4, 2, 3))


@pytest.mark.usefixtures("empty_house")
def test_a_graph_beyond_the_memory_is_refused_before_anything_is_downloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a download was begun")

    monkeypatch.setattr("beltrami.data.dataset_source.download", refuse)
    monkeypatch.setattr(ogb, "free_memory", lambda: 100 * 2**30)
    with pytest.raises(DataError, match=r"ogbn-papers100M takes about 535 GiB of memory, and 100 GiB are free"):
        load("ogbn-papers100M")
    monkeypatch.setattr(ogb, "free_memory", lambda: 2**30)
    commands = "`beltrami convert RAWFOLDER --out my-graph`.*`beltrami train my-graph --recipe precomputed`"
    with pytest.raises(DataError, match=rf"ogbn-products takes .*{commands}"):
        load("ogbn-products")


def test_published_archives_have_the_files_that_are_read() -> None:
    for name, archive in (("ogbn-products", "products"), ("ogbn-papers100M", "papers100M-bin")):
        (remote,) = SOURCES[name].remotes
        assert remote.url.endswith(f"/{archive}.zip")
        folder = name.replace("-", "_")
        assert all(path == member.replace(archive, folder, 1) for member, path in remote.members.items())
    assert "papers100M-bin/raw/node-label.npz" in remote.members
    assert CATALOGUE["ogbn-papers100M"].nodes == 111_059_956
