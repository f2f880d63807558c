"""Catalogue: what is known of each dataset before it is loaded."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Facts:
    """The size of a dataset's largest component, as in the paper's table of datasets.

    Args:
        title: its name in print.
        kind: what its edges are.
        nodes: number of nodes.
        edges: number of undirected edges; for ogbn-arxiv the citations as published, directed.
        features: width of ``x``.
        classes: number of classes.
    """

    title: str
    kind: str
    nodes: int
    edges: int
    features: int
    classes: int


CATALOGUE: Mapping[str, Facts] = MappingProxyType(
    {
        "digits": Facts("Digits", "similarity", nodes=1797, edges=9929, features=64, classes=10),
        "cora": Facts("Cora", "citation", nodes=2485, edges=5069, features=1433, classes=7),
        "citeseer": Facts("CiteSeer", "citation", nodes=2120, edges=3679, features=3703, classes=6),
        "pubmed": Facts("PubMed", "citation", nodes=19717, edges=44324, features=500, classes=3),
        "coauthor-cs": Facts("Coauthor CS", "co-author", nodes=18333, edges=81894, features=6805, classes=15),
        "computers": Facts("Computers", "co-purchase", nodes=13381, edges=245778, features=767, classes=10),
        "photo": Facts("Photo", "co-purchase", nodes=7487, edges=119043, features=745, classes=8),
        "ogbn-arxiv": Facts("ogbn-arxiv", "citation", nodes=169343, edges=1166243, features=128, classes=40),
    }
)
"""Every dataset that ``load`` knows, by name."""
