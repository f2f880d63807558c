"""Splits are disjoint, have the protocol's sizes, and are the same on every machine."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from beltrami.data import PROTOCOLS, Dataset, Split, make_split
from beltrami.errors import UnknownName

Ring = Callable[..., Dataset]


def sizes(split: Split) -> tuple[int, int, int]:
    return int(split.train.sum()), int(split.val.sum()), int(split.test.sum())


def per_class(mask: Tensor, data: Dataset) -> list[int]:
    return torch.bincount(data.y[mask], minlength=data.num_classes).tolist()


def with_published(data: Dataset, protocol: str) -> Dataset:
    masks = torch.arange(data.num_nodes) % 4
    return replace(data, published=Split(masks == 0, masks == 1, masks == 2, protocol, 0))


def test_digl_trains_on_20_per_class_of_1500_nodes(ring: Ring) -> None:
    data = ring(2000)
    split = make_split(data, protocol="digl", seed=3)
    assert sizes(split) == (60, 1440, 500)
    assert per_class(split.train, data) == [20, 20, 20]
    assert (split.protocol, split.seed) == ("digl", 3)


def test_digl_takes_5000_nodes_of_coauthor_cs(ring: Ring) -> None:
    assert sizes(make_split(ring(6000, name="coauthor-cs"), protocol="digl", seed=0)) == (60, 4940, 1000)


def test_digl_draws_again_when_a_class_is_short(ring: Ring) -> None:
    data = ring(3000)
    rare = replace(data, y=torch.where(torch.arange(3000) < 40, 2, torch.arange(3000) % 2))
    for seed in range(10):  # a first draw has twenty of the forty about every other time
        split = make_split(rare, protocol="digl", seed=seed)
        assert per_class(split.train, rare) == [20, 20, 20]
        assert sizes(split) == (60, 1440, 1500)


def test_shchur_takes_20_and_30_per_class(ring: Ring) -> None:
    data = ring(300)
    split = make_split(data, protocol="shchur", seed=0)
    assert per_class(split.train, data) == [20, 20, 20]
    assert per_class(split.val, data) == [30, 30, 30]
    assert sizes(split) == (60, 90, 150)


@pytest.mark.parametrize("protocol", ["digl", "shchur"])
def test_random_split_depends_on_the_seed(ring: Ring, protocol: str) -> None:
    data = ring(1600)
    first, again, other = (make_split(data, protocol=protocol, seed=seed).hash for seed in (1, 1, 2))
    assert first == again != other


@pytest.mark.parametrize(
    ("protocol", "expected"), [("digl", "58018680bb3c1c91"), ("shchur", "54d80ba1039a6016")], ids=["digl", "shchur"]
)
def test_split_is_the_same_on_every_machine(ring: Ring, protocol: str, expected: str) -> None:
    assert make_split(ring(1600), protocol=protocol, seed=0).hash == expected


def test_hash_depends_on_the_masks_only() -> None:
    flags = torch.eye(9, dtype=torch.bool)
    split = Split(flags[0], flags[1], flags[2], "shchur", 0)
    assert split.hash == replace(split, protocol="digl", seed=5).hash == "c848092acf076808"
    others = [
        replace(split, train=flags[3]),
        replace(split, val=flags[3]),
        replace(split, test=flags[3]),
        replace(split, train=flags[1], val=flags[0]),
        split.restrict(torch.arange(8)),
    ]
    assert len({split.hash, *(other.hash for other in others)}) == 6


@pytest.mark.parametrize(("asked", "came"), [("planetoid", "planetoid"), ("ogb", "ogb"), ("published", "ogb")])
def test_published_split_is_independent_of_the_seed(ring: Ring, asked: str, came: str) -> None:
    data = with_published(ring(8), came)
    split = make_split(data, protocol=asked, seed=7)
    assert data.published is not None
    assert split.hash == data.published.hash
    assert (split.protocol, split.seed) == (came, 7)


@pytest.mark.parametrize("protocol", ["planetoid", "ogb", "published"])
def test_dataset_without_published_split_is_refused(ring: Ring, protocol: str) -> None:
    with pytest.raises(ValueError, match="'ring' has no published split: use the protocol 'digl' or 'shchur'"):
        make_split(ring(8), protocol=protocol, seed=0)


def test_published_split_of_another_protocol_is_refused(ring: Ring) -> None:
    with pytest.raises(ValueError, match="is 'ogb', not 'planetoid': use the protocol 'ogb'"):
        make_split(with_published(ring(8), "ogb"), protocol="planetoid", seed=0)


def test_digl_refuses_small_graphs_and_suggests_shchur(ring: Ring) -> None:
    with pytest.raises(
        ValueError, match=r"takes 1500 nodes for development.*has 1500 nodes: use the protocol 'shchur'"
    ):
        make_split(ring(1500), protocol="digl", seed=0)


def test_small_class_is_refused(ring: Ring) -> None:
    data = ring(1800)
    lone = replace(data, y=torch.where(torch.arange(1800) < 19, 4, data.y))
    with pytest.raises(ValueError, match="needs 50 nodes of every class, but class 3 has 0 in 'ring'"):
        make_split(lone, protocol="shchur", seed=0)
    with pytest.raises(ValueError, match="needs 20 nodes of every class, but class 3 has 0 in 'ring'"):
        make_split(lone, protocol="digl", seed=0)


def test_class_too_small_for_a_development_set_is_refused(ring: Ring) -> None:
    many = ring(6000, classes=100)
    with pytest.raises(ValueError, match=r"needs 20 nodes of every class, but class \d+ has 1?\d in a development set"):
        make_split(many, protocol="digl", seed=0)


def test_unknown_protocol_is_refused_with_a_suggestion(ring: Ring) -> None:
    with pytest.raises(UnknownName, match="did you mean 'shchur'"):
        make_split(ring(8), protocol="schur", seed=0)
    assert set(PROTOCOLS) == {"planetoid", "ogb", "pei", "platonov", "published", "digl", "shchur"}


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_seed_out_of_range_is_refused(ring: Ring, seed: int) -> None:
    with pytest.raises(ValueError, match="make_split needs `seed` from 0"):
        make_split(ring(300), protocol="shchur", seed=seed)


def test_split_refuses_overlapping_or_mismatched_masks() -> None:
    flags = torch.eye(4, dtype=torch.bool)
    with pytest.raises(ValueError, match="1 nodes are in two of them"):
        Split(flags[0], flags[0], flags[1], "digl", 0)
    with pytest.raises(ValueError, match=r"`val` is torch\.int64"):
        Split(flags[0], flags[1].long(), flags[2], "digl", 0)
    with pytest.raises(ValueError, match=r"`test` is torch.bool, shape \(3,\)"):
        Split(flags[0], flags[1], flags[2][:3], "digl", 0)
