"""Measure reports: seconds of `beltrami report` and sizes of its pages, and what a frame of the flow viewer costs.

python benchmarks/pages.py --data FOLDER        writes results/pages.json

Cora and PubMed are trained by their recipes, for few epochs: the page of a run does not depend on their number. The
largest picture, 20,000 nodes and 500,000 edges at 16 times, is generated. Draw calls and bytes uploaded are counted in
Chromium while the time moves. Its WebGL runs in software, so that no frame rates are measured.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy

from beltrami.report.page import report_page
from beltrami.report.run_data import FlowData, Mesh, NodeData, RunData

OUT = Path(__file__).parents[1] / "results" / "pages.json"
NODES, PAIRS, FRAMES, CLASSES = 20_000, 500_000, 16, 10
SOFTWARE = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
COUNT = """window.calls = { draws: 0, bytes: 0 };
for (const [name, add] of [
  ["drawArrays", () => { calls.draws += 1; }],
  ["drawArraysInstanced", () => { calls.draws += 1; }],
  ["bufferData", (given) => { calls.bytes += given[1].byteLength ?? 0; }],
  ["texImage3D", (given) => { calls.bytes += given.at(-1).byteLength ?? 0; }],
]) {
  const original = WebGL2RenderingContext.prototype[name];
  WebGL2RenderingContext.prototype[name] = function (...given) { add(given); return original.apply(this, given); };
}"""
MOVE = """async () => {
  const { viewer } = document.getElementById("flow");
  viewer.setEdges(viewer.mostEdges);
  await new Promise((done) => setTimeout(done, 3000));
  const loaded = calls.bytes;
  Object.assign(calls, { draws: 0, bytes: 0 });
  for (let k = 1; k <= 20; k++) {
    viewer.setTime((viewer.flow.last * k) / 20);
    await new Promise(requestAnimationFrame);
  }
  return { loaded, draws: calls.draws, bytes: calls.bytes, frames: 20 };
}"""


def largest() -> RunData:
    """Return a generated run with as many nodes and edges as the viewer draws."""
    random = numpy.random.default_rng(0)
    label = random.integers(0, CLASSES, NODES)
    p = random.dirichlet(numpy.ones(CLASSES), NODES).astype(numpy.float32)
    nodes = NodeData(
        ids=[f"node {k}" for k in range(NODES)],
        part=random.integers(0, 4, NODES),
        label=label,
        predicted=p.argmax(1),
        probabilities=p,
        degree=random.poisson(50, NODES),
    )
    flow = FlowData(
        times=numpy.linspace(0, 8, FRAMES),
        positions=random.normal(size=(FRAMES, NODES, 2)).cumsum(0),
        axes=("first", "second"),
        projection="Random walks.",
        disc=False,
        predicted=random.integers(0, CLASSES, (FRAMES, NODES)),
        confidence=random.random((FRAMES, NODES)),
        meshes=[
            Mesh(0.0, 8.0, numpy.sort(random.integers(0, NODES, (PAIRS, 2)), axis=1), random.random((PAIRS, 2, 2)))
        ],
    )
    names = [f"class {k}" for k in range(CLASSES)]
    return RunData("generated", "runs/generated", "classes", names, "accuracy", {}, {}, {}, nodes, flow=flow)


def report_of(dataset: str, folder: Path) -> dict[str, Any]:
    """Train on a dataset for a few epochs, then time `beltrami report` as a command and measure its page."""
    run = folder / dataset
    few = ["--set", "train.epochs=20", "--set", "train.patience=20"]
    command = [sys.executable, "-m", "beltrami"]
    subprocess.run([*command, "train", dataset, *few, "--out", str(run), "--quiet"], check=True)
    start = perf_counter()
    subprocess.run([*command, "report", str(run)], check=True, capture_output=True)
    seconds = perf_counter() - start
    page = run / "report.html"
    return {"page": dataset, "seconds": round(seconds, 1), "bytes": page.stat().st_size, **frame_cost(page)}


def frame_cost(page: Path) -> dict[str, Any]:
    """Return the bytes uploaded when the page is opened, and draw calls and bytes of a frame that moves in time."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=SOFTWARE)
        shown = browser.new_page(reduced_motion="reduce")
        shown.add_init_script(COUNT)
        shown.goto(page.as_uri())
        found = shown.evaluate(MOVE)
        browser.close()
    frames = found["frames"]
    return {
        "bytes_uploaded_once": found["loaded"],
        "draw_calls_per_frame": found["draws"] / frames,
        "bytes_uploaded_per_frame": found["bytes"] / frames,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="the folder with the datasets")
    os.environ["BELTRAMI_DATA"] = parser.parse_args().data
    with TemporaryDirectory() as name:
        folder = Path(name)
        rows = [report_of(dataset, folder) for dataset in ("cora", "pubmed")]
        page, start = folder / "largest.html", perf_counter()
        page.write_text(report_page(largest()))
        size = f"generated: {NODES:,} nodes, {PAIRS:,} edges"
        rows.append(
            {
                "page": size,
                "seconds": round(perf_counter() - start, 1),
                "bytes": page.stat().st_size,
                **frame_cost(page),
            }
        )
    record = {"command": "python benchmarks/pages.py", "date": date.today().isoformat(), "cores": os.cpu_count()}
    OUT.write_text(json.dumps({**record, "rows": rows}, indent=1) + "\n")
    for row in rows:
        print(row)


if __name__ == "__main__":
    main()
