"""Exponential integrator for linear fields."""
