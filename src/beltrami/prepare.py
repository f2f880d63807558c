"""Prepare: positions and rewired graphs made ahead of a run, into files that runs can name."""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from torch import Tensor

from beltrami.config.build import ENCODINGS, build_encoding
from beltrami.config.build_stencil import LOOKING, STENCILS, build_stencil
from beltrami.config.parse import override
from beltrami.config.spec import PositionConfig, RunConfig, StencilConfig
from beltrami.data import CATALOGUE, Dataset, Progress
from beltrami.data.cache import cached_positions, positions_are_cached
from beltrami.data.store import (
    BALL,
    POSITIONS,
    STENCIL,
    Provenance,
    load_positions,
    read_header,
    save_positions,
    save_stencil,
)
from beltrami.errors import UnknownName
from beltrami.geometry import PoincareBall
from beltrami.graph import Edges
from beltrami.graph.statistics import Rewiring
from beltrami.joint import Joint
from beltrami.run import COMPONENTS, in_chart, read_dataset, space_of

POSITION_SETTINGS = ("restart", "top", "time", "channels", "walk_length", "tuned")
STENCIL_SETTINGS = ("k", "radius", "least", "restart", "on", "symmetric", "weighted", "loops")


@dataclass(frozen=True)
class Encoded:
    """Positions as they were written, how long they took, and whether they were known already."""

    positions: Tensor
    seconds: float
    from_cache: bool


@dataclass(frozen=True)
class Rewired:
    """What a stencil made of a graph, and how long it took."""

    rewiring: Rewiring
    seconds: float


def position_settings(encoding: str, *, seed: int = 0, settings: Sequence[str] = ()) -> PositionConfig:
    """The settings of positions to be written; what names nothing or fits nothing is refused."""
    if encoding not in ENCODINGS or encoding == "none":
        raise UnknownName("encoding", encoding, set(ENCODINGS) - {"none"})
    _check_names(settings, "position", POSITION_SETTINGS)
    config = override(RunConfig("", "", position=PositionConfig(encoding, seed=seed)), settings).position
    build_encoding(config)
    return config


def encode(
    dataset: str,
    config: PositionConfig,
    path: Path,
    *,
    component: str = "largest",
    device: str = "cpu",
    progress: Progress | None = None,
) -> Encoded:
    """Write the positions of a dataset's nodes to ``path``, for ``position.file``."""
    encoding = build_encoding(config, progress=progress)
    if encoding is None:
        raise ValueError("`encode` needs an encoding; got none.")
    edges = _graph(read_dataset(dataset, component=component, progress=progress)).to(device)
    start = time.perf_counter()
    known = positions_are_cached(encoding, edges, seed=config.seed)
    positions = cached_positions(encoding, edges, seed=config.seed)
    seconds = time.perf_counter() - start
    by = json.dumps({"encoding": encoding.describe(), "seed": config.seed})
    save_positions(path, positions, edges, Provenance(POSITIONS, dataset, component, by, space_of(encoding)))
    return Encoded(positions, seconds, known)


def stencil_settings(kind: str, *, positions: Path | None = None, settings: Sequence[str] = ()) -> StencilConfig:
    """The settings of a graph to be written; what names nothing or fits nothing is refused.

    knn and radius look at the positions if there are any, else at the features; no loops are added unless asked for.
    """
    if kind not in STENCILS:
        raise UnknownName("stencil", kind, STENCILS)
    _check_names(settings, "stencil", STENCIL_SETTINGS)
    start = StencilConfig(kind, on="x" if positions is None else "u", loops=0.0)
    config = override(RunConfig("", "", stencil=start), settings).stencil
    if positions is not None and (kind not in LOOKING or config.on != "u"):
        raise ValueError("`--positions` is what knn and radius look at with `stencil.on=u`: leave it out here.")
    if kind in LOOKING and config.on == "z":
        raise ValueError("a graph is rewired by features, `stencil.on=x`, or by positions, `on=u`; z is for `train`.")
    if kind in LOOKING and config.on == "u" and positions is None:
        raise ValueError("`stencil.on=u` looks at positions: name a file that `beltrami encode` wrote, `--positions`.")
    build_stencil(config, Joint(1, 1))
    return config


def rewire(
    dataset: str,
    config: StencilConfig,
    path: Path,
    *,
    positions: Path | None = None,
    component: str = "largest",
    device: str = "cpu",
    progress: Progress | None = None,
) -> Rewired:
    """Write the graph that a stencil makes of a dataset's to ``path``, for ``stencil.file``.

    Args:
        dataset: its name.
        config: the stencil.
        path: where to.
        positions: a file of :func:`encode`, for stencils that look at u.
        component: ``largest`` or ``all``.
        device: where to compute.
        progress: told of downloads.
    """
    header = None if positions is None else read_header(positions, kind=POSITIONS)
    data = read_dataset(dataset, component=component, progress=progress)
    edges = _graph(data)
    z, joint, ball = _state(data, edges, positions)
    start = time.perf_counter()
    mesh = build_stencil(config, joint, ball=ball)(z.to(device), edges.to(device)).to("cpu")
    seconds = time.perf_counter() - start
    by = json.dumps({"stencil": asdict(config), "positions": None if header is None else header.digest})
    save_stencil(path, mesh, edges, Provenance(STENCIL, dataset, component, by))
    return Rewired(Rewiring.of(edges, mesh, data.y), seconds)


def check_dataset(name: str, *, component: str) -> None:
    """Refuse the name of no dataset or component, before data are read."""
    if name not in CATALOGUE:
        raise UnknownName("dataset", name, CATALOGUE)
    if component not in COMPONENTS:
        raise UnknownName("component", component, COMPONENTS)


def _graph(data: Dataset) -> Edges:
    return Edges.build(data.edge_index, num_nodes=data.num_nodes)


def _state(data: Dataset, edges: Edges, positions: Path | None) -> tuple[Tensor, Joint, PoincareBall | None]:
    """What a stencil looks at, as if it were the state of a model: features alone, or positions alone."""
    if positions is None:
        return data.x, Joint(0, data.num_features), None
    found, made = load_positions(positions, edges)
    u = in_chart(found, made.space).to_dense()
    return u, Joint(u.shape[1], 0), PoincareBall() if made.space == BALL else None


def _check_names(settings: Sequence[str], group: str, names: Sequence[str]) -> None:
    known = [f"{group}.{name}" for name in names]
    for assignment in settings:
        name = assignment.partition("=")[0].strip()
        if name not in known:
            raise UnknownName("setting here", name, known)
