"""The workload of a graph that is named, in a folder, or given by its sizes alone."""

from pathlib import Path

from beltrami.config import RunConfig, load_recipe, override
from beltrami.config.run_cost import Sizes, position_columns
from beltrami.data import CATALOGUE
from beltrami.data.graph_folder import GraphFolder, is_graph_folder
from beltrami.errors import DataError
from beltrami.planner.workload import Workload
from beltrami.run_streamed import streamed_config

LIVE = ("flow.kind=live", "scheme.kind=constant", "scheme.solver=rk4", "scheme.dt=1")
CLASSES = 10  # where nothing says how many there are; they hardly count


def workload_of(source: str, *, live: bool = False) -> Workload:
    """Return the workload of a dataset by recipe ``blend``, or of a graph folder by its default recipe."""
    folder = Path(source).expanduser()
    if is_graph_folder(folder):
        graph = GraphFolder.open(folder)
        sizes = Sizes(graph.num_nodes, graph.num_edges, graph.num_features, num_classes=CLASSES)
        return _workload(streamed_config(folder), sizes, live=live)
    if source not in CATALOGUE:
        raise DataError(
            f"{source} is neither a dataset nor a graph folder: `beltrami datasets` lists datasets, `beltrami convert` "
            "writes graph folders, and `--nodes`, `--edges` and `--features` need no files."
        )
    facts, config = CATALOGUE[source], load_recipe("blend", source)
    positions = position_columns(config.position, facts.nodes)
    return _workload(config, Sizes(facts.nodes, 2 * facts.edges, facts.features, positions, facts.classes), live=live)


def workload_of_sizes(nodes: int, edges: int, features: int, *, live: bool = False) -> Workload:
    """Return the workload of a graph of so many nodes, undirected edges and features, by the recipe of folders."""
    if min(nodes, edges, features) < 1:
        raise ValueError(f"a plan needs at least one node, edge and feature; got {nodes}, {edges} and {features}.")
    sizes = Sizes(nodes, 2 * edges, features, num_classes=CLASSES)
    return _workload(streamed_config(Path("graph")), sizes, live=live)


def _workload(config: RunConfig, sizes: Sizes, *, live: bool) -> Workload:
    return Workload.of(override(config, LIVE) if live else config, sizes)
