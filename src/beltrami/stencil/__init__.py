"""Stencils: the graph that a flow is discretised on."""

from beltrami.stencil.base import Fixed, Stencil
from beltrami.stencil.chain import Chain
from beltrami.stencil.chart import Charted
from beltrami.stencil.digl import Threshold, TopK
from beltrami.stencil.likeness import Beside, Likeness, by_rarity
from beltrami.stencil.neighbours import KNN, Radius
from beltrami.stencil.simple import Complete, Isolated, Keep, Loops, Symmetric, Unweighted
from beltrami.stencil.strongest import Strongest
from beltrami.stencil.training import WhileTraining

__all__ = [
    "Stencil",
    "Fixed",
    "Keep",
    "Loops",
    "Complete",
    "Isolated",
    "KNN",
    "Radius",
    "Beside",
    "Likeness",
    "by_rarity",
    "Strongest",
    "TopK",
    "Threshold",
    "Symmetric",
    "Unweighted",
    "Chain",
    "Charted",
    "WhileTraining",
]
