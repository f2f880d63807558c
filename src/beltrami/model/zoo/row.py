"""Row: a line of the paper's Table 1, and what the lines have in common."""

from collections.abc import Callable
from dataclasses import dataclass

from beltrami.flow import Flow, PerInterval, TimeVarying
from beltrami.model.evolution import Evolution
from beltrami.scheme import ConstantSteps, Euler, Scheme

LAYERS = Scheme(Euler(), ConstantSteps(1.0))
"""Explicit Euler steps of length one: layers one after the other."""

FEATURES = "features X"
FIXED_STEP = "explicit, fixed step"


@dataclass(frozen=True)
class ZooEntry:
    """A network as an instance of the framework: the columns of Table 1, and the function that builds it.

    Args:
        method: the network.
        evolution: what moves.
        diffusivity: what the weights of the edges look at.
        graph: the stencil, (V, E').
        discretisation: of time.
        recipe: the name to train it by.
        build: the function; its docstring says how it is meant.
    """

    method: str
    evolution: str
    diffusivity: str
    graph: str
    discretisation: str
    recipe: str
    build: Callable[..., Evolution]


def layered(make: Callable[[], Flow], layers: int) -> Flow:
    """A flow with parameters of its own for each layer, an interval of length one."""
    if layers < 1:
        raise ValueError(f"a network needs one of `layers` or more; got {layers}.")
    return make() if layers == 1 else TimeVarying([make() for _ in range(layers)], PerInterval(layers))
