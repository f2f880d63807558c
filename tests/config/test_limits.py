"""Settings of more steps, layers or weights than a run can have are refused before anything is built."""

import time

import pytest

from beltrami.config import check_settings, limits, load_recipe, override

CONSTANT = ("scheme.kind=constant", "scheme.solver=rk4", "scheme.dt=1")
ADAPTIVE = ("scheme.kind=adaptive", "scheme.solver=dopri5", "scheme.rtol=0", "scheme.atol=1e-14")
BACKWARD = ("scheme.adjoint.kind=continuous-constant", "scheme.adjoint.solver=rk4", "scheme.adjoint.dt=1e-9")
WIDTH = "diffusivity.width=2000000000"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["scheme.time=1e9"], r"`scheme.time=1e\+09`.* takes too many steps: .* up to 4.899e\+05 terms"),
        ([*CONSTANT, "scheme.dt=1e-9"], r"`scheme.time=13`, with validation up to 3 times .* needs 3.9e\+10 steps"),
        ([*CONSTANT, "scheme.dt=0.002"], "needs 1.95e[+]04 steps, and `max_steps` allows 10000"),
        ([*CONSTANT, *BACKWARD], r"needs 3.9e\+10 steps"),
        (ADAPTIVE, "`scheme.rtol=0` and `scheme.atol=1e-14` are less than float32 resolves: set one of them to 2e-07"),
        (["model.feat=2000000000"], "`model.feat=2000000000` needs about .* for the weights, and 16 GiB are free"),
        (["diffusivity.kind=scaled-dot", WIDTH], "`diffusivity.width=2000000000` needs about"),
        (["stencil.remesh=1e-9"], r"`stencil.remesh=1e-09` rebuilds the graph 3.9e\+10 times until t=39"),
        (["position.kind=heat", "position.time=1e9"], "heat kernel at `position.time`"),
        (["position.restart=1e-12"], "PageRank with `position.restart` 1e-12 needs"),
        (["position.kind=walk", "position.channels=1000000000"], "at most 2000 steps"),
        (["train.time_grid.resolution=1000000000"], "a time grid has at most 10000 times"),
    ],
    ids=lambda value: "" if isinstance(value, str) else value[-1],
)
def test_settings_of_too_much_work_are_refused_at_once(
    settings: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "free_memory", lambda: 16 * 2**30)
    config, start = override(load_recipe("blend", "cora"), settings), time.perf_counter()
    with pytest.raises(ValueError, match=message):
        check_settings(config)
    assert time.perf_counter() - start < 10  # a second or two on a quiet machine


@pytest.mark.parametrize(
    ("recipe", "name"), [("gat-flow", "scheme.time"), ("chebnet-flow", "model.terms"), ("gcn", "model.depth")]
)
def test_networks_of_too_many_layers_are_refused(recipe: str, name: str) -> None:
    with pytest.raises(ValueError, match=rf"`{name}=1e\+09` asks for more than 1000 layers"):
        check_settings(override(load_recipe(recipe, "cora"), [f"{name}=1000000000"]))


@pytest.mark.parametrize("settings", [["scheme.time=10000"], [*CONSTANT, "scheme.dt=0.004"], ["stencil.remesh=0.01"]])
def test_long_solves_within_the_limits_are_allowed(settings: list[str]) -> None:
    check_settings(override(load_recipe("blend", "cora"), settings))
