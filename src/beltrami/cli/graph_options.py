"""Options of the command line for a user's own graph, and their checks."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from beltrami.errors import UnknownName

AUTO, PRECOMPUTED = "auto", "precomputed"
UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}

Source = Annotated[
    str | None,
    Argument(
        help="A dataset's name (`beltrami datasets` lists them; by default digits), or a folder or file of your own.",
        metavar="SOURCE",
    ),
]
Nodes = Annotated[Path | None, Option(help="Own graph: the table of nodes, in place of SOURCE.")]
EdgeTable = Annotated[Path | None, Option("--edges", help="Own graph: the table of edges, in place of SOURCE.")]
Label = Annotated[str | None, Option(help="Own graph: the column to predict; several for several labels a node.")]
Id = Annotated[str | None, Option(help="Own graph: the column of the ids.")]
Features = Annotated[str | None, Option(help="Own graph: columns to use, separated by commas; else all others.")]
Weight = Annotated[str | None, Option(help="Own graph: the column of the edge weights.")]
SplitColumn = Annotated[str | None, Option(help="Own graph: the column that says train, val, calibration or test.")]
TaskName = Annotated[str | None, Option("--task", help="Own graph: classes, labels or numbers; else by the labels.")]
Budget = Annotated[str | None, Option(help="Recipe auto: time for training, such as 60s, 5m or 1h; 60s by default.")]
Fast = Annotated[bool, Option("--fast", help="Recipe auto: linear diffusion alone, in seconds.")]
Average = Annotated[
    bool, Option("--average", help="Recipe auto: average the models, weighted by validation, in place of the best one.")
]
Balanced = Annotated[bool, Option("--balanced", help="Own graph: every class counts the same, large or small.")]
Calibration = Annotated[
    float | None, Option(help="Recipe auto: share of the labels set aside for prediction sets; 0.2 by default.")
]
Check = Annotated[bool, Option("--check", help="Print what was understood and what a run needs; train nothing.")]


@dataclass(frozen=True)
class GraphOptions:
    """The options of ``train`` for own graphs, as they were given, and those for the recipe auto."""

    nodes: Path | None = None
    edges: Path | None = None
    label: str | None = None
    id: str | None = None
    features: str | None = None
    weight: str | None = None
    split_column: str | None = None
    task: str | None = None
    balanced: bool = False
    check: bool = False
    budget: str | None = None
    fast: bool = False
    average: bool = False
    calibration: float | None = None

    def check_dataset(self, name: str | None, recipe: str) -> None:
        """Refuse options that a named dataset does not have, and those of the recipe auto for other recipes."""
        remedy = f"leave it out for the dataset {name}" if name else "name your folder or file, or give `--nodes`"
        for option, value in vars(self).items():
            flag = f"--{option.replace('_', '-')}"
            if not _is_given(value):
                continue
            if option == "check" and recipe != AUTO:
                continue
            if option not in ("budget", "fast", "average", "calibration"):
                raise ValueError(f"`{flag}` is for a graph of your own: {remedy}.")
            if recipe != AUTO:
                raise ValueError(f"`{flag}` is for the recipe auto: add `--recipe auto`, or leave it out.")

    def fitting(self, seed: int) -> dict[str, Any]:
        """Return the seed and the options of the recipe auto that were given, as ``fit_graph`` takes them."""
        if self.fast and self.budget is not None:
            raise ValueError("`--fast` trains no portfolio and takes no `--budget`: leave one of them out.")
        if self.fast and self.average:
            raise ValueError("`--fast` trains one model, and `--average` averages several: leave one of them out.")
        if self.calibration is not None and not 0 <= self.calibration < 1:
            raise ValueError(f"`--calibration` takes a share from 0 to below 1; got {self.calibration:g}.")
        found: dict[str, Any] = {"seed": seed, "fast": self.fast, "average": self.average}
        if self.budget is not None:
            found["budget"] = read_duration(self.budget)
        if self.calibration is not None:
            found["calibration"] = self.calibration
        return found


def is_own_graph(source: str | None, nodes: Path | None, edges: Path | None) -> bool:
    """Return whether the arguments name a graph of the user's own; refuse what is neither that nor a dataset."""
    from beltrami.data import CATALOGUE

    if nodes is not None or edges is not None:
        if source is not None:
            raise ValueError(f"{source} is given beside `--nodes` or `--edges`: give one or the other.")
        return True
    if source is None or source in CATALOGUE:
        return False
    if Path(source).expanduser().exists():
        return True
    if Path(source).suffix or "/" in source:
        known = ", ".join(CATALOGUE)
        raise ValueError(f"there is no file or folder {source}: check its path, or name a dataset, one of {known}.")
    raise ValueError(f"{UnknownName('dataset', source, CATALOGUE)} There is no file or folder {source} either.")


