"""A row of the paper's Table 1, and the parts that its networks share."""

from collections.abc import Callable
from dataclasses import dataclass

from beltrami.flow import Flow, PerInterval, TimeVarying
from beltrami.model.evolution import Evolution
from beltrami.scheme import ConstantSteps, Euler, Scheme

EULER_LAYERS = Scheme(Euler(), ConstantSteps(1.0))
"""Explicit Euler steps of length one: each step is a layer."""


@dataclass(frozen=True)
class ZooEntry:
    """A network as an instance of the framework: the columns of Table 1, and the function that builds it.

    Args:
        method: the network.
        build: the function that returns its evolution.
        recipe: the name of the recipe that trains it.
        diffusivity: the arguments of the edge weights.
        graph: the stencil, (V, E').
        evolution: the coordinates that evolve.
        discretisation: the time stepping.
    """

    method: str
    build: Callable[..., Evolution]
    recipe: str
    diffusivity: str
    graph: str
    evolution: str = "features X"
    discretisation: str = "explicit, fixed step"


def one_flow_per_layer(make: Callable[[], Flow], layers: int) -> Flow:
    """Return a flow with separate parameters for each layer, a time interval of length one."""
    if layers < 1:
        raise ValueError(f"a network needs at least one of `layers`; got {layers}.")
    return make() if layers == 1 else TimeVarying([make() for _ in range(layers)], PerInterval(layers))
