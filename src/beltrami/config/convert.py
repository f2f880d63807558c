"""Convert configurations of the first release, whose files carry no schema, to today's settings."""

from collections.abc import Mapping
from typing import Any

from beltrami.config.spec import SCHEMA, RunConfig
from beltrami.config.spec_graph import hints_of, kinds_of, specs_of
from beltrami.config.spec_model import ContinuousSpec, ZooSpec
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
    "position.encoding": "position.kind", "position.file": "position.path", "diffusivity.score": "diffusivity.kind",
    "diffusivity.start": "diffusivity.start.kind", "diffusivity.start_value": "diffusivity.start.value",
    "flow.frozen": "flow.kind", "flow.positions": "flow.kind",
    "flow.psi": "flow.psi.kind", "flow.length": "flow.psi.length",
    "stencil.alike": "stencil.reweight.sharpness", "stencil.near": "stencil.add.k",
    "stencil.near_weight": "stencil.add.weight", "stencil.file": "stencil.path",
    "scheme.descends": "scheme.energy_decreasing", "scheme.adjoint": "scheme.adjoint.kind",
    "scheme.backward": "scheme.adjoint.solver", "scheme.backward_dt": "scheme.adjoint.dt",
    "train.consistency": "train.consistency.weight", "train.look_every": "train.validate_every",
    "train.average": "train.ema", "train.adopt": "train.self_training", "train.record": "train.cuda_graph",
    **{f"train.time_{name}": f"train.time_grid.{name}" for name in ("multiple", "resolution", "patience")},
    **{f"train.{name}": f"train.consistency.{name}" for name in ("passes", "temperature", "ramp")},
}  # fmt: skip
"""Today's names of settings of the first release."""

TOP = ("dataset", "recipe", "seed", "tried")


def convert(values: Mapping[str, Any]) -> Tree:
    """Return today's settings for those of the first release: a nested configuration, or a flat mapping of the settings
    that are not the defaults, by dotted name. Settings that did not count for the chosen kinds are left out; settings
    that today's kinds cannot express are refused."""
    try:
        return _converted(_completed(values))
    except (TypeError, AttributeError) as error:
        raise ValueError(f"a setting of the first release has a value of another type: {error}.") from None


def _converted(first: Tree) -> Tree:
    today = _renamed(first)
    model, position, stencil, kind = today["model"], today["position"], today["stencil"], today["model"]["kind"]
    blend, zoo = kind == "blend", kind in kinds_of(ZooSpec)
    timeless = not blend and not zoo and kind not in kinds_of(ContinuousSpec)
    if zoo and (first["stencil"]["alike"] or first["stencil"]["near"]):
        raise ValueError(f"`stencil.alike` and `stencil.near` have no counterpart for `model.kind={kind}`.")
    if zoo:
        model |= {name: first["diffusivity"][name] for name in ("width", "heads") if kind != "deepset-flow"}
        model |= {"terms": model["steps"], "k": stencil["k"], "restart": stencil["restart"]}
    position |= {"kind": position["kind"] if position["path"] is None else "file"}
    position |= {"walk_length": None} if position["tuned"] else {}
    model |= {"pos": FIRST["model"]["pos"]} if position["kind"] == "none" else {}  # nothing has that width
    stencil["reweight"]["kind"] = "similarity" if stencil["reweight"]["sharpness"] else "none"
    stencil["add"]["kind"] = "neighbours" if stencil["add"]["k"] else "none"
    stencil |= {"kind": "none" if zoo else stencil["kind"] if stencil["path"] is None else "file"}
    if not blend or first["flow"]["psi"] is not None:
        today["diffusivity"] = {"kind": "none"}
    elif first["diffusivity"]["score"] == "angle":
        today["diffusivity"]["kind"] = "scalar-cosine"
    today["flow"] |= _flow(first["flow"]) if blend else {"kind": "none"}
    today["scheme"] |= {"kind": "none"} if timeless else _scheme(today["scheme"])
    today["train"] |= {} if blend or zoo else {"attention_decay": 0.0}
    _train(today["train"], timeless=timeless)
    return {"schema": SCHEMA, **_applicable(RunConfig, today, "")}


