"""Benchmarks measure what they say: clocks, rivals, cases, and reports that can be read back."""

import json
import time
from dataclasses import replace

import pytest
import torch

import beltrami.lab.bench.ensemble as ensemble_suite
import beltrami.lab.bench.scaling as scaling_suite
from beltrami.config import override
from beltrami.config.build_evolution import terminal_time
from beltrami.data import CATALOGUE, Facts
from beltrami.lab.bench import SIZES, SUITES, Report, bench
from beltrami.lab.bench.gat import GAT, gat_step
from beltrami.lab.bench.kernels import BACKENDS
from beltrami.lab.bench.problem import BenchProblem, made_up, settings
from beltrami.lab.bench.suite import variants
from beltrami.lab.bench.timer import Timer
from beltrami.model import BLEND

TINY = replace(CATALOGUE["cora"], nodes=200, edges=400, features=50)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, empty_house: object) -> Facts:
    """Cora is not at hand, and what is made up for it is small."""
    monkeypatch.setattr("beltrami.lab.bench.problem.CATALOGUE", {"cora": TINY})
    monkeypatch.setattr("beltrami.lab.bench.suite.Clock", lambda device: Timer(device, seconds=0.001, rounds=1))
    monkeypatch.setattr("beltrami.lab.bench.problem.settings", lambda name: short(name))
    return TINY


def short(name: str):  # type: ignore[no-untyped-def]
    config = settings(name)
    return override(config, ["scheme.time=2"])


def test_the_clock_tells_a_slow_work_from_a_quick_one() -> None:
    taken = Timer("cpu", seconds=0.01, rounds=3).compare(
        {"quick": lambda: time.sleep(0.001), "slow": lambda: time.sleep(0.01)}
    )
    assert 0.001 <= taken["quick"] < 0.008
    assert 0.01 <= taken["slow"] < 0.05


def test_made_up_graphs_have_the_size_of_the_real_ones(tiny: Facts) -> None:
    data = made_up(tiny)
    assert (data.num_nodes, data.num_edges, data.num_features, data.num_classes) == (200, 400, 50, 7)


@pytest.mark.parametrize("suite", ["train", "infer"])
def test_ratios_are_the_times_over_the_rivals(suite: str, tiny: Facts) -> None:
    report = bench(suite, sizes=["cora"], command="bench")
    (row,) = report.rows
    assert row["origin"] == "generated"
    for name in ("frozen", "live"):
        assert row[f"{name}_ratio"] == pytest.approx(row[f"{name}_s"] / row["gat_s"], rel=1e-2)
    assert row["paper_ratio"] > 1


def test_a_report_reads_back_with_all_that_makes_it_worth_something(tiny: Facts) -> None:
    report = bench("infer", sizes=["cora"], command="beltrami bench --suite infer")
    back = json.loads(report.to_json())
    assert back["rows"] == list(report.rows)
    assert back["command"] == "beltrami bench --suite infer"
    assert back["versions"]["torch"] == torch.__version__
    assert {"date", "device", "threads"} <= set(back)
    assert report.columns[0] == "size"


def test_variants_differ_in_when_attention_is_evaluated_and_take_one_pass() -> None:
    frozen, live = variants(settings("cora"))
    assert (frozen.flow.kind, live.flow.kind) == ("frozen", "live")
    assert frozen.train.consistency.kind == live.train.consistency.kind == "none"
    assert terminal_time(frozen.scheme) == terminal_time(live.scheme) == terminal_time(settings("cora").scheme)


@pytest.mark.parametrize("name", SIZES)
def test_every_size_has_settings_without_positions(name: str) -> None:
    config = settings(name)
    assert (config.dataset, config.position.kind) == (name, "none")


def test_a_step_trains(tiny: Facts) -> None:
    case = BenchProblem.load("cora", device="cpu")
    step = case.step(variants(case.config)[0], record=None)
    losses = [float(step()) for _ in range(30)]
    assert losses[-1] < losses[0]
    model, _ = case.model(case.config)
    assert isinstance(model, BLEND)


def test_the_rival_trains_too(tiny: Facts) -> None:
    case = BenchProblem.load("cora", device="cpu")
    torch.manual_seed(0)
    data = case.dataset
    step = gat_step(GAT(50, 7), data.x, data.edge_index, data.y, case.train)
    losses = [float(step().detach()) for _ in range(60)]
    assert sum(losses[-5:]) < sum(losses[:5])


def test_kernels_are_timed_by_every_backend(tiny: Facts) -> None:
    rows = bench("kernels", sizes=["cora"]).rows
    assert [row["operation"] for row in rows] == ["aggregate", "edge_dot", "attend"]
    for row in rows:
        for way in ("forward", "backward"):
            assert all(row[f"{path}_{way}_s"] > 0 for path in BACKENDS)
            assert row[f"{way}_share_of_copy"] > 0


def test_runs_together_are_timed_against_runs_alone(tiny: Facts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ensemble_suite, "RUNS", {"cpu": 2})
    monkeypatch.setattr(ensemble_suite, "ALONE", {"cpu": 1})
    monkeypatch.setattr(ensemble_suite, "EPOCHS", {"cpu": 2})
    monkeypatch.setattr(ensemble_suite, "TURNS", 1)
    (row,) = bench("ensemble", sizes=["cora"]).rows
    together, alone = row["together_s_per_run"], row["alone_s_per_run"]
    assert row["alone_ratio"] == pytest.approx(alone / together, abs=0.01)


def test_rivals_are_timed_as_they_come_and_compiled(tiny: Facts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GAT, "compile", lambda model, **_: None)  # which takes its minutes
    (row,) = bench("rivals", sizes=["cora"]).rows
    assert all(row[f"{what}_{how}_s"] > 0 for what in ("train", "infer") for how in ("gat", "compiled"))


def test_growth_is_an_exponent_of_the_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaling_suite, "ON_CPU", (2000, 20000))
    *rows, total = bench("scaling").rows
    assert [row["edges"] for row in rows] == [2000, 20000]
    assert set(total) == {
        "edges",
        *(f"{kind}_{way}_exponent" for kind in ("frozen", "live") for way in ("forward", "backward")),
    }
    assert total["edges"] == "2000 to 20000"


def test_memory_is_counted_on_a_gpu_alone() -> None:
    with pytest.raises(ValueError, match=r"suite 'memory' counts what a GPU's allocator gave out"):
        bench("memory", sizes=["cora"])


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match=r"unknown suite 'trian'.*train"):
        bench("trian")
    with pytest.raises(ValueError, match=r"unknown size 'coro'.*cora"):
        bench("train", sizes=["coro"])
    assert set(SUITES) == {"train", "infer", "rivals", "memory", "kernels", "ensemble", "scaling"}
    assert Report("train", "cpu", "", []).columns == []
