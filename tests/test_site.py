"""The tools of the documentation site: formulae and roles, source links, the check of the built pages, mkdocs.yml."""

import ast
import inspect
import re
from pathlib import Path

import pytest
from browser import headless_browser
from check_site import check
from public_names import documented_modules, identifiers, public_names

import beltrami

pytest.importorskip("markdown", reason="markdown is not installed")
pytest.importorskip("latex2mathml", reason="latex2mathml is not installed")
pytest.importorskip("griffe", reason="griffe is not installed")
pytest.importorskip("pygments", reason="pygments is not installed")

from make_site import source_page
from markdown import Markdown
from site_docstrings import FirstParagraph, joined
from site_markdown import mathml, source_of

ROOT = Path(__file__).parents[1]
PAGE = '<html><head>{head}</head><body><h1 id="top">A</h1>{body}</body></html>'


def html(text: str) -> str:
    return str(Markdown(extensions=["site_markdown"]).convert(text))


def faults(site: Path, *, head: str = "", body: str = "") -> list[str]:
    (site / "index.html").write_text(PAGE.format(head=head, body=body))
    return [fault for fault in check(site) if not fault.startswith("API reference")]


def test_formulae_become_mathml_and_code_stays() -> None:
    made = html("The rate $\\alpha$ is `$HOME` or :math:`x_i`.\n\n    $ beltrami train\n")
    assert made.count("<math") == 2
    assert "<mi>&#x003B1;</mi>" in made
    assert "<code>$HOME</code>" in made
    assert "$ beltrami train" in made


def test_a_block_of_a_docstring_may_have_several_lines() -> None:
    made = html("Text.\n\n.. math:: a = \\frac12\n    + b\n\nMore.")
    assert made.count('<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">') == 1
    assert "<mi>b</mi>" in made
    assert "<p>More.</p>" in made


def test_words_in_formulae_are_one_piece() -> None:
    assert "<mi>softmax</mi>" in mathml(r"\mathrm{softmax}_j")


def test_every_formula_of_the_docstrings_is_understood() -> None:
    texts = [path.read_text() for path in (ROOT / "src").rglob("*.py")]
    formulae = [formula for text in texts for formula in re.findall(r":math:`([^`]+)`", text)]
    assert len(formulae) > 200
    assert [formula for formula in formulae if "\\" in mathml(formula)] == []


def test_roles_become_references_or_code() -> None:
    made = html(":class:`~beltrami.flow.MixedFlow`, :class:`Cosine` and :meth:`run`")
    assert "[<code>MixedFlow</code>][beltrami.flow.MixedFlow]" in made
    assert "[<code>Cosine</code>][beltrami.diffusivity.Cosine]" in made
    assert "<code>run</code>" in made


def test_links_that_leave_the_pages_are_marked() -> None:
    assert source_of("../examples/pyg_cora.py#L3") == "examples/pyg_cora.py#L3"
    assert source_of("../results.md") is None  # from docs/tutorials/
    assert source_of("https://arxiv.org") is None
    assert html("[code](../src/beltrami/joint.py)") == '<p><span data-source="src/beltrami/joint.py">code</span></p>'


def test_a_source_page_has_an_anchor_for_every_line() -> None:
    page = source_page("src/beltrami/joint.py")
    lines = (ROOT / "src" / "beltrami" / "joint.py").read_text().splitlines()
    assert all(f'name="L-{number}"' in page for number in range(1, len(lines) + 1))


def test_the_first_paragraph_of_a_docstring_is_one_line() -> None:
    assert joined("Return the\nenergy.\n\nArgs:\n    z: the\n        state.") == (
        "Return the energy.\n\nArgs:\n    z: the\n        state."
    )
    assert joined("Args:\n    z: the state.") == "Args:\n    z: the state."


@pytest.mark.slow
def test_docstrings_of_estimators_are_read_in_the_style_of_numpy() -> None:
    griffe = pytest.importorskip("griffe")
    read = griffe.Extensions(FirstParagraph())
    module = griffe.load(
        "beltrami.estimator", search_paths=[str(ROOT / "src")], docstring_parser="google", extensions=read
    )
    sections = {each.kind.value: each.value for each in module["BeltramiClassifier"].docstring.parsed}
    parameters = inspect.signature(beltrami.BeltramiClassifier).parameters
    assert [each.name for each in sections["parameters"]] == list(parameters)
    assert all(each.description for each in (*sections["parameters"], *sections["attributes"]))


