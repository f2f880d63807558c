"""Benchmarks measure what they state, with a baseline that trains, and their reports can be read back."""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import cast

import pytest
import torch

import beltrami.lab.bench.ensemble as ensemble_suite
import beltrami.lab.bench.operations as operations
from beltrami.config import override
from beltrami.config.build_evolution import terminal_time
from beltrami.data import CATALOGUE, Facts
from beltrami.graph import aggregate
from beltrami.graph.ops import use
from beltrami.lab.bench.measure import BACKENDS, Timer, copy_bandwidth
from beltrami.lab.bench.problem import SIZES, BenchProblem, PyGGAT, gat_step, generated, make_gat, timed_config
from beltrami.lab.bench.suite import SUITES, run_suite, variants
from beltrami.model import BLEND

TINY = replace(CATALOGUE["cora"], nodes=200, edges=400, features=50)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, empty_house: object) -> Facts:
    """Cora's files are missing, and the graph generated for it is small."""
    monkeypatch.setattr("beltrami.lab.bench.problem.CATALOGUE", {"cora": TINY})
    monkeypatch.setattr("beltrami.lab.bench.suite.Timer", lambda device: Timer(device, seconds=0.001, rounds=1))
    monkeypatch.setattr("beltrami.lab.bench.problem.timed_config", lambda name: short(name))
    return TINY


def short(name: str):  # type: ignore[no-untyped-def]
    config = timed_config(name)
    return override(config, ["scheme.time=2"])


def test_the_timer_distinguishes_slow_functions_from_quick_ones() -> None:
    taken = Timer("cpu", seconds=0.01, rounds=3).compare(
        {"quick": lambda: time.sleep(0.001), "slow": lambda: time.sleep(0.01)}
    )
    assert 0.001 <= taken["quick"] < 0.008
    assert 0.01 <= taken["slow"] < 0.05


def test_generated_graphs_have_the_size_of_the_real_ones(tiny: Facts) -> None:
    data = generated("cora")
    assert (data.num_nodes, data.num_edges, data.num_features, data.num_classes) == (200, 400, 50, 7)


@pytest.mark.parametrize("suite", [pytest.param("train", marks=pytest.mark.slow), "infer"])
def test_ratios_are_times_over_the_baselines(suite: str, tiny: Facts) -> None:
    report = run_suite(suite, sizes=["cora"], command="bench")
    (row,) = report.rows
    assert row["origin"] == "generated"
    for name in ("frozen", "live"):
        assert row[f"{name}_ratio"] == pytest.approx(row[f"{name}_s"] / row["gat_s"], rel=1e-2)
    assert row["paper_ratio"] > 1


def test_a_report_can_be_read_back_with_its_conditions(tiny: Facts) -> None:
    report = run_suite("infer", sizes=["cora"], command="beltrami bench --suite infer")
    back = json.loads(report.to_json())
    assert back["rows"] == list(report.rows)
    assert back["command"] == "beltrami bench --suite infer"
    assert back["versions"]["torch"] == torch.__version__
    assert {"date", "device", "threads"} <= set(back)


def test_variants_are_frozen_and_live_with_one_pass() -> None:
    frozen, live = variants(timed_config("cora"))
    assert (frozen.flow.kind, live.flow.kind) == ("frozen", "live")
    assert frozen.train.consistency.kind == live.train.consistency.kind == "none"
    assert terminal_time(frozen.scheme) == terminal_time(live.scheme) == terminal_time(timed_config("cora").scheme)


@pytest.mark.parametrize("name", SIZES)
def test_every_size_has_settings_without_positions(name: str) -> None:
    config = timed_config(name)
    assert (config.dataset, config.position.kind) == (name, "none")


@pytest.mark.slow
def test_a_step_trains(tiny: Facts) -> None:
    problem = BenchProblem.load("cora", device="cpu")
    step = problem.step(variants(problem.config)[0], record=None)
    losses = [float(step()) for _ in range(30)]
    assert losses[-1] < losses[0]
    model, _ = problem.model(problem.config)
    assert isinstance(model, BLEND)


