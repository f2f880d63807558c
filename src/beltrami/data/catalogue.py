"""The datasets by name: their statistics, their files, and the functions that load them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from beltrami.arguments import checked
from beltrami.data import planetoid
from beltrami.data.archives import CONTENT_DIGESTS, OGB_PARTS, npz_digest, read_npz, read_ogb
from beltrami.data.dataset import Dataset
from beltrami.data.file import RemoteFile, cache_folder, data_folder, download
from beltrami.data.synthetic import read_digits
from beltrami.errors import DataError, UnknownName
from beltrami.position import Progress

PLANETOID_URL = "https://github.com/kimiyoung/planetoid/raw/master/data"
NPZ_URL = "https://github.com/shchur/gnn-benchmark/raw/master/data/npz"
ARXIV_URL = "https://snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip"
NPZ_PATHS = {
    "coauthor-cs": "CS/raw/ms_academic_cs.npz",
    "computers": "Computers/raw/amazon_electronics_computers.npz",
    "photo": "Photo/raw/amazon_electronics_photo.npz",
}


@dataclass(frozen=True)
class Facts:
    """The name in print and the size of a dataset's largest component, as in the paper's table of datasets.

    Edges are undirected, except for ogbn-arxiv the directed citations, as published.
    """

    title: str
    nodes: int
    edges: int
    features: int
    classes: int


CATALOGUE: Mapping[str, Facts] = {
    "digits": Facts("Digits", nodes=1797, edges=9929, features=64, classes=10),
    "cora": Facts("Cora", nodes=2485, edges=5069, features=1433, classes=7),
    "citeseer": Facts("CiteSeer", nodes=2120, edges=3679, features=3703, classes=6),
    "pubmed": Facts("PubMed", nodes=19717, edges=44324, features=500, classes=3),
    "coauthor-cs": Facts("Coauthor CS", nodes=18333, edges=81894, features=6805, classes=15),
    "computers": Facts("Computers", nodes=13381, edges=245778, features=767, classes=10),
    "photo": Facts("Photo", nodes=7487, edges=119043, features=745, classes=8),
    "ogbn-arxiv": Facts("ogbn-arxiv", nodes=169343, edges=1166243, features=128, classes=40),
}
"""Every dataset that ``load`` knows, by name."""


CLASS_NAMES: Mapping[str, Sequence[str]] = {
    "cora": (
        "Theory", "Reinforcement Learning", "Genetic Algorithms", "Neural Networks", "Probabilistic Methods",
        "Case Based", "Rule Learning",
    ),
    "citeseer": ("AI", "Machine Learning", "Information Retrieval", "Databases", "Agents", "HCI"),
    "computers": (
        "Desktops", "Data Storage", "Laptops", "Monitors", "Computer Components", "Video Projectors", "Routers",
        "Tablets", "Networking Products", "Webcams",
    ),
    "photo": (
        "Film Photography", "Digital Cameras", "Binoculars & Scopes", "Lenses", "Tripods & Monopods",
        "Video Surveillance", "Lighting & Studio", "Flashes",
    ),
}  # fmt: skip
"""The names of the classes in their order, where they are published with the files, or known by the size of each."""


def class_names(dataset: str, num_classes: int) -> tuple[str, ...]:
    """Return the names of the classes of a dataset, or their numbers."""
    names = tuple(CLASS_NAMES.get(dataset, ()))
    return names if len(names) == num_classes else tuple(str(c) for c in range(num_classes))


class Availability(StrEnum):
    """Where a dataset's files are."""

    EMBEDDED = "embedded"
    FOLDER = "in BELTRAMI_DATA"
    CACHE = "cached"
    DOWNLOAD = "to be downloaded"

    @property
    def is_local(self) -> bool:
        """Whether the dataset loads without a network."""
        return self is not Availability.DOWNLOAD


