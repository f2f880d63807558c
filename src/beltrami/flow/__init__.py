"""Flows: the equation that joint coordinates follow."""

from beltrami.flow.base import Flow, VectorField
from beltrami.flow.beltrami import BeltramiField, BeltramiFlow, LinearField, LinearFlow
from beltrami.flow.chebyshev import ChebyshevFlow
from beltrami.flow.cost import Cost, Costed, JacobianNorm, Kinetic
from beltrami.flow.frozen_positions import FrozenPositions
from beltrami.flow.hyperbolic import HyperbolicFlow
from beltrami.flow.message import MessageFlow, Pointwise
from beltrami.flow.onsager import MixedFlow, OnsagerFlow
from beltrami.flow.polyakov import Mass, PolyakovField, PolyakovFlow, counting, degree
from beltrami.flow.schedule import Bernstein, PerInterval, Schedule
from beltrami.flow.source import Attachment, Rate, Source
from beltrami.flow.time_varying import TimeVarying

__all__ = [
    "Flow",
    "VectorField",
    "BeltramiFlow",
    "LinearFlow",
    "HyperbolicFlow",
    "PolyakovFlow",
    "OnsagerFlow",
    "MixedFlow",
    "ChebyshevFlow",
    "MessageFlow",
    "Pointwise",
    "FrozenPositions",
    "TimeVarying",
    "Schedule",
    "PerInterval",
    "Bernstein",
    "BeltramiField",
    "LinearField",
    "PolyakovField",
    "Mass",
    "counting",
    "degree",
    "Rate",
    "Source",
    "Attachment",
    "Cost",
    "Kinetic",
    "JacobianNorm",
    "Costed",
]