@pytest.mark.browser
@pytest.mark.slow
def test_regions_that_scroll_can_be_reached_by_keyboard(tmp_path: Path) -> None:
    script = (ROOT / "docs" / "assets" / "keyboard.js").read_text()
    wide, narrow = "<pre><code>" + "x = 1; " * 100 + "</code></pre>", "<pre><code>y</code></pre>"
    style = "pre > code { display: block; overflow: auto }"
    (tmp_path / "page.html").write_text(f"<style>{style}</style>{wide}{narrow}<script>{script}</script>")
    with headless_browser() as browser:
        page = browser.new_page(viewport={"width": 400, "height": 300})
        page.goto((tmp_path / "page.html").as_uri())
        page.keyboard.press("Tab")
        for _ in range(5):
            page.keyboard.press("ArrowRight")
        page.wait_for_function("document.activeElement.scrollLeft > 0")  # the browser scrolls smoothly
        assert page.locator("[tabindex]").count() == 1
        page.close()


def test_good_links_pass(tmp_path: Path) -> None:
    (tmp_path / "style.css").write_text("body { background: url(data:x) }")
    body = '<a href="#top"></a><a href="index.html#top"></a><a href="https://arxiv.org"></a>'
    assert faults(tmp_path, head='<link rel="stylesheet" href="style.css">', body=body) == []


@pytest.mark.parametrize(
    ("head", "body", "fault"),
    [
        ("", '<a href="no.html"></a>', "index.html: no.html leads to no file of the site"),
        ("", '<a href="../../etc"></a>', "index.html: ../../etc leads to no file of the site"),
        ("", '<a href="#no"></a>', "index.html: #no leads to no anchor of the page"),
        ("", '<img src="no.png">', "index.html: no.png leads to no file of the site"),
        ('<script src="https://a.b/c.js"></script>', "", "index.html: loads https://a.b/c.js from the network"),
        ('<link href="//a.b/c.css">', "", "index.html: loads //a.b/c.css from the network"),
    ],
)
def test_a_bad_link_is_found(tmp_path: Path, head: str, body: str, fault: str) -> None:
    assert faults(tmp_path, head=head, body=body) == [fault]


def test_a_style_that_loads_from_the_network_is_found(tmp_path: Path) -> None:
    (tmp_path / "style.css").write_text('@font-face { src: url("https://a.b/c.woff") }')
    assert faults(tmp_path) == ["style.css: a style that loads from the network"]


def test_a_public_name_without_an_entry_is_found(tmp_path: Path) -> None:
    (tmp_path / "api").mkdir()
    anchors = "".join(f'<p id="beltrami.stencil.{name}"></p>' for name in public_names("beltrami.stencil")[1:])
    (tmp_path / "api" / "stencil.html").write_text(anchors)
    missing = [fault for fault in check(tmp_path) if "beltrami.stencil." in fault]
    assert missing == ["API reference: beltrami.stencil.Stencil has no entry"]


def test_every_public_package_and_name_is_in_the_api_reference() -> None:
    packages = {
        f"beltrami.{path.parent.name}"
        for path in (ROOT / "src" / "beltrami").glob("*/__init__.py")
        if "__all__" in path.read_text() and path.parent.name != "cli"
    }
    assert packages - set(documented_modules()) == set()
    assert set(beltrami.__all__) - {"__version__"} - set(identifiers()) == set()


def test_public_names_are_those_of_the_module() -> None:
    from beltrami import flow

    assert public_names("beltrami.flow") == flow.__all__
    assert public_names("beltrami.joint") == ["Joint"]


def test_mkdocs_reads_the_settings_and_every_page_has_a_place() -> None:
    from mkdocs.config import load_config

    config = load_config(str(ROOT / "mkdocs.yml"))
    listed = set(re.findall(r"'([\w/-]+\.md)'", repr(config["nav"])))
    assert listed == {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert config["theme"]["font"] is False


def test_the_tools_of_the_site_do_not_import_the_library() -> None:
    """Pages are built from the sources alone; ``make_site`` trains a run for the live report, after them."""
    for name in ("check_site", "public_names", "site_markdown", "site_docstrings"):
        tree = ast.parse((ROOT / "docs" / f"{name}.py").read_text())
        modules = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        assert not any(module.startswith(("beltrami", "torch")) for module in modules)
