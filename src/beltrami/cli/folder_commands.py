"""The command ``convert``, and ``encode`` and ``rewire`` for graph folders, which need not fit into memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

import beltrami.cli.graph_options as own

if TYPE_CHECKING:
    from beltrami.precompute_folder import Budget

FolderSource = Annotated[
    str | None, Argument(help="A dataset's name, a folder of tables, or an OGB folder.", metavar="SOURCE")
]
Memory = Annotated[str | None, Option(help="Graph folder: memory to use, such as 16GiB; 4GiB by default.")]
Tolerance = Annotated[float | None, Option(help="Graph folder: threshold of push for ppr and digl; 1e-4 by default.")]


@dataclass(frozen=True)
class FolderOptions:
    """The options of ``encode`` and ``rewire`` for graph folders, as they were given."""

    memory: str | None
    tolerance: float | None

    def budget(self) -> "Budget":
        """Return the bytes and the tolerance, or their defaults."""
        from beltrami.precompute_folder import TOLERANCE, Budget

        return Budget(read_budget(self.memory), TOLERANCE if self.tolerance is None else self.tolerance)


def convert(
    out: Annotated[Path, Option(help="The graph folder to write; new or empty.")],
    source: FolderSource = None,
    nodes: own.Nodes = None,
    edges: own.EdgeTable = None,
    label: own.Label = None,
    id: own.Id = None,
    features: own.Features = None,
    weight: own.Weight = None,
    split_column: own.SplitColumn = None,
    memory: Annotated[str | None, Option(help="Memory to use, such as 16GiB; 4GiB by default.")] = None,
) -> None:
    """Write a graph folder: arrays of a graph that need not fit into memory.

    Tables of nodes and edges (CSV, TSV, edge lists, Parquet; also `.csv.gz`) are read in chunks and sorted on the disk,
    by the rules of `beltrami train`. Features must be numbers. The folder also holds `ids.csv` and `names.json`.
    Raw folders of OGB, of tables or of npz archives as for ogbn-papers100M, are read in chunks too.

    Examples:
    - `beltrami convert --nodes nodes.csv --edges edges.csv --label class --out my-graph`
    - `beltrami convert --edges links.edgelist --out my-graph --memory 8GiB`
    - `beltrami convert ogbn_papers100M --out papers --memory 16GiB`
    - `beltrami convert cora --out cora-folder`
    """
    from beltrami.data import CATALOGUE, load
    from beltrami.data.graph_folder import check_new_folder, write_graph_folder
    from beltrami.data.graph_table import DropLog
    from beltrami.data.roles import Roles
    from beltrami.external.ogb_convert import convert_ogb, is_ogb_folder
    from beltrami.external.table_convert import Converted, convert_tables, find_tables
    from beltrami.report.folder_report import print_conversion
    from beltrami.report.progress import display

    budget = read_budget(memory)
    columns = {"--label": label, "--id": id, "--features": features, "--weight": weight, "--split-column": split_column}
    if source is not None and (nodes is not None or edges is not None):
        raise ValueError(f"{source} is given beside `--nodes` or `--edges`: give one or the other.")
    place = None if source is None else Path(source).expanduser()
    is_ogb = place is not None and is_ogb_folder(place)
    if is_ogb or source in CATALOGUE:
        own.refuse_columns(columns, f"{source} has its own columns")
    elif place is not None:
        nodes, edges = find_tables(place)
    elif edges is None:
        raise ValueError("`convert` needs a table of edges: give `--edges`.")
    check_new_folder(out)
    with display("converting") as shown:
        if place is not None and is_ogb:
            found = convert_ogb(place, out, memory=budget, progress=shown.update)
        elif edges is not None:
            roles = Roles(label, id, features, weight, split_column)
            found = convert_tables(nodes, edges, out, roles=roles, memory=budget, progress=shown.update)
        else:
            dataset = load(str(source), progress=shown.update)
            found = Converted(write_graph_folder(out, dataset, dataset.published), DropLog())
    print_conversion(found)


def encode_graph_folder(
    path: Path,
    encoding: str,
    out: Path,
    *,
    seed: int | None,
    settings: Sequence[str],
    options: FolderOptions,
) -> None:
    """Write positions of a graph folder, for ``encode``."""
    from beltrami import precompute, precompute_folder
    from beltrami.report.folder_report import print_arrays
    from beltrami.report.progress import display

    spec = precompute.position_settings(encoding, seed=seed, settings=settings)
    budget = options.budget()
    with display(f"{path.name} / {encoding}") as shown:
        found = precompute_folder.encode_folder(path, spec, out, budget=budget, progress=shown.update)
    print_arrays(found.shapes, seconds=found.seconds)


def rewire_graph_folder(
    path: Path,
    stencil: str,
    out: Path,
    *,
    positions: Path | None,
    settings: Sequence[str],
    options: FolderOptions,
) -> None:
    """Write the graph that a stencil makes of a graph folder, for ``rewire``."""
    from beltrami import precompute, precompute_folder
    from beltrami.report.folder_report import print_folder
    from beltrami.report.progress import display

    spec = precompute.stencil_settings(stencil, positions=positions, settings=settings)
    budget = options.budget()
    with display(f"{path.name} / {stencil}") as shown:
        folder = precompute_folder.rewire_folder(
            path, spec, out, positions=positions, budget=budget, progress=shown.update
        )
    print_folder(folder)


def is_folder(source: str | None) -> bool:
    """Return whether an argument names a graph folder and no dataset."""
    from beltrami.data import CATALOGUE
    from beltrami.data.graph_folder import is_graph_folder

    return source is not None and source not in CATALOGUE and is_graph_folder(Path(source).expanduser())


def read_budget(memory: str | None) -> int:
    """Return the bytes of ``--memory``."""
    from beltrami.memory import parse_bytes
    from beltrami.precompute_folder import MEMORY

    return MEMORY if memory is None else parse_bytes(memory)
