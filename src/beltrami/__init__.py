"""Beltrami neural diffusion on graphs: a flow on a stencil by a scheme.

The names below are loaded when first used, so that ``import beltrami`` costs nothing by itself.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "joint": ("Joint",),
    "errors": ("DataError", "SolverError", "UnknownName"),
    "geometry": ("Metric", "Euclidean", "PoincareBall"),
    "graph": ("Edges", "SparseMatrix", "Rows", "Columns", "Both", "softmax_link", "squareplus_link"),
    "diffusivity": ("Diffusivity", "ScaledDot", "Cosine", "Pearson", "ExpKernel", "Gaussian", "Additive", "RandomWalk"),
    "stencil": (
        "Stencil",
        "Keep",
        "Loops",
        "Complete",
        "Isolated",
        "KNN",
        "Radius",
        "KeepStrongest",
        "TopK",
        "Threshold",
        "Symmetric",
        "Chain",
    ),
    "position": ("Encoding", "PPR", "Heat", "LaplacianEigenvectors", "ReturnProbabilities", "DeepWalk", "Hyperbolic"),
    "scheme": (
        "Scheme",
        "Exponential",
        "EnergyDecreasing",
        "TorchDiffEq",
        "solve",
        "Euler",
        "Midpoint",
        "Heun",
        "RK4",
        "Bosh3",
        "Dopri5",
        "AdamsBashforth",
        "AdamsMoulton",
        "ImplicitEuler",
        "CrankNicolson",
        "ConstantSteps",
        "PID",
        "Direct",
        "Checkpointed",
        "Continuous",
    ),
    "flow": (
        "Flow",
        "BeltramiFlow",
        "LinearFlow",
        "HyperbolicFlow",
        "PolyakovFlow",
        "Rate",
        "Source",
        "Attachment",
        "Kinetic",
        "JacobianNorm",
    ),
    "energy": ("dirichlet", "PolyakovAction", "Constant", "Gauss", "PeronaMalik", "Roughness"),
    "model": ("BLEND", "Encoder", "Decoder", "Evolution"),
    "data": ("Dataset", "Split", "load", "make_split"),
    "train": ("Training", "TimeGrid", "fit"),
    "result": ("RunResult",),
}
_HOME = {name: room for room, names in _HOMES.items() for name in names}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'beltrami' has no attribute {name!r}")
    return getattr(import_module(f"beltrami.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
