"""Baselines: the networks that the paper compares BLEND with, trained by the same code."""

from beltrami.model.baseline.base import Architecture, Baseline
from beltrami.model.baseline.graph_ode import GraphODE, cgnn, gde, gode
from beltrami.model.baseline.lanczos import adalanczosnet, lanczosnet
from beltrami.model.baseline.layered import gat, gcn, monet, sage_maxpool, sage_mean

__all__ = ["Baseline", "GraphODE", "Architecture", "gcn", "gat", "monet", "sage_mean", "sage_maxpool"]
__all__ += ["cgnn", "gde", "gode", "lanczosnet", "adalanczosnet"]
