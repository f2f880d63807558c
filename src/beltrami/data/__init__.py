"""Datasets: the paper's graphs, read from files or downloaded once, and the splits used in the literature."""

from beltrami.data.catalogue import CATALOGUE, Facts, available, load
from beltrami.data.dataset import Dataset, Split, undirected
from beltrami.data.dataset_source import Availability
from beltrami.data.protocol import PROTOCOLS, make_split
from beltrami.data.synthetic import read_digits
from beltrami.position import Progress

__all__ = ["load", "available", "Availability", "Progress", "CATALOGUE", "Facts"]
__all__ += ["Dataset", "undirected", "read_digits", "Split", "make_split", "PROTOCOLS"]
