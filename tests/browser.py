"""A headless browser for tests of pages."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

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
