"""Graphs of Platonov et al. and of Pei et al. are read with their ten splits, in the published formats."""

import hashlib
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from beltrami.data import CATALOGUE, make_split
from beltrami.data.catalogue import PEI_FOLDERS, PLATONOV, SOURCES
from beltrami.data.heterophilous import FILE_DIGESTS, files_digest, pei_files, read_pei, read_platonov
from beltrami.errors import DataError

N, SPLITS = 12, 10
THIRDS = np.stack([(np.arange(N) + k) % 3 for k in range(SPLITS)])  # the set of each node in each split
WORDS = {3: "0,4", 0: "1", 1: "2,3,1", 2: "4"}


def arrays() -> dict[str, NDArray[Any]]:
    random = np.random.default_rng(0)
    return {
        "node_features": random.random((N, 3), dtype=np.float32),
        "node_labels": np.arange(N) % 2,
        "edges": np.array([[0, 1], [2, 1], [3, 3], [1, 0]]),
        "train_masks": np.equal(THIRDS, 0),
        "val_masks": np.equal(THIRDS, 1),
        "test_masks": np.equal(THIRDS, 2),
    }


def write_npz(path: Path, **changes: NDArray[Any]) -> str:
    np.savez_compressed(path, allow_pickle=True, **(arrays() | changes))
    return files_digest([path])


def write_pei(folder: Path, *, edges: str = "0\t1\n2\t1\n1\t1\n", nodes: str = "") -> str:
    """Write four nodes whose lines are not in their order; columns of features, and the splits 0 to 9."""
    rows = "".join(f"{node}\t{words}\t{node % 2}\n" for node, words in WORDS.items())
    (folder / "out1_graph_edges.txt").write_text("node_id\tnode_id\n" + edges)
    (folder / "out1_node_feature_label.txt").write_text("node_id\tfeature\tlabel\n" + (nodes or rows))
    for k in range(SPLITS):
        masks = {
            f"{name}_mask": (THIRDS[k, :4] == c).astype(np.uint8) for c, name in enumerate(("train", "val", "test"))
        }
        np.savez(folder / f"film_split_0.6_0.2_{k}.npz", allow_pickle=False, **masks)
    return files_digest([folder / file for file in pei_files("film")])


def test_platonov_archive_gives_the_graph_and_its_ten_splits(tmp_path: Path) -> None:
    path = tmp_path / "minesweeper.npz"
    data = read_platonov(path, name="minesweeper", digest=write_npz(path), metric="roc-auc")
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert torch.equal(data.x, torch.from_numpy(arrays()["node_features"]))
    assert data.y.tolist() == [0, 1] * 6
    assert data.metric == "roc-auc"
    for k in range(SPLITS):
        split = make_split(data, protocol="platonov", seed=k)
        assert (split.protocol, split.seed) == ("platonov", k)
        for c, chosen in enumerate(split.masks.values()):
            assert chosen.tolist() == (THIRDS[k] == c).tolist()
    assert make_split(data, protocol="published", seed=4).hash == data.splits[4].hash
    with pytest.raises(ValueError, match=r"10 splits of 'minesweeper' were published.*seed of the split is 10.*0 to 9"):
        make_split(data, protocol="platonov", seed=10)
    with pytest.raises(ValueError, match="is 'platonov', not 'pei'"):
        make_split(data, protocol="pei", seed=0)


def test_splits_follow_the_nodes_of_the_largest_component(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    data = read_platonov(path, name="a", digest=write_npz(path)).largest_component()
    assert data.num_nodes == 3
    assert make_split(data, protocol="platonov", seed=1).val.tolist() == (THIRDS[1, :3] == 1).tolist()


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"train_masks": THIRDS[:9] == 0}, "10 rows of booleans"),
        ({"train_masks": np.ones((10, N), bool)}, "disjoint"),
        ({"node_labels": np.arange(5)}, "one class"),
        ({"edges": np.array([[0, 99]])}, "names node 99"),
        ({"node_features": np.full((N, 3), np.nan, np.float32)}, "NaN"),
        ({"node_features": np.array([{}], dtype=object)}, "holds Python objects, which are not read"),
    ],
    ids=["nine splits", "overlap", "short classes", "edges", "nan", "pickle"],
)
def test_inconsistent_archives_are_refused(tmp_path: Path, changes: dict[str, NDArray[Any]], match: str) -> None:
    path = tmp_path / "a.npz"
    digest = write_npz(path, **changes)
    with pytest.raises(DataError, match=rf"a\.npz is corrupt or not the published file.*{match}"):
        read_platonov(path, name="a", digest=digest)


