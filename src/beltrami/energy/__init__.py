"""Energies of a state on a graph, and the diffusivities derived from their gradients."""

from beltrami.energy.action import Constant, Gauss, PeronaMalik, PolyakovAction, Psi, Roughness, dirichlet

__all__ = ["dirichlet", "PolyakovAction", "Psi", "Constant", "Gauss", "PeronaMalik", "Roughness"]
