"""Results in a terminal: runs, datasets, positions, rewired graphs, images, benchmarks and Table 1."""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from beltrami.config.build import build_training
from beltrami.config.run_cost import RunCost
from beltrami.config.spec import RunConfig
from beltrami.data import Availability, Dataset, Facts, Split
from beltrami.graph.statistics import Rewiring, Statistics
from beltrami.image import Surface, noise_level, psnr, ssim
from beltrami.memory import free_memory, in_bytes
from beltrami.model.zoo import ZooEntry
from beltrami.result import RunResult

LABELS = ("size", "operation", "edges")  # names that tell the measurements of a suite apart
ZOO = ("network", "evolution", "diffusivity", "graph", "discretisation", "recipe")
SSIM_WINDOW = 11  # pixels: smaller images have no SSIM
UNWRAPPED = ("network", "diffusivity", "recipe")  # columns of the zoo that stay on one line


def print_run(result: RunResult, *, folder: Path, comparison: Mapping[str, Sequence[float]] | None = None) -> None:
    """Print the result of a run, the accuracy first; before it the means of a comparison over splits."""
    for name, values in (comparison or {}).items():
        who = name if name == result.recipe else f"LabelSpreading (scikit-learn, {name} kernel)"
        _print(f"{fmean(values):.2f}%  {who}, mean over {len(values)} split{'s'[: len(values) > 1]}")
    _print_score(result, result.val_accuracy, result.test_accuracy)
    print_facts(run_facts(result), saved=[folder])


def run_facts(result: RunResult) -> dict[str, str]:
    """Return what a run says of itself beside its accuracy, by name, in words."""
    split, forward, backward = result.split, result.evaluations["forward"], result.evaluations["backward"]
    time = f"{result.best_time:.3g}, by validation" if result.best_time else "none"
    facts = {
        "dataset": f"{result.dataset}, split {split['protocol']} {split['seed']} ({split['hash']})",
        "terminal time": f"{time}, at epoch {result.best_epoch} of {result.epochs}",
        "attention spread": f"{result.attention_spread:.3f}",
        "evaluations of f": f"{forward:,} forward, {backward:,} backward",
        "parameters": f"{result.parameters:,}",
        "training time": f"{result.train_seconds:.1f} s on {result.device}",
    }
    if result.diffused is not None:
        shares = zip(result.diffused["times"], result.diffused["shares"], strict=True)
        del facts["attention spread"], facts["evaluations of f"]
        facts["terminal time"] = (
            f"{time.partition(',')[0]} in the mean, at epoch {result.best_epoch} of {result.epochs}"
        )
        facts["shares of the times"] = ", ".join(f"{t:g}: {100 * share:.0f}%" for t, share in shares)
        facts["error of the flow"] = f"at most {result.diffused['error_bound']:.1g} of the largest value of a feature"
    if result.tried is not None:
        facts["configurations tried"] = f"{result.tried:,}, on validation"
    return facts


def print_written(path: Path, *, rows: int) -> None:
    """Print where a table was written."""
    _print(f"{rows:,} rows [dim]written to[/] {path}")


def print_check(config: RunConfig, dataset: Dataset, split: Split, cost: RunCost, *, device: str) -> None:
    """Print what a run would do and need."""
    sets = ", ".join(f"{int(mask.sum()):,} {name}" for name, mask in split.masks.items())
    facts = {
        "dataset": f"{dataset.name}: {dataset.num_nodes:,} nodes, {dataset.edge_index.shape[1] // 2:,} edges, "
        f"{dataset.num_features:,} features, {dataset.num_classes} classes",
        "split": f"{split.protocol} {split.seed}: {sets}",
        "recipe": f"{config.recipe}: model {config.model.kind}, flow {config.flow.kind}, scheme {config.scheme.kind}",
        "steps of a solve": "as many as its tolerances need" if cost.steps is None else f"{cost.steps:,}",
        "epochs": f"{build_training(config.train).most_epochs:,} at most",
        "memory": f"about {in_bytes(cost.total)}, and {in_bytes(free_memory(device))} are free",
    }
    print_facts(facts, saved=[])


def print_evaluation(result: RunResult, *, val_accuracy: float, test_accuracy: float) -> None:
    """Print today's accuracy of a saved run, or its other metric, and whether it equals the recorded one."""
    same = (val_accuracy, test_accuracy) == (result.val_accuracy, result.test_accuracy)
    recorded = f"test {result.test_accuracy:.2f}%, validation {result.val_accuracy:.2f}%"
    _print_score(result, val_accuracy, test_accuracy)
    _print("as recorded" if same else f"[yellow]recorded: {recorded}, on {result.device}[/]")


def _print_score(result: RunResult, val: float, test: float) -> None:
    _print(f"[bold]test {result.metric_name} {test:.2f}%[/]  (validation {val:.2f}%)")


def print_datasets(facts: Mapping[str, Facts], places: Mapping[str, Availability]) -> None:
    """Print the datasets, one per row."""
    table = _table(("dataset", "nodes", "edges", "features", "classes", "at hand"), left=("dataset", "at hand"))
    for name, fact in facts.items():
        numbers = (f"{value:,}" for value in (fact.nodes, fact.edges, fact.features, fact.classes))
        table.add_row(name, *numbers, places[name].value)
    _print(table, "[dim]the paper's graphs: largest component; BELTRAMI_DATA names a folder that has the files[/]")


