"""Diffusivities: the weights a(z_i, z_j) with which each edge diffuses."""

from beltrami.diffusivity.base import (
    Diffusivity,
    EdgeWeights,
    Paired,
    RandomWalk,
    Start,
    Variational,
    WithEdgeFeatures,
    constant,
    xavier,
)
from beltrami.diffusivity.distance import ExpKernel, Gaussian, Mixture
from beltrami.diffusivity.dot import Additive, Cosine, Pearson, ScalarCosine, ScaledDot

__all__ = ["EdgeWeights", "Diffusivity", "Paired", "Variational", "Start", "xavier", "constant"]
__all__ += ["ScaledDot", "Cosine", "Pearson", "ScalarCosine", "Additive"]
__all__ += ["ExpKernel", "Gaussian", "Mixture", "RandomWalk", "WithEdgeFeatures"]
