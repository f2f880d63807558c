"""Diffusivities: the weights a(z_i, z_j) with which each edge diffuses."""

from beltrami.diffusivity.base import Diffusivity, EdgeWeights, Paired, RandomWalk, Start, Variational, constant, xavier
from beltrami.diffusivity.distance import ExpKernel, Gaussian, Mixture
from beltrami.diffusivity.dot import Additive, Cosine, Pearson, ScalarCosine, ScaledDot

__all__ = [
    "EdgeWeights",
    "Diffusivity",
    "Paired",
    "Variational",
    "ScaledDot",
    "Cosine",
    "Pearson",
    "ScalarCosine",
    "Additive",
    "ExpKernel",
    "Gaussian",
    "Mixture",
    "RandomWalk",
    "Start",
    "xavier",
    "constant",
]
