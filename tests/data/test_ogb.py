"""OGB's compressed tables are read, and their sizes checked against the published ones."""

import gzip
from pathlib import Path

import pytest

from beltrami.data.archives import read_ogb
from beltrami.errors import DataError

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
        write(tmp_path, name, text)
    return tmp_path


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(gzip.compress(text.encode()))


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
    write(folder, name, text)
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
