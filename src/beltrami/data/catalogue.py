"""The datasets by name: their statistics, their files, and the functions that load them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from beltrami.arguments import checked
from beltrami.data import heterophilous as heterophily
from beltrami.data import ogb, planetoid
from beltrami.data.archives import CONTENT_DIGESTS, npz_digest, read_npz
from beltrami.data.dataset import Dataset, Metric
from beltrami.data.dataset_source import Availability, DatasetSource
from beltrami.data.file import RemoteFile
from beltrami.data.synthetic import read_digits
from beltrami.errors import UnknownName
from beltrami.position import Progress

PLANETOID_URL = "https://github.com/kimiyoung/planetoid/raw/master/data"
NPZ_URL = "https://github.com/shchur/gnn-benchmark/raw/master/data/npz"
OGB_URL = "https://snap.stanford.edu/ogb/data/nodeproppred"
PLATONOV_URL = "https://github.com/yandex-research/heterophilous-graphs/raw/main/data"
PEI_URL = "https://raw.githubusercontent.com/graphdml-uiuc-jlu/geom-gcn/master"
NPZ_PATHS = {
    "coauthor-cs": "CS/raw/ms_academic_cs.npz",
    "computers": "Computers/raw/amazon_electronics_computers.npz",
    "photo": "Photo/raw/amazon_electronics_photo.npz",
}
OGB_ARCHIVES = {
    "ogbn-arxiv": ("arxiv", "time"),
    "ogbn-products": ("products", "sales_ranking"),
    "ogbn-papers100M": ("papers100M-bin", "time"),
}
"""The name of the archive and of the split of each graph of OGB."""
PLATONOV = ("roman-empire", "amazon-ratings", "minesweeper", "tolokers", "questions")
PEI_FOLDERS = {
    "chameleon": "chameleon/geom_gcn/raw",
    "squirrel": "squirrel/geom_gcn/raw",
    "actor": "actor/raw",
    "texas": "texas/raw",
    "wisconsin": "wisconsin/raw",
    "cornell": "cornell/raw",
}
"""The folder of each graph, as PyG has it."""


@dataclass(frozen=True)
class Facts:
    """The name in print, the size of a dataset, and the metric of published results.

    Of the paper's datasets the size is that of the largest component, as in its table; of others that of the graph.
    Edges are undirected and counted once, except for OGB's graphs, whose edges are counted as listed.
    """

    title: str
    nodes: int
    edges: int
    features: int
    classes: int
    metric: Metric = "accuracy"


CATALOGUE: Mapping[str, Facts] = {
    "digits": Facts("Digits", nodes=1797, edges=9929, features=64, classes=10),
    "cora": Facts("Cora", nodes=2485, edges=5069, features=1433, classes=7),
    "citeseer": Facts("CiteSeer", nodes=2120, edges=3679, features=3703, classes=6),
    "pubmed": Facts("PubMed", nodes=19717, edges=44324, features=500, classes=3),
    "coauthor-cs": Facts("Coauthor CS", nodes=18333, edges=81894, features=6805, classes=15),
    "computers": Facts("Computers", nodes=13381, edges=245778, features=767, classes=10),
    "photo": Facts("Photo", nodes=7487, edges=119043, features=745, classes=8),
    "ogbn-arxiv": Facts("ogbn-arxiv", nodes=169343, edges=1166243, features=128, classes=40),
    "ogbn-products": Facts("ogbn-products", nodes=2449029, edges=61859140, features=100, classes=47),
    "ogbn-papers100M": Facts("ogbn-papers100M", nodes=111059956, edges=1615685872, features=128, classes=172),
    "roman-empire": Facts("Roman Empire", nodes=22662, edges=32927, features=300, classes=18),
    "amazon-ratings": Facts("Amazon Ratings", nodes=24492, edges=93050, features=300, classes=5),
    "minesweeper": Facts("Minesweeper", nodes=10000, edges=39402, features=7, classes=2, metric="roc-auc"),
    "tolokers": Facts("Tolokers", nodes=11758, edges=519000, features=10, classes=2, metric="roc-auc"),
    "questions": Facts("Questions", nodes=48921, edges=153540, features=301, classes=2, metric="roc-auc"),
    "chameleon": Facts("Chameleon", nodes=2277, edges=31371, features=2325, classes=5),
    "squirrel": Facts("Squirrel", nodes=5201, edges=198353, features=2089, classes=5),
    "actor": Facts("Actor", nodes=7600, edges=26659, features=932, classes=5),
    "texas": Facts("Texas", nodes=183, edges=279, features=1703, classes=5),
    "wisconsin": Facts("Wisconsin", nodes=251, edges=450, features=1703, classes=5),
    "cornell": Facts("Cornell", nodes=183, edges=277, features=1703, classes=5),
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


@checked
def load(name: str, *, progress: Progress | None = None) -> Dataset:
    """Load the whole graph of a dataset of ``CATALOGUE``, from BELTRAMI_DATA, from the cache, or from the network.

    ``progress(file, bytes so far, bytes in all or None)`` is called for each chunk of a download. A graph that does not
    fit into the free memory is refused before anything is downloaded or read.
    """
    source = _source(name)
    source.check()
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


def _ogb(name: str) -> DatasetSource:
    facts, (archive, split), folder = CATALOGUE[name], OGB_ARCHIVES[name], name.replace("-", "_")
    sizes = (facts.nodes, facts.edges, facts.features, facts.classes)
    binary = archive.endswith("-bin")
    parts, read = ogb.ogb_parts(split, binary=binary), ogb.read_ogb_archives if binary else ogb.read_ogb
    remote = RemoteFile(f"{OGB_URL}/{archive}.zip", members={f"{archive}/{part}": f"{folder}/{part}" for part in parts})
    return DatasetSource(
        [remote],
        lambda root: read(root / folder, name=name, sizes=sizes, split=split),
        check=lambda: ogb.check_ogb_memory(name, sizes),
    )


def _platonov(name: str) -> DatasetSource:
    file, digest, metric = name.replace("-", "_"), heterophily.FILE_DIGESTS[name], CATALOGUE[name].metric
    path = f"{file}/raw/{file}.npz"
    remote = RemoteFile(
        f"{PLATONOV_URL}/{file}.npz", path=path, digest=digest, measure=lambda path: heterophily.files_digest([path])
    )
    return DatasetSource(
        [remote], lambda root: heterophily.read_platonov(root / path, name=name, digest=digest, metric=metric)
    )


def _pei(name: str) -> DatasetSource:
    folder, digest, files = PEI_FOLDERS[name], heterophily.FILE_DIGESTS[name], "film" if name == "actor" else name
    words = CATALOGUE[name].features if name == "actor" else None
    remotes = []
    for file in heterophily.pei_files(files):
        place = "splits" if file.endswith(".npz") else f"new_data/{files}"
        remotes.append(RemoteFile(f"{PEI_URL}/{place}/{file}", path=f"{folder}/{file}"))
    return DatasetSource(
        remotes,
        lambda root: heterophily.read_pei(root / folder, name=name, files=files, digest=digest, words=words),
    )


SOURCES: Mapping[str, DatasetSource] = {
    "digits": DatasetSource([], lambda root: read_digits()),
    **{name: _planetoid(name) for name in ("cora", "citeseer", "pubmed")},
    **{name: _npz(name) for name in NPZ_PATHS},
    **{name: _ogb(name) for name in OGB_ARCHIVES},
    **{name: _platonov(name) for name in PLATONOV},
    **{name: _pei(name) for name in PEI_FOLDERS},
}
"""The files of every dataset, by name."""
