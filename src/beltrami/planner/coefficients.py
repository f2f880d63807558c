"""Coefficients of the cost models, made by ``benchmarks/plan_costs.py fit --write`` of results/plan.json."""

from collections.abc import Mapping

from beltrami.planner.cost_model import CostModel

MEASURED = "NVIDIA H200"
COSTS: Mapping[str, tuple[CostModel, CostModel]] = {
    "whole-frozen": (
        CostModel(
            {
                "constant": 82220000.0,
                "inputs": 0.9893,
                "dropped": 0.5296,
                "state": 7.714,
                "states": 0.8992,
                "projections": 21.05,
                "scores": 5.071,
            }
        ),
        CostModel(
            {
                "constant": 0.0001936,
                "evaluations": 2.176e-05,
                "gathered": 5.046e-13,
                "states": 9.604e-12,
                "encoded": 3.466e-13,
                "scored": 1.629e-12,
                "stages": 7.771e-08,
            }
        ),
    ),
    "whole-live": (
        CostModel(
            {
                "constant": 65370000.0,
                "inputs": 1.314,
                "dropped": 0.9725,
                "state": 3.152,
                "states": 1.958,
                "projections": 3.525,
                "scores": 1.835,
            }
        ),
        CostModel(
            {
                "evaluations": 8.525e-05,
                "gathered": 5.445e-13,
                "states": 2.148e-11,
                "scored": 1.275e-12,
                "stages": 6.494e-07,
            }
        ),
    ),
    "columns": (
        CostModel(
            {
                "constant": 17910000.0,
                "inputs": 1.019,
                "dropped": 0.8459,
                "edges": 30.01,
                "state": 11.51,
                "states": 1.496,
                "projections": 43.01,
                "scores": 15.23,
            }
        ),
        CostModel(
            {
                "constant": 0.03184,
                "evaluations": 0.002349,
                "gathered": 1.449e-12,
                "scored": 1.38e-11,
                "stages": 8.645e-06,
                "multiplied": 2.429e-12,
            }
        ),
    ),
    "parts": (
        CostModel({"constant": 15330000.0, "edges": 919.0, "state": 132.7, "projections": 10.11, "scores": 0.9717}),
        CostModel({"evaluations": 0.01601, "stages": 8.364e-05, "multiplied": 1.341e-11}),
    ),
    "blocks": (
        CostModel({"planned": 0.7812}),
        CostModel({"constant": 0.008099, "inputs": 6.942e-11, "scored": 1.63e-10, "row_chunks": 0.004009}),
    ),
    "diffuse": (
        CostModel({"planned": 1.125}),
        CostModel({"constant": 0.03627, "gathered": 3.551e-12, "inputs": 3.972e-09}),
    ),
}
"""Bytes on the device and seconds of an epoch, or of the one pass of ``diffuse``, by mode."""
