"""Cost models recover known coefficients, plans keep to the memory of devices, and the command prints them."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from shell import Beltrami

from beltrami.planner.coefficients import COSTS
from beltrami.planner.cost_model import QUANTITIES, CostModel, fit
from beltrami.planner.graph_sizes import workload_of, workload_of_sizes
from beltrami.planner.modes import Devices, blocks, precomputed, whole, workers
from beltrami.planner.plan import make_plan, parse_devices
from beltrami.planner.workload import Workload

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
import plan_fit  # noqa: E402

RECORD = json.loads((ROOT / "results" / "plan.json").read_text())
GIB = 2**30
SMALL = Workload(nodes=1000, edges=5000, features=50, channels=32, width=16, heads=2, evaluations=8)


def test_a_fit_recovers_the_coefficients_that_made_the_costs() -> None:
    known = CostModel({"constant": 3.0, "edges": 0.5, "states": 2.0})
    sizes = [(10, 50, 4), (20, 30, 8), (50, 400, 2), (7, 900, 3), (90, 100, 5)]
    workloads = [replace(SMALL, nodes=n, edges=m, evaluations=k) for n, m, k in sizes]
    found = fit(("constant", "edges", "states"), workloads, [known(w) for w in workloads])
    assert found.coefficients == pytest.approx(known.coefficients, rel=1e-6)
    assert found(SMALL) == pytest.approx(3.0 + 0.5 * 5000 + 2.0 * 4 * 1000 * 32 * 8)


def test_a_fit_has_no_negative_coefficients() -> None:
    workloads = [replace(SMALL, edges=m) for m in (10, 100, 1000)]
    found = fit(("constant", "edges"), workloads, [3.0, 2.0, 1.0])
    assert min(found.coefficients.values()) >= 0


def test_the_coefficients_are_those_of_the_measurements() -> None:
    for mode, models in plan_fit.fit_all(RECORD["rows"], device=RECORD["device"], write=False).items():
        for shipped, fitted in zip(COSTS[mode], models, strict=True):
            positive = {name: value for name, value in fitted.coefficients.items() if value}
            assert shipped.coefficients == pytest.approx(positive, rel=1e-3)
            assert set(shipped.coefficients) <= set(QUANTITIES)


@pytest.mark.parametrize("mode", list(COSTS))
def test_memory_is_within_a_quarter_and_time_within_a_factor_of_two_on_the_seven_sizes(mode: str) -> None:
    memory, seconds = COSTS[mode]
    rows = [row for row in plan_fit.read(RECORD["rows"])[mode] if not row[0].startswith("generated")]
    assert len({size for size, *_ in rows}) == 7
    for size, w, measured_bytes, measured_seconds in rows:
        assert 0.75 <= memory(w) / measured_bytes <= 1.25, size
        assert 0.5 <= seconds(w) / measured_seconds <= 2.0, size


@pytest.mark.parametrize("mode", [whole, workers, blocks, precomputed])
def test_costs_grow_with_the_graph(mode: type) -> None:
    devices = Devices(10_000 * GIB, 2)
    small, large = (mode(workload_of_sizes(n, 10 * n, 64), devices) for n in (10_000, 1_000_000))
    assert small.device_bytes < large.device_bytes
    assert small.epoch_seconds < large.epoch_seconds


def test_blocks_keep_to_the_memory_of_the_device_and_take_longer_with_less() -> None:
    w = workload_of_sizes(2_000_000, 50_000_000, 64)
    roomy, tight = (blocks(w, Devices(memory * GIB)) for memory in (64, 4))
    assert tight.device_bytes < 4 * GIB < roomy.device_bytes
    assert tight.epoch_seconds > roomy.epoch_seconds
    assert blocks(w, Devices(GIB // 100)).note == "one column does not fit"


def test_several_devices_need_less_memory_each_than_one() -> None:
    w = workload_of_sizes(1_000_000, 5_000_000, 64)
    assert workers(w, Devices(80 * GIB, 4)).device_bytes < workers(w, Devices(80 * GIB, 1)).device_bytes


def test_parts_take_as_long_as_their_kernels_on_a_large_graph() -> None:
    w = workload_of_sizes(50_000_000, 500_000_000, 64, live=True)
    assert workers(w, Devices(10_000 * GIB, 2)).epoch_seconds >= whole(w, Devices(10_000 * GIB)).epoch_seconds / 2


def test_a_small_graph_is_trained_whole_and_a_large_one_in_blocks() -> None:
    small = make_plan(workload_of("cora"), Devices(8 * GIB), host=16 * GIB)
    large = make_plan(workload_of_sizes(10_000_000, 500_000_000, 64), Devices(20 * GIB), host=128 * GIB)
    assert (small.best, large.best) == ("whole", "blocks")
    assert small.command("whole", "cora") == "beltrami train cora --device cuda"
    assert large.command("blocks", "my") == "beltrami train my --memory 18GiB --device cuda"
    assert not large.fits("whole")


def test_nothing_fits_without_memory() -> None:
    assert make_plan(workload_of_sizes(10**8, 10**9, 64), Devices(2**20), host=2**20).best is None


def test_live_flows_are_not_computed_in_blocks() -> None:
    plan = make_plan(workload_of("pubmed", live=True), Devices(80 * GIB, 2), host=64 * GIB)
    assert plan.workload.live
    assert not plan.fits("blocks")
    assert plan.fits("workers")


@pytest.mark.parametrize(("text", "memory", "count"), [("80GiB x 4", 80 * GIB, 4), ("24GiB", 24 * GIB, 1)])
def test_devices_are_read(text: str, memory: int, count: int) -> None:
    assert parse_devices(text) == Devices(memory, count)


@pytest.mark.parametrize("text", ["", "four", "80", "x 4", "0GiB", "80GiB x 0"])
def test_other_devices_are_refused(text: str) -> None:
    if text == "80":
        assert parse_devices(text).memory == 80  # bytes
        return
    with pytest.raises(ValueError, match="`--gpus` takes a size and a number"):
        parse_devices(text)


def test_the_command_prints_modes_and_the_command_to_use(beltrami: Beltrami) -> None:
    out = beltrami("plan", "ogbn-arxiv", "--gpus", "24GiB x 2", "--host", "64GiB").out
    assert "169,343 nodes" in out
    assert all(f"\n {mode} " in out for mode in ("whole", "workers", "blocks", "precomputed"))
    assert "beltrami train ogbn-arxiv --device cuda" in out


def test_the_command_refuses_half_a_graph(beltrami: Beltrami) -> None:
    assert "--features missing" in beltrami("plan", "--nodes", "1e6", "--edges", "1e7").err
    assert "not both" in beltrami("plan", "cora", "--nodes", "1e6").err
    assert "neither a dataset nor a graph folder" in beltrami("plan", "nothing").err
    assert "at least one node" in beltrami("plan", "--nodes", "0", "--edges", "1", "--features", "1").err
