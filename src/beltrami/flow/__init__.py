"""Flows: the equation that joint coordinates follow."""

from beltrami.flow.base import Flow, FunctionField, VectorField
from beltrami.flow.beltrami import BeltramiField, BeltramiFlow, LinearField, LinearFlow
from beltrami.flow.cost import Cost, Costed, JacobianNorm, Kinetic
from beltrami.flow.hyperbolic import HyperbolicFlow
from beltrami.flow.message import MessageFlow, NodewiseLayer
from beltrami.flow.polyakov import Mass, PolyakovField, PolyakovFlow, degree, unit_mass
from beltrami.flow.scalars import Attachment, Rate, Source
from beltrami.flow.time_varying import Bernstein, PerInterval, Schedule, TimeVarying
from beltrami.flow.wrapped import ChebyshevFlow, FrozenPositions, MixedFlow, OnsagerFlow

__all__ = [
    "Flow",
    "VectorField",
    "FunctionField",
    "BeltramiFlow",
    "BeltramiField",
    "LinearFlow",
    "LinearField",
    "HyperbolicFlow",
    "PolyakovFlow",
    "PolyakovField",
    "Mass",
    "unit_mass",
    "degree",
    "OnsagerFlow",
    "MixedFlow",
    "ChebyshevFlow",
    "FrozenPositions",
    "MessageFlow",
    "NodewiseLayer",
    "TimeVarying",
    "Schedule",
    "PerInterval",
    "Bernstein",
    "Rate",
    "Source",
    "Attachment",
    "Cost",
    "Kinetic",
    "JacobianNorm",
    "Costed",
]
