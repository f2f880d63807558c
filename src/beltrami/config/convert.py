"""Convert configurations of the first release, whose files carry no schema, to today's settings."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from beltrami.config.spec import SCHEMA, SchemeSpec
from beltrami.config.spec_graph import PositionSpec, StencilSpec, kinds_of
from beltrami.config.spec_model import ContinuousSpec, DiffusivitySpec, FlowSpec, ModelSpec, ZooSpec
from beltrami.errors import UnknownName

Tree = dict[str, Any]

FIRST: Mapping[str, Tree] = {
    "data": {"component": "largest", "features": "raw", "protocol": "digl", "split_seed": 0},
    "position": {"encoding": "none", "restart": 0.05, "top": 64, "time": 5.0, "channels": 16, "walk_length": 80}
    | {"tuned": False, "seed": 0, "file": None, "digest": None},
    "model": {"pos": 16, "feat": 64, "hidden": None, "dropout": 0.0, "input_dropout": 0.5, "node_dropout": 0.0}
    | {"batch_norm": False, "kind": "blend"},
    "baseline": {"width": 64, "depth": 2, "heads": 8, "out_heads": 1, "attention_dropout": 0.6, "kernels": 2}
    | {"steps": 20, "mixing": False},
    "diffusivity": {"score": "scaled-dot", "width": 32, "heads": 2, "d_k": None, "link": "softmax", "over": "rows"}
    | {"start": "xavier", "start_value": 1e-5},
    "flow": {"positions": "flat", "frozen": True, "storage": None, "rate": True, "source": False, "kinetic": 0.0}
    | {"jacobian": 0.0, "psi": None, "length": 1.0},
    "stencil": {"kind": "keep", "k": 64, "radius": 1.0, "least": 1e-3, "restart": 0.05, "on": "z", "symmetric": False}
    | {"weighted": True, "loops": 1.0, "remesh": None, "strongest": None, "alike": 0.0, "near": 0, "near_weight": 0.5}
    | {"file": None, "digest": None},
    "scheme": {"solver": "dopri5", "time": 4.0, "dt": None, "rtol": 1e-3, "atol": 1e-3, "adjoint": "direct"}
    | {"backward": None, "backward_dt": None, "max_steps": 10_000, "descends": False},
    "train": {"epochs": 100, "optimiser": "adam", "lr": 0.01, "weight_decay": 5e-3, "attention_decay": 1e-3}
    | {"patience": 100, "time_multiple": 3.0, "time_resolution": 8, "time_patience": 12, "look_every": 5}
    | {"average": 0.0, "consistency": 0.0, "passes": 1, "temperature": 0.5, "ramp": 0, "adopt": 0, "record": None},
}
"""The settings of the first release and their defaults."""

RENAMED: Mapping[str, str] = {
    **{f"baseline.{name}": f"model.{name}" for name in FIRST["baseline"]},
    "position.encoding": "position.kind",
    "position.file": "position.path",
    "diffusivity.score": "diffusivity.kind",
    "flow.frozen": "flow.kind",
    "flow.positions": "flow.kind",
    "flow.psi": "flow.psi.kind",
    "flow.length": "flow.psi.length",
    "diffusivity.start_value": "diffusivity.start.value",
    "stencil.alike": "stencil.reweight.sharpness",
    "stencil.near": "stencil.add.k",
    "stencil.near_weight": "stencil.add.weight",
    "stencil.file": "stencil.path",
    "scheme.descends": "scheme.energy_decreasing",
    "scheme.backward": "scheme.adjoint.solver",
    "scheme.backward_dt": "scheme.adjoint.dt",
    "train.look_every": "train.validate_every",
    "train.average": "train.ema",
    "train.adopt": "train.self_training",
    "train.record": "train.cuda_graph",
    **{f"train.time_{name}": f"train.time_grid.{name}" for name in ("multiple", "resolution", "patience")},
    **{f"train.{name}": f"train.consistency.{name}" for name in ("passes", "temperature", "ramp")},
}
"""Today's names of settings of the first release."""

