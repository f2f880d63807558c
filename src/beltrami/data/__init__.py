"""Data: the paper's graphs, read from files or fetched once, with the splits the literature makes of them."""

from beltrami.data.catalogue import CATALOGUE, Facts
from beltrami.data.dataset import Dataset, undirected
from beltrami.data.digits import read_digits
from beltrami.data.download import Progress
from beltrami.data.protocol import PROTOCOLS, make_split
from beltrami.data.reader import available, load
from beltrami.data.source import Place
from beltrami.data.split import Split

__all__ = [
    "load",
    "available",
    "Place",
    "Progress",
    "CATALOGUE",
    "Facts",
    "Dataset",
    "undirected",
    "read_digits",
    "Split",
    "make_split",
    "PROTOCOLS",
]
