"""Solves that ``torch.compile`` leaves out of its graphs, with the reason that it gives under ``fullgraph=True``.

Imported only while it traces: the import of ``torch._dynamo``, which the decorator needs, takes a second.
"""

from collections.abc import Callable
from typing import Any

import torch

SOLVE = (
    "the steps of this scheme depend on the solution. For one graph, use Exponential, or an explicit solver with "
    "ConstantSteps and the adjoint Direct."
)


@torch.compiler.disable(reason=SOLVE)  # type: ignore[untyped-decorator]
def run_scheme(run: Callable[..., Any], *args: Any) -> Any:
    """Return ``run(*args)``, of a scheme whose steps depend on values."""
    return run(*args)
