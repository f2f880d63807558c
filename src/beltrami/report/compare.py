"""The page on which runs stand side by side."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy

from beltrami.report.class_scores import judged_nodes, known_labels
from beltrami.report.figure import Figure, Line
from beltrami.report.figure_axes import number_text
from beltrami.report.markup import table, value_text
from beltrami.report.node_tables import confidence, node_label, node_prediction
from beltrami.report.page import figure_grid
from beltrami.report.page_shell import html_page, page_main
from beltrami.report.run_data import PARTS, SCORE_ORDER, Integers, RunData
from beltrami.report.run_figures import percent, score_axis

COUNT = 30  # nodes in the table of disagreements


def compare_page(runs: Sequence[RunData]) -> str:
    """Return the page that compares two or more runs that predict the same kind of thing."""
    figures, names = compare_figures(runs), run_names(runs)
    found = {
        "scores": ("Scores", _scores(runs, names)),
        "curves": ("Curves", figure_grid(figures)),
        "settings": ("Settings that differ", _settings(runs, names)),
        "nodes": ("Nodes on which the runs disagree", _nodes(runs, names)),
        "summary": ("Summaries", _facts(runs, names)),
    }
    title = f"{len(runs)} runs compared"
    head = f'<header><div><p class="kicker">beltrami compare</p><h1>{title}</h1></div></header>\n'
    return html_page(f"{title} \u2013 beltrami", head + page_main(found))


def run_names(runs: Sequence[RunData]) -> list[str]:
    """Return a different name for each run: its title, or its folder where titles are equal, or a number as well."""
    titles = Counter(run.title for run in runs)
    names = [run.title if titles[run.title] == 1 else run.folder for run in runs]
    count = Counter(names)
    return [name if count[name] == 1 else f"{name} ({place})" for place, name in enumerate(names, start=1)]


def same_graph(a: RunData, b: RunData) -> bool:
    """Return whether two runs have the same nodes and the same classes."""
    return list(a.nodes.ids) == list(b.nodes.ids) and list(a.names) == list(b.names)


def same_split(a: RunData, b: RunData) -> bool:
    """Return whether the same nodes are in the same parts of the split."""
    return same_graph(a, b) and numpy.array_equal(a.nodes.part, b.nodes.part)


def compare_figures(runs: Sequence[RunData]) -> list[Figure]:
    """Return the curves of two or more runs that predict the same kind of thing, in common axes."""
    if len(runs) < 2:
        raise ValueError(f"a comparison needs at least two runs; got {len(runs)}.")
    kinds = {run.kind for run in runs}
    if len(kinds) > 1:
        raise ValueError(
            f"runs that predict {' and '.join(sorted(kinds))} cannot be compared: choose runs of one kind."
        )
    return list(_curves(runs, run_names(runs)))


def disagreements(runs: Sequence[RunData]) -> Integers:
    """Return the nodes at which predictions differ, those with the most confident predictions first; for numbers all
    nodes, those with the most different predictions first."""
    predicted = [run.nodes.predicted for run in runs]
    if runs[0].kind == "numbers":
        return numpy.argsort(-numpy.ptp(numpy.stack(predicted), axis=0), kind="stable")
    differ = numpy.stack([(each != predicted[0]).reshape(len(each), -1).any(axis=1) for each in predicted]).any(axis=0)
    found = numpy.flatnonzero(differ)
    sure = numpy.array([min(confidence(run, int(node)) for run in runs) for node in found])
    return found[numpy.argsort(-sure, kind="stable")] if len(found) else found


def different_settings(runs: Sequence[RunData]) -> dict[str, list[Any]]:
    """Return the settings that are not the same in all runs, by dotted name; None where a run has no such setting."""
    flat = [dict(_flattened(run.settings)) for run in runs]
    names = dict.fromkeys(name for each in flat for name in each)
    values = {name: [each.get(name) for each in flat] for name in names}
    return {name: each for name, each in values.items() if any(value != each[0] for value in each)}


def _flattened(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
        if isinstance(value, Mapping) and value:
            yield from _flattened(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _scores(runs: Sequence[RunData], names: Sequence[str]) -> str:
    """Return the table of scores, with the differences from the first run."""
    scale, unit = (1, "") if runs[0].kind == "numbers" else (100, ", %")
    parts = [part for part in SCORE_ORDER if any(part in run.scores for run in runs)]
    rows: list[list[Any]] = []
    for run, name in zip(runs, names, strict=True):
        row: list[Any] = [name, run.metric]
        for part in parts:
            ours, first = run.scores.get(part), runs[0].scores.get(part)
            row.append(None if ours is None else round(scale * ours, 4))
            row.append(None if ours is None or first is None or run is runs[0] else round(scale * (ours - first), 4))
        row += ["first run" if run is runs[0] else "yes" if same_split(run, runs[0]) else "no", *_only(run, runs[0])]
        rows.append(row)
    head = [
        "run",
        "metric",
        *(column for part in parts for column in (f"{part}{unit}", f"{part} difference")),
        "same split",
    ]
    head += ["right in this run only", "right in the first run only"] if runs[0].kind == "classes" else []
    found = table("Scores, and differences from the first run", head, rows, key="scores")
    if not all(same_split(run, runs[0]) for run in runs):
        found += (
            '<ul class="notes"><li>The runs were not trained and tested on the same split of the same graph: part of a '
            "difference is that of the splits.</li></ul>"
        )
    return found


def _only(run: RunData, first: RunData) -> list[int | None]:
    """Return how many judged nodes are right here and wrong in the first run, and the reverse."""
    if run.kind != "classes":
        return []
    if run is first or not same_split(run, first):
        return [None, None]
    _, nodes = judged_nodes(run)
    here, there = (each.nodes.predicted[nodes] == each.nodes.label[nodes] for each in (run, first))
    return [int((here & ~there).sum()), int((there & ~here).sum())]


def _curves(runs: Sequence[RunData], names: Sequence[str]) -> Iterator[Figure]:
    metric, unit = runs[0].metric, score_axis(runs[0])
    for key, title, axis in (("loss", "Training loss", "loss"), ("validation", f"Validation {metric}", unit)):
        lines = [
            Line(name, run.epochs["epoch"], run.epochs[key] if key == "loss" else percent(run, run.epochs[key]))
            for run, name in zip(runs, names, strict=True)
            if key in run.epochs and len(run.epochs["epoch"])
        ]
        if lines:
            yield Figure(key, title, f"The {axis.split(',')[0]} of each run after each epoch.", "epoch", axis, lines)
    along = [(run, name, run.along) for run, name in zip(runs, names, strict=True) if run.along is not None]
    for part in ("validation", "test"):
        lines = [Line(name, a.times, percent(run, a.accuracy[part])) for run, name, a in along if part in a.accuracy]
        times = ", ".join(f"{name}: {number_text(a.chosen)}" for _, name, a in along)
        if lines:
            says = f"The {metric} at the {part} nodes if the flow ends at time t. Chosen terminal times: {times}."
            title = f"{part.capitalize()} {metric} over time" + (f": {lines[0].name}" if len(lines) == 1 else "")
            yield Figure(f"{part}-time", title, says, "time t", unit, lines)


def _settings(runs: Sequence[RunData], names: Sequence[str]) -> str:
    differing = different_settings(runs)
    if not differing:
        return "<p>All settings are equal.</p>"
    rows = [[name, *map(value_text, values)] for name, values in differing.items()]
    return table("Settings that differ", ["setting", *names], rows, key="settings", sortable=False)


def _nodes(runs: Sequence[RunData], names: Sequence[str]) -> str:
    if not all(same_graph(run, runs[0]) for run in runs):
        return "<p>The runs have different nodes or classes.</p>"
    found, first = disagreements(runs), runs[0]
    if not len(found):
        return "<p>All runs predict the same at every node.</p>"
    known = known_labels(first)
    rows = [
        [
            first.nodes.ids[node],
            node_label(first, node) if known[node] else "unknown",
            *(node_prediction(run, node) for run in runs),
            PARTS[int(first.nodes.part[node])],
        ]
        for node in map(int, found[:COUNT])
    ]
    what = "with the most different predictions" if first.kind == "numbers" else "with different predictions"
    caption = f"{len(rows)} of {len(found):,} nodes {what}"
    return table(caption, ["node", "label", *names, "part of the first run"], rows, key="disagreements")


def _facts(runs: Sequence[RunData], names: Sequence[str]) -> str:
    facts = dict.fromkeys(name for run in runs for name in run.facts)
    rows = [[fact, *(run.facts.get(fact, "\u2013") for run in runs)] for fact in facts]
    return table("Facts of each run", ["fact", *names], rows, key="facts", sortable=False) if rows else ""
