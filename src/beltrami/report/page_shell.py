"""The frame of every page: style, scripts, policy, table of contents and sections."""

import base64
import hashlib
from collections.abc import Sequence
from importlib import resources

from beltrami.report.markup import text

ASSETS = "assets"
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


def page_main(found: dict[str, tuple[str, str]]) -> str:
    """Return the table of contents and the main element with its sections, by id: their headings and contents. Empty
    ones are left out."""
    found = {key: section for key, section in found.items() if section[1]}
    links = "".join(f'<li><a href="#{key}">{text(name)}</a></li>' for key, (name, _) in found.items())
    sections = "\n".join(
        f'<section id="{key}" aria-labelledby="{key}-heading">'
        f'<h2 id="{key}-heading">{text(name)}</h2>\n{content}\n</section>'
        for key, (name, content) in found.items()
    )
    contents = f'<nav class="toc" aria-label="Contents"><ul>{links}</ul></nav>'
    return f'{contents}\n<main id="content" tabindex="-1">\n{sections}\n</main>'


def asset(name: str) -> str:
    """Return the text of a file in ``assets``."""
    return resources.files("beltrami.report").joinpath(ASSETS, name).read_text(encoding="utf-8")


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
