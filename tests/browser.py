"""A headless browser for tests of pages."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome")
SOFTWARE = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]  # WebGL without a GPU


@contextmanager
def headless_browser() -> Iterator["Browser"]:
    """Open Chromium; skip the test where it or playwright is missing."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip(f"there is no browser: none of {', '.join(NAMES)} is installed")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=SOFTWARE)
        yield browser
        browser.close()


def open_page(browser: "Browser", path: Path, complaints: list[str], *, script: str = "", **options: Any) -> "Page":
    """Open a page, after a script, and note errors and requests other than for the page itself and of its own data."""
    page = browser.new_page(**options)
    page.add_init_script(script)
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: complaints.append(request.url) if request.url != path.as_uri() else None)
    page.on("dialog", lambda dialog: complaints.append(dialog.message))
    page.goto(path.as_uri())
    return page


def accessibility_faults(page: "Page", **options: Any) -> list[tuple[str, str, str]]:
    """Return what axe-core finds, with all explanations open."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed").Axe()
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    found = axe.run(page, options={"resultTypes": ["violations"], **options}).response["violations"]
    return [(fault["id"], fault["impact"], fault["nodes"][0]["html"][:120]) for fault in found]