@pytest.mark.slow
def test_the_baseline_trains_too(tiny: Facts) -> None:
    problem = BenchProblem.load("cora", device="cpu")
    torch.manual_seed(0)
    step = cast("Callable[[], torch.Tensor]", gat_step(problem, make_gat(problem)))
    losses = [float(step()) for _ in range(60)]
    assert sum(losses[-5:]) < sum(losses[:5])


@pytest.mark.parametrize("name", BACKENDS)
def test_every_backend_gives_the_same(name: str, tiny: Facts) -> None:
    edges = BenchProblem.load("cora", device="cpu").edges
    a, z = torch.rand(edges.num_edges), torch.randn(edges.num_nodes, 4)
    expected = aggregate(a, z, edges)
    with use(BACKENDS[name]):
        assert torch.allclose(aggregate(a, z, edges), expected, atol=1e-5)


@pytest.mark.slow
def test_kernels_are_timed_by_every_backend(tiny: Facts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "copy_bandwidth", partial(copy_bandwidth, megabytes=1))
    monkeypatch.setattr(operations, "Timer", lambda device, **_: Timer(device, seconds=0.001, rounds=1))
    rows = run_suite("kernels", sizes=["cora"]).rows
    assert [row["operation"] for row in rows] == ["aggregate", "edge_dot", "attend"]
    for row in rows:
        for way in ("forward", "backward"):
            assert all(row[f"{path}_{way}_s"] > 0 for path in BACKENDS)
            assert row[f"{way}_share_of_copy"] > 0


@pytest.mark.slow
def test_runs_together_are_timed_against_runs_alone(tiny: Facts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ensemble_suite, "RUNS", {"cpu": 2})
    monkeypatch.setattr(ensemble_suite, "ALONE", {"cpu": 1})
    monkeypatch.setattr(ensemble_suite, "EPOCHS", {"cpu": 2})
    monkeypatch.setattr(ensemble_suite, "ROUNDS", 1)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    (row,) = run_suite("ensemble", sizes=["cora"]).rows
    together, alone = row["together_s_per_run"], row["alone_s_per_run"]
    assert row["alone_ratio"] == pytest.approx(alone / together, abs=0.01)


@pytest.mark.slow
def test_the_baseline_is_timed_and_compiled_anew_for_each_size(tiny: Facts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PyGGAT, "compile", lambda model, **_: None)  # which takes minutes
    resets: list[bool] = []
    monkeypatch.setattr(torch.compiler, "reset", lambda: resets.append(True))
    row, _ = run_suite("rivals", sizes=["cora", "cora"]).rows
    assert len(resets) == 2
    assert all(row[f"{what}_{how}_s"] > 0 for what in ("train", "infer") for how in ("gat", "compiled"))


def test_growth_is_an_exponent_of_the_number_of_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "ON_CPU", (2000, 20000))
    monkeypatch.setattr(operations, "Timer", lambda device, **_: Timer(device, seconds=0.001, rounds=1))
    *rows, total = run_suite("scaling").rows
    assert [row["edges"] for row in rows] == [2000, 20000]
    assert set(total) == {
        "edges",
        *(f"{kind}_{way}_exponent" for kind in ("frozen", "live") for way in ("forward", "backward")),
    }
    assert total["edges"] == "2000 to 20000"


def test_memory_is_measured_on_a_gpu_alone() -> None:
    with pytest.raises(ValueError, match=r"suite 'memory' reads the GPU's allocator: pass `--device cuda`"):
        run_suite("memory", sizes=["cora"])


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match=r"unknown suite 'trian'.*train"):
        run_suite("trian")
    with pytest.raises(ValueError, match=r"unknown size 'coro'.*cora"):
        run_suite("train", sizes=["coro"])
    assert set(SUITES) == {"train", "infer", "loop", "rivals", "memory", "kernels", "ensemble", "scaling"}
