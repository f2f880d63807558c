"""Suites: training steps, inference and memory, compared with PyG's GAT; and the list of all suites."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from platform import machine

import torch

from beltrami.config import RunConfig, override
from beltrami.config.build_evolution import terminal_time
from beltrami.config.spec import TorchDiffEqSpec
from beltrami.errors import UnknownName
from beltrami.graph.ops import use
from beltrami.lab.bench.ensemble import ensemble
from beltrami.lab.bench.measure import BenchReport, Measurement, Timer, Work, peak_memory
from beltrami.lab.bench.operations import kernels, scaling
from beltrami.lab.bench.problem import SIZES, BenchProblem, gat_inference, gat_step, make_gat
from beltrami.lab.study.paper_tables import SIX

TORCHDIFFEQ_TOLERANCE = 1e-4  # about that of the published settings of Cora
LIVE_STEP = 1.1  # of RK4: its error is then 6e-5 to 1e-3, at most about the tolerance of the recipes
PAPER_TRAIN = dict(zip(SIX, (15.95, 15.72, 17.12, 9.67, 8.49, 6.56), strict=True))
PAPER_INFER = dict(zip(SIX, (22.72, 22.46, 42.5, 13.8, 27.91, 22.35), strict=True))


def _train(problem: BenchProblem, device: str) -> Measurement:
    """Measure a training step: PyG's GAT; ours frozen and live; ours frozen with torchdiffeq and plain torch."""
    works = _works(problem, device, problem.step, gat_step)
    if problem.config.train.consistency.kind != "none":
        works["recipe"] = problem.step(problem.config, record=None)
    if find_spec("torchdiffeq") is not None:
        works["plain"] = _plain_step(problem, variants(problem.config)[0])
    return _ratios(problem, Timer(device).compare(works), PAPER_TRAIN.get(problem.name))


def _plain_step(problem: BenchProblem, config: RunConfig) -> Work:
    """Return the same step with gather, scatter and torchdiffeq's Dopri5, the most direct implementation."""
    time, tolerance = terminal_time(config.scheme), TORCHDIFFEQ_TOLERANCE
    scheme = TorchDiffEqSpec(method="dopri5", time=time, rtol=tolerance, atol=tolerance)
    with use("reference"):
        return use("reference")(problem.step(replace(config, scheme=scheme), record=False))


def _infer(problem: BenchProblem, device: str) -> Measurement:
    """Measure the time until every node has its class scores."""
    works = _works(problem, device, problem.inference, gat_inference)
    return _ratios(problem, Timer(device).compare(works), PAPER_INFER.get(problem.name))


def _works(problem: BenchProblem, device: str, ours: Callable[..., Work], gat: Callable[..., Work]) -> dict[str, Work]:
    """Return what is timed of GAT and of both variants; on a GPU also GAT recorded and the variants not recorded."""
    frozen, live = variants(problem.config)
    works = {"gat": gat(problem, make_gat(problem))}
    works |= {"frozen": ours(frozen, record=None), "live": ours(live, record=None)}
    if device.startswith("cuda"):
        works["gat_recorded"] = gat(problem, make_gat(problem, loops=False), record=True)
        works |= {"frozen_eager": ours(frozen, record=False), "live_eager": ours(live, record=False)}
    return works


def _rivals(problem: BenchProblem, device: str) -> Measurement:
    """Measure PyG's GAT eager, compiled by torch, and on a GPU captured as a CUDA graph."""
    torch.compiler.reset()  # else all sizes together reach the recompilation limit, and later ones are not compiled
    compiled = make_gat(problem, loops=False)
    compiled.compile(dynamic=False)
    row: Measurement = {"size": problem.name, "origin": problem.origin}
    for name, make in (("train", gat_step), ("infer", gat_inference)):
        works = {"gat": make(problem, make_gat(problem)), "compiled": make(problem, compiled)}
        if device.startswith("cuda"):
            works["recorded"] = make(problem, make_gat(problem, loops=False), record=True)
        row |= {f"{name}_{kind}_s": seconds for kind, seconds in Timer(device).compare(works).items()}
    return row


