"""Diffusivities: how strongly each edge diffuses."""

from beltrami.diffusivity.additive import Additive
from beltrami.diffusivity.base import Diffusivity, EdgeWeights, Paired, Start, constant, xavier
from beltrami.diffusivity.dot import Cosine, Pearson, ScaledDot
from beltrami.diffusivity.fixed import RandomWalk
from beltrami.diffusivity.gaussian import Gaussian
from beltrami.diffusivity.kernel import ExpKernel
from beltrami.diffusivity.mixture import Mixture
from beltrami.diffusivity.scalar_cosine import ScalarCosine
from beltrami.diffusivity.variational import Variational

__all__ = [
    "EdgeWeights",
    "Diffusivity",
    "Paired",
    "ScaledDot",
    "Cosine",
    "Pearson",
    "ExpKernel",
    "Gaussian",
    "Mixture",
    "Additive",
    "ScalarCosine",
    "RandomWalk",
    "Variational",
    "Start",
    "xavier",
    "constant",
]
