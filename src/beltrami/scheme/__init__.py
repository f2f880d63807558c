"""Time discretisation: solvers, step-size controllers and adjoints for y' = f(t, y). Knows no graphs."""

from beltrami.scheme.adjoint import Checkpointed, Continuous, Direct
from beltrami.scheme.base import Adjoint, Controller, Solution, Solver, Stats, TimeStepping
from beltrami.scheme.controller import PID, ConstantSteps
from beltrami.scheme.energy_controller import EnergyController, EnergyDecreasing
from beltrami.scheme.exponential.integrator import Exponential
from beltrami.scheme.implicit.theta import CrankNicolson, ImplicitEuler, SymmetricEuler
from beltrami.scheme.multistep import AdamsBashforth, AdamsMoulton
from beltrami.scheme.runge_kutta import RK4, Bosh3, Dopri5, Euler, Heun, Midpoint
from beltrami.scheme.time_stepping import Scheme, solve
from beltrami.scheme.torchdiffeq_adapter import TorchDiffEq
from beltrami.scheme.vector_field import LinearVectorField, Potential, SparsityPattern

__all__ = [
    "solve", "Scheme", "Solution", "Stats",
    "Euler", "Midpoint", "Heun", "RK4", "Bosh3", "Dopri5", "AdamsBashforth", "AdamsMoulton",
    "ImplicitEuler", "CrankNicolson", "SymmetricEuler",
    "ConstantSteps", "PID", "EnergyController",
    "Direct", "Checkpointed", "Continuous",
    "Exponential", "EnergyDecreasing", "TorchDiffEq",
    "LinearVectorField", "SparsityPattern", "Potential",
    "TimeStepping", "Solver", "Controller", "Adjoint",
]  # fmt: skip
