"""The report of a run on handwritten digits, for the documentation: as a page of the site, as a film, as a picture.

python docs/digits_report.py        draws docs/flow.gif, and docs/viewer.png with Chromium, again
"""

import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from beltrami.config import load_recipe
from beltrami.report.collect import LoadedRun
from beltrami.report.film import save_film
from beltrami.report.page import report_page
from beltrami.report.run_data import RunData
from beltrami.run import run_config, save_run

DOCS = Path(__file__).parent
RUN = Path("runs") / "digits"  # as the page names it
SIZE = {"width": 1180, "height": 900}
SOFTWARE = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]  # WebGL without a GPU
CHOOSE = """(() => {
  const { viewer } = document.getElementById("flow");
  viewer.setTime(9);
  viewer.choose(viewer.flow.drawnAt.get(viewer.details.explained.keys().next().value));
})()"""  # a node with an explanation


def digits_run() -> RunData:
    """Train on handwritten digits with the recipe ``blend`` and return the data of the report."""
    config = load_recipe("blend", "digits", seed=0)
    result, model = run_config(config)
    with TemporaryDirectory() as folder:
        save_run(Path(folder) / RUN, config, result, model)
        data = LoadedRun.load(Path(folder) / RUN).data()
    return RunData(**{**vars(data), "folder": str(RUN)})


def take_picture(page: Path, picture: Path) -> None:
    """Take a screenshot of the viewer in the middle of the flow, with a node chosen."""
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or sys.exit("The picture of the viewer needs Chromium on the PATH.")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=SOFTWARE)
        shown = browser.new_page(viewport=SIZE, reduced_motion="reduce", color_scheme="light")  # type: ignore[arg-type]
        shown.goto(page.as_uri())
        shown.evaluate(CHOOSE)
        shown.wait_for_timeout(1000)
        shown.locator(".viewer").screenshot(path=picture)
        browser.close()


def main() -> None:
    data = digits_run()
    save_film(data, DOCS / "flow.gif")
    with TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        page.write_text(report_page(data))
        take_picture(page, DOCS / "viewer.png")


if __name__ == "__main__":
    main()
