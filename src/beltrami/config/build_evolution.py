"""Build the evolution of a configuration: its diffusivity and flow, its stencil and its scheme."""

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import torch

from beltrami import diffusivity, energy, flow, scheme, stencil
from beltrami.config.spec import AdjointSpec, RunConfig, SchemeSpec, StepsSpec
from beltrami.config.spec_graph import EdgesSpec, InputEdgesSpec, KNNSpec, StencilSpec
from beltrami.config.spec_model import DiffusivitySpec, FlowSpec
from beltrami.diffusivity import Additive, Cosine, Diffusivity, Pearson, ScaledDot
from beltrami.geometry import PoincareBall
from beltrami.graph import Both, Columns, Normaliser, Rows, softmax_link, squareplus_link
from beltrami.joint import Joint
from beltrami.model import Evolution
from beltrami.scheme import Adjoint, Checkpointed, ConstantSteps, Continuous, Controller, Direct, Scheme, Solver
from beltrami.scheme.base import TimeStepping
from beltrami.stencil import Chain, Stencil, Symmetric

C = TypeVar("C", bound=Callable[..., Any])


def by_kind(*classes: C) -> dict[str, C]:
    """Return classes by the kinds that settings give them: ``ScaledDot`` is ``scaled-dot``."""
    return {re.sub("(?<=[a-z])(?=[A-Z])", "-", each.__name__).lower(): each for each in classes}


LINKS = {"softmax": softmax_link, "squareplus": squareplus_link}
NORMALISERS: Mapping[str, type[Normaliser]] = by_kind(Rows, Columns, Both)
PROJECTED: Mapping[str, Callable[..., Diffusivity]] = by_kind(Cosine, Pearson, ScaledDot)
PSIS: Mapping[str, Callable[[float], energy.Psi]] = by_kind(energy.Gauss, energy.PeronaMalik, energy.Roughness)
ADJOINTS: Mapping[str, Callable[[], Adjoint]] = by_kind(Direct, Checkpointed, Continuous)
EXPLICIT = (scheme.Euler, scheme.Midpoint, scheme.Heun, scheme.RK4, scheme.Bosh3, scheme.Dopri5)
MULTISTEP, IMPLICIT = (scheme.AdamsBashforth, scheme.AdamsMoulton), (scheme.ImplicitEuler, scheme.CrankNicolson)
SOLVERS: Mapping[str, Callable[..., Solver]] = by_kind(*EXPLICIT, *MULTISTEP, *IMPLICIT)


def build_evolution(config: RunConfig, joint: Joint) -> Evolution:
    """Return the flow on its stencil by its scheme, for a state of these channels."""
    equation = build_flow(config.flow, config.diffusivity, joint)
    spec = config.stencil
    mesh = build_stencil(spec, joint, ball=PoincareBall() if config.flow.kind == "hyperbolic" else None)
    if isinstance(spec, EdgesSpec) and spec.strongest is not None:
        strongest = stencil.KeepStrongest(spec.strongest, equation.diffusivity)
        mesh = Chain(mesh, stencil.TrainingOnly(strongest, equation.diffusivity))
    return Evolution(
        equation,
        scheme=build_scheme(config.scheme),
        time=terminal_time(config.scheme),
        stencil=mesh,
        remesh=None if spec.kind == "none" else spec.remesh,
        costs=build_costs(config.flow),
    )


def build_diffusivity(spec: DiffusivitySpec, joint: Joint, *, ball: PoincareBall | None = None) -> Diffusivity:
    """Return the diffusivity on a state of these channels; ``ball``: the space of the positions, None if flat."""
    assert spec.kind != "none"  # check_settings has refused it
    if spec.kind == "uniform":
        return diffusivity.RandomWalk(NORMALISERS[spec.over]())
    common: dict[str, Any] = {"heads": spec.heads, "normalise": NORMALISERS[spec.over](LINKS[spec.link])}
    if spec.kind == "gaussian":
        return diffusivity.Gaussian(joint, metric=ball, **common)
    if spec.kind == "scalar-cosine":
        return diffusivity.ScalarCosine(**common)
    start = spec.start
    common["start"] = diffusivity.constant(start.value) if start.kind == "constant" else diffusivity.xavier
    if spec.kind == "additive":
        return Additive(joint.channels, spec.width, **common)
    common["bias"] = spec.bias
    if spec.kind == "exp-kernel":
        return diffusivity.ExpKernel(joint, spec.width, **common)
    if spec.kind == "scaled-dot":
        common["d_k"] = spec.d_k
    return PROJECTED[spec.kind](joint.channels, spec.width, **common)


def build_flow(spec: FlowSpec, weights: DiffusivitySpec, joint: Joint) -> flow.Flow:
    """Return the flow of a state of these channels, driven by the diffusivity ``weights``."""
    assert spec.kind != "none"
    if spec.kind == "polyakov":
        psi = energy.Constant() if spec.psi.kind == "constant" else PSIS[spec.psi.kind](spec.psi.length)
        rate, attachment = flow.Rate() if spec.rate else None, flow.Attachment() if spec.attachment else None
        return flow.PolyakovFlow(energy.PolyakovAction(psi), mass=flow.degree, rate=rate, attachment=attachment)
    a = build_diffusivity(weights, joint, ball=PoincareBall() if spec.kind == "hyperbolic" else None)
    rate, source = flow.Rate() if spec.rate else None, flow.Source() if spec.source else None
    if spec.kind == "hyperbolic":
        return flow.HyperbolicFlow(a, joint, rate=rate, source=source)
    coupling = flow.Coupling() if spec.coupling else None
    if spec.kind == "frozen":
        return flow.LinearFlow(a, rate=rate, source=source, coupling=coupling)
    storage = None if spec.storage is None else getattr(torch, spec.storage)
    return flow.BeltramiFlow(a, rate=rate, source=source, coupling=coupling, storage=storage)


