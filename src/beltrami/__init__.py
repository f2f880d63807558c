"""Beltrami neural diffusion on graphs: a flow on a stencil by a scheme.

The names below are imported on first use, so that ``import beltrami`` is fast.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_EXPORTS = {
    "joint": ("Joint",),
    "errors": ("DataError", "DirectedGraphWarning", "SolverError", "UnknownName"),
    "geometry": ("Metric", "Euclidean", "PoincareBall"),
    "graph": ("Edges", "SparseMatrix", "Rows", "Columns", "Both", "softmax_link", "squareplus_link"),
    "diffusivity": (
        "Diffusivity", "ScaledDot", "Cosine", "Pearson", "ScalarCosine", "Additive", "ExpKernel", "Gaussian", "Mixture",
        "RandomWalk", "WithEdgeFeatures",
    ),
    "stencil": (
        "Stencil", "Keep", "Loops", "Complete", "Isolated", "KNN", "Radius", "TopK", "Threshold", "Symmetric",
        "Unweighted", "FeatureSimilarity", "KeepStrongest", "tf_idf", "Chain", "AddEdges", "Charted", "TrainingOnly",
    ),
    "position": ("Encoding", "PPR", "Heat", "LaplacianEigenvectors", "ReturnProbabilities", "DeepWalk", "Hyperbolic"),
    "scheme": (
        "Scheme", "Exponential", "EnergyDecreasing", "TorchDiffEq", "solve", "Euler", "Midpoint", "Heun", "RK4",
        "Bosh3", "Dopri5", "AdamsBashforth", "AdamsMoulton", "ImplicitEuler", "CrankNicolson", "ConstantSteps", "PID",
        "Direct", "Checkpointed", "Continuous",
    ),
    "flow": (
        "Flow", "BeltramiFlow", "LinearFlow", "HyperbolicFlow", "PolyakovFlow", "OnsagerFlow", "MixedFlow",
        "ChebyshevFlow", "FrozenPositions", "MessageFlow", "TimeVarying", "PerInterval", "Bernstein", "Rate", "Source",
        "Coupling", "Attachment", "Kinetic", "JacobianNorm",
    ),
    "energy": ("dirichlet", "PolyakovAction", "Constant", "Gauss", "PeronaMalik", "Roughness"),
    "model": ("BLEND", "BeltramiConv", "Encoder", "Decoder", "Evolution"),
    "data": ("Dataset", "Split", "load", "make_split"),
    "scale.diffuse": ("diffuse_columns",),
    "train": ("Training", "TimeGrid", "fit"),
    "config.build": ("build_recipe",),
    "result": ("RunResult",),
    "data.graph_reader": ("read_graph",),
    "auto.fit_graph": ("fit_graph",),
    "predict.predictor": ("Predictor",),
    "estimator": ("BeltramiClassifier", "BeltramiRegressor"),
}  # fmt: skip
_PACKAGE = {name: package for package, names in _EXPORTS.items() for name in names}

__all__ = ["__version__", *_PACKAGE]


def __getattr__(name: str) -> Any:
    if name not in _PACKAGE:
        raise AttributeError(f"module 'beltrami' has no attribute {name!r}")
    return getattr(import_module(f"beltrami.{_PACKAGE[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