def print_positions(positions: Tensor, *, seconds: float, from_cache: bool, path: Path) -> None:
    """Print the shape and density of positions, and where they come from."""
    rows, columns = positions.shape
    nonzero = int(torch.count_nonzero(positions.values() if positions.is_sparse else positions))
    facts = {
        "positions": f"{rows:,} x {columns:,}, {'sparse' if positions.is_sparse else 'dense'}",
        "density": f"{nonzero / max(1, rows * columns):.4f}",
        "time": f"{seconds:.1f} s, {'from the cache' if from_cache else 'computed'}",
    }
    print_facts(facts, saved=[path])


def print_rewiring(rewiring: Rewiring, *, seconds: float, path: Path) -> None:
    """Print the statistics of both graphs side by side, then their overlap."""
    table = _table(("", "before", "after"), left=("",))
    after = _statistics(rewiring.after, rewiring.homophily_after)
    for name, value in _statistics(rewiring.before, rewiring.homophily_before).items():
        table.add_row(f"[dim]{name}[/]", value, after[name])
    kept, known = _percentage(rewiring.kept), _percentage(rewiring.known)
    _print(table, f"{kept} of the old edges are kept; {known} of the new ones are old")
    _print(f"[dim]made in[/] {seconds:.1f} s[dim], saved in[/] {path}")


def print_denoising(
    before: Tensor, after: Tensor, surface: Surface, *, clean: Tensor | None, seconds: float, paths: Sequence[Path]
) -> None:
    """Print size, noise and settings, PSNR and SSIM if a clean image is given, and the files written."""
    channels, height, width = before.shape
    facts = {
        "image": f"{width} x {height}, {'grey' if channels == 1 else 'colour'}",
        "noise": f"{noise_level(before):.4f} -> {noise_level(after):.4f}",
        "alpha": f"{surface.alpha:.4g}, patches {surface.patch} x {surface.patch}",
        "time": f"{seconds:.1f} s",
    }
    if clean is not None:
        facts["PSNR"] = f"{psnr(before, clean):.2f} -> {psnr(after, clean):.2f} dB"
        if min(height, width) >= SSIM_WINDOW:
            facts["SSIM"] = f"{ssim(before, clean):.3f} -> {ssim(after, clean):.3f}"
    print_facts(facts, saved=paths)


def print_measurements(rows: Sequence[Mapping[str, Any]], *, title: str) -> None:
    """Print a column for each measurement and a line for each quantity; seconds as milliseconds."""
    labels = [name for name in LABELS if any(name in row for row in rows)]
    labels = labels[:2] if labels[:1] == ["size"] and "operation" in labels else labels[:1]
    table = Table(box=None, padding=(0, 2, 0, 0), title=title, title_justify="left")
    table.add_column("")
    for row in rows:
        table.add_column("\n".join(_number(name, row.get(name)) for name in labels), justify="right", no_wrap=True)
    for name in dict.fromkeys(name for row in rows for name in row):
        if name not in labels:
            label = f"{name.removesuffix('_s')} (ms)" if name.endswith("_s") else name.replace("_", " ")
            table.add_row(f"[dim]{label}[/]", *(_number(name, row.get(name)) for row in rows))
    _print(table)


def print_zoo(entries: Sequence[ZooEntry]) -> None:
    """Print the paper's Table 1, a network per row."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ZOO:
        table.add_column(name, no_wrap=name in UNWRAPPED)
    for entry in entries:
        table.add_row(entry.method, entry.evolution, entry.diffusivity, entry.graph, entry.discretisation, entry.recipe)
    _print(table, "[dim]train one with[/] beltrami train cora --recipe NAME [dim]of the last column[/]")


def _print(*lines: Table | str) -> None:
    console = Console(highlight=False)
    for line in lines:
        console.print(line)


def print_facts(facts: Mapping[str, str], *, saved: Sequence[Path]) -> None:
    """Print names and values in two columns, then the paths of what was saved."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for name, value in facts.items():
        table.add_row(f"[dim]{name}[/]", value)
    _print(table, *(f"[dim]saved in[/] {path}" for path in saved))


def _table(names: Iterable[str], *, left: Sequence[str]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in names:
        table.add_column(name, justify="left" if name in left else "right")
    return table


def _statistics(graph: Statistics, homophily: float) -> dict[str, str]:
    return {
        "nodes": f"{graph.nodes:,}",
        "directed edges": f"{graph.edges:,}",
        "self-loops": f"{graph.loops:,}",
        "mean degree": f"{graph.mean_degree:.2f}",
        "smallest degree": f"{graph.min_degree:,}",
        "largest degree": f"{graph.max_degree:,}",
        "components": f"{graph.components:,}",
        "label homophily": _percentage(homophily),
    }


def _percentage(value: float) -> str:
    return "-" if math.isnan(value) else f"{100 * value:.1f}%"


def _number(name: str, value: Any) -> str:
    if value is None:
        return ""
    if name.endswith("_s"):
        return f"{1e3 * value:.3g}"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