@dataclass(frozen=True)
class DatasetSource:
    """The published files of a dataset, none for an embedded one, and the function that reads them from a folder."""

    remotes: Sequence[RemoteFile]
    read: Callable[[Path], Dataset]

    def availability(self) -> Availability:
        """Return where the files are, in order of preference; they are verified when they are read."""
        if not self.remotes:
            return Availability.EMBEDDED
        folder = data_folder()
        if folder is not None and not self._missing(folder):
            return Availability.FOLDER
        return Availability.DOWNLOAD if self._missing(cache_folder()) else Availability.CACHE

    def obtain(self, *, progress: Progress | None = None) -> Path:
        """Return the folder that holds the files: BELTRAMI_DATA, or the cache after downloading missing files."""
        folder, cache = data_folder(), cache_folder()
        if folder is not None and self.remotes and not folder.is_dir():
            raise DataError(f"BELTRAMI_DATA names {folder}, which is not a folder: correct it or unset it.")
        if folder is not None and self.availability() is Availability.FOLDER:
            return folder
        for remote in self.remotes:
            if not all((cache / path).is_file() for path in remote.paths):
                try:
                    download(remote, cache, progress=progress)
                except DataError as error:
                    where = "set BELTRAMI_DATA to a folder with" if folder is None else f"add to BELTRAMI_DATA={folder}"
                    raise DataError(f"{error}, or {where} {', '.join(self._missing(folder))}.") from error
        return cache

    def _missing(self, root: Path | None) -> list[str]:
        paths = (path for remote in self.remotes for path in remote.paths)
        return [path for path in paths if root is None or not (root / path).is_file()]


@checked
def load(name: str, *, progress: Progress | None = None) -> Dataset:
    """Load the whole graph of a dataset of ``CATALOGUE``, from BELTRAMI_DATA, from the cache, or from the network.

    ``progress(file, bytes so far, bytes in all or None)`` is called for each chunk of a download.
    """
    source = _source(name)
    return source.read(source.obtain(progress=progress))


@checked
def available(name: str) -> Availability:
    """Return where a dataset would be loaded from now; ``available(name).is_local`` if no network is needed."""
    return _source(name).availability()


def _source(name: str) -> DatasetSource:
    if name not in SOURCES:
        raise UnknownName("dataset", name, SOURCES)
    return SOURCES[name]


def _planetoid(name: str) -> DatasetSource:
    folder, digests = f"{CATALOGUE[name].title}/raw", planetoid.FILE_DIGESTS
    files = [f"ind.{name}.{part}" for part in planetoid.PARTS]
    remotes = [RemoteFile(f"{PLANETOID_URL}/{file}", path=f"{folder}/{file}", digest=digests[file]) for file in files]
    return DatasetSource(remotes, lambda root: planetoid.read_planetoid(root / folder, name=name, digests=digests))


def _npz(name: str) -> DatasetSource:
    path, digest = NPZ_PATHS[name], CONTENT_DIGESTS[name]
    remote = RemoteFile(f"{NPZ_URL}/{path.rsplit('/', 1)[-1]}", path=path, digest=digest, measure=npz_digest)
    return DatasetSource([remote], lambda root: read_npz(root / path, name=name, digest=digest))


def _arxiv(name: str) -> DatasetSource:
    facts = CATALOGUE[name]
    sizes = (facts.nodes, facts.edges, facts.features, facts.classes)
    remote = RemoteFile(ARXIV_URL, members={f"arxiv/{part}": f"ogbn_arxiv/{part}" for part in OGB_PARTS})
    return DatasetSource([remote], lambda root: read_ogb(root / "ogbn_arxiv", name=name, sizes=sizes))


SOURCES: Mapping[str, DatasetSource] = {
    "digits": DatasetSource([], lambda root: read_digits()),
    **{name: _planetoid(name) for name in ("cora", "citeseer", "pubmed")},
    **{name: _npz(name) for name in NPZ_PATHS},
    "ogbn-arxiv": _arxiv("ogbn-arxiv"),
}
"""The files of every dataset, by name."""