TOP = ("dataset", "recipe", "seed", "tried")
NONE: Tree = {"kind": "none"}


def convert(values: Mapping[str, Any]) -> Tree:
    """Return today's settings for those of the first release.

    Settings that did not count for the chosen kinds are left out; settings that today's kinds cannot express are
    refused.

    Args:
        values: a nested configuration, or a flat mapping of the settings that are not the defaults, by dotted name.
    """
    first = _completed(values)
    kind, flow = first["model"]["kind"], first["flow"]
    blend, zoo, continuous = kind == "blend", kind in kinds_of(ZooSpec), kind in kinds_of(ContinuousSpec)
    baseline = not blend and not zoo
    timeless = baseline and not continuous
    return {
        "schema": SCHEMA,
        **{name: value for name, value in first.items() if name in TOP},
        "data": first["data"],
        "position": _position(first["position"]),
        "model": _model(first),
        "diffusivity": _diffusivity(first["diffusivity"]) if blend and flow["psi"] is None else NONE,
        "flow": _flow(flow) if blend else NONE,
        "stencil": _no_stencil(first["stencil"], kind) if zoo else _stencil(first["stencil"]),
        "scheme": NONE if timeless else _scheme(first["scheme"]),
        "train": _train(first["train"], timeless=timeless, baseline=baseline),
    }


def _completed(values: Mapping[str, Any]) -> Tree:
    """Return the nested settings with all defaults; an unknown name is refused."""
    first: Tree = {name: dict(group) for name, group in FIRST.items()}
    for name, value in values.items():
        group, _, inner = name.partition(".")
        settings = {inner: value} if inner else value
        if name in TOP:
            first[name] = value
        elif group not in FIRST:
            raise UnknownName("setting of the first release", name, [*FIRST, *TOP])
        elif not isinstance(settings, Mapping):
            raise ValueError(f"`{name}` must be a group of settings; got {value!r}.")
        else:
            for each in settings:
                if each not in FIRST[group]:
                    raise UnknownName("setting of the first release", f"{group}.{each}", FIRST[group])
            first[group] |= settings
    return first


def _pick(group: Any, where: str, kind: str, source: Mapping[str, Any]) -> Tree:
    """Return the fields that a kind of the group has, from ``source``."""
    kinds = kinds_of(group)
    if kind not in kinds:
        raise UnknownName(where, kind, kinds)
    spec: Any = kinds[kind]
    names = [field.name for field in fields(spec) if field.name in source]
    return {**{name: source[name] for name in names}, "kind": kind}


def _position(first: Tree) -> Tree:
    kind = first["encoding"] if first["file"] is None else "file"
    source = {**first, "path": first["file"], "walk_length": None if first["tuned"] else first["walk_length"]}
    return _pick(PositionSpec, "position.encoding", kind, source)


def _model(first: Tree) -> Tree:
    model, baseline, diffusivity, stencil = (first[name] for name in ("model", "baseline", "diffusivity", "stencil"))
    kind, source = model["kind"], dict(model)
    if first["position"]["encoding"] == "none" and first["position"]["file"] is None:
        source["pos"] = FIRST["model"]["pos"]  # there is nothing of that width
    if kind in kinds_of(ZooSpec):
        width = baseline["width"] if kind == "deepset-flow" else diffusivity["width"]
        source |= {"width": width, "heads": diffusivity["heads"], "terms": baseline["steps"]}
        source |= {"kernels": baseline["kernels"], "k": stencil["k"], "restart": stencil["restart"]}
    else:
        source |= baseline
    return _pick(ModelSpec, "model.kind", kind, source)


def _diffusivity(first: Tree) -> Tree:
    start = {"kind": first["start"]} | ({"value": first["start_value"]} if first["start"] == "constant" else {})
    kind = "scalar-cosine" if first["score"] == "angle" else first["score"]
    return _pick(DiffusivitySpec, "diffusivity.score", kind, {**first, "start": start})


