"""Suites: what is measured against what."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from types import MappingProxyType

import torch
from torch import Tensor

from beltrami.config import RunConfig, override
from beltrami.config.build_evolution import terminal_time
from beltrami.config.spec import TorchDiffEqSpec
from beltrami.errors import UnknownName
from beltrami.graph import ops
from beltrami.lab.bench.ensemble import ensemble
from beltrami.lab.bench.gat import GAT, gat_inference, gat_recorded, gat_step
from beltrami.lab.bench.kernels import kernels
from beltrami.lab.bench.problem import SIZES, BenchProblem
from beltrami.lab.bench.report import Measurement, Report, device_name
from beltrami.lab.bench.scaling import scaling
from beltrami.lab.bench.timer import Timer, Work, peak_memory
from beltrami.train.cuda_graph import replayed

PLAIN_TOLERANCE = 1e-4  # about what the published settings of Cora ask for
LIVE_STEP = 1.1  # of RK4: its error is then 6e-5 to 1e-3, about the tolerance of the recipes at most
PAPER_TRAIN = {"cora": 15.95, "citeseer": 15.72, "pubmed": 17.12, "coauthor-cs": 9.67, "computers": 8.49, "photo": 6.56}
PAPER_INFER = {
    "cora": 22.72,
    "citeseer": 22.46,
    "pubmed": 42.5,
    "coauthor-cs": 13.8,
    "computers": 27.91,
    "photo": 22.35,
}


def train(device: str, sizes: Sequence[str]) -> list[Measurement]:
    """Seconds of a training step: PyG's GAT, ours frozen and live, and frozen in the plainest way, with torchdiffeq."""
    return [_attempt(lambda case: _train(case, device), name, device) for name in sizes]


def infer(device: str, sizes: Sequence[str]) -> list[Measurement]:
    """Seconds until every node has its class scores."""
    return [_attempt(lambda case: _infer(case, device), name, device) for name in sizes]


def memory(device: str, sizes: Sequence[str]) -> list[Measurement]:
    """MiB of GPU memory that a training step needs at most."""
    if not device.startswith("cuda"):
        raise ValueError("suite 'memory' counts what a GPU's allocator gave out: pass `--device cuda`.")
    return [_attempt(lambda case: _memory(case, device), name, device) for name in sizes]


def rivals(device: str, sizes: Sequence[str]) -> list[Measurement]:
    """Seconds of PyG's GAT as it comes, compiled by torch, and on a GPU recorded as a CUDA graph."""
    return [_attempt(lambda case: _rivals(case, device), name, device) for name in sizes]


def _rivals(case: BenchProblem, device: str) -> Measurement:
    data = case.dataset
    row: Measurement = {"size": case.name, "origin": case.origin}
    compiled = _gat(case, loops=False)
    compiled.compile(dynamic=False)
    step = gat_step(compiled, data.x, _with_loops(case), data.y, case.train.nonzero()[:, 0])
    works: dict[str, Work] = {"gat": _gat_step(case), "compiled": step}
    if device.startswith("cuda"):
        works["recorded"] = _gat_recorded(case)
    taken = Timer(device).compare(works)
    row |= {f"train_{name}_s": seconds for name, seconds in taken.items()}
    works = {
        "gat": gat_inference(_gat(case), data.x, data.edge_index),
        "compiled": gat_inference(compiled, data.x, _with_loops(case)),
    }
    if device.startswith("cuda"):
        works["recorded"] = _gat_recorded_inference(case)
    return row | {f"infer_{name}_s": seconds for name, seconds in Timer(device).compare(works).items()}


def _train(case: BenchProblem, device: str) -> Measurement:
    frozen, live = variants(case.config)
    works: dict[str, Work] = {
        "gat": _gat_step(case),
        "frozen": case.step(frozen, record=None),
        "live": case.step(live, record=None),
    }
    if case.config.train.consistency.kind != "none":
        works["recipe"] = case.step(case.config, record=None)
    if device.startswith("cuda"):
        works["gat_recorded"] = _gat_recorded(case)
        works["frozen_eager"] = case.step(frozen, record=False)
        works["live_eager"] = case.step(live, record=False)
    if find_spec("torchdiffeq") is not None:
        works["plain"] = _plain(case, frozen)
    taken = Timer(device).compare(works)
    return _row(case, taken, PAPER_TRAIN.get(case.name))


