"""The report of a run as one HTML page that needs no other file and no network."""

from collections.abc import Iterable

from beltrami.report.class_scores import class_scores, judged_nodes
from beltrami.report.figure import Figure
from beltrami.report.figure_axes import number_text
from beltrami.report.figure_table import figure_csv
from beltrami.report.markup import csv_link, nested_table, table, text
from beltrami.report.node_tables import explanations, node_tables
from beltrami.report.page_shell import html_page, page_main
from beltrami.report.run_data import SCORE_ORDER, RunData
from beltrami.report.run_figures import figures_of
from beltrami.report.svg import svg
from beltrami.report.viewer import viewer_css, viewer_js, viewer_section


def report_page(data: RunData) -> str:
    """Return the page of a run."""
    return _page(
        data,
        {
            "learning": ("Learning", figure_grid(figures_of(data, "learning"))),
            "time": ("Time", figure_grid(figures_of(data, "time"), _solver(data))),
            "predictions": ("Predictions", _predictions(data)),
            "nodes": ("Nodes to look at", node_tables(data) + explanations(data)),
            "graph": ("Graph", figure_grid(figures_of(data, "graph"))),
            "baselines": ("Baselines", figure_grid(figures_of(data, "baselines"), _baseline_table(data))),
            "settings": ("Settings", _settings(data)),
        },
    )


def watch_page(data: RunData, *, explain_at: str) -> str:
    """Return the page that ``beltrami watch`` serves: the flow, whose nodes are explained on demand, and a summary."""
    return _page(data, {}, explain_at=explain_at)


def _page(data: RunData, sections: dict[str, tuple[str, str]], *, explain_at: str = "") -> str:
    """Return a page with the flow, the summary and more sections."""
    found = {"summary": ("Summary", _summary(data)), **sections}
    body, title = masthead(data), f"{data.title} \u2013 beltrami report"
    if data.flow is None:
        return html_page(title, body + page_main(found))
    flow = viewer_section(data, data.flow, explain_at=explain_at)
    body += page_main({"flow": ("Flow", flow), **found})
    connect = "'self'" if explain_at else "'none'"
    return html_page(title, body, styles=[viewer_css()], scripts=[viewer_js()], connect=connect)


def figure_grid(figures: Iterable[Figure], *tables: str) -> str:
    """Return figures as cards, each with its sentence and its numbers as CSV, and tables next to them."""
    cards = "\n".join([*map(figure_block, figures), *filter(None, tables)])
    return f'<div class="figures">\n{cards}\n</div>\n' if cards else ""


def figure_block(figure: Figure) -> str:
    """Return a figure as a card with its sentence and its numbers as CSV."""
    return (
        f'<figure class="card"><div class="card-head"><h3>{text(figure.title)}</h3>'
        f"{csv_link(figure.key, figure_csv(figure), what=figure.title)}</div>\n{svg(figure)}\n"
        f"<figcaption>{text(figure.says)}</figcaption></figure>"
    )


def score_text(data: RunData, score: float | None) -> str:
    """Return a score for people: per cent, or for numbers in the units of the label."""
    if score is None or score != score:
        return "\u2013"
    return number_text(score) if data.kind == "numbers" else f"{100 * score:.1f}%"


def masthead(data: RunData) -> str:
    """Return the title of a run and its scores, that of the test nodes first."""
    parts = sorted(data.scores, key=lambda part: SCORE_ORDER.index(part) if part in SCORE_ORDER else len(SCORE_ORDER))
    scores = "".join(
        f"<div{'' if place else f' class={chr(34)}headline{chr(34)}'}><dt>{text(part)} {text(data.metric)}</dt>"
        f"<dd>{score_text(data, data.scores[part])}</dd></div>"
        for place, part in enumerate(parts)
    )
    return (
        f'<header><div><p class="kicker">beltrami report</p><h1>{text(data.title)}</h1>'
        f'<p class="lead">{text(data.folder)}</p></div>\n<dl class="scores">{scores}</dl></header>\n'
    )


def _summary(data: RunData) -> str:
    facts = "".join(f"<div><dt>{text(name)}</dt><dd>{text(value)}</dd></div>" for name, value in data.facts.items())
    notes = "".join(f"<li>{text(note)}</li>" for note in data.notes)
    return (f'<dl class="facts">{facts}</dl>' if facts else "") + (f'<ul class="notes">{notes}</ul>' if notes else "")


def _solver(data: RunData) -> str:
    rows = list(data.solver.items())
    return table("Solver", ("quantity", "value"), rows, key="solver", sortable=False) if rows else ""


def _predictions(data: RunData) -> str:
    """Return the figures of predictions at nodes that were held out, and the table of the classes."""
    part, nodes = judged_nodes(data)
    if not len(nodes):
        return "<p>The models were trained on all nodes with a label: none is left to compare predictions with.</p>"
    found = figure_grid(figures_of(data, "predictions"))
    if data.kind == "numbers":
        return found
    rows = [
        (each.name, each.count, each.predicted, *(_rounded(100 * v) for v in (each.precision, each.recall, each.f1)))
        for each in class_scores(data, nodes)
    ]
    what = "label" if data.kind == "labels" else "class"
    head = (what, "nodes", "predicted", "precision, %", "recall, %", "F1, %")
    return found + table(f"Each {what} at the {part} nodes", head, rows, key=f"per-{what}")


def _baseline_table(data: RunData) -> str:
    if len(data.baselines) < 2:
        return ""
    scale = 1 if data.kind == "numbers" else 100
    rows = [
        (name, _rounded(scale * validation), None if test is None else _rounded(scale * test))
        for name, validation, test in data.baselines
    ]
    unit = "" if data.kind == "numbers" else ", %"
    return table(f"The {data.metric} of the models", ("model", f"validation{unit}", f"test{unit}"), rows, key="models")


def _settings(data: RunData) -> str:
    if not data.settings:
        return ""
    return (
        '<details class="block"><summary>The configuration of the run</summary><div class="inside scroll" tabindex="0" '
        f'role="group" aria-label="The configuration of the run">{nested_table(dict(data.settings))}</div></details>'
    )


def _rounded(value: float) -> float:
    return round(value, 2)
