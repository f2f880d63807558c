"""Training on a user's graph in a terminal: the models that were tried, the result, and counts of predictions."""

import shlex
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from rich.console import Console
from rich.table import Table
from rich.text import Text

from beltrami.auto.baselines import BaselineResult
from beltrami.auto.portfolio import MEMBERS
from beltrami.auto.selection import LINEAR_SAYS, Attempt
from beltrami.data.graph_table import GraphTable
from beltrami.data.labelled_split import labelled
from beltrami.data.target import Targets
from beltrami.predict.predictions import ClassPredictions, NumberPredictions, Predictions
from beltrami.predict.predictor import NO_CALIBRATION, Predictor
from beltrami.report.fit_facts import (
    DIFFUSION,
    METRICS,
    calibration_facts,
    chosen_model,
    fit_results,
    gain_in_words,
    in_words,
    metric_name,
)
from beltrami.report.progress import display

SAYS = {
    "logistic regression": "the features, without the graph",
    "ridge regression": "the features, without the graph",
    "label propagation": "the graph and the labels, without features",
    DIFFUSION: LINEAR_SAYS,
}
MOST_CLASSES = 20  # rows of counts that are printed


def print_start(table: GraphTable, targets: Targets) -> None:
    """Print the size of a graph and of its labels in one line."""
    known, console = int(labelled(targets.y).sum()), graph_console()
    edges = "no edges (nearest neighbours are joined)" if table.edge_index is None else f"{table.num_edges:,} edges"
    what = "numbers" if targets.kind == "numbers" else f"{len(targets.names)} {targets.kind}"
    dropped = sum(count for rule, count in table.counts.items() if "dropped" in rule)
    rows = f"; {dropped:,} row{'s' * (dropped > 1)} dropped, see --check" if dropped else ""
    console.print(f"{table.source}: {table.num_nodes:,} nodes, {edges}, {known:,} labelled with {what}{rows}")


class TrialTable:
    """A table of baselines and models, one row printed as soon as each is trained.

    A progress line says what is being trained. Errors of numbers are in standard deviations of the
    labels here, and in their units in the result.
    """

    def __init__(self, kind: str, *, balanced: bool = False, fast: bool = False, quiet: bool = False) -> None:
        self.kind, self.quiet, self.console = kind, quiet, graph_console()
        self.metric = f"{'balanced ' if balanced else ''}{METRICS[kind]}"
        first = "ridge regression" if kind == "numbers" else "logistic regression"
        self.coming = [first, "label propagation", DIFFUSION, *([] if fast else MEMBERS)]
        self.rows, self.progress = 0, ExitStack()

    def __enter__(self) -> "TrialTable":
        self.shown = self.progress.enter_context(display(quiet=self.quiet))
        self._show()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.progress.close()

    def add(self, result: Attempt | BaselineResult) -> None:
        """Print a row, before the first one the header."""
        if not self.rows:
            unit = ", in standard deviations" if self.kind == "numbers" else ""
            self.console.print(Text(f"{self.metric} on the validation nodes{unit}:", "dim"))
            self.console.print(trial_row("trained", METRICS[self.kind], "seconds", "what it is", style="bold"))
        self.rows += 1
        if isinstance(result, BaselineResult):
            time = result.settings.get("time")
            note = "" if time is None else f"time {time:g}"
            row = result.name, in_words(result.validation, self.kind), f"{result.seconds:.1f}"
            says = SAYS[result.name]
        else:
            row = result.name, in_words(result.metric, self.kind), f"{result.seconds:.1f}"
            says, note = result.says, result.note
        says = f"{says} ({note})" if note else says
        self.console.print(trial_row(*row, says))
        self.coming = [name for name in self.coming if name != result.name]
        self._show()

    def _show(self) -> None:
        self.shown.status(f"training {self.coming[0]}" if self.coming else "calibrating")


def trial_row(name: str, metric: str, seconds: str, says: str, *, style: str = "") -> Table:
    """Return a row of the table of models; long texts continue below their beginning."""
    row = Table.grid(padding=(0, 2, 0, 0))
    for width, justify in ((19, "left"), (8, "right"), (7, "right")):
        row.add_column(width=width, justify=justify)  # type: ignore[arg-type]
    row.add_column(overflow="fold")
    row.add_row(*(Text(each, style) for each in (name, metric, seconds, says)))
    return row


