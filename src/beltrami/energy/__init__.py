"""Energies of a state on a graph, and the diffusivities derived from their gradients."""

from beltrami.energy.action import PolyakovAction, dirichlet
from beltrami.energy.psi import Constant, Gauss, PeronaMalik, Psi, Roughness

__all__ = ["dirichlet", "PolyakovAction", "Psi", "Constant", "Gauss", "PeronaMalik", "Roughness"]
