"""Positions and rewired graphs, computed for a run or ahead of it into files that runs can name."""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import NamedTuple, TypeVar

from torch import Tensor

from beltrami.arguments import AnyPath, checked
from beltrami.config.build import build_encoding
from beltrami.config.build_evolution import build_stencil
from beltrami.config.cost_check import check_edges, check_positions
from beltrami.config.limits import check_node_counts
from beltrami.config.parser import override, parse
from beltrami.config.run_cost import Sizes
from beltrami.config.spec import DataSpec, RunConfig
from beltrami.config.spec_graph import NoneSpec, PositionFileSpec, PositionSpec, StencilFileSpec, StencilSpec, kinds_of
from beltrami.data import CATALOGUE, Dataset, Progress, load, store
from beltrami.data.store import cached_positions, positions_are_cached
from beltrami.errors import DataError, UnknownName
from beltrami.geometry import PoincareBall
from beltrami.graph import Edges
from beltrami.graph.statistics import Rewiring
from beltrami.joint import Joint
from beltrami.position import Encoding, Hyperbolic

FileSpec = TypeVar("FileSpec", PositionFileSpec, StencilFileSpec)
NOTHING = RunConfig(dataset="", recipe="", scheme=NoneSpec())
ENCODINGS = tuple(kind for kind in kinds_of(PositionSpec) if kind not in ("none", "file"))
STENCILS = tuple(kind for kind in kinds_of(StencilSpec) if kind not in ("none", "file"))
OF_RUNS = ("kind", "seed", "remesh", "strongest", "reweight", "add")  # settings that `encode` and `rewire` do not take


class Encoded(NamedTuple):
    """Positions that were written, how long they took, and whether they came from the cache."""

    positions: Tensor
    seconds: float
    from_cache: bool


class Rewired(NamedTuple):
    """How a stencil changed a graph, and how long it took."""

    rewiring: Rewiring
    seconds: float


def read_dataset(name: str, *, component: str, progress: Progress | None = None) -> Dataset:
    """Return a dataset, or its largest component."""
    dataset = load(name, progress=progress)
    return dataset.largest_component() if component == "largest" else dataset


def positions_of(spec: PositionSpec, edges: Edges) -> Tensor | None:
    """Return the positions as a model takes them, from the file, the cache or the encoding; None for none."""
    if spec.kind == "file":
        positions, made = store.load_positions(Path(spec.path), edges)
        return in_chart(positions, made.space)
    encoding = build_encoding(spec)
    if encoding is None:
        return None
    return in_chart(cached_positions(encoding, edges, seed=getattr(spec, "seed", 0)), space_of(encoding))


def space_of(encoding: Encoding) -> str:
    """Return the space that an encoding puts the nodes in."""
    return store.BALL if isinstance(encoding, Hyperbolic) else store.FLAT


def in_chart(positions: Tensor, space: str) -> Tensor:
    """Return positions as a model takes them: points of the ball by their logarithms at the origin."""
    return PoincareBall().log_origin(positions) if space == store.BALL else positions


def position_settings(encoding: str, *, seed: int | None = None, settings: Sequence[str] = ()) -> PositionSpec:
    """Return the settings of positions to be written; unknown and unfit ones are refused."""
    if encoding not in ENCODINGS:
        raise UnknownName("encoding", encoding, ENCODINGS)
    _check_names(settings, "position")
    seeded = [] if seed is None else [f"position.seed={seed}"]
    spec = override(NOTHING, [f"position.kind={encoding}", *seeded, *settings]).position
    build_encoding(spec)
    return spec


@checked
def encode(
    dataset: str,
    spec: PositionSpec,
    path: AnyPath,
    *,
    component: str = "largest",
    device: str = "cpu",
    progress: Progress | None = None,
) -> Encoded:
    """Write the positions of a dataset's nodes to ``path``, for ``position.kind=file``."""
    encoding = build_encoding(spec, progress=progress)
    if encoding is None:
        raise ValueError(f"`encode` needs an encoding; got {spec.kind}.")
    data = read_dataset(dataset, component=component, progress=progress)
    check_node_counts(replace(NOTHING, position=spec), data.num_nodes)
    check_positions(spec, data.num_nodes)
    edges = Edges.build(data.edge_index, num_nodes=data.num_nodes).to(device)
    start, seed = time.perf_counter(), getattr(spec, "seed", 0)
    known = positions_are_cached(encoding, edges, seed=seed)
    positions = cached_positions(encoding, edges, seed=seed)
    seconds = time.perf_counter() - start
    by = json.dumps({"encoding": encoding.describe(), "seed": seed})
    made = store.Provenance(store.POSITIONS, dataset, component, by, space_of(encoding))
    store.save_positions(Path(path), positions, edges, made)
    return Encoded(positions, seconds, known)