def _plain(case: BenchProblem, config: RunConfig) -> Work:
    """The same step with gather, scatter and torchdiffeq's Dopri5, as one would write it first."""
    time = terminal_time(config.scheme)
    scheme = TorchDiffEqSpec(method="dopri5", time=time, rtol=PLAIN_TOLERANCE, atol=PLAIN_TOLERANCE)
    with ops.use("reference"):
        step = case.step(replace(config, scheme=scheme), record=False)

    def run() -> object:
        with ops.use("reference"):
            return step()

    return run


def _infer(case: BenchProblem, device: str) -> Measurement:
    frozen, live = variants(case.config)
    works: dict[str, Work] = {
        "gat": gat_inference(_gat(case), case.dataset.x, case.dataset.edge_index),
        "frozen": case.inference(frozen, record=None),
        "live": case.inference(live, record=None),
    }
    if device.startswith("cuda"):
        works["gat_recorded"] = _gat_recorded_inference(case)
        works["frozen_eager"] = case.inference(frozen, record=False)
        works["live_eager"] = case.inference(live, record=False)
    return _row(case, Timer(device).compare(works), PAPER_INFER.get(case.name))


def _memory(case: BenchProblem, device: str) -> Measurement:
    frozen, live = variants(case.config)
    row: Measurement = {"size": case.name, "origin": case.origin}
    makers: dict[str, Callable[[], Work]] = {
        "gat": lambda: _gat_step(case),
        "frozen": lambda: case.step(frozen, record=False),
        "live": lambda: case.step(live, record=False),
    }
    for name, make in makers.items():
        torch.cuda.empty_cache()
        row[f"{name}_mib"] = round(peak_memory(make(), device), 1)
    return row


def variants(config: RunConfig) -> tuple[RunConfig, RunConfig]:
    """One pass a step, attention frozen at the start or evaluated along the way, everything else the recipe's."""
    once = override(config, ["train.consistency.kind=none", "flow.kind=frozen"])
    steps = ["scheme.kind=constant", "scheme.solver=rk4", f"scheme.dt={LIVE_STEP}"]
    return once, override(once, ["flow.kind=live", *steps])


def _gat(case: BenchProblem, *, loops: bool = True) -> GAT:
    return GAT(case.dataset.num_features, case.dataset.num_classes, loops=loops).to(case.edges.device)


def _gat_step(case: BenchProblem) -> Work:
    data = case.dataset
    return gat_step(_gat(case), data.x, data.edge_index, data.y, case.train)


def _gat_recorded(case: BenchProblem) -> Work:
    data = case.dataset
    return gat_recorded(_gat(case, loops=False), data.x, _with_loops(case), data.y, case.train)


def _gat_recorded_inference(case: BenchProblem) -> Work:
    bare = gat_inference(_gat(case, loops=False), case.dataset.x, _with_loops(case))
    return replayed(bare, device=case.edges.device, capture=True)


def _with_loops(case: BenchProblem) -> Tensor:
    every = torch.arange(case.dataset.num_nodes, device=case.edges.device)
    return torch.cat((case.dataset.edge_index, every.expand(2, -1)), dim=1)


def _row(case: BenchProblem, taken: Mapping[str, float], paper: float | None) -> Measurement:
    row: Measurement = {"size": case.name, "origin": case.origin, "nodes": case.dataset.num_nodes}
    row |= {"edges": case.dataset.num_edges}
    row |= {f"{name}_s": seconds for name, seconds in taken.items()}
    row |= {f"{name}_ratio": round(taken[name] / taken["gat"], 3) for name in taken if name != "gat"}
    return row | {"paper_ratio": paper}


def _attempt(measure: Callable[[BenchProblem], Measurement], name: str, device: str) -> Measurement:
    """A row, or the one line that says why there is none: a benchmark of seven sizes should not end with the third."""
    try:
        return measure(BenchProblem.load(name, device=device))
    except (RuntimeError, MemoryError) as error:
        return {"size": name, "error": str(error).strip().split("\n")[0]}


Suite = Callable[[str, Sequence[str]], list[Measurement]]
SUITES: Mapping[str, Suite] = MappingProxyType(
    {
        "train": train,
        "infer": infer,
        "rivals": rivals,
        "memory": memory,
        "kernels": kernels,
        "ensemble": ensemble,
        "scaling": scaling,
    }
)


def bench(suite: str, *, device: str = "cpu", sizes: Sequence[str] = SIZES, command: str = "") -> Report:
    """Run a suite on graphs of the given sizes."""
    if suite not in SUITES:
        raise UnknownName("suite", suite, SUITES)
    for size in sizes:
        if size not in SIZES:
            raise UnknownName("size", size, SIZES)
    return Report(suite, device_name(device), command, SUITES[suite](device, sizes))
