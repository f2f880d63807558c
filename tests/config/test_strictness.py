"""Every setting of every kind changes the objects that are built, or it is refused."""

import re
import types
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import beltrami
from beltrami.config import RECIPES, RunConfig, check_settings, load_recipe, override, setting_names
from beltrami.config.build import build_classifier, build_encoding, build_training
from beltrami.config.build_evolution import build_prior
from beltrami.config.limits import check_node_counts
from beltrami.config.parser import InapplicableSetting, departures
from beltrami.config.spec import SchemeSpec, TrainSpec
from beltrami.config.spec_graph import PositionSpec, StencilSpec, kinds_of, specs_of
from beltrami.config.spec_model import DiffusivitySpec, FlowSpec, ModelSpec
from beltrami.train import seeded

BLEND = override(
    load_recipe("blend", "cora"),
    ["scheme.kind=constant", "scheme.solver=rk4", "scheme.dt=1", "scheme.time=2", "model.feat=8", "model.pos=4"],
)
GROUPS: dict[str, Any] = {
    "position": PositionSpec,
    "stencil": StencilSpec,
    "diffusivity": DiffusivitySpec,
    "flow": FlowSpec,
    "scheme": SchemeSpec,
    "model": ModelSpec,
}
CASES = [(group, kind) for group, union in GROUPS.items() for kind in kinds_of(union) if kind != "none"]
NONE = ["diffusivity.kind=none", "flow.kind=none", "stencil.kind=none", "position.kind=none"]
TERMINAL = ["train.time_grid.kind=terminal", "train.attention_decay=0"]
CONTEXT: dict[tuple[str, str], list[str]] = {
    ("position", "file"): ["position.path=u"],
    ("stencil", "file"): ["stencil.path=mesh"],
    ("flow", "polyakov"): ["diffusivity.kind=none", "flow.psi.kind=gauss"],
    ("scheme", "exponential"): ["scheme.rtol=1e-3", "scheme.atol=1e-3"],
    ("scheme", "adaptive"): ["scheme.solver=heun", "scheme.rtol=1e-3", "scheme.atol=1e-3"],
    ("scheme", "implicit"): ["scheme.solver=implicit-euler", "scheme.rtol=1e-3", "scheme.atol=1e-3"],
    ("scheme", "torchdiffeq"): ["scheme.method=rk4", "scheme.rtol=1e-3", "scheme.atol=1e-3"],
    **{("model", kind): NONE for kind in kinds_of(ModelSpec) if kind.endswith("-flow")},
    **{("model", kind): [*NONE[:2], *TERMINAL] for kind in ("cgnn", "gde", "gode")},
    ("model", "linear"): [*NONE, *TERMINAL, "scheme.kind=exponential", "scheme.rtol=1e-3", "scheme.atol=1e-3"],
    ("model", "blend"): [],
}
WITH_POSITIONS = ("monet-flow", "transformer-flow")
POLYAKOV = ["flow.kind=polyakov", "flow.psi.kind=gauss", "diffusivity.kind=none"]


def configured(group: str, kind: str) -> RunConfig:
    """A valid configuration with the kind."""
    context = CONTEXT.get((group, kind), [*NONE[:2], "scheme.kind=none", *TERMINAL] if group == "model" else [])
    if kind in WITH_POSITIONS:
        context = context[:3]
    start = BLEND if group == "model" and kind == "blend" else override(BLEND, ["model.pos=16"])
    config = override(start, [f"{group}.kind={kind}", *context])
    check_settings(config)
    return config


