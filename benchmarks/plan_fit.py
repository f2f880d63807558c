"""Fit the planner's cost models to results/plan.json, and test them on each of the seven sizes that a fit left out."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from plan_costs import TIMES

from beltrami.planner.cost_model import CostModel, fit
from beltrami.planner.modes import WORKSPACES, row_chunks
from beltrami.planner.workload import NUMBER, Workload

COEFFICIENTS = Path("src/beltrami/planner/coefficients.py")
TIME = ("constant", "evaluations", "sender_sums", "gathered", "states", "scored", "encoded")
MODELS = {  # the quantities of the memory and of the time
    **dict.fromkeys(("whole-frozen", "whole-live"), (("constant", "features", "edges", "kept"), TIME)),
    "columns": (("constant", "features", "edges", "states"), TIME),
    "parts": (("features", "edges", "kept_by_parts"), TIME),
    "blocks": (("planned",), ("constant", "passes", "gathered", "states", "inputs", "scored", "row_chunks")),
    "diffuse": (("planned",), ("constant", "passes", "gathered", "states", "inputs")),
}
FIRST = ("cora", "computers")  # the first sizes of the two calls that measured; see the note in the record
ATTENTION: dict[str, dict[str, Any]] = {  # of the sizes without ScaledDot and Rows, which the record does not say
    "cora": {"projected": 4 * 128, "senders": True},
    "citeseer": {"senders": True},
    "pubmed": {"width": 16, "projected": 4 * 16, "senders": True},  # without positions it has one projection
    "coauthor-cs": {"projected": 4 * 8, "senders": True},
}
PAGE = '''"""Coefficients of the cost models, made by ``benchmarks/plan_costs.py fit --write`` of results/plan.json."""

from collections.abc import Mapping

from beltrami.planner.cost_model import CostModel

MEASURED = {measured!r}
COSTS: Mapping[str, tuple[CostModel, CostModel]] = {{
{rows}}}
"""Bytes on the device and seconds of an epoch, or of the one pass of ``diffuse``, by mode."""
'''


def read(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[tuple[str, Workload, float, float]]]:
    """Return size, workload, bytes and seconds of the measurements of each mode."""
    found: dict[str, list[tuple[str, Workload, float, float]]] = {}
    measured = [row for row in rows if "error" not in row]
    for row in (row for row in rows if "error" in row):
        print(f"{row['size']} {row['mode']}: {row['error']}")
    # Workloads of other modes than blocks count the neighbours of the recipes, which the measured graphs do not have.
    edges = {row["size"]: row["workload"]["edges"] for row in measured if row["mode"] == "blocks"}
    for row in measured:
        size, mode, w = row["size"], row["mode"], Workload(**row["workload"])
        w = replace(w, edges=edges.get(size, w.edges), planned=float(row.get("planned_bytes", 0)))
        if "planned_columns" in row:
            w = replace(w, column_blocks=-(-w.channels // row["planned_columns"]))
        if "planned_limit" in row:
            w = replace(w, row_chunks=row_chunks(w, row["planned_limit"]))
        if mode == "diffuse" and w.column_blocks > 1:  # measured when it still held the results of the block before
            w = replace(w, planned=w.planned + NUMBER * w.nodes * row["planned_columns"] * len(TIMES))
        taken = row["bytes"]
        if mode in ("whole", "workers"):
            if "senders" not in row["workload"]:
                w = replace(w, **{"projected": 2 * w.width, **ATTENTION.get(size, {})})
            if size in FIRST and not w.live:  # a process allocates workspaces once; the planner adds them for each
                taken -= WORKSPACES
            mode = {"whole": ("whole-frozen", "whole-live"), "workers": ("columns", "parts")}[mode][w.live]
        found.setdefault(mode, []).append((size, w, float(taken), float(row["seconds"])))
    return found


def fit_all(rows: Sequence[Mapping[str, Any]], *, device: str, write: bool) -> dict[str, tuple[CostModel, CostModel]]:
    """Fit both models of every mode, and print predicted over measured on the seven sizes: by the model, and in
    brackets by one that was fitted without the size. A line begins with the least and the largest of both."""
    models = {}
    for mode, measured in read(rows).items():
        pair = tuple(_fit(mode, measured, place) for place in (0, 1))
        models[mode] = (pair[0], pair[1])
        for place, kind in enumerate(("memory", "time")):
            names, ratios, left_out = [], [], []
            for size, w, *costs in (each for each in measured if not each[0].startswith("generated")):
                others = _fit(mode, [each for each in measured if each[0] != size], place)
                names.append(size)
                ratios.append(pair[place](w) / costs[place])
                left_out.append(others(w) / costs[place])
            each_size = (f"{n} {r:.2f} ({o:.2f})" for n, r, o in zip(names, ratios, left_out, strict=True))
            print(f"{mode} {kind}: {_range(ratios)} ({_range(left_out)}): {', '.join(each_size)}")
    if write:
        lines = [f"    {name!r}: ({_text(memory)}, {_text(seconds)}),\n" for name, (memory, seconds) in models.items()]
        COEFFICIENTS.write_text(PAGE.format(measured=device, rows="".join(lines)))
    return models


def _fit(mode: str, measured: Sequence[tuple[str, Workload, float, float]], place: int) -> CostModel:
    """Return the model of the memory, or of the time for ``place`` 1."""
    return fit(MODELS[mode][place], [each[1] for each in measured], [(each[2], each[3])[place] for each in measured])


def _range(values: Sequence[float]) -> str:
    return f"{min(values):.2f} to {max(values):.2f}"


def _text(model: CostModel) -> str:
    return "CostModel(" + json.dumps({name: float(f"{c:.4g}") for name, c in model.coefficients.items() if c}) + ")"
