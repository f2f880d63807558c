"""Fit the planner's cost models to results/plan.json, and test them on each of the seven sizes that a fit left out."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from beltrami.planner.cost_model import CostModel, fit
from beltrami.planner.modes import row_chunks
from beltrami.planner.workload import Workload

COEFFICIENTS = Path("src/beltrami/planner/coefficients.py")
BYTES = ("constant", "inputs", "dropped", "edges", "state", "states", "projections", "scores")
TIME = ("constant", "evaluations", "gathered", "states", "encoded", "scored", "stages", "multiplied")
MODELS = {  # the quantities of the memory and of the time
    **dict.fromkeys(("whole-frozen", "whole-live", "columns", "parts"), (BYTES, TIME)),
    "blocks": (
        ("constant", "planned"),
        ("constant", "passes", "gathered", "states", "inputs", "scored", "row_chunks"),
    ),
    "diffuse": (("constant", "planned"), ("constant", "passes", "gathered", "states", "inputs")),
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
    for row in rows:
        if "error" in row:
            print(f"{row['size']} {row['mode']}: {row['error']}")
            continue
        w = Workload(**row["workload"])
        w = replace(w, planned=float(row.get("planned_bytes", 0)))
        if "planned_columns" in row:
            w = replace(w, column_blocks=-(-w.channels // row["planned_columns"]))
        if "planned_limit" in row:
            w = replace(w, row_chunks=row_chunks(w, row["planned_limit"]))
        name = row["mode"]
        if name in ("whole", "workers"):
            name = {"whole": ("whole-frozen", "whole-live"), "workers": ("columns", "parts")}[name][w.live]
        found.setdefault(name, []).append((row["size"], w, float(row["bytes"]), float(row["seconds"])))
    return found


def fit_all(rows: Sequence[Mapping[str, Any]], *, device: str, write: bool) -> dict[str, tuple[CostModel, CostModel]]:
    """Fit both models of every mode, and print predicted over measured on the seven sizes: by the model, and in
    brackets by one that was fitted without the size."""
    models = {}
    for mode, measured in read(rows).items():
        pair = tuple(_fit(mode, measured, place) for place in (0, 1))
        models[mode] = (pair[0], pair[1])
        for place, kind in enumerate(("memory", "time")):
            ratios = []
            for size, w, *costs in (each for each in measured if not each[0].startswith("generated")):
                others = _fit(mode, [each for each in measured if each[0] != size], place)
                ratios.append(f"{size} {pair[place](w) / costs[place]:.2f} ({others(w) / costs[place]:.2f})")
            print(f"{mode} {kind}: {', '.join(ratios)}")
    if write:
        lines = [f"    {name!r}: ({_text(memory)}, {_text(seconds)}),\n" for name, (memory, seconds) in models.items()]
        COEFFICIENTS.write_text(PAGE.format(measured=device, rows="".join(lines)))
    return models


def _fit(mode: str, measured: Sequence[tuple[str, Workload, float, float]], place: int) -> CostModel:
    """Return the model of the memory, or of the time for ``place`` 1."""
    return fit(MODELS[mode][place], [each[1] for each in measured], [(each[2], each[3])[place] for each in measured])


def _text(model: CostModel) -> str:
    return "CostModel(" + json.dumps({name: float(f"{c:.4g}") for name, c in model.coefficients.items() if c}) + ")"
