"""The report of ``--check`` in a terminal: what was understood of a user's graph, without training."""

import math
from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from beltrami.auto.estimate import CostEstimate
from beltrami.data.graph_summary import ColumnSummary, GraphSummary
from beltrami.data.graph_table import Dropped
from beltrami.data.labelled_graph import NEIGHBOURS
from beltrami.memory import free_memory
from beltrami.report.graph_report import counts_table, facts_table, graph_console

MOST_COLUMNS = 30  # columns that are listed
MOST_DROPS = 5  # dropped rows that are listed
KINDS = {"classes": "classes", "labels": "several labels a node", "numbers": "numbers"}


def print_check(summary: GraphSummary, estimate: CostEstimate) -> None:
    """Print the graph, its columns, dropped rows, labels and split, and an estimate of time and memory."""
    console = graph_console()
    _heading(console, summary.table.source, first=True)
    console.print(facts_table(_graph(summary)))
    _print_rules(console, summary.table.counts, summary.table.drops)
    _heading(console, "columns")
    _print_columns(console, summary)
    _heading(console, "labels")
    if summary.labels is None:
        console.print("no label column was found: name it with --label before training")
    else:
        console.print(facts_table(_labels(summary)))
        if summary.labels.counts:
            console.print(counts_table(dict(summary.labels.counts)))
        _heading(console, "split")
        console.print(facts_table(_split(summary)))
    _heading(console, "estimate")
    console.print(facts_table(_estimate(estimate)))


def _heading(console: Console, text: str, *, first: bool = False) -> None:
    if not first:
        console.print()
    console.print(Text(text, "bold"))


def _graph(summary: GraphSummary) -> dict[str, str]:
    table, edges = summary.table, summary.graph.edges.num_edges // 2
    facts = {"nodes": f"{table.num_nodes:,}", "edges": f"{edges:,}"}
    if table.edge_index is None:
        facts["edges"] += (
            f", between each node and its {NEIGHBOURS} nearest by the features, or fewer if that validates better: "
            "no edges were given"
        )
    if table.weight is not None:
        low, high = float(table.weight.min()), float(table.weight.max())
        facts["weights"] = f"from {low:.4g} to {high:.4g}" if len(table.weight) else "none"
    facts["components"] = f"{summary.components:,}, the largest of {summary.largest:,} nodes"
    facts["isolated nodes"] = f"{summary.isolated:,}"
    roles = ", ".join(f"{role}: {column}" for role, column in table.roles.items())
    return facts | ({"roles of columns": roles} if roles else {})


def _print_rules(console: Console, counts: dict[str, int], drops: Sequence[Dropped]) -> None:
    """Print how often each rule was applied, and the first dropped rows with file and line."""
    if not counts:
        return
    _heading(console, "rules applied")
    console.print(counts_table(dict(counts)))
    for drop in drops[:MOST_DROPS]:
        console.print(f"  {drop.file}, line {drop.line}: {drop.reason}")
    dropped = sum(count for rule, count in counts.items() if rule.endswith("dropped"))
    if dropped > MOST_DROPS:
        console.print(f"  and {dropped - MOST_DROPS:,} further rows")


def _print_columns(console: Console, summary: GraphSummary) -> None:
    total = summary.preprocessing.num_features
    if summary.preprocessing.nodes:
        console.print("no columns to learn from: every node has a feature of its own, which diffuses along the edges")
    if not summary.columns:
        return
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("column", "kind", "missing", "features", "preprocessing"):
        number = name in ("missing", "features")
        table.add_column(Text(name), justify="right" if number else "left", no_wrap=number, overflow="fold")
    for column in summary.columns[:MOST_COLUMNS]:
        row = (column.name, column.kind, f"{column.missing:,}", f"{column.features:,}", column.says)
        table.add_row(*map(Text, row))
    console.print(table)
    if len(summary.columns) > MOST_COLUMNS:
        console.print(_further(summary.columns[MOST_COLUMNS:]))
    if not summary.preprocessing.nodes:
        console.print(f"{total:,} features in all")


def _further(columns: Sequence[ColumnSummary]) -> str:
    kinds = Counter("left out" if column.features == 0 else f"of {column.kind}" for column in columns)
    listed = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())
    return f"and {len(columns):,} further columns: {listed}"


def _labels(summary: GraphSummary) -> dict[str, str]:
    labels, targets, nodes = summary.labels, summary.targets, summary.table.num_nodes
    assert labels is not None
    assert targets is not None
    facts = {
        "task": KINDS[targets.kind],
        "labelled nodes": f"{labels.known:,} of {nodes:,}, {100 * labels.known / nodes:.1f}%",
        "nodes to predict": f"{nodes - labels.known:,}",
    }
    if targets.kind == "classes":
        share = "-" if math.isnan(labels.homophily) else f"{100 * labels.homophily:.1f}%"
        facts["edge homophily"] = f"{share} of {labels.pairs:,} edges between labelled nodes join nodes of one class"
    return facts


def _split(summary: GraphSummary) -> dict[str, str]:
    sizes = {name: int(mask.sum()) for name, mask in summary.splits[0].masks.items()}
    folds, aside = len(summary.splits), sizes.get("calibration", 0)
    if folds > 1:
        known = sizes["train"] + sizes["val"]
        facts = {"training": f"{known:,} nodes, cross-validated in {folds} folds, as labels are few"}
    else:
        facts = {"training": f"{sizes['train']:,} nodes", "validation": f"{sizes['val']:,} nodes"}
    facts["calibration"] = f"{aside:,} nodes" if aside else "none: predictions will have no sets"
    return facts | ({"test": f"{sizes['test']:,} nodes"} if sizes["test"] else {})


def _estimate(found: CostEstimate) -> dict[str, str]:
    memory = found.memory / 2**30
    models = found.seconds - found.baselines
    parts = f", {_seconds(found.baselines)} of them for the baselines" if models else ""
    time = f"up to about {_seconds(found.seconds)}{parts}"
    return {"time": time, "memory": f"about {memory:.1f} GiB; {free_memory() / 2**30:.1f} GiB are free"}


def _seconds(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
