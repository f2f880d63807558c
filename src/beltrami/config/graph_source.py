"""The graph folder of a run: recorded in its configuration with a digest, and opened again."""

from collections.abc import Sequence
from pathlib import Path

from beltrami.config.spec_rows import GraphFolderSpec
from beltrami.data.graph_folder import GraphFolder, is_graph_folder
from beltrami.errors import DataError
from beltrami.scale.diffused_rows import graph_digest

ARRAYS = ("ptr", "index", "weight", "x", "y", "role")  # of a graph folder that every run depends on
WITH_POSITIONS = (*ARRAYS, "pos")


def folder_spec(graph: GraphFolder, *, arrays: Sequence[str] = ARRAYS) -> GraphFolderSpec:
    """Return the settings that name a graph folder, with the digest of its files, for which they are read once."""
    return GraphFolderSpec(path=str(graph.path.resolve()), digest=graph_digest(graph, arrays))


def open_recorded(
    spec: GraphFolderSpec, *, graph: GraphFolder | None = None, arrays: Sequence[str] = ARRAYS
) -> GraphFolder:
    """Return the graph folder of a run; one that is not in its place, or that has changed, is refused. ``graph``: the
    folder, if it is open."""
    if graph is None and not is_graph_folder(Path(spec.path)):
        raise DataError(f"the graph folder of the run is not at {spec.path}: move it back, or put a link to it there.")
    graph = GraphFolder.open(Path(spec.path)) if graph is None else graph
    if graph_digest(graph, arrays) != spec.digest:
        raise DataError(f"{graph.path} is not as it was when the run began: restore its files, or train again.")
    return graph
