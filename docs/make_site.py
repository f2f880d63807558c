"""Build the documentation site into build/site with Zensical, add the linked sources and a live report, and check it.

python docs/make_site.py

Pages link to sources, tests and results outside docs/. Each such file is copied to build/site/source/: Python files as
pages with numbered lines, others as they are.
"""

import os
import re
import shutil
import subprocess
import sys
from html import escape, unescape
from pathlib import Path

from check_site import check
from digits_report import digits_run
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from beltrami.report.page import report_page

ROOT = Path(__file__).parents[1]
SITE = ROOT / "build" / "site"
MARKED = re.compile(r'<span data-source="([^"]*)">(.*?)</span>(?!</span>)', flags=re.DOTALL)
PAGES = {"CONTRIBUTING.md": "contributing.html", "CHANGELOG.md": "changelog.html"}  # files that have a page
SOURCE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title><style>{style}</style></head>
<body><p><a href="{home}">Documentation</a></p><h1>{title}</h1>{code}</body></html>
"""
STYLE = """
:root { color-scheme: light dark; background: light-dark(#fff, #14171c); color: light-dark(#1d2127, #dde1e7); }
body { margin: 2rem auto; max-width: 62rem; padding: 0 1rem; font: 0.85rem/1.5 ui-monospace, monospace; }
h1 { font: 600 1.1rem system-ui, sans-serif; }
.highlight { background: none; overflow-x: auto; }
.highlight a { text-decoration: none; scroll-margin-top: 30vh; }
.highlight .linenos { background: none; color: light-dark(#666e7a, #8e97a5); }
.highlight a:target + a .linenos { background: light-dark(#ffe08a, #6b5a14); color: inherit; }
"""
PYTHON = HtmlFormatter(linenos="inline", lineanchors="L", anchorlinenos=True, style="default")
DARK = HtmlFormatter(style="github-dark")


def build() -> None:
    """Run Zensical; a warning of it or of the reader of docstrings ends the program."""
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "docs"), "NO_COLOR": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    if done.returncode or "griffe:" in said or "arning" in said:
        sys.exit(f"{said}\nThe site was not built without warnings: mend what the lines above name.")


def set_source_links(page: Path) -> None:
    """Turn the marked spans of a page into links to copies of the files in ``source/``; folders become plain text."""

    def link(found: re.Match[str]) -> str:
        path, _, anchor = unescape(found[1]).partition("#")
        if not (ROOT / path).is_file():
            return found[2]
        target = PAGES.get(path) or add_source(path)
        up = "../" * (len(page.relative_to(SITE).parts) - 1)
        return f'<a href="{escape(up + target)}{anchor.replace("L", "#L-")}">{found[2]}</a>'

    page.write_text(MARKED.sub(link, page.read_text()))


def add_source(path: str) -> str:
    """Copy a file of the repository to the site, once, and return its address from the root of the site."""
    shown = f"source/{path}.html" if path.endswith(".py") else f"source/{path}"
    target = SITE / shown
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.endswith(".py"):
            target.write_text(source_page(path))
        else:
            shutil.copyfile(ROOT / path, target)
    return shown


def source_page(path: str) -> str:
    """Return a page with the code of a Python file, whose line n has the anchor ``L-n``."""
    dark = f"@media (prefers-color-scheme: dark) {{ {DARK.get_style_defs('.highlight')} }}"
    style = "\n".join((PYTHON.get_style_defs(".highlight"), dark, STYLE))
    home = "../" * len(Path(path).parts) + "index.html"
    code = highlight((ROOT / path).read_text(), PythonLexer(), PYTHON)
    return SOURCE.format(title=escape(path), style=style, home=home, code=code)


def main() -> None:
    build()
    for page in sorted(SITE.rglob("*.html")):
        set_source_links(page)
    (SITE / "report.html").write_text(report_page(digits_run()))
    index = (SITE / "search.json").read_text()
    (SITE / "search.js").write_text(f"var __index = {index}")  # a page that was opened from disk can load scripts only
    faults = check(SITE)
    if faults:
        sys.exit("\n".join([*faults, f"{len(faults)} faults in {SITE}"]))
    print(f"{len(list(SITE.rglob('*.html')))} pages in {SITE}: open {SITE / 'index.html'}")


if __name__ == "__main__":
    main()