def print_fit(predictor: Predictor, *, folder: Path) -> None:
    """Print the chosen model beside the baselines, how its confidence was calibrated, and what to type next."""
    kind, console = predictor.targets.kind, graph_console()
    chosen, says = chosen_model(predictor)
    console.print()
    console.print(Text.assemble((f"chosen: {chosen}", "bold"), f", {says}"))
    console.print(_results(fit_results(predictor), kind, metric_name(predictor)))
    console.print(gain_in_words(predictor))
    console.print()
    console.print(facts_table(calibration_facts(predictor)))
    if predictor.calibration.conformal is None:
        console.print(NO_CALIBRATION)
    console.print(f"saved in {folder}, with the predictions in predictions.csv", soft_wrap=True)
    unknown = (~labelled(predictor.targets.y)).nonzero()[:1, 0].tolist() or [0]
    node = shlex.quote(predictor.graph.ids[unknown[0]])
    console.print(f"next: beltrami explain {shlex.quote(str(folder))} {node}", soft_wrap=True)


def print_predictions(predictions: Predictions, *, path: Path) -> None:
    """Print counts of the predictions, what their sets promise, notes, and the files written."""
    console = graph_console()
    if isinstance(predictions, NumberPredictions):
        values = predictions.values if predictions.reached is None else predictions.values[predictions.reached]
        if len(values):
            low, middle, high = float(values.min()), float(values.median()), float(values.max())
            console.print(f"{len(values):,} numbers from {low:.4g} to {high:.4g}, median {middle:.4g}")
    else:
        assert isinstance(predictions, ClassPredictions)
        counts = _counts(predictions)
        console.print(Text("nodes by their prediction:" if predictions.exclusive else "nodes with each label:", "dim"))
        console.print(counts_table(counts))
        if predictions.sets is not None:
            console.print(f"mean size of a set: {float(predictions.sets.sum(1).double().mean()):.2f}")
    if predictions.reached is not None and not bool(predictions.reached.all()):
        console.print(f"nodes without a prediction, as no label reaches them: {int((~predictions.reached).sum()):,}")
    if predictions.guarantee is not None:
        console.print(predictions.guarantee.in_words())
    for note in predictions.notes:
        console.print(note)
    console.print(f"written to {path}, and what is known of it to {path.with_suffix('.json').name}")


def graph_console() -> Console:
    """Return a console on which the users' names are printed as they are."""
    return Console(highlight=False, markup=False, emoji=False)


def counts_table(counts: dict[str, int]) -> Table:
    """Return counts by name as rows, the first ``MOST_CLASSES`` of them."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(overflow="fold")
    table.add_column(justify="right", no_wrap=True)
    for name, count in list(counts.items())[:MOST_CLASSES]:
        table.add_row(Text(f"  {name}"), f"{count:,}")
    if len(counts) > MOST_CLASSES:
        table.add_row(f"  and {len(counts) - MOST_CLASSES:,} others", f"{sum(list(counts.values())[MOST_CLASSES:]):,}")
    return table


def facts_table(facts: dict[str, str]) -> Table:
    """Return facts as rows of two columns."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(Text(name, "dim"), Text(value))
    return table


def _counts(predictions: ClassPredictions) -> dict[str, int]:
    p = predictions.probabilities if predictions.reached is None else predictions.probabilities[predictions.reached]
    if not predictions.exclusive:
        return dict(zip(predictions.names, (p > 0.5).sum(0).tolist(), strict=True))
    found = Counter(p.argmax(1).tolist())
    return {name: found[c] for c, name in enumerate(predictions.names)}


def _results(rows: Mapping[str, tuple[float, float | None]], kind: str, metric: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    tested = any(test is not None for _, test in rows.values())
    for name in (metric, "validation", *(["test"] if tested else [])):
        table.add_column(name, justify="left" if name == metric else "right", no_wrap=True)
    for name, (validation, test) in rows.items():
        table.add_row(name, in_words(validation, kind), *([in_words(test, kind)] if tested else []))
    return table
