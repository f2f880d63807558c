"""Stencils: the graph that a flow is discretised on."""

from beltrami.stencil.base import Stencil
from beltrami.stencil.simple import Keep, Loops

__all__ = ["Stencil", "Keep", "Loops"]
