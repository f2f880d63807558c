"""Datasets: the paper's graphs, read from files or downloaded once, and the splits used in the literature."""

from beltrami.data.catalogue import CATALOGUE, Availability, Facts, available, load
from beltrami.data.dataset import Dataset, undirected
from beltrami.data.download import Progress
from beltrami.data.protocol import PROTOCOLS, make_split
from beltrami.data.split import Split
from beltrami.data.synthetic import read_digits

__all__ = [
    "load",
    "available",
    "Availability",
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
