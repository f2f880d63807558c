"""Check the built documentation site: links, anchors, requests to the network, entries of the API reference."""

from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from public_names import documented_modules, public_names

LOADED = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
    "link": "href",
}
"""Elements that a browser loads by itself, with the attribute that holds the address."""


@dataclass
class Page(HTMLParser):
    """The anchors of a page, the addresses it links to, and those it loads."""

    path: Path
    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in LOADED and values.get(LOADED[tag]) and values.get("rel") != "canonical":
            self.loaded.append(values[LOADED[tag]])


def check(site: Path) -> list[str]:
    """Return one line for each fault of a built site; an empty list says that there is none."""
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    faults = [
        f"{page.path.relative_to(site)}: {fault}"
        for page in pages.values()
        for fault in (*_broken_links(page, pages, site), *_requests(page))
    ]
    styles = [f"{path.relative_to(site)}: a style that loads from the network" for path in _loading_styles(site)]
    return faults + styles + [f"API reference: {name} has no entry" for name in _missing_names(pages, site)]


def _broken_links(page: Page, pages: dict[Path, Page], site: Path) -> list[str]:
    faults = []
    for address in (*page.links, *page.loaded):
        parts = urlsplit(address)
        if parts.scheme or parts.netloc:
            continue
        folder = site if parts.path.startswith("/") else page.path.parent  # 404.html has absolute addresses
        target = (folder / unquote(parts.path).lstrip("/")).resolve() if parts.path else page.path
        target = target / "index.html" if target.is_dir() else target
        if not target.is_file() or not target.is_relative_to(site):
            faults.append(f"{address} leads to no file of the site")
        elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
            faults.append(f"{address} leads to no anchor of the page")
    return faults


def _requests(page: Page) -> list[str]:
    return [f"loads {address} from the network" for address in page.loaded if urlsplit(address).netloc]


def _loading_styles(site: Path) -> list[Path]:
    return [path for path in site.rglob("*.css") if "url(http" in path.read_text().replace('"', "").replace("'", "")]


def _missing_names(pages: dict[Path, Page], site: Path) -> list[str]:
    reference = documented_modules()
    expected = [(page, f"{module}.{name}") for module, page in reference.items() for name in public_names(module)]
    anchors = {
        page: pages[path].anchors
        for page in set(reference.values())
        if (path := site / "api" / f"{page}.html") in pages
    }
    return [name for page, name in expected if name not in anchors.get(page, set())]
