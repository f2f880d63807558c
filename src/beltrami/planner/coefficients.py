"""Coefficients of the cost models, made by ``benchmarks/plan_costs.py fit --write`` of results/plan.json."""

from collections.abc import Mapping

from beltrami.planner.cost_model import CostModel

MEASURED = "NVIDIA H200"
COSTS: Mapping[str, tuple[CostModel, CostModel]] = {
    "whole-frozen": (
        CostModel({"constant": 72640000.0, "features": 0.9944, "edges": 99.63, "kept": 1.128}),
        CostModel(
            {
                "constant": 0.0001985,
                "evaluations": 2.511e-05,
                "sender_sums": 8.572e-05,
                "gathered": 7.831e-13,
                "states": 7.619e-12,
                "scored": 3.029e-13,
                "encoded": 3.481e-13,
            }
        ),
    ),
    "whole-live": (
        CostModel({"constant": 70190000.0, "features": 1.022, "edges": 39.68, "kept": 1.046}),
        CostModel(
            {
                "evaluations": 9.334e-05,
                "sender_sums": 0.0001081,
                "gathered": 3.716e-13,
                "states": 1.992e-11,
                "scored": 1.658e-12,
                "encoded": 6.561e-13,
            }
        ),
    ),
    "columns": (
        CostModel({"constant": 7916000.0, "features": 1.141, "edges": 459.9, "states": 3.787}),
        CostModel(
            {
                "constant": 0.04185,
                "evaluations": 0.001272,
                "sender_sums": 0.04253,
                "gathered": 1.938e-12,
                "states": 3.95e-12,
                "scored": 1.149e-11,
            }
        ),
    ),
    "parts": (
        CostModel({"features": 0.8484, "edges": 122.8, "kept_by_parts": 1.001}),
        CostModel({"constant": 0.01233, "evaluations": 0.019, "sender_sums": 0.02716}),
    ),
    "blocks": (
        CostModel({"planned": 0.7812}),
        CostModel({"constant": 0.008099, "inputs": 6.942e-11, "scored": 1.63e-10, "row_chunks": 0.004009}),
    ),
    "diffuse": (
        CostModel({"planned": 0.9234}),
        CostModel({"constant": 0.03476, "gathered": 3.553e-12, "inputs": 4.047e-09}),
    ),
}
"""Bytes on the device and seconds of an epoch, or of the one pass of ``diffuse``, by mode."""
