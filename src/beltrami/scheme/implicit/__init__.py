"""Implicit solvers and the equations they solve."""
