"""Measure diffusion and training on graphs larger than the device; record them in `results/out_of_core.json`.

python benchmarks/out_of_core.py run --device cuda     all parts, in less than six minutes
python benchmarks/out_of_core.py run --small           the same on small graphs, on the CPU in a minute
python benchmarks/out_of_core.py figure                draws docs/gallery/out-of-core.svg from the record

Parts: `forward`, exp(t (P - I)) x on a graph of 10^9 edges with edges on the device and streamed from host memory;
`train`, 10^8 edges within 8 GiB beside the same model in memory; `growth`, from 10^5 to 10^9 edges. Each part runs in a
process of its own; one that fails leaves its error in the record.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

RECORD, FIGURE = Path("results/out_of_core.json"), Path("docs/gallery/out-of-core.svg")
DEADLINE = 345.0  # seconds for all parts
GIB = 2**30
FULL = {
    "forward": {"edges": 10**9, "columns": [16, 64]},
    "train": {"edges": 10**8, "epochs": 4, "limit": 8 * GIB, "tight": 3 * GIB, "channels": 64},
    "growth_forward": {"sizes": [10**5, 10**6, 10**7, 10**8, 316_000_000, 10**9], "columns": 16},
    "growth_train": {"sizes": [10**5, 10**6, 10**7, 10**8], "channels": 64},
}
SMALL = {
    "forward": {"edges": 10**5, "columns": [4, 8]},
    "train": {"edges": 10**5, "epochs": 3, "limit": GIB // 16, "tight": GIB // 280, "channels": 16},
    "growth_forward": {"sizes": [10**4, 3 * 10**4, 10**5], "columns": 4},
    "growth_train": {"sizes": [10**4, 3 * 10**4, 10**5], "channels": 8},
}
STYLE = (
    "text{font-size:12px;fill:#1c2430}.tick,.axis-name{fill:#5a6676}.grid{stroke:#dfe3e8;fill:none}"
    ".axis{stroke:#5a6676;fill:none}.line{fill:none;stroke-width:2}.dots{fill:none;stroke-width:6;stroke-linecap:round}"
    ".s0{stroke:#458ef5}.s1{stroke:#ab4a01}"
    "@media (prefers-color-scheme:dark){text{fill:#e6eaf0}.tick,.axis-name{fill:#9ba7b6}.grid{stroke:#323a46}}"
)
SECONDS = {
    "write": 60,
    "forward": 120,
    "train_streamed": 90,
    "train_memory": 90,
    "train_tight": 60,
    "growth_forward": 80,
    "growth_train": 90,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["run", "figure", "part"])
    parser.add_argument("--device", default=None)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--only", action="append", choices=list(SECONDS), help="some parts; all by default")
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--optimiser", default="Adam", help="of the training part, by its name in torch.optim")
    parser.add_argument("--planned", type=float, default=0.92, help="share of the limit that the plan may use")
    parser.add_argument("--name", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.device = options.device or ("cpu" if options.small else "cuda")
    if options.command == "figure":
        draw(json.loads((options.out or RECORD).read_text()), FIGURE)
    elif options.command == "part":
        print("\n" + part(options))
    else:
        run(options)


def run(options: argparse.Namespace) -> None:
    """Run all parts in processes and write the record after each of them."""
    record: dict[str, Any] = {"command": " ".join(sys.argv), "small": options.small}
    path = options.out or (Path("results/out_of_core_small.json") if options.small else RECORD)
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        for name in SECONDS:
            if options.only and name not in options.only and name != "write":
                continue
            left = DEADLINE - (time.perf_counter() - begin)
            record[name] = process(name, options, folder, timeout=min(SECONDS[name], left))
            record["seconds"] = time.perf_counter() - begin
            record["summary"] = summary(record)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(record, indent=2) + "\n")
            print(f"{name}: {json.dumps(record[name])[:400]}", flush=True)
    print(json.dumps(record["summary"], indent=2))


def process(
    name: str, options: argparse.Namespace, folder: str, *, timeout: float, planned: float = 0.92
) -> dict[str, Any]:
    """Run a part and return what it found, or why it failed; after a lack of memory once more with a smaller plan."""
    if timeout < 10:
        return {"error": "no time was left"}
    words = [sys.executable, __file__, "part", "--name", name, "--folder", folder, "--device", options.device]
    words += ["--optimiser", options.optimiser, "--planned", str(planned), *(["--small"] if options.small else [])]
    start = time.perf_counter()
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=timeout, check=False)
        if done.returncode and "OutOfMemoryError" in done.stderr and planned > 0.7:
            left = timeout - (time.perf_counter() - start)
            return process(name, options, folder, timeout=left, planned=0.7) | {"first_error": done.stderr[-500:]}
        if done.returncode:
            return {"error": done.stderr.strip()[-1500:]}
        found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
        return found | {"wall_s": time.perf_counter() - start}
    except subprocess.TimeoutExpired:
        return {"error": f"it took more than {timeout:.0f} s"}
    except (ValueError, IndexError) as error:
        return {"error": repr(error)}


def part(options: argparse.Namespace) -> str:
    """Measure one part in this process and return JSON."""
    import out_of_core_parts as parts

    sizes: Any = SMALL if options.small else FULL
    training, device, graph = sizes["train"], options.device, options.folder / "graph"
    common: Any = {
        "planned": options.planned,
        "epochs": training["epochs"],
        "channels": training["channels"],
        "optimiser": options.optimiser,
    }
    if options.name == "write":
        start = time.perf_counter()
        parts.write_graph(graph, edges=training["edges"], device=device)
        found = parts.environment(device) | {"written_s": time.perf_counter() - start}
    elif options.name == "train_streamed":
        found = parts.train(graph, device, memory=training["limit"], **common)
    elif options.name == "train_tight":
        found = parts.train(graph, device, memory=training["tight"], **common | {"epochs": 2})
    elif options.name == "train_memory":
        found = parts.train(graph, device, memory=None, **common)
    elif options.name == "growth_train":
        found = parts.growth_train(options.folder, device, **sizes["growth_train"])
    elif options.name == "growth_forward":
        found = parts.growth_forward(device, **sizes["growth_forward"])
    else:
        found = parts.forward(device, **sizes["forward"])
    return parts.as_json(found)


def summary(record: dict[str, Any]) -> dict[str, Any]:
    """Return the figures that the text of the documentation cites; None for what was not measured."""
    found: dict[str, Any] = {}
    memory = record.get("train_memory", {}).get("losses") or []
    for name in ("train_streamed", "train_tight"):
        both = list(zip(record.get(name, {}).get("losses") or [], memory, strict=False))
        found[f"{name}_loss_difference"] = max((abs(a - b) / abs(b) for a, b in both), default=None)
    for name in ("growth_forward", "growth_train"):
        rows = [row for row in record.get(name, {}).get("rows", []) if "error" not in row]
        cache = record.get(name, {}).get("cache_bytes", 0)
        seconds = "product_s" if name == "growth_forward" else "epoch_s"
        full = [row for row in rows if row.get("state_bytes", cache + 1) > cache and row["edges"] >= 10**7]
        full = full if len(full) > 1 else rows[-2:]
        found[name] = {"sizes": [row["edges"] for row in full], "time_exponent": slope(full, seconds)}
        found[name]["memory_exponent"] = slope(full, "peak_gib")
    return found


def slope(rows: list[dict[str, Any]], key: str) -> float | None:
    """Return the exponent b of key = c edges^b, fitted to logarithms."""
    if len(rows) < 2 or any(not row.get(key) for row in rows):
        return None
    return float(np.polyfit(np.log([row["edges"] for row in rows]), np.log([row[key] for row in rows]), 1)[0])


def draw(record: dict[str, Any], path: Path) -> None:
    """Draw seconds and memory over the number of edges."""
    from beltrami.report.figure import Figure, Line
    from beltrami.report.svg import svg

    panels = []
    for key, title, unit in (("s", "Time", "seconds"), ("gib", "Memory on the device", "GiB")):
        lines = []
        for name, label, seconds in (
            ("growth_forward", "product, 16 columns", "product_s"),
            ("growth_train", "training epoch, 64 channels", "epoch_s"),
        ):
            rows = [row for row in record.get(name, {}).get("rows", []) if "error" not in row]
            values = np.array([row[seconds if key == "s" else "peak_gib"] for row in rows], dtype=float)
            lines.append(Line(label, np.array([row["edges"] for row in rows], dtype=float), values))
        says = f"{title} over the number of directed edges, of graphs with 50 neighbours a node."
        panels.append(Figure(f"out-of-core-{key}", title, says, "directed edges", unit, lines, log="xy"))
    path.parent.mkdir(parents=True, exist_ok=True)
    inner = [
        svg(panel).replace("<svg ", f'<svg x="{430 * k}" width="400" height="290" ', 1)
        for k, panel in enumerate(panels)
    ]
    head = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="-10 -10 850 310" font-family="sans-serif">'
    path.write_text(f"{head}\n<style>{STYLE}</style>\n" + "\n".join(inner) + "\n</svg>\n")
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
