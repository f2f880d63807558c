"""The report of a run as one HTML page that needs no other file and no network."""

import base64
import hashlib
from collections.abc import Iterable, Sequence
from importlib import resources

from beltrami.report.class_scores import class_scores, judged_nodes
from beltrami.report.figure import Figure
from beltrami.report.figure_table import figure_csv
from beltrami.report.markup import csv_link, nested_table, table, text
from beltrami.report.node_tables import explanations, node_tables
from beltrami.report.run_data import RunData
from beltrami.report.run_figures import figures_of
from beltrami.report.scale import number_text
from beltrami.report.svg import svg

ASSETS = "assets"
ORDER = ("test", "validation", "calibration", "train")  # of scores, the first that is known is the headline
EARLY_THEME = """(() => {
  try {
    const theme = localStorage.getItem("beltrami-theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch {
    // the browser keeps nothing for this page
  }
})();"""  # before the first paint, so that the page does not flash


def html_page(
    title: str, body: str, *, styles: Sequence[str] = (), scripts: Sequence[str] = (), connect: str = "'none'"
) -> str:
    """Return a page with the shared style, the switch between light and dark, and tables that can be sorted.

    Args:
        title: the title, as plain text.
        body: the content as HTML: a header with the ``h1``, and ``<main id="content">``.
        styles: more style sheets, as CSS.
        scripts: more scripts, which run after the body. The page runs no other script, wherever it may stand.
        connect: where scripts may connect to, as in a Content-Security-Policy; nowhere by default.
    """
    all_scripts = (EARLY_THEME, asset("page.js"), *scripts)
    assert not any("</script" in script.lower() or "<!--" in script for script in all_scripts)
    hashes = " ".join(f"'sha256-{_digest(script)}'" for script in all_scripts)
    policy = (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
        f"connect-src {connect}; base-uri 'none'; form-action 'none'"
    )
    style = "\n".join((asset("page.css"), *styles))
    early, *late = (f"<script>{script}</script>" for script in all_scripts)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{text(policy)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="beltrami">
<meta name="referrer" content="no-referrer">
<title>{text(title)}</title>
{early}
<style>
{style}
</style>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<div class="top" role="region" aria-label="This page"></div>
{body}
<footer>Made by beltrami. All that is shown is in this file.</footer>
{chr(10).join(late)}
</body>
</html>
"""


def report_page(data: RunData, *, connect: str = "'none'") -> str:
    """Return the page of a run."""
    styles: list[str] = []
    scripts: list[str] = []
    found = {"summary": ("Summary", _summary(data))}
    if data.flow is not None:
        from beltrami.report.viewer import viewer_css, viewer_js, viewer_section

        found = {"flow": ("Flow", viewer_section(data)), **found}
        styles, scripts = [viewer_css()], [viewer_js()]
    found |= {
        "learning": ("Learning", figure_grid(figures_of(data, "learning"))),
        "time": ("Time", figure_grid(figures_of(data, "time"), _solver(data))),
        "predictions": ("Predictions", _predictions(data)),
        "nodes": ("Nodes to look at", node_tables(data) + explanations(data)),
        "graph": ("Graph", figure_grid(figures_of(data, "graph"))),
        "baselines": ("Baselines", figure_grid(figures_of(data, "baselines"), _baseline_table(data))),
        "settings": ("Settings", _settings(data)),
    }
    body = masthead(data) + page_main(found, whole=("flow",))
    return html_page(f"{data.title} \u2013 beltrami report", body, styles=styles, scripts=scripts, connect=connect)


def page_main(found: dict[str, tuple[str, str]], *, whole: Sequence[str] = ()) -> str:
    """Return the table of contents and the main element with its sections, by id: their headings and contents. Empty
    ones are left out; those in ``whole`` are section elements already."""
    found = {key: section for key, section in found.items() if section[1]}
    links = "".join(f'<li><a href="#{key}">{text(name)}</a></li>' for key, (name, _) in found.items())
    sections = "\n".join(
        content
        if key in whole
        else f'<section id="{key}" aria-labelledby="{key}-heading">'
        f'<h2 id="{key}-heading">{text(name)}</h2>\n{content}\n</section>'
        for key, (name, content) in found.items()
    )
    contents = f'<nav class="toc" aria-label="Contents"><ul>{links}</ul></nav>'
    return f'{contents}\n<main id="content" tabindex="-1">\n{sections}\n</main>'


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
    parts = sorted(data.scores, key=lambda part: ORDER.index(part) if part in ORDER else len(ORDER))
    scores = "".join(
        f"<div{'' if place else f' class={chr(34)}headline{chr(34)}'}><dt>{text(part)} {text(data.metric)}</dt>"
        f"<dd>{score_text(data, data.scores[part])}</dd></div>"
        for place, part in enumerate(parts)
    )
    return (
        f'<header><div><p class="kicker">beltrami report</p><h1>{text(data.title)}</h1>'
        f'<p class="lead">{text(data.folder)}</p></div>\n<dl class="scores">{scores}</dl></header>\n'
    )


def asset(name: str) -> str:
    """Return the text of a file in ``assets``."""
    return resources.files("beltrami.report").joinpath(ASSETS, name).read_text(encoding="utf-8")


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


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
