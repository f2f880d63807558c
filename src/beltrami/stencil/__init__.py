"""Stencils: the graph that a flow is discretised on."""

from beltrami.stencil.base import Chain, Complete, Fixed, Isolated, Keep, Loops, Stencil, Symmetric, Unweighted
from beltrami.stencil.digl import Threshold, TopK
from beltrami.stencil.neighbours import KNN, Radius
from beltrami.stencil.weighting import AddEdges, Charted, FeatureSimilarity, KeepStrongest, TrainingOnly, tf_idf

__all__ = ["Stencil", "Fixed", "Keep", "Loops", "Complete", "Isolated", "Symmetric", "Unweighted"]
__all__ += ["KNN", "Radius", "TopK", "Threshold", "FeatureSimilarity", "KeepStrongest", "tf_idf"]
__all__ += ["Chain", "AddEdges", "Charted", "TrainingOnly"]
