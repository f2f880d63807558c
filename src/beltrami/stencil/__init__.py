"""Stencils: the graph that a flow is discretised on."""

from beltrami.stencil.base import Fixed, Stencil
from beltrami.stencil.chain import Chain
from beltrami.stencil.chart import Charted
from beltrami.stencil.digl import Threshold, TopK
from beltrami.stencil.feature_similarity import AddEdges, FeatureSimilarity, by_rarity
from beltrami.stencil.keep_strongest import KeepStrongest
from beltrami.stencil.neighbours import KNN, Radius
from beltrami.stencil.simple import Complete, Isolated, Keep, Loops, Symmetric, Unweighted
from beltrami.stencil.training_only import TrainingOnly

__all__ = [
    "Stencil",
    "Fixed",
    "Keep",
    "Loops",
    "Complete",
    "Isolated",
    "KNN",
    "Radius",
    "AddEdges",
    "FeatureSimilarity",
    "by_rarity",
    "KeepStrongest",
    "TopK",
    "Threshold",
    "Symmetric",
    "Unweighted",
    "Chain",
    "Charted",
    "TrainingOnly",
]
