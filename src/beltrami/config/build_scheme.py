"""Build: time stepping by the names of its parts."""

from collections.abc import Callable

from beltrami.config.name import named
from beltrami.config.spec import SchemeConfig
from beltrami.errors import UnknownName
from beltrami.scheme import (
    PID,
    RK4,
    AdamsBashforth,
    AdamsMoulton,
    Adjoint,
    Bosh3,
    Checkpointed,
    ConstantSteps,
    Continuous,
    Controller,
    CrankNicolson,
    Direct,
    Dopri5,
    EnergyDecreasing,
    Euler,
    Exponential,
    Heun,
    ImplicitEuler,
    Midpoint,
    Scheme,
    Solver,
    TimeStepping,
    TorchDiffEq,
)

SOLVERS: dict[str, Callable[[SchemeConfig], Solver]] = {
    "euler": lambda config: Euler(),
    "midpoint": lambda config: Midpoint(),
    "heun": lambda config: Heun(),
    "rk4": lambda config: RK4(),
    "bosh3": lambda config: Bosh3(),
    "dopri5": lambda config: Dopri5(),
    "adams-bashforth": lambda config: AdamsBashforth(),
    "adams-moulton": lambda config: AdamsMoulton(),
    "implicit-euler": lambda config: ImplicitEuler(rtol=config.rtol / 10, atol=config.atol / 10),
    "crank-nicolson": lambda config: CrankNicolson(rtol=config.rtol / 10, atol=config.atol / 10),
}
TORCHDIFFEQ = "torchdiffeq:"  # and the name of one of its methods
EXPONENTIAL = "exponential"
ADJOINTS = ("direct", "checkpointed", "continuous")


def build_scheme(config: SchemeConfig) -> TimeStepping:
    if config.descends and config.solver.startswith((TORCHDIFFEQ, EXPONENTIAL)):
        raise ValueError(
            f"`scheme.descends` looks at every step, and {config.solver!r} shows none: choose another solver."
        )
    if config.solver.startswith(TORCHDIFFEQ):
        return _torchdiffeq(config)
    if config.solver == EXPONENTIAL:
        return _exponential(config)

    if config.solver not in SOLVERS:
        raise UnknownName("scheme.solver", config.solver, (*SOLVERS, EXPONENTIAL, TORCHDIFFEQ + "METHOD"))

    def stepping(solver: str, dt: float | None, adjoint: Adjoint) -> Scheme:
        controller: Controller = PID(rtol=config.rtol, atol=config.atol) if dt is None else ConstantSteps(dt)
        return Scheme(named("scheme.solver", solver, SOLVERS)(config), controller, adjoint, max_steps=config.max_steps)

    adjoints: dict[str, Callable[[], Adjoint]] = {
        "direct": Direct,
        "checkpointed": Checkpointed,
        "continuous": lambda: Continuous(
            None if config.backward is None else stepping(config.backward, config.backward_dt, Direct())
        ),
    }
    scheme = stepping(config.solver, config.dt, named("scheme.adjoint", config.adjoint, adjoints)())
    return EnergyDecreasing(scheme) if config.descends else scheme


def _exponential(config: SchemeConfig) -> Exponential:
    if config.dt is not None:
        raise ValueError(f"`scheme.solver=exponential` takes no steps; got dt={config.dt}: set `scheme.dt=null` too.")
    if config.adjoint != "direct":
        raise ValueError(
            "`scheme.solver=exponential` has an exact gradient of its own; "
            f"got adjoint={config.adjoint}: set `scheme.adjoint=direct` too."
        )
    return Exponential(rtol=config.rtol, atol=config.atol)


def _torchdiffeq(config: SchemeConfig) -> TorchDiffEq:
    adjoint = named("scheme.adjoint of torchdiffeq", config.adjoint, {"direct": Direct(), "continuous": Continuous()})
    method = config.solver.removeprefix(TORCHDIFFEQ)
    return TorchDiffEq(method, rtol=config.rtol, atol=config.atol, step_size=config.dt, adjoint=adjoint)
