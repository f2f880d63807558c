"""Time: solvers, step controllers and adjoints for y' = f(t, y). Knows no graphs."""

from beltrami.scheme.adjoint import Checkpointed, Continuous, Direct
from beltrami.scheme.base import (
    Adjoint,
    Controller,
    Solution,
    Solver,
    State,
    Stats,
    Step,
    TimeStepping,
    VectorField,
    Verdict,
)
from beltrami.scheme.controller import PID, ConstantSteps
from beltrami.scheme.energy_controller import EnergyController, EnergyDecreasing
from beltrami.scheme.exponential.integrator import Exponential
from beltrami.scheme.implicit.symmetric_euler import SymmetricEuler
from beltrami.scheme.implicit.theta import CrankNicolson, ImplicitEuler
from beltrami.scheme.linear_field import LinearVectorField
from beltrami.scheme.multistep import AdamsBashforth, AdamsMoulton
from beltrami.scheme.potential import Potential
from beltrami.scheme.runge_kutta import RK4, Bosh3, Dopri5, Euler, Heun, Midpoint
from beltrami.scheme.solve import Scheme, solve
from beltrami.scheme.sparsity import SparsityPattern
from beltrami.scheme.torchdiffeq_adapter import TorchDiffEq

__all__ = [
    "solve",
    "Scheme",
    "Solution",
    "Stats",
    "Euler",
    "Midpoint",
    "Heun",
    "RK4",
    "Bosh3",
    "Dopri5",
    "AdamsBashforth",
    "AdamsMoulton",
    "ImplicitEuler",
    "CrankNicolson",
    "SymmetricEuler",
    "ConstantSteps",
    "PID",
    "Direct",
    "Checkpointed",
    "Continuous",
    "Exponential",
    "EnergyDecreasing",
    "EnergyController",
    "Potential",
    "LinearVectorField",
    "SparsityPattern",
    "TorchDiffEq",
    "TimeStepping",
    "Solver",
    "Controller",
    "Adjoint",
    "VectorField",
    "State",
    "Step",
    "Verdict",
]
