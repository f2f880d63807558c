"""Time: solvers, step controllers and adjoints for y' = f(t, y). Knows no graphs."""

from beltrami.scheme.adaptor import TorchDiffEq
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
from beltrami.scheme.descent import Descent, Downhill
from beltrami.scheme.exponential import Exponential
from beltrami.scheme.implicit import CrankNicolson, ImplicitEuler
from beltrami.scheme.linear import Linear
from beltrami.scheme.multistep import AdamsBashforth, AdamsMoulton
from beltrami.scheme.pattern import Pattern
from beltrami.scheme.potential import Potential
from beltrami.scheme.runge_kutta import RK4, Bosh3, Dopri5, Euler, Heun, Midpoint
from beltrami.scheme.solve import Scheme, solve
from beltrami.scheme.symmetric import SymmetricEuler

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
    "Descent",
    "Downhill",
    "Potential",
    "Linear",
    "Pattern",
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
