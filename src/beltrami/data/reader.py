"""Readers: the datasets by name, each with its files and the function that makes a dataset of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from beltrami.data import ogb, planetoid
from beltrami.data.catalogue import CATALOGUE
from beltrami.data.dataset import Dataset
from beltrami.data.digest import CONTENT_DIGESTS, FILE_DIGESTS
from beltrami.data.digits import read_digits
from beltrami.data.download import Progress, Remote
from beltrami.data.npz import npz_digest, read_npz
from beltrami.data.source import Place, Source
from beltrami.errors import UnknownName

PLANETOID_HOME = "https://github.com/kimiyoung/planetoid/raw/master/data"
NPZ_HOME = "https://github.com/shchur/gnn-benchmark/raw/master/data/npz"
ARXIV_HOME = "https://snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip"


@dataclass(frozen=True)
class Reader:
    """The files of a dataset, with the function that reads them below the folder where they are found."""

    source: Source
    read: Callable[[Path], Dataset]


def load(name: str, *, progress: Progress | None = None) -> Dataset:
    """The whole graph of a dataset, from BELTRAMI_DATA, from the cache, or else from its home on the network.

    Args:
        name: one of ``CATALOGUE``.
        progress: told of each piece of a download, ``progress(file, bytes so far, bytes in all or None)``.
    """
    reader = _reader(name)
    return reader.read(reader.source.obtain(progress=progress))


def available(name: str) -> Place:
    """Where a dataset would be loaded from now; ``available(name).at_hand`` says whether that needs no network."""
    return _reader(name).source.place()


def _reader(name: str) -> Reader:
    if name not in READERS:
        raise UnknownName("dataset", name, READERS)
    return READERS[name]


def _digits(root: Path) -> Dataset:
    return read_digits()


def _planetoid(name: str) -> Reader:
    folder = f"{CATALOGUE[name].title}/raw"
    remotes = [
        Remote(f"{PLANETOID_HOME}/{file}", path=f"{folder}/{file}", digest=FILE_DIGESTS[file])
        for file in (f"ind.{name}.{part}" for part in planetoid.PARTS)
    ]

    def read(root: Path) -> Dataset:
        return planetoid.read_planetoid(root / folder, name=name, digests=FILE_DIGESTS)

    return Reader(Source(remotes), read)


def _npz(name: str, path: str) -> Reader:
    file = path.rsplit("/", 1)[-1]
    digest = CONTENT_DIGESTS[file]

    def read(root: Path) -> Dataset:
        return read_npz(root / path, name=name, digest=digest)

    return Reader(Source([Remote(f"{NPZ_HOME}/{file}", path=path, digest=digest, measure=npz_digest)]), read)


def _arxiv(name: str) -> Reader:
    members = {f"arxiv/{part}": f"ogbn_arxiv/{part}" for part in ogb.PARTS}

    def read(root: Path) -> Dataset:
        return ogb.read_ogb(root / "ogbn_arxiv", name=name, expected=CATALOGUE[name])

    return Reader(Source([Remote(ARXIV_HOME, members=members)]), read)


READERS: Mapping[str, Reader] = MappingProxyType(
    {
        "digits": Reader(Source([]), _digits),
        "cora": _planetoid("cora"),
        "citeseer": _planetoid("citeseer"),
        "pubmed": _planetoid("pubmed"),
        "coauthor-cs": _npz("coauthor-cs", "CS/raw/ms_academic_cs.npz"),
        "computers": _npz("computers", "Computers/raw/amazon_electronics_computers.npz"),
        "photo": _npz("photo", "Photo/raw/amazon_electronics_photo.npz"),
        "ogbn-arxiv": _arxiv("ogbn-arxiv"),
    }
)