def refuse_for_own_graph(recipe: str | None, options: Mapping[str, object]) -> None:
    """Refuse options that only datasets have, and every recipe but auto."""
    if recipe == PRECOMPUTED:
        raise ValueError(
            "`--recipe precomputed` takes a dataset or a graph folder, with graph.json: write the graph as one first."
        )
    if recipe not in (None, AUTO):
        raise ValueError(f"`--recipe {recipe}` is for datasets: a graph of your own is trained by auto, the default.")
    refuse_given(options, "is for datasets, and this is a graph of your own")


def refuse_for_auto(options: Mapping[str, object]) -> None:
    """Refuse options that the recipe auto does not have on a dataset."""
    refuse_given(options, "is for a single recipe, and auto tries several")


def refuse_for_rows(options: Mapping[str, object]) -> None:
    """Refuse options that the recipe precomputed does not have."""
    refuse_given(options, "is not for the recipe precomputed")


def refuse_for_check(options: Mapping[str, object]) -> None:
    """Refuse options that ``--check`` would ignore."""
    refuse_given(options, "is for training, and `--check` trains nothing")


def refuse_for_datasets_only(options: Mapping[str, object]) -> None:
    """Refuse options of ``encode`` and ``rewire`` that a graph folder does not have."""
    refuse_given(options, "is for datasets, and this is a graph folder")


def refuse_for_dataset(name: str, options: Mapping[str, object]) -> None:
    """Refuse options of ``encode`` and ``rewire`` that only a graph folder has."""
    refuse_given(
        {f"--{option}": value for option, value in options.items()}, f"is for graph folders, and {name} is none"
    )


def refuse_columns(options: Mapping[str, object], reason: str) -> None:
    """Refuse options that name columns, for a source that has none to name."""
    refuse_given(options, f"names a column of tables, and {reason}")


def refuse_given(options: Mapping[str, object], reason: str) -> None:
    """Refuse the first option, by its flag, that was given."""
    for name, value in options.items():
        if _is_given(value):
            raise ValueError(f"`{name}` {reason}: leave it out.")


def _is_given(value: object) -> bool:
    """Return whether an option was given; 0 is a value."""
    return value is not None and value is not False and value != []


def read_duration(text: str, *, option: str = "--budget") -> float:
    """Return the seconds of a duration such as ``60s``, ``5m``, ``1h`` or ``90``, which an option was given."""
    found = re.fullmatch(r"(\d+\.?\d*|\.\d+)\s*([smh]?)", text.strip().lower())
    if found is None or not float(found[1]) > 0:
        raise ValueError(f"`{option}` takes a time such as 60s, 5m or 1h; got {text!r}.")
    return float(found[1]) * UNITS[found[2]]


def run_name(source: str | None, options: GraphOptions) -> str:
    """Return the name of the run's folder: that of the folder or file, for nodes.* and edges.* that of their folder."""
    path = Path(source).expanduser() if source is not None else options.nodes or options.edges
    assert path is not None
    path = path.resolve()
    if path.is_dir():
        return path.name or "graph"
    return path.parent.name if path.stem.lower() in ("nodes", "edges") and path.parent.name else path.stem
