"""The page of a run in a browser: no errors, no requests, no faults of accessibility, downloads, keyboard, sorting."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browser import accessibility_faults, headless_browser, open_page
from page_reader import csv_files
from run_data_examples import label_run, moving_run

from beltrami.report.compare import compare_page
from beltrami.report.page import report_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    with headless_browser() as found:
        yield found


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    pages = {"report": report_page(moving_run()), "compare": compare_page([label_run(), label_run()])}
    for name, page in pages.items():
        (folder / f"{name}.html").write_text(page)
    return {name: folder / f"{name}.html" for name in pages}


def test_axe_finds_no_fault_in_light_and_dark(browser: "Browser", files: dict[str, Path]) -> None:
    complaints: list[str] = []
    page = open_page(browser, files["report"], complaints, color_scheme="light")
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    assert accessibility_faults(page) == []
    page.get_by_role("button", name="Dark theme").click()
    assert page.evaluate(background) != light
    assert accessibility_faults(page, runOnly=["color-contrast"]) == []  # the colours alone are others
    # The choice is kept. A reload would tell, but Chromium sometimes loses what a page of a file has just stored.
    kept = page.evaluate("JSON.stringify(localStorage)")
    page.close()
    restore = f"Object.entries({kept}).forEach(([key, value]) => localStorage.setItem(key, value));"
    page = open_page(browser, files["report"], complaints, script=restore, color_scheme="light")
    assert page.evaluate(background) != light
    page.close()
    page = open_page(browser, files["compare"], complaints, color_scheme="dark")
    assert accessibility_faults(page) == []
    page.close()
    assert complaints == []


def test_csv_sorting_and_keyboard_on_a_phone(browser: "Browser", files: dict[str, Path]) -> None:
    complaints: list[str] = []
    page = open_page(browser, files["report"], complaints, viewport={"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    with page.expect_download() as download:
        page.locator("a[download='confusion.csv']").click()
    with Path(download.value.path()).open(newline="") as file:
        assert list(csv.reader(file)) == csv_files(files["report"].read_text())["confusion.csv"]
    assert download.value.suggested_filename == "confusion.csv"
    complaints = [each for each in complaints if not each.startswith("data:text/csv")]  # the download itself

    table = page.locator("table", has=page.locator("caption", has_text="Each class"))
    column = "each => [...each.tBodies[0].rows].map((row) => Number(row.cells[1].dataset.value))"
    table.get_by_role("button", name="nodes").click()
    largest_first = table.evaluate(column)
    assert largest_first == sorted(largest_first, reverse=True)
    table.get_by_role("button", name="nodes").click()
    assert table.evaluate(column) == largest_first[::-1]
    assert table.locator("th[aria-sort]").get_attribute("aria-sort") == "ascending"

    page.reload()
    page.evaluate("window.seen = new Set(); addEventListener('focusin', (event) => seen.add(event.target))")
    controls = "[...document.querySelectorAll('a, button, summary')].filter((each) => each.checkVisibility())"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    for _ in range(page.evaluate(f"{controls}.length + document.querySelectorAll('.scroll').length")):
        page.keyboard.press("Tab")
    assert page.evaluate(f"{controls}.filter((each) => !seen.has(each)).map((each) => each.textContent)") == []
    page.locator("summary").first.press("Enter")
    assert page.locator("details").first.evaluate("each => each.open")
    page.close()
    assert complaints == []
