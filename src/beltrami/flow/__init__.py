"""Flows: the equation that joint coordinates follow."""

from beltrami.flow.base import Flow, VectorField
from beltrami.flow.beltrami import BeltramiField, BeltramiFlow, LinearField, LinearFlow
from beltrami.flow.cost import Cost, Costed, JacobianNorm, Kinetic
from beltrami.flow.hyperbolic import HyperbolicFlow
from beltrami.flow.polyakov import Mass, PolyakovField, PolyakovFlow, counting, degree
from beltrami.flow.source import Attachment, Rate, Source

__all__ = [
    "Flow",
    "VectorField",
    "BeltramiFlow",
    "LinearFlow",
    "HyperbolicFlow",
    "PolyakovFlow",
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
