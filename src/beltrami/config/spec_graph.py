"""Settings of positions and stencils: a small frozen type for each kind; the unions below say what the fields mean."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, dataclass_transform, get_args, get_type_hints

from beltrami.arguments import Count, Finite, Fraction, NotNegative, Part, Positive, Range, Seed, range_of

Channels = Literal["u", "x", "z"]


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Spec:
    """Base of settings types: every subclass is a frozen dataclass with keyword arguments. Where a group of settings
    has several kinds, the field ``kind`` names one of them; no kind has a field that does not count for it."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True)(cls)


def specs_of(group: Any) -> tuple[type[Spec], ...]:
    """Return the settings types of a group, which is one of them or a union; none for the type of a single value."""
    types = get_args(group) if isinstance(group, UnionType) else (group,)
    return types if all(isinstance(each, type) and issubclass(each, Spec) for each in types) else ()


@cache
def kinds_of(group: Any) -> Mapping[str, type[Spec]]:
    """Return the settings types of a group by the names of its kinds; empty for a group without kinds."""
    return {name: each for each in specs_of(group) for name in get_args(hints_of(each).get("kind"))}


hints_of: Callable[[Any], Mapping[str, Any]] = cache(get_type_hints)  # the types of a dataclass's fields by name


@cache
def ranges_of(spec: Any) -> Mapping[str, Range]:
    """Return the ranges of the fields of a settings type that have one."""
    ranges = {name: range_of(hint) for name, hint in get_type_hints(spec, include_extras=True).items()}
    return {name: found for name, found in ranges.items() if found is not None}


class NoneSpec(Spec):
    kind: Literal["none"] = "none"


class PPRSpec(Spec):
    kind: Literal["ppr"] = "ppr"
    restart: Fraction = 0.05
    top: Count | None = 64


class HeatSpec(Spec):
    kind: Literal["heat"] = "heat"
    time: Positive = 5.0
    top: Count | None = 64


class SpectralSpec(Spec):
    kind: Literal["laplacian", "walk"] = "laplacian"
    channels: Count = 16


class DeepWalkSpec(Spec):
    kind: Literal["deepwalk"] = "deepwalk"
    channels: Count = 16
    walk_length: Annotated[int, Range("at least 20, the context of a node", lambda x: x >= 20)] | None = 80
    seed: Seed = 0


class HyperbolicPositionSpec(Spec):
    kind: Literal["hyperbolic"] = "hyperbolic"
    channels: Count = 16
    seed: Seed = 0


class PositionFileSpec(Spec):
    kind: Literal["file"] = "file"
    path: str
    digest: str | None = None


PositionSpec = NoneSpec | PPRSpec | HeatSpec | SpectralSpec | DeepWalkSpec | HyperbolicPositionSpec | PositionFileSpec
"""Positions from the graph: none; rows of personalised PageRank (ppr) or of the heat kernel (heat), of which ``top``
entries are kept, null for all; eigenvectors of the Laplacian; return probabilities of random walks of 1 to ``channels``
steps (walk); DeepWalk, with ``walk_length`` null for the length of the best link prediction; points of the Poincaré
ball (hyperbolic), which the model takes as logarithms at the origin; or a file of ``beltrami encode``, whose ``digest``
every run records. ``seed`` is the encoding's, so that runs of all seeds share their positions."""


class SimilaritySpec(Spec):
    kind: Literal["similarity"] = "similarity"
    sharpness: Finite


class NeighboursSpec(Spec):
    kind: Literal["neighbours"] = "neighbours"
    k: Count
    weight: Positive = 0.5


class IsolatedSpec(Spec):
    kind: Literal["isolated"] = "isolated"
    loops: NotNegative = 1.0
    remesh: Positive | None = None


class EdgesSpec(Spec):  # base of the stencils that have edges
    loops: NotNegative = 1.0
    remesh: Positive | None = None
    strongest: Part | None = None


class CompleteSpec(EdgesSpec):
    kind: Literal["complete"] = "complete"


class KNNSpec(EdgesSpec):
    kind: Literal["knn"] = "knn"
    k: Count = 64
    on: Channels = "z"
    symmetric: bool = False


class RadiusSpec(EdgesSpec):
    kind: Literal["radius"] = "radius"
    radius: Positive = 1.0
    on: Channels = "z"


class InputEdgesSpec(EdgesSpec):  # base of the stencils that are made of the input graph's edges
    symmetric: bool = False
    weighted: bool = True
    reweight: NoneSpec | SimilaritySpec = NoneSpec()
    add: NoneSpec | NeighboursSpec = NoneSpec()


class KeepSpec(InputEdgesSpec):
    kind: Literal["keep"] = "keep"


class DIGLSpec(InputEdgesSpec):
    kind: Literal["digl"] = "digl"
    k: Count = 64
    restart: Fraction = 0.05


class ThresholdSpec(InputEdgesSpec):
    kind: Literal["threshold"] = "threshold"
    least: Fraction = 1e-3
    restart: Fraction = 0.05


class StencilFileSpec(InputEdgesSpec):
    kind: Literal["file"] = "file"
    path: str
    digest: str | None = None


FixedStencilSpec = KeepSpec | DIGLSpec | ThresholdSpec | CompleteSpec | IsolatedSpec | StencilFileSpec
StencilSpec = NoneSpec | FixedStencilSpec | KNNSpec | RadiusSpec
"""The graph of the flow: the input graph (keep); the ``k`` largest entries in each row of personalised PageRank (digl),
or its entries of at least ``least`` (threshold), which weight the edges; all pairs of nodes (complete); no edges
(isolated); a file of ``beltrami rewire``, whose ``digest`` every run records; the ``k`` nearest nodes (knn), or those
within ``radius``, in the channels ``on`` of the encoded state. Then: ``symmetric``, every edge in both directions;
``weighted=false``, edges without their weights; ``loops``, the weight of a self-loop on every node, 0 for none;
``remesh``, the time after which the graph is built again from the state, null for never; ``strongest``, the share of
the edges, those of largest diffusivity, that are kept while training.

Before that, the input features may alter the input graph; their columns are weighted by rarity. ``reweight``: edges
between similar nodes weigh more, by a factor e^``sharpness`` per standard deviation of the similarity. ``add``: edges
of ``weight`` to the ``k`` most similar nodes, in both directions."""