def stencil_settings(kind: str, *, positions: Path | None = None, settings: Sequence[str] = ()) -> StencilSpec:
    """Return the settings of a graph to be written; unknown and unfit ones are refused. knn and radius look at the
    positions if there are any, else at the features; no loops are added by default."""
    if kind not in STENCILS:
        raise UnknownName("stencil", kind, STENCILS)
    _check_names(settings, "stencil")
    on = [f"stencil.on={'x' if positions is None else 'u'}"] if kind in ("knn", "radius") else []
    spec = override(NOTHING, [f"stencil.kind={kind}", "stencil.loops=0", *on, *settings]).stencil
    channels = spec.on if spec.kind == "knn" or spec.kind == "radius" else None
    if positions is not None and channels != "u":
        raise ValueError("`--positions` is for knn and radius with `stencil.on=u`: leave it out here.")
    if channels == "z":
        raise ValueError("a graph is rewired by features, `stencil.on=x`, or by positions, `on=u`; z is for `train`.")
    if channels == "u" and positions is None:
        raise ValueError("`stencil.on=u` looks at positions: name a file that `beltrami encode` wrote, `--positions`.")
    build_stencil(spec, Joint(1, 1))
    return spec


@checked
def rewire(
    dataset: str,
    spec: StencilSpec,
    path: AnyPath,
    *,
    positions: AnyPath | None = None,
    component: str = "largest",
    device: str = "cpu",
    progress: Progress | None = None,
) -> Rewired:
    """Write the graph that a stencil makes of a dataset's to ``path``, for ``stencil.kind=file``; ``positions``: a file
    of :func:`encode`, for stencils that look at u."""
    positions = None if positions is None else Path(positions)
    header = None if positions is None else store.read_header(positions, kind=store.POSITIONS)
    data = read_dataset(dataset, component=component, progress=progress)
    check_node_counts(replace(NOTHING, stencil=spec), data.num_nodes)
    edges = Edges.build(data.edge_index, num_nodes=data.num_nodes)
    check_edges(replace(NOTHING, stencil=spec), Sizes(data.num_nodes, edges.num_edges, data.num_features))
    z, joint, ball = data.x, Joint(0, data.num_features), None
    if positions is not None:
        u, made = store.load_positions(positions, edges)
        z, joint = in_chart(u, made.space).to_dense(), Joint(u.shape[1], 0)
        ball = PoincareBall() if made.space == store.BALL else None
    start = time.perf_counter()
    mesh = build_stencil(spec, joint, ball=ball)(z.to(device), edges.to(device)).to("cpu")
    seconds = time.perf_counter() - start
    by = json.dumps({"stencil": asdict(spec), "positions": None if header is None else header.digest})
    store.save_stencil(Path(path), mesh, edges, store.Provenance(store.STENCIL, dataset, component, by))
    return Rewired(Rewiring.of(edges, mesh, data.y), seconds)


def check_dataset(name: str, *, component: str) -> None:
    """Refuse the unknown name of a dataset or component, before data are read."""
    if name not in CATALOGUE:
        raise UnknownName("dataset", name, CATALOGUE)
    parse(DataSpec, {"component": component})


def resolve_files(config: RunConfig) -> RunConfig:
    """Return the configuration with the full path and the digest of each file it names; a file that is missing, or
    whose digest is not the recorded one, is refused. Only the headers of files are read."""
    if isinstance(config.position, PositionFileSpec):
        config = replace(config, position=_resolved(config.position, store.POSITIONS))
    if isinstance(config.stencil, StencilFileSpec):
        config = replace(config, stencil=_resolved(config.stencil, store.STENCIL))
    return config


def _resolved(spec: FileSpec, kind: str) -> FileSpec:
    path = Path(spec.path).expanduser().absolute()
    if spec.digest is not None and not path.exists():
        raise DataError(
            f"the {kind} file {path}, which the configuration was made with, is gone: put it back, or make it again "
            f"with `beltrami {store.VERBS[kind]}`."
        )
    found = store.read_header(path, kind=kind).digest
    if spec.digest not in (None, found):
        raise DataError(
            f"the {kind} file {path} has changed since the configuration was made: it has digest {found[:16]} in place "
            f"of {str(spec.digest)[:16]}; put the old one back, or train again."
        )
    return replace(spec, path=str(path), digest=found)


def _check_names(settings: Sequence[str], group: str) -> None:
    """Refuse settings of other groups, and those that only a run has."""
    for name in (assignment.partition("=")[0].strip() for assignment in settings):
        first, _, inner = name.partition(".")
        if first != group or inner.partition(".")[0] in OF_RUNS:
            raise ValueError(f"`{name}` is not a setting of this command: it takes those of `{group}` except `kind`.")
