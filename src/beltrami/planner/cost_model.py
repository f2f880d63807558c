"""Linear cost models: a cost is a sum of quantities of a workload, each times a coefficient fitted to measurements."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from beltrami.planner.workload import Workload

Quantity = Callable[[Workload], float]
QUANTITIES: Mapping[str, Quantity] = {
    "constant": lambda w: 1.0,
    "edges": lambda w: float(w.edges),
    "inputs": lambda w: w.inputs,
    "features": lambda w: w.inputs + w.dropped,
    "encoded": lambda w: float((w.nodes * w.features if w.nonzeros is None else w.nonzeros) * w.channels),
    "states": lambda w: w.states,
    "kept": lambda w: w.kept,
    "kept_by_parts": lambda w: w.kept_by_parts,
    "gathered": lambda w: w.gathered,
    "scored": lambda w: w.scored,
    "evaluations": lambda w: float(w.evaluations),
    "sender_sums": lambda w: float(w.sender_sums),
    "passes": lambda w: float(w.evaluations * w.column_blocks),
    "planned": lambda w: w.planned,
    "row_chunks": lambda w: float(w.row_chunks),
}
"""What costs may depend on, by name."""


@dataclass(frozen=True)
class CostModel:
    r"""A cost :math:`\sum_k c_k q_k(w)` of a workload w; ``coefficients`` are c_k by the names in ``QUANTITIES``."""

    coefficients: Mapping[str, float]

    def __call__(self, workload: Workload) -> float:
        return sum(c * QUANTITIES[name](workload) for name, c in self.coefficients.items())


def fit(names: Sequence[str], workloads: Sequence[Workload], costs: Sequence[float]) -> CostModel:
    """Return the model with non-negative coefficients whose relative errors have the least sum of squares."""
    from scipy.optimize import nnls

    measured = np.array(costs)
    table = np.array([[QUANTITIES[name](workload) for name in names] for workload in workloads])
    scale = np.abs(table).max(axis=0).clip(min=1e-300)
    found, _ = nnls(table / scale / measured[:, None], np.ones(len(measured)))
    return CostModel({name: float(c) for name, c in zip(names, found / scale, strict=True)})
