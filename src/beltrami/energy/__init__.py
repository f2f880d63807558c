"""Energies: functionals of a state on a graph, and the diffusivities that their gradients are."""

from beltrami.energy.dirichlet import dirichlet
from beltrami.energy.polyakov import PolyakovAction
from beltrami.energy.psi import Constant, Gauss, PeronaMalik, Psi, Roughness

__all__ = ["dirichlet", "PolyakovAction", "Psi", "Constant", "Gauss", "PeronaMalik", "Roughness"]
