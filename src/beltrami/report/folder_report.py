"""Graph folders in a terminal: what was written, and which rows of tables were dropped."""

from collections.abc import Mapping
from pathlib import Path

from beltrami.data.graph_folder import GraphFolder
from beltrami.external.table_convert import Converted
from beltrami.report.terminal import print_facts

LISTED = 3  # dropped rows that are printed


def print_conversion(found: Converted) -> None:
    """Print the graph, the rules that were applied and the first rows that were dropped."""
    rules = {rule: f"{count:,}" for rule, count in found.log.counts.items()}
    drops = [f"{drop.file}, {drop.line}: {drop.reason}" for drop in found.log.drops[:LISTED]]
    print_folder(found.folder, {**rules, **({"for example": "; ".join(drops)} if drops else {})})


def print_folder(folder: GraphFolder, further: Mapping[str, str] | None = None) -> None:
    """Print the size of a graph folder."""
    arrays = [name for name in ("weight", "x", "pos", "y", "role") if getattr(folder, name) is not None]
    facts = {
        "nodes": f"{folder.num_nodes:,}",
        "directed edges": f"{folder.num_edges:,}",
        "features": f"{folder.num_features:,}",
        "arrays": ", ".join(("ptr", "index", *arrays)),
    }
    print_facts({**facts, **(further or {})}, saved=[folder.path])


def print_arrays(shapes: Mapping[Path, tuple[int, ...]], *, seconds: float) -> None:
    """Print the shapes of array files and the time it took to write them."""
    facts = {path.name: " x ".join(f"{size:,}" for size in shape) for path, shape in shapes.items()}
    print_facts({**facts, "time": f"{seconds:.1f} s"}, saved=list(shapes))
