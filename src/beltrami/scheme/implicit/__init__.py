"""Implicit solvers, for stiff problems."""