def _completed(values: Mapping[str, Any]) -> Tree:
    """Return the nested settings with all defaults; an unknown name is refused."""
    first: Tree = {name: dict(group) for name, group in FIRST.items()}
    for name, value in values.items():
        group, _, inner = name.partition(".")
        settings = {inner: value} if inner else value
        if name in TOP:
            first[name] = value
            continue
        if group not in FIRST:
            raise UnknownName("setting of the first release", name, [*FIRST, *TOP])
        if not isinstance(settings, Mapping):
            raise ValueError(f"`{name}` must be a group of settings; got {value!r}.")
        for each in settings:
            if each not in FIRST[group]:
                raise UnknownName("setting of the first release", f"{group}.{each}", FIRST[group])
        first[group] |= settings
    return first


def _renamed(first: Tree) -> Tree:
    """Return the settings of the first release, nested, under today's names."""
    today: Tree = {name: value for name, value in first.items() if name in TOP}
    for group in FIRST:
        for name, value in first[group].items():
            *above, last = RENAMED.get(f"{group}.{name}", f"{group}.{name}").split(".")
            place = today
            for each in above:
                place = place.setdefault(each, {})
            place[last] = value
    return today


def _applicable(group: Any, tree: Tree, where: str) -> Tree:
    """Return the settings that the chosen kinds have; an unknown kind is refused."""
    kinds = kinds_of(group)
    if kinds and tree["kind"] not in kinds:
        raise UnknownName(f"{where}kind", tree["kind"], kinds)
    hints = hints_of(kinds[tree["kind"]] if kinds else group)
    return {
        name: _applicable(hint, tree[name], f"{where}{name}.") if specs_of(hint) else tree[name]
        for name, hint in hints.items()
        if name in tree
    }


def _flow(first: Tree) -> Tree:
    if first["psi"] is not None:
        return {"kind": "polyakov", "attachment": first["source"]}
    hyperbolic = first["positions"] == "hyperbolic"
    if first["frozen"] and (hyperbolic or first["storage"] is not None):
        raise ValueError("`flow.frozen` goes neither with `flow.positions=hyperbolic` nor with `flow.storage`.")
    return {"kind": "hyperbolic" if hyperbolic else "frozen" if first["frozen"] else "live"}


def _scheme(today: Tree) -> Tree:
    solver, dt, adjoint = today["solver"], today["dt"], today["adjoint"]
    tolerances = {"rtol": today["rtol"], "atol": today["atol"]}
    if solver == "exponential":
        if dt is not None or adjoint["kind"] != "direct":
            raise ValueError("`scheme.solver=exponential` goes neither with `scheme.dt` nor with `scheme.adjoint`.")
        return {"kind": solver}
    if adjoint["kind"] == "continuous" and adjoint["solver"] is not None:
        adjoint |= tolerances | {"kind": f"continuous-{'adaptive' if adjoint['dt'] is None else 'constant'}"}
    if solver.startswith("torchdiffeq:"):
        return {"kind": "torchdiffeq", "method": solver.removeprefix("torchdiffeq:"), "step_size": dt}
    if solver in ("implicit-euler", "crank-nicolson") and dt is not None:  # their equations were solved to a tenth
        return {"kind": "implicit", **{name: value / 10 for name, value in tolerances.items()}}
    return {"kind": "adaptive" if dt is None else "constant"}


def _train(today: Tree, *, timeless: bool) -> None:
    grid, consistency = today["time_grid"], today["consistency"]
    if consistency["weight"] == 0 and consistency["passes"] > 1:
        raise ValueError("`train.passes` above 1 has no counterpart where `train.consistency` is 0.")
    grid["kind"] = "terminal" if timeless or grid["multiple"] == 1 else "grid"
    consistency["kind"] = "squared" if consistency["weight"] else "none"
