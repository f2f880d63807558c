"""Extension of Python-Markdown for the documentation site, used by Zensical and by mkdocs.

- Formulae, ``$...$`` and ``$$...$$`` on pages, ``:math:`` and ``.. math::`` in docstrings, become MathML.
- Roles of docstrings, such as ``:class:`BLEND```, become links into the API reference, or code where there is no entry.
- Links to files outside docs/ become ``<span data-source="path">``; ``make_site.py`` copies the files and sets links.
"""

import re
import textwrap
from functools import cache
from pathlib import Path
from xml.etree.ElementTree import Element

from latex2mathml.converter import convert
from markdown import Extension, Markdown
from markdown.preprocessors import Preprocessor
from markdown.treeprocessors import Treeprocessor
from public_names import identifiers

ROOT = Path(__file__).parents[1]
DISPLAY = re.compile(r"^\$\$(.+?)\$\$$", flags=re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^([ ]*)\.\. math::[ ]*(.*(?:\n+\1[ ]+\S.*)*)", flags=re.MULTILINE)
ROLE = re.compile(r":(math|class|func|meth|mod|data):`([^`]+)`")
CODE_OR_FORMULA = re.compile(r"(``.+?``|`[^`]+`)|(?<![\\$\w])\$([^\s$](?:[^$]*?[^\s$])?)\$(?![\w$])", flags=re.DOTALL)
LETTER = re.compile(r'<mi mathvariant="normal">(\w)</mi>')
UPRIGHT = re.compile(rf"(?:{LETTER.pattern}){{2,}}")
ANGLE = re.compile(r"<mi>(&#x027E[89];)</mi>")

known_names = cache(identifiers)


class Formulae(Preprocessor):
    """Replace formulae by MathML, and roles by references or code. Runs when fenced code is already set aside."""

    def run(self, lines: list[str]) -> list[str]:
        text = BLOCK.sub(self._block, "\n".join(lines))
        text = DISPLAY.sub(lambda found: self._mathml(found[1], display="block"), text)
        text = ROLE.sub(self._role, text)
        return CODE_OR_FORMULA.sub(lambda found: found[1] or self._mathml(found[2]), text).split("\n")

    def _block(self, found: re.Match[str]) -> str:
        formula = " ".join(textwrap.dedent(found[2]).split())
        return f"{found[1]}{self._mathml(formula, display='block')}\n"

    def _role(self, found: re.Match[str]) -> str:
        role, name = found.groups()
        return self._mathml(name) if role == "math" else reference(name)

    def _mathml(self, formula: str, display: str = "inline") -> str:
        return str(self.md.htmlStash.store(mathml(formula, display=display)))


def mathml(formula: str, *, display: str = "inline") -> str:
    """Return the MathML of a formula in LaTeX, with upright words in one piece and brackets as operators."""
    made = convert(" ".join(formula.split()), display=display)
    made = UPRIGHT.sub(lambda word: f"<mi>{''.join(LETTER.findall(word[0]))}</mi>", made)
    return ANGLE.sub(r'<mo stretchy="false">\1</mo>', made)


def reference(name: str) -> str:
    """Return Markdown for the name in a role: a reference to its entry in the API reference, or code if it has none.

    >>> reference("~beltrami.flow.MixedFlow"), reference("run")
    ('[`MixedFlow`][beltrami.flow.MixedFlow]', '`run`')
    """
    full = name.lstrip("~")
    short = full.rsplit(".", 1)[-1] if name.startswith("~") else full
    target = known_names().get(short)
    return f"[`{short}`][{target}]" if target and target.endswith(full) else f"`{short}`"


class SourceLinks(Treeprocessor):
    """Mark links that leave docs/, so that neither builder looks for a page there."""

    def run(self, root: Element) -> None:
        for link in root.iter("a"):
            href = link.get("href", "")
            path = source_of(href)
            if href.startswith("docs/"):  # in CONTRIBUTING.md, which is included in a page of docs/
                link.set("href", href.removeprefix("docs/"))
            elif path:
                link.tag = "span"
                link.attrib = {"data-source": path}


def source_of(href: str) -> str | None:
    """Return the path from the root of the repository, with its anchor, of a link that leaves docs/; else None.

    >>> source_of("../examples/pyg_cora.py"), source_of("../results.md")
    ('examples/pyg_cora.py', None)
    """
    path = re.sub(r"^(\.\./)+", "", href)
    outside = ROOT / path.split("#")[0]
    return path if path != href and outside.exists() and not (ROOT / "docs" / path.split("#")[0]).exists() else None


class SiteMarkdown(Extension):
    """The extension, in both builders' list of Markdown extensions as ``site_markdown``."""

    def extendMarkdown(self, md: Markdown) -> None:
        md.preprocessors.register(Formulae(md), "formulae", 22)
        md.treeprocessors.register(SourceLinks(md), "source_links", 15)


def makeExtension(**options: object) -> SiteMarkdown:
    """Return the extension; Python-Markdown calls this."""
    return SiteMarkdown(**options)