def _loop(problem: BenchProblem, device: str) -> Measurement:
    """Measure steps of a user's own loop around BLEND, frozen and live, and the step of our training; beside PyG's GAT
    in the same loop, compiled by torch, and recorded as a CUDA graph."""
    torch.compiler.reset()
    frozen, live = variants(problem.config)
    compiled = make_gat(problem, loops=False)
    compiled.compile(dynamic=False)
    works: dict[str, Work] = {"gat": gat_step(problem, make_gat(problem)), "gat_compiled": gat_step(problem, compiled)}
    if device.startswith("cuda"):
        works["gat_recorded"] = gat_step(problem, make_gat(problem, loops=False), record=True)
        works["frozen_bfloat16"] = problem.step(frozen, record=None, storage=torch.bfloat16)
    works |= {"frozen_loop": problem.loop(frozen), "live_loop": problem.loop(live)}
    works |= {"frozen": problem.step(frozen, record=None), "live": problem.step(live, record=None)}
    for _ in range(5):  # models in a loop are captured after a few calls
        for work in works.values():
            work()
    return _ratios(problem, Timer(device).compare(works), PAPER_TRAIN.get(problem.name))


def _memory(problem: BenchProblem, device: str) -> Measurement:
    """Measure the peak GPU memory of a training step, in MiB."""
    frozen, live = variants(problem.config)
    row: Measurement = {"size": problem.name, "origin": problem.origin}
    makers: dict[str, Callable[[], Work]] = {
        "gat": lambda: gat_step(problem, make_gat(problem)),
        "frozen": lambda: problem.step(frozen, record=False),
        "live": lambda: problem.step(live, record=False),
    }
    for name, make in makers.items():
        torch.cuda.empty_cache()
        row[f"{name}_mib"] = round(peak_memory(make(), device), 1)
    return row


def variants(config: RunConfig) -> tuple[RunConfig, RunConfig]:
    """Return the recipe with one pass per step, with attention frozen at the start and with live attention."""
    once = override(config, ["train.consistency.kind=none", "flow.kind=frozen"])
    steps = ["scheme.kind=constant", "scheme.solver=rk4", f"scheme.dt={LIVE_STEP}"]
    return once, override(once, ["flow.kind=live", *steps])


def _ratios(problem: BenchProblem, taken: Mapping[str, float], paper: float | None) -> Measurement:
    row: Measurement = {"size": problem.name, "origin": problem.origin}
    row |= {"nodes": problem.dataset.num_nodes, "edges": problem.dataset.num_edges}
    row |= {f"{name}_s": seconds for name, seconds in taken.items()}
    row |= {f"{name}_ratio": round(taken[name] / taken["gat"], 3) for name in taken if name != "gat"}
    return row | {"paper_ratio": paper}


EACH_SIZE = {"train": _train, "infer": _infer, "loop": _loop, "rivals": _rivals, "memory": _memory}
WHOLE = {"kernels": kernels, "ensemble": ensemble, "scaling": scaling}
SUITES = (*EACH_SIZE, *WHOLE)


def run_suite(suite: str, *, device: str = "cpu", sizes: Sequence[str] = SIZES, command: str = "") -> BenchReport:
    """Run a suite on graphs of the given sizes; a size that fails leaves its error, and the others go on."""
    if suite not in SUITES:
        raise UnknownName("suite", suite, SUITES)
    for size in sizes:
        if size not in SIZES:
            raise UnknownName("size", size, SIZES)
    if suite == "memory" and not device.startswith("cuda"):
        raise ValueError("suite 'memory' reads the GPU's allocator: pass `--device cuda`.")
    cuda = device.startswith("cuda")
    hardware = torch.cuda.get_device_name(device) if cuda else f"cpu ({machine()}, {torch.get_num_threads()} threads)"
    if suite in WHOLE:
        return BenchReport(suite, hardware, command, WHOLE[suite](device, sizes))
    rows: list[Measurement] = []
    for size in sizes:
        try:
            rows.append(EACH_SIZE[suite](BenchProblem.load(size, device=device), device))
        except (RuntimeError, MemoryError) as error:
            rows.append({"size": size, "error": str(error).strip().split("\n")[0]})
    return BenchReport(suite, hardware, command, rows)