def _flow(first: Tree) -> Tree:
    if first["psi"] is not None:
        psi = {"kind": first["psi"]} | ({} if first["psi"] == "constant" else {"length": first["length"]})
        return _pick(FlowSpec, "flow.psi", "polyakov", {**first, "psi": psi, "attachment": first["source"]})
    hyperbolic = first["positions"] == "hyperbolic"
    if first["frozen"] and (hyperbolic or first["storage"] is not None):
        raise ValueError("`flow.frozen` goes neither with `flow.positions=hyperbolic` nor with `flow.storage`.")
    return _pick(FlowSpec, "flow", "hyperbolic" if hyperbolic else "frozen" if first["frozen"] else "live", first)


def _no_stencil(first: Tree, kind: str) -> Tree:
    if first["alike"] or first["near"]:
        raise ValueError(f"`stencil.alike` and `stencil.near` have no counterpart for `model.kind={kind}`.")
    return NONE


def _stencil(first: Tree) -> Tree:
    reweight = {"kind": "similarity", "sharpness": first["alike"]} if first["alike"] else NONE
    add = {"kind": "neighbours", "k": first["near"], "weight": first["near_weight"]} if first["near"] else NONE
    kind, source = first["kind"] if first["file"] is None else "file", {"reweight": reweight, "add": add}
    return _pick(StencilSpec, "stencil.kind", kind, {**first, "path": first["file"], **source})


def _scheme(first: Tree) -> Tree:
    solver, dt = first["solver"], first["dt"]
    source = {**first, "energy_decreasing": first["descends"], "adjoint": _adjoint(first)}
    if solver == "exponential":
        if dt is not None or first["adjoint"] != "direct":
            raise ValueError("`scheme.solver=exponential` goes neither with `scheme.dt` nor with `scheme.adjoint`.")
        return _pick(SchemeSpec, "scheme.solver", solver, source)
    if solver.startswith("torchdiffeq:"):
        source |= {"method": solver.removeprefix("torchdiffeq:"), "step_size": dt}
        return _pick(SchemeSpec, "scheme.solver", "torchdiffeq", source)
    if solver in ("implicit-euler", "crank-nicolson") and dt is not None:
        source |= {"rtol": first["rtol"] / 10, "atol": first["atol"] / 10}  # what their equations were solved to
        return _pick(SchemeSpec, "scheme.solver", "implicit", source)
    return _pick(SchemeSpec, "scheme.solver", "adaptive" if dt is None else "constant", source)


def _adjoint(first: Tree) -> Tree:
    solver, dt = first["backward"], first["backward_dt"]
    if first["adjoint"] != "continuous" or solver is None:
        return {"kind": first["adjoint"]}
    if dt is None:
        return {"kind": "continuous-adaptive", "solver": solver, "rtol": first["rtol"], "atol": first["atol"]}
    return {"kind": "continuous-constant", "solver": solver, "dt": dt}


def _train(first: Tree, *, timeless: bool, baseline: bool) -> Tree:
    grid = {"kind": "grid", **{name: first[f"time_{name}"] for name in ("multiple", "resolution", "patience")}}
    squared = {"kind": "squared", "weight": first["consistency"]}
    squared |= {name: first[name] for name in ("passes", "temperature", "ramp")}
    if first["consistency"] == 0 and first["passes"] > 1:
        raise ValueError("`train.passes` above 1 has no counterpart where `train.consistency` is 0.")
    return {
        **{name: first[name] for name in ("epochs", "optimiser", "lr", "weight_decay", "patience")},
        "attention_decay": 0.0 if baseline else first["attention_decay"],
        "time_grid": {"kind": "terminal"} if timeless or first["time_multiple"] == 1 else grid,
        "validate_every": first["look_every"],
        "ema": first["average"],
        "consistency": squared if first["consistency"] else NONE,
        "self_training": first["adopt"],
        "cuda_graph": first["record"],
    }