def test_changed_or_missing_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    write_npz(path)
    with pytest.raises(DataError, match=r"a\.npz.*its content is not the published one"):
        read_platonov(path, name="a", digest="0" * 64)
    digest = write_pei(tmp_path)
    (tmp_path / "film_split_0.6_0.2_7.npz").unlink()
    with pytest.raises(DataError, match=r"film_split_0\.6_0\.2_7\.npz"):
        read_pei(tmp_path, name="actor", files="film", digest=digest, words=5)


def test_pei_files_give_nodes_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    data = read_pei(tmp_path, name="actor", files="film", digest=write_pei(tmp_path), words=5)
    assert data.x.tolist() == [[0, 1, 0, 0, 0], [0, 1, 1, 1, 0], [0, 0, 0, 0, 1], [1, 0, 0, 0, 1]]
    assert data.y.tolist() == [0, 1, 0, 1]
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert make_split(data, protocol="pei", seed=2).test.tolist() == (THIRDS[2, :4] == 2).tolist()


def test_pei_features_may_be_all_values(tmp_path: Path) -> None:
    digest = write_pei(tmp_path, nodes="1\t0,1,0.5\t1\n0\t1,0,0\t0\n2\t0,0,0\t0\n3\t1,1,1\t1\n")
    data = read_pei(tmp_path, name="texas", files="film", digest=digest)
    assert data.x.tolist() == [[1, 0, 0], [0, 1, 0.5], [0, 0, 0], [1, 1, 1]]


@pytest.mark.parametrize(
    ("written", "match"),
    [
        ({"edges": "0\t1\t2\n"}, "3 columns in place of 2"),
        ({"edges": "0\tx\n"}, r"out1_graph_edges\.txt is corrupt"),
        ({"edges": ""}, "it has no rows"),
        ({"edges": "0\t9\n"}, "names node 9"),
        ({"nodes": "0\t1\t0\n2\t1\t0\n3\t1\t0\n4\t1\t1\n"}, "not numbered from 0 to 3"),
        ({"nodes": "0\t1\n"}, "three columns node, features and class"),
        ({"nodes": "0\t5\t0\n1\t1\t0\n2\t1\t0\n3\t1\t1\n"}, "a feature 5 of 5"),
        ({"nodes": "0\t1\t0\n1\t1\t1\n"}, "splits 4 nodes; the graph has 2|names node 2"),
    ],
    ids=["columns", "letters", "empty", "edge", "numbers", "row", "feature", "short"],
)
def test_inconsistent_files_are_refused(tmp_path: Path, written: dict[str, str], match: str) -> None:
    digest = write_pei(tmp_path, **written)
    with pytest.raises(DataError, match=match):
        read_pei(tmp_path, name="actor", files="film", digest=digest, words=5)


def test_files_are_named_as_git_names_them(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"Beltrami\n")
    (tmp_path / "b").write_bytes(b"")
    done = subprocess.run(["git", "hash-object", "a", "b"], cwd=tmp_path, capture_output=True, check=True)
    names = done.stdout.decode().split()
    assert files_digest([tmp_path / "a", tmp_path / "b"]) == hashlib.sha256("".join(names).encode()).hexdigest()


def test_every_heterophilous_graph_has_a_digest_and_an_address() -> None:
    assert set(FILE_DIGESTS) == {*PLATONOV, *PEI_FOLDERS}
    addresses = [remote.url for remote in SOURCES["actor"].remotes]
    assert "/new_data/film/out1_graph_edges.txt" in addresses[0]
    assert addresses[-1].endswith("/splits/film_split_0.6_0.2_9.npz")
    assert SOURCES["roman-empire"].remotes[0].url.endswith("/data/roman_empire.npz")
    assert {name for name, facts in CATALOGUE.items() if facts.metric == "roc-auc"} == {*PLATONOV[2:]}