def described(thing: Any) -> Any:
    """The types and values that an object consists of, as nested tuples."""
    if isinstance(thing, torch.Tensor):
        return tuple(thing.shape), float(thing.detach().double().sum())
    if isinstance(thing, partial):
        return described(thing.func), described(thing.args), described(thing.keywords)
    if isinstance(thing, types.FunctionType):
        cells = [cell.cell_contents for cell in thing.__closure__ or ()]
        return thing.__qualname__, described(cells)
    if isinstance(thing, dict):
        return {str(name): described(value) for name, value in thing.items()}
    if isinstance(thing, list | tuple):
        return [described(each) for each in thing]
    if isinstance(thing, nn.Module):
        own = {name: value for name, value in vars(thing).items() if not name.startswith("_")}
        parts = {**thing._parameters, **thing._buffers, **thing._modules, **own}
        return type(thing).__name__, described(parts)
    if type(thing).__module__.startswith("beltrami"):
        return type(thing).__name__, described(vars(thing)) if hasattr(thing, "__dict__") else repr(thing)
    return repr(thing)


def built(config: RunConfig) -> Any:
    """A description of everything that a run builds from its configuration."""
    check_settings(config)
    with seeded(config.seed):
        positions = 0 if config.position.kind == "none" else 3
        model = build_classifier(config, features=3, positions=positions, num_classes=2)
    files = [asdict(spec) for spec in (config.position, config.stencil) if spec.kind == "file"]
    seed = getattr(config.position, "seed", None)  # of the generator that an encoding is called with
    parts = (build_encoding(config.position), build_prior(config.stencil), build_training(config.train), model)
    return described([asdict(config.data), files, seed, *parts])


def leaves(spec: Any, prefix: str) -> Iterator[tuple[str, Any, Any]]:
    """The dotted name, type and value of every setting below a group."""
    for name, hint in get_type_hints(type(spec)).items():
        value = getattr(spec, name)
        if specs_of(hint):
            yield from leaves(value, f"{prefix}{name}.")
        elif name != "kind":
            yield f"{prefix}{name}", hint, value


def others(hint: Any, value: Any) -> list[Any]:
    """Other values of a setting, of which at least one should be possible."""
    kinds = (hint,) if get_origin(hint) is Literal else get_args(hint) or (hint,)
    found: list[Any] = []
    for kind in kinds:
        if get_origin(kind) is Literal:
            found += [each for each in get_args(kind) if each != value]
        elif kind is bool:
            found.append(not value)
        elif kind is int:
            found += [3, 2, 4, 24]
        elif kind is float:
            found += [0.75, 4.5, 0.25]
        elif kind is str:
            found += ["another", "rk4", "midpoint"]
        elif kind is type(None):
            found.append("null")
    return [each for each in found if each != value and not (each == "null" and value is None)]


def check_each_setting_counts(config: RunConfig, group: str, spec: Any) -> None:
    before = built(config)
    for name, hint, value in leaves(spec, f"{group}."):
        after = next((found for found in map(partial(attempt, config, name), others(hint, value)) if found), None)
        assert after != before, f"{name} changes nothing"
        assert after is not None or name == "scheme.energy_decreasing"  # which needs a flow with an energy


def attempt(config: RunConfig, name: str, value: Any) -> Any:
    """A description of what is built with another value; None where that is refused."""
    try:
        return built(override(config, [f"{name}={value}"]))
    except ValueError:
        return None


@pytest.mark.parametrize(("group", "kind"), CASES, ids=str)
def test_every_setting_of_the_kind_changes_what_is_built(group: str, kind: str) -> None:
    config = configured(group, kind)
    check_each_setting_counts(config, group, getattr(config, group))


