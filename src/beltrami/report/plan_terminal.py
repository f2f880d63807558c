"""Plans in the terminal: a row for each mode, and the command of the one to use."""

import math

from rich.console import Console
from rich.table import Table

from beltrami.memory import in_bytes
from beltrami.planner.plan import DESCRIPTIONS, Plan


def print_plan(plan: Plan, *, graph: str) -> None:
    """Print the sizes, the estimates of all modes, and the mode to use with its command."""
    console, w, devices = Console(highlight=False), plan.workload, plan.devices
    kind = "live" if w.live else "frozen"
    console.print(
        f"{w.nodes:,} nodes, {w.edges:,} directed edges with self-loops, {w.features:,} features; {kind} flow of "
        f"{w.channels} channels, {w.evaluations} products",
        soft_wrap=True,
    )
    console.print(f"{devices.count} x {in_bytes(devices.memory)} on devices, {in_bytes(plan.host)} on the host\n")
    table = Table(box=None, header_style="bold")
    for name in ("mode", "on a device", "on the host", "an epoch", "before it", "fits"):
        table.add_column(name, justify="left" if name == "mode" else "right")
    for mode, found in plan.estimates.items():
        cells = [_bytes(found.device_bytes), _bytes(found.host_bytes)]
        cells += [_seconds(found.epoch_seconds), _seconds(found.first_seconds) if found.first_seconds else ""]
        table.add_row(mode, *cells, "yes" if plan.fits(mode) else "no")
    console.print(table)
    for mode, found in plan.estimates.items():
        console.print(f" {mode}: {DESCRIPTIONS[mode]}" + (f" ({found.note})" if found.note else ""), soft_wrap=True)
    if plan.best is None:
        console.print("\nno mode fits: use devices or a host with more memory, or fewer features.")
    else:
        console.print(f"\nuse mode {plan.best}: {DESCRIPTIONS[plan.best]}")
        console.print(f"  {plan.command(plan.best, graph)}", soft_wrap=True)


def _bytes(count: float) -> str:
    return "" if math.isinf(count) else in_bytes(count)


def _seconds(seconds: float) -> str:
    if math.isinf(seconds):
        return ""
    if seconds < 1:
        return f"{1000 * seconds:.3g} ms"
    return f"{seconds:.3g} s" if seconds < 600 else f"{seconds / 60:.3g} min"
