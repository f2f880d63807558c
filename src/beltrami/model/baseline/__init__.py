"""Baselines: the paper's competitors, trained by the code that trains BLEND."""

from beltrami.model.baseline.base import Baseline, Layered
from beltrami.model.baseline.cgnn import cgnn
from beltrami.model.baseline.frame import Frame
from beltrami.model.baseline.gat import gat
from beltrami.model.baseline.gcn import gcn
from beltrami.model.baseline.gde import gde, gode
from beltrami.model.baseline.lanczosnet import adalanczosnet, lanczosnet
from beltrami.model.baseline.monet import monet
from beltrami.model.baseline.ode import GraphODE
from beltrami.model.baseline.sage import sage_maxpool, sage_mean

__all__ = [
    "Baseline",
    "Layered",
    "GraphODE",
    "Frame",
    "gcn",
    "gat",
    "monet",
    "sage_mean",
    "sage_maxpool",
    "cgnn",
    "gde",
    "gode",
    "lanczosnet",
    "adalanczosnet",
]