def build_costs(spec: FlowSpec) -> list[flow.Cost]:
    """Return the running costs of non-zero weight."""
    if spec.kind == "none":
        return []
    costs: list[flow.Cost] = [flow.Kinetic(spec.kinetic)] if spec.kinetic else []
    return [*costs, flow.JacobianNorm(spec.jacobian)] if spec.jacobian else costs


def build_stencil(spec: StencilSpec, joint: Joint, *, ball: PoincareBall | None = None) -> Stencil:
    """Return the stencil on a state of these channels, without the choice of the strongest edges; ``ball``: the space
    of the positions, which the state holds as logarithms at the origin, None if flat."""
    parts = [_edges(spec, joint, ball)]
    if isinstance(spec, InputEdgesSpec | KNNSpec) and spec.symmetric:
        parts.append(Symmetric())
    if isinstance(spec, InputEdgesSpec) and not spec.weighted:
        parts.append(stencil.Unweighted())
    if spec.kind != "none" and spec.loops:
        parts.append(stencil.Loops(spec.loops))
    parts = [part for part in parts if not isinstance(part, stencil.Keep)] or [stencil.Keep()]
    return parts[0] if len(parts) == 1 else Chain(*parts)


def _edges(spec: StencilSpec, joint: Joint, ball: PoincareBall | None) -> Stencil:
    """Return the stencil of the kind, before edges are made symmetric or lose their weights and before loops."""
    assert spec.kind != "none"
    if spec.kind == "digl":
        return stencil.TopK(spec.k, restart=spec.restart)
    if spec.kind == "threshold":
        return stencil.Threshold(spec.least, restart=spec.restart)
    if spec.kind == "complete":
        return stencil.Complete()
    if spec.kind == "isolated":
        return stencil.Isolated()
    if spec.kind == "keep" or spec.kind == "file":  # the graph of a file is the input graph of the problem
        return stencil.Keep()
    if spec.on == "u" and not joint.pos:
        raise ValueError("`stencil.on=u` looks at positions and there are none: set `position.kind`, or on=x.")
    if spec.on == "z" and ball is not None:
        raise ValueError("`stencil.on=z` mixes positions in the ball with features, which are flat: set on=u or on=x.")
    on: dict[str, Any] = {"on": {"u": joint.u, "x": joint.x, "z": None}[spec.on]}
    if ball is not None and spec.on == "u":
        on = {"metric": ball}
    near: Stencil = stencil.KNN(spec.k, **on) if spec.kind == "knn" else stencil.Radius(spec.radius, **on)
    return near if "on" in on else stencil.Charted(near, lambda z: PoincareBall().exp_origin(z[:, joint.u]))


def build_prior(spec: StencilSpec) -> Stencil | None:
    """Return the stencil that alters the input graph by the input features; None if nothing does."""
    parts: list[Stencil] = []
    if isinstance(spec, InputEdgesSpec) and spec.reweight.kind == "similarity":
        parts.append(stencil.FeatureSimilarity(spec.reweight.sharpness))
    if isinstance(spec, InputEdgesSpec) and spec.add.kind == "neighbours":
        parts.append(stencil.AddEdges(Chain(stencil.KNN(spec.add.k), Symmetric()), weight=spec.add.weight))
    return Chain(*parts) if parts else None


def terminal_time(spec: SchemeSpec) -> float:
    """Return the terminal time of a scheme; 0 where there is none."""
    return 0.0 if spec.kind == "none" else spec.time


def build_scheme(spec: SchemeSpec) -> TimeStepping:
    """Return the time stepping."""
    assert spec.kind != "none"
    if spec.kind == "exponential":
        return scheme.Exponential(rtol=spec.rtol, atol=spec.atol)
    if spec.kind == "torchdiffeq":
        settings: dict[str, Any] = {"step_size": spec.step_size, "rtol": spec.rtol, "atol": spec.atol}
        return scheme.TorchDiffEq(spec.method, adjoint=ADJOINTS[spec.adjoint.kind](), **settings)
    if isinstance(spec.adjoint, AdjointSpec):
        adjoint = ADJOINTS[spec.adjoint.kind]()
    else:
        adjoint = Continuous(Scheme(*_steps(spec.adjoint), max_steps=spec.max_steps))
    steps = Scheme(*_steps(spec), adjoint, max_steps=spec.max_steps)
    return scheme.EnergyDecreasing(steps) if spec.energy_decreasing else steps


def _steps(spec: StepsSpec) -> tuple[Solver, Controller]:
    """Return the solver and the controller; adaptive steps solve implicit equations to a tenth of their tolerances."""
    if spec.kind == "implicit":
        return SOLVERS[spec.solver](rtol=spec.rtol, atol=spec.atol), ConstantSteps(spec.dt)
    if spec.kind == "constant" or spec.kind == "continuous-constant":
        return SOLVERS[spec.solver](), ConstantSteps(spec.dt)
    tolerances = {"rtol": spec.rtol / 10, "atol": spec.atol / 10} if spec.solver == "implicit-euler" else {}
    return SOLVERS[spec.solver](**tolerances), scheme.PID(rtol=spec.rtol, atol=spec.atol)