@pytest.mark.parametrize(
    ("group", "context"),
    [
        ("train", ["train.consistency.kind=squared", "train.consistency.weight=1", "train.time_grid.kind=grid"]),
        ("data", []),
        ("stencil", ["stencil.reweight.kind=similarity", "stencil.reweight.sharpness=1"]),
        ("stencil", ["stencil.add.kind=neighbours", "stencil.add.k=5"]),
        ("diffusivity", ["diffusivity.kind=additive", "diffusivity.start.kind=constant"]),
        ("scheme", [*POLYAKOV, "scheme.adjoint.kind=checkpointed"]),
        ("scheme", ["scheme.adjoint.kind=continuous-constant", "scheme.adjoint.solver=rk4", "scheme.adjoint.dt=0.5"]),
        (
            "scheme",
            [
                *("scheme.adjoint.kind=continuous-adaptive", "scheme.adjoint.solver=heun"),
                *("scheme.adjoint.rtol=1e-3", "scheme.adjoint.atol=1e-3"),
            ],
        ),
        ("flow", [*POLYAKOV, "flow.psi.kind=roughness"]),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) and value else str(value),
)
def test_every_setting_of_nested_kinds_changes_what_is_built(group: str, context: list[str]) -> None:
    config = override(BLEND, context)
    check_each_setting_counts(config, group, getattr(config, group))


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_every_kind_builds_something_else(group: str) -> None:
    seen = [built(configured(group, kind)) for each, kind in CASES if each == group]
    assert all(a != b for number, a in enumerate(seen) for b in seen[:number])


def test_every_type_of_settings_is_covered() -> None:
    assert {group for group in get_type_hints(RunConfig) if group in GROUPS} == set(GROUPS)
    assert get_type_hints(RunConfig)["train"] is TrainSpec


VALUES = st.sampled_from(["0", "1", "2", "3", "0.3", "1.5", "true", "false", "null", "softmax", "u", "both", "rk4"])


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    recipe=st.sampled_from(sorted(RECIPES)),
    name=st.sampled_from([name for name in setting_names() if name not in ("dataset", "recipe", "tried")]),
    value=VALUES,
)
def test_any_setting_of_any_recipe_is_refused_or_counts(recipe: str, name: str, value: str) -> None:
    config = load_recipe(recipe, "cora")
    try:
        changed = override(config, [f"{name}={value}"])
        after = built(changed)
    except ValueError:
        return
    assert (after == built(config)) == (departures(changed) == departures(config)), f"{recipe} {name}={value}"


BAD_VALUES = ("-1", "0", "nan", "inf", "x", "100000000000000000000")
CLASSES = {name for name in beltrami.__all__ if name[:1].isupper()}


def refusal(config: RunConfig, assignment: str) -> ValueError | None:
    """The error for a setting, or None."""
    try:
        check_settings(override(config, [assignment]))
    except ValueError as error:
        return error
    return None


@pytest.mark.parametrize(("group", "kind"), CASES, ids=str)
def test_bad_values_are_refused_by_the_name_of_the_setting_and_of_no_python_class(group: str, kind: str) -> None:
    config = configured(group, kind)
    for name in setting_names():
        if not name.startswith(f"{group}.") or name.endswith("kind"):
            continue
        for value in BAD_VALUES:
            error = refusal(config, f"{name}={value}")
            if error is not None and not isinstance(error, InapplicableSetting):
                assert name in str(error)
                assert not CLASSES & set(re.findall(r"\w+", str(error)))


def test_bad_settings_of_training_are_refused_by_their_names() -> None:
    config = override(BLEND, ["train.consistency.kind=squared", "train.consistency.weight=1"])
    for name in setting_names():
        if not name.startswith("train.") or name.endswith(("kind", "cuda_graph", "optimiser")):
            continue
        for value in ("-1", "nan"):
            with pytest.raises(ValueError, match=f"`{name}`"):
                check_settings(override(config, [f"{name}={value}"]))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["stencil.kind=knn", "stencil.k=20"], "`stencil.k` must be at most 19 on a graph of 20 nodes; got 20"),
        (["stencil.add.kind=neighbours", "stencil.add.k=20"], "`stencil.add.k` must be at most 19"),
        (["position.kind=laplacian", "position.channels=19"], "`position.channels` must be at most 18"),
        (["model.kind=lanczosnet", "model.steps=21"], "`model.steps` must be at most 20"),
    ],
)
def test_settings_that_need_more_nodes_are_refused_by_their_names(settings: list[str], message: str) -> None:
    check_node_counts(override(BLEND, settings), num_nodes=40)
    with pytest.raises(ValueError, match=message):
        check_node_counts(override(BLEND, settings), num_nodes=20)
