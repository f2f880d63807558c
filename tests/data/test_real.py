"""The real files give the paper's table of datasets, and the same data as PyG reads."""

import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from beltrami.data import CATALOGUE, Dataset, make_split
from beltrami.data.catalogue import PEI_FOLDERS, PLATONOV
from beltrami.data.file import data_folder, tensor_digest

pytestmark = pytest.mark.data
READ_BY_PICKLE = {
    "cora": "a740973f356ef7e707c6c96cf69b5d692aa2b63d82f9a018f96f6dfc464411c5",
    "citeseer": "7aa8397152cef4249d74e7b33e87d9c62e1b5e12ad6969b3295eba7817b4fd0d",
    "pubmed": "ad9522a672ee0054cc4bfb0e383d6d7e181c18a565f34410db0a9b07b7657b3f",
}
"""Digests of the tensors of each dataset as Python's unpickler gave them."""

REAL = ["cora", "citeseer", "pubmed", "coauthor-cs", "computers", "photo"]
Real = Callable[[str], Dataset]


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_largest_component_has_the_size_in_the_paper(real: Real, name: str) -> None:
    data, facts = real(name).largest_component(), CATALOGUE[name]
    found = (data.num_nodes, data.num_edges, data.num_features, data.num_classes)
    assert found == (facts.nodes, facts.edges, facts.features, facts.classes)
    split = make_split(data, protocol="digl", seed=0)
    assert int(split.train.sum()) == 20 * facts.classes


@pytest.mark.parametrize("name", ["cora", "citeseer", "pubmed"])
def test_published_masks_have_the_published_sizes(real: Real, name: str) -> None:
    data = real(name)
    split = make_split(data, protocol="planetoid", seed=0)
    assert torch.bincount(data.y[split.train]).tolist() == [20] * data.num_classes
    assert (int(split.val.sum()), int(split.test.sum())) == (500, 1000)


@pytest.mark.parametrize("name", READ_BY_PICKLE)
def test_the_pickle_reader_gives_the_tensors_of_pickle(real: Real, name: str) -> None:
    data = real(name)
    assert data.published is not None
    tensors = {"x": data.x, "e": data.edge_index, "y": data.y, **data.published.masks}
    assert tensor_digest(tensors, name=name) == READ_BY_PICKLE[name]


@pytest.mark.parametrize(("name", "title"), [("cora", "Cora"), ("citeseer", "CiteSeer"), ("photo", "Photo")])
def test_pyg_reads_the_same(real: Real, tmp_path: Path, name: str, title: str) -> None:
    ours, folder = real(name), data_folder()
    assert folder is not None
    shutil.copytree(folder / title / "raw", tmp_path / title / "raw", copy_function=shutil.copyfile)
    pyg = read_with_pyg(tmp_path, title)
    assert torch.equal(ours.x, pyg.x)
    assert torch.equal(ours.y, pyg.y)
    j, i = pyg.edge_index
    order = (j * ours.num_nodes + i).argsort()
    assert torch.equal(ours.edge_index, pyg.edge_index[:, order])
    if ours.published is not None:
        assert torch.equal(ours.published.train, pyg.train_mask)
        assert torch.equal(ours.published.val, pyg.val_mask)
        assert torch.equal(ours.published.test, pyg.test_mask)


def read_with_pyg(root: Path, title: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch_geometric.datasets import Amazon, Planetoid

        return Amazon(str(root), title)[0] if title == "Photo" else Planetoid(str(root), title)[0]


@pytest.mark.parametrize("name", [*PLATONOV, *PEI_FOLDERS])
def test_heterophilous_graph_has_its_size_and_ten_splits_of_all_nodes(real: Real, name: str) -> None:
    data, facts = real(name), CATALOGUE[name]
    found = (data.num_nodes, data.num_edges, data.num_features, data.num_classes, data.metric)
    assert found == (facts.nodes, facts.edges, facts.features, facts.classes, facts.metric)
    splits = [make_split(data, protocol="published", seed=k) for k in range(10)]
    assert len({split.hash for split in splits}) == 10
    assert all(bool((split.train | split.val | split.test).all()) for split in splits)


@pytest.mark.parametrize("name", ["minesweeper", "tolokers", "texas", "actor"])
def test_pyg_reads_the_same_heterophilous_graph(real: Real, tmp_path: Path, name: str) -> None:
    ours, folder = real(name), data_folder()
    assert folder is not None
    shutil.copytree(folder / name / "raw", tmp_path / name / "raw", copy_function=shutil.copyfile)
    pyg = read_heterophilous_with_pyg(tmp_path, name)
    assert torch.equal(ours.x, pyg.x)
    assert torch.equal(ours.y, pyg.y)
    for k, split in enumerate(ours.splits):
        for ours_mask, mask in zip(split.masks.values(), (pyg.train_mask, pyg.val_mask, pyg.test_mask), strict=True):
            assert torch.equal(ours_mask, mask[:, k])


def read_heterophilous_with_pyg(root: Path, name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch_geometric.datasets import Actor, HeterophilousGraphDataset, WebKB

        if name == "actor":
            return Actor(str(root / name))[0]
        return WebKB(str(root), name)[0] if name == "texas" else HeterophilousGraphDataset(str(root), name)[0]


@pytest.mark.parametrize("name", ["ogbn-arxiv", "ogbn-products"])
def test_ogb_graph_has_its_size_and_a_split_of_all_nodes(real: Real, name: str) -> None:
    data, facts = real(name), CATALOGUE[name]
    assert (data.num_nodes, data.num_features, data.num_classes) == (facts.nodes, facts.features, facts.classes)
    assert data.num_edges <= facts.edges
    split = make_split(data, protocol="ogb", seed=0)
    assert bool((split.train | split.val | split.test).all())
