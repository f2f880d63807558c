"""What was understood of a user's graph before training: columns, components, labels and the split."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from beltrami.data.dataset import Split
from beltrami.data.graph_table import GraphTable
from beltrami.data.labelled_graph import LabelledGraph
from beltrami.data.labelled_split import CALIBRATION, labelled, split_labels
from beltrami.data.preprocess import Preprocessing
from beltrami.data.table import Column, Numbers, Words
from beltrami.data.target import Targets, read_targets
from beltrami.graph import Edges
from beltrami.graph.statistics import component_of


@dataclass(frozen=True)
class ColumnSummary:
    """A column of the node table: numbers or words, the missing values, the features it becomes and why, in words."""

    name: str
    kind: str
    missing: int
    features: int
    says: str


@dataclass(frozen=True)
class LabelSummary:
    """The labels of a graph.

    ``known``: labelled nodes. ``counts``: the nodes of each class or label, empty for numbers. ``pairs``: edges between
    two labelled nodes, for classes; ``homophily``: the share of these whose ends have the same class, NaN without any.
    """

    known: int
    counts: Mapping[str, int] = field(default_factory=dict)
    pairs: int = 0
    homophily: float = float("nan")


@dataclass(frozen=True, eq=False)
class GraphSummary:
    """A graph as training would take it, and what can be said of it without training.

    ``labels`` is None and ``splits`` are empty if no label column was found. ``components``: the number of connected
    components, ``largest`` the nodes of the largest one, ``isolated`` the nodes without an edge.
    """

    table: GraphTable
    graph: LabelledGraph
    preprocessing: Preprocessing
    columns: tuple[ColumnSummary, ...]
    labels: LabelSummary | None
    splits: tuple[Split, ...]
    components: int
    largest: int
    isolated: int

    @property
    def targets(self) -> Targets | None:
        return self.graph.targets


def summarise(
    table: GraphTable, *, task: str | None = None, calibration: float = CALIBRATION, seed: int = 0
) -> GraphSummary:
    """Return the summary of a graph; arguments are those of :func:`beltrami.auto.fit_graph.fit_graph`."""
    targets = read_targets(table.labels, kind=task) if table.labels else None
    preprocessing = Preprocessing.learn(table.columns, table.x, ids=table.ids)
    graph = LabelledGraph.of_table(table, preprocessing, targets)
    splits: tuple[Split, ...] = ()
    if targets is not None:
        splits = split_labels(targets.y, seed=seed, calibration=calibration, column=table.split)
    sizes = torch.bincount(component_of(graph.edges))
    return GraphSummary(
        table,
        graph,
        preprocessing,
        columns_of(table, preprocessing),
        None if targets is None else labels_of(targets, graph.edges),
        splits,
        components=len(sizes),
        largest=int(sizes.max()),
        isolated=int((_degrees(graph.edges) == 0).sum()),
    )


def labels_of(targets: Targets, edges: Edges) -> LabelSummary:
    """Return the counts of the labels, and for classes the homophily of edges between labelled nodes."""
    known = labelled(targets.y)
    count = int(known.sum())
    if targets.kind == "numbers":
        return LabelSummary(count)
    if targets.kind == "labels":
        sums = targets.y[known].sum(0).long().tolist()
        return LabelSummary(count, dict(zip(targets.names, sums, strict=True)))
    counts = torch.bincount(targets.y[known], minlength=len(targets.names)).tolist()
    j, i = edges.edge_index
    both = known[j] & known[i] & (j < i)
    pairs, same = int(both.sum()), int((both & (targets.y[j] == targets.y[i])).sum())
    share = same / pairs if pairs else float("nan")
    return LabelSummary(count, dict(zip(targets.names, counts, strict=True)), pairs, share)


def columns_of(table: GraphTable, preprocessing: Preprocessing) -> tuple[ColumnSummary, ...]:
    """Return what preprocessing makes of each column; a feature matrix counts as one column."""
    rules = preprocessing.numbers
    if table.x is not None:
        kept, given = len(rules.kept) + len(rules.flagged), table.x.shape[1]
        constant = f"; {given - len(rules.kept):,} constant columns left out" if given > len(rules.kept) else ""
        says = ("rows of counts scaled to one length" if rules.kind == "counts" else "each column scaled") + constant
        return (ColumnSummary("x", f"{given:,} numbers", 0, kept, says),)
    words = {rule.name: rule.words for rule in preprocessing.words}
    kept_names, flagged = {rules.names[c] for c in rules.kept}, {rules.names[c] for c in rules.flagged}
    found = []
    for name, column in table.columns.items():
        if isinstance(column, Words):
            found.append(_words(name, column, words.get(name, ())))
        else:
            found.append(_numbers(name, column, name in kept_names, name in flagged, counts=rules.kind == "counts"))
    return tuple(found)


def _words(name: str, column: Words, used: tuple[str, ...]) -> ColumnSummary:
    missing, distinct = int((column.codes < 0).sum()), len(np.unique(column.codes[column.codes >= 0]))
    if used:
        rest = f", the most frequent of {distinct:,} words" if distinct > len(used) else ""
        says = f"one feature for each word{rest}"
    elif distinct + bool(missing) < 2:
        says = _single(distinct)
    else:
        says = f"left out: {distinct:,} different words in {len(column):,} rows"
    return ColumnSummary(name, "words", missing, len(used), says)


def _numbers(name: str, column: Column, kept: bool, flagged: bool, *, counts: bool) -> ColumnSummary:
    assert isinstance(column, Numbers)
    missing = int((~np.isfinite(column.values)).sum())
    present = column.values[np.isfinite(column.values)]
    if kept and counts:
        says = "a count, scaled with its row" + ("; 0 where missing" if missing else "")
    elif kept:
        says = "scaled" + ("; median where missing, and a feature that says where" if flagged else "")
    elif flagged:
        says = "one value: a feature says where it is missing"
    else:
        says = _single(len(np.unique(present)))
    return ColumnSummary(name, "numbers", missing, int(kept) + int(flagged), says)


def _single(distinct: int) -> str:
    return "left out: the same value in every row" if distinct else "left out: every value is missing"


def _degrees(edges: Edges) -> Tensor:
    return torch.bincount(edges.edge_index[1], minlength=edges.num_nodes)
