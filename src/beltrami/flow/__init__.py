"""Flows: the equation that joint coordinates follow."""

from beltrami.flow.base import Attachment, BoundField, Coupling, Flow, FunctionField, Rate, Source
from beltrami.flow.beltrami import BeltramiField, BeltramiFlow, LinearField, LinearFlow
from beltrami.flow.cost import Cost, Costed, JacobianNorm, Kinetic
from beltrami.flow.hyperbolic import HyperbolicFlow
from beltrami.flow.polyakov import Mass, PolyakovField, PolyakovFlow, degree, unit_mass
from beltrami.flow.time_varying import Bernstein, PerInterval, Schedule, TimeVarying
from beltrami.flow.wrapped import ChebyshevFlow, FrozenPositions, MessageFlow, MixedFlow, NodewiseLayer, OnsagerFlow

__all__ = ["Flow", "BoundField", "FunctionField", "Rate", "Source", "Coupling", "Attachment"]
__all__ += ["BeltramiFlow", "BeltramiField", "LinearFlow", "LinearField", "HyperbolicFlow"]
__all__ += ["PolyakovFlow", "PolyakovField", "Mass", "unit_mass", "degree"]
__all__ += ["OnsagerFlow", "MixedFlow", "ChebyshevFlow", "FrozenPositions", "MessageFlow", "NodewiseLayer"]
__all__ += ["TimeVarying", "Schedule", "PerInterval", "Bernstein"]
__all__ += ["Cost", "Kinetic", "JacobianNorm", "Costed"]
