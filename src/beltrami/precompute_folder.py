"""Positions and rewired graphs of graph folders, by the settings of ``encode`` and ``rewire``, in bounded memory."""

import time
from pathlib import Path
from typing import NamedTuple

import torch

from beltrami.config.build import build_encoding
from beltrami.config.spec_graph import PositionSpec, StencilSpec
from beltrami.data import Progress
from beltrami.data.array_file import Array, open_array
from beltrami.data.graph_folder import GraphFolder
from beltrami.errors import DataError
from beltrami.external.pagerank_rows import ENTRIES, INDEX, write_pagerank_rows
from beltrami.external.rewired_graph import write_diffusion_graph, write_nearest_graph
from beltrami.external.walk_positions import POSITIONS, write_deepwalk
from beltrami.position import DeepWalk

MEMORY = 4 * 2**30  # bytes, the default budget
TOLERANCE = 1e-4  # of push, the default


class Budget(NamedTuple):
    """The memory that preprocessing may use, in bytes, and the tolerance of push, which decides how long it takes."""

    memory: int = MEMORY
    tolerance: float = TOLERANCE


DEFAULT = Budget()


class WrittenArrays(NamedTuple):
    """The array files that were written, with their shapes, and the seconds this took."""

    shapes: dict[Path, tuple[int, ...]]
    seconds: float


def encode_folder(
    path: Path,
    spec: PositionSpec,
    out: Path,
    *,
    budget: Budget = DEFAULT,
    progress: Progress | None = None,
) -> WrittenArrays:
    """Write positions of the nodes of a graph folder as npy arrays to the folder ``out``, which may be the same.

    ``ppr`` writes the largest entries of each row, ppr-index.npy and ppr-value.npy, by push;
    ``deepwalk`` writes pos.npy, which a graph folder keeps as its positions.
    """
    start, folder = time.perf_counter(), GraphFolder.open(path)
    encoding = build_encoding(spec, progress=progress)
    if spec.kind == "ppr":
        if spec.top is None:
            raise ValueError("whole rows of PageRank do not fit into memory: set `position.top` to a number.")
        settings = {"restart": spec.restart, "tolerance": budget.tolerance}
        write_pagerank_rows(folder, out, top=spec.top, **settings, memory=budget.memory, progress=progress)
        names = [INDEX, ENTRIES]
    elif isinstance(encoding, DeepWalk) and spec.kind == "deepwalk":
        generator = torch.Generator().manual_seed(spec.seed)
        write_deepwalk(folder, out, encoding, generator=generator, memory=budget.memory)
        names = [POSITIONS]
    else:
        raise ValueError(f"`--encoding {spec.kind}` needs the graph in memory; graph folders have ppr and deepwalk.")
    return WrittenArrays({out / name: open_array(out / name).shape for name in names}, time.perf_counter() - start)


def rewire_folder(
    path: Path,
    spec: StencilSpec,
    out: Path,
    *,
    positions: Path | None = None,
    budget: Budget = DEFAULT,
    progress: Progress | None = None,
) -> GraphFolder:
    """Write the graph that a stencil makes of a graph folder to a new graph folder, with the same nodes.

    ``digl`` takes push and writes every edge in both directions; ``knn`` looks at the array file
    ``positions`` or at the features.
    """
    folder = GraphFolder.open(path)
    if getattr(spec, "loops", 0):
        raise ValueError("`stencil.loops` is a setting of training: a graph folder is written without added loops.")
    if spec.kind == "digl":
        settings = {"restart": spec.restart, "tolerance": budget.tolerance}
        return write_diffusion_graph(
            folder, out, k=spec.k, **settings, weighted=spec.weighted, memory=budget.memory, progress=progress
        )
    if spec.kind == "knn":
        vectors = _vectors(folder, positions)
        return write_nearest_graph(
            folder, vectors, out, k=spec.k, symmetric=spec.symmetric, memory=budget.memory, progress=progress
        )
    raise ValueError(f"`--stencil {spec.kind}` needs the graph in memory; graph folders have digl and knn.")


def _vectors(folder: GraphFolder, positions: Path | None) -> Array:
    if positions is None:
        if folder.x is None:
            raise DataError(f"{folder.path} has no features, x.npy: name an array file with `--positions`.")
        return folder.x
    vectors = open_array(positions)
    if vectors.ndim != 2 or len(vectors) != folder.num_nodes:
        wanted = f"({folder.num_nodes}, channels), a row for each node"
        raise DataError(f"{positions} has shape {vectors.shape}; it must have {wanted}.")
    return vectors
