"""An explanation of a prediction in a terminal."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text
from torch import Tensor

from beltrami.predict.predictions import join_names
from beltrami.predict.shares import Explanation, NodeShare

UNKNOWN = "-"
METHODS = {
    "exact": "exact: the weights of edges are frozen, and the shares sum to the margin",
    "linearised": "linearised: the flow is not linear in its states; see the remainder",
    "integrated gradients": "integrated gradients over all inputs: the model has no flow to explain",
}


def print_explanation(
    explanation: Explanation,
    ids: Sequence[str],
    names: Sequence[str],
    *,
    y: Tensor | None = None,
    labelled: Tensor | None = None,
    count: int = 10,
) -> None:
    """Print the margin of a prediction, the nodes and edges with the largest shares, and the labels among them.

    Args:
        ids: the user's name of each node.
        names: the name of each class or label, or of the one number that is predicted.
        y: classes (n,), labels (n, labels) as a mask, or numbers (n,); read where ``labelled`` (n,) is true.
        count: the largest number of nodes, and of edges, to list.
    """
    console = Console(highlight=False)
    label = _Labels(names, y, labelled)
    console.print(Text.assemble((f"{ids[explanation.node]}: {names[explanation.predicted]}", "bold")))
    _print_sum(console, explanation, names)
    console.print()
    console.print(_nodes(explanation, ids, label, count))
    if explanation.edge_shares is not None:
        console.print()
        console.print(_edges(explanation, ids, count))
        console.print("[dim]what passes several edges counts at each: these do not sum to the margin[/]")
    if y is not None and labelled is not None and not y.is_floating_point():
        console.print()
        _print_agreement(console, explanation, ids, names[explanation.predicted], y, labelled)


def _print_sum(console: Console, explanation: Explanation, names: Sequence[str]) -> None:
    versus = "" if explanation.other is None else f" over {names[explanation.other]}"
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column()
    for _ in range(2):
        table.add_column(justify="right", no_wrap=True)
    rows = {
        f"margin{versus}": explanation.margin,
        "shares of all nodes": float(explanation.node_shares.sum()),
        "constant of the decoder" if explanation.method != "integrated gradients" else "constant": explanation.constant,
        "remainder": explanation.remainder,
    }
    for name, value in rows.items():
        table.add_row(Text(name, "dim"), _number(value), _percentage(value, explanation))
    console.print(table)
    console.print(Text(METHODS[explanation.method], "dim"))


def _nodes(explanation: Explanation, ids: Sequence[str], label: "_Labels", count: int) -> Table:
    table = _table("from node", "label", "share", "of margin", "hops")
    hops = explanation.hops()
    for node, share in explanation.top_nodes(count):
        steps = int(hops[node])
        row = (ids[node], label(node), _number(share), _percentage(share, explanation))
        table.add_row(*map(Text, row), UNKNOWN if steps < 0 else str(steps))
    return table


def _edges(explanation: Explanation, ids: Sequence[str], count: int) -> Table:
    table = _table("along edge", "", "share", "of margin")
    for j, i, share in explanation.top_edges(count):
        row = (ids[j], f"-> {ids[i]}", _number(share), _percentage(share, explanation))
        table.add_row(*map(Text, row))
    return table


def _print_agreement(
    console: Console, explanation: Explanation, ids: Sequence[str], name: str, y: Tensor, labelled: Tensor
) -> None:
    """Print how many labelled nodes have the predicted label and how many another, with their shares."""
    found = explanation.agreement(y, labelled)
    contributing = len(explanation.contributing())
    console.print(f"labelled nodes among the {contributing:,} that have 90% of the absolute shares:")
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(justify="right")
    for nodes, what in ((found.agree, f"agree with {name}"), (found.disagree, "have another label")):
        share = sum(each.share for each in nodes)
        listed = _list(nodes, ids)
        table.add_row(f"{len(nodes):,}", Text(what), f"{_number(share)}", Text(listed, "dim"))
    console.print(table)


def _list(nodes: Sequence[NodeShare], ids: Sequence[str], most: int = 3) -> str:
    shown = ", ".join(ids[each.node] for each in nodes[:most])
    return f"{shown}, ..." if len(nodes) > most else shown


class _Labels:
    """The label of a node as text."""

    def __init__(self, names: Sequence[str], y: Tensor | None, labelled: Tensor | None) -> None:
        self.names, self.y, self.labelled = names, y, labelled

    def __call__(self, node: int) -> str:
        if self.y is None or self.labelled is None or not bool(self.labelled[node]):
            return UNKNOWN
        if self.y.dim() == 2:
            return join_names([self.names[c] for c in self.y[node].nonzero()[:, 0].tolist()])
        return _number(float(self.y[node])) if self.y.is_floating_point() else self.names[int(self.y[node])]


def _table(*names: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in names:
        number = name in ("share", "of margin", "hops")
        table.add_column(name, justify="right" if number else "left", no_wrap=number, overflow="fold")
    return table


def _number(value: float) -> str:
    return f"{value:+z.4f}"


def _percentage(share: float, explanation: Explanation) -> str:
    return f"{100 * share / explanation.margin:z.1f}%" if explanation.margin else UNKNOWN
