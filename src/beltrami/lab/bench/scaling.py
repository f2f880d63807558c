"""Scaling: how the cost of a step grows with the number of edges."""

import math
from collections.abc import Sequence

import torch

from beltrami.diffusivity import ScaledDot
from beltrami.flow import BeltramiFlow, Flow, LinearFlow
from beltrami.graph import Edges
from beltrami.lab.bench.report import Measurement
from beltrami.lab.bench.timer import Timer
from beltrami.train import seeded

DEGREE, CHANNELS = 20, 32
ON_GPU = (10**5, 10**6, 10**7, 10**8)
ON_CPU = (10**4, 10**5, 10**6)


def scaling(device: str, sizes: Sequence[str]) -> list[Measurement]:
    """Seconds of an evaluation of the flow and of its derivative, on random graphs of ever more edges.

    Each row has the exponent of growth since the row before; the last row has that over the whole range.
    """
    rows: list[Measurement] = []
    for edges in ON_GPU if device.startswith("cuda") else ON_CPU:
        row: Measurement = {"edges": edges, "nodes": edges // DEGREE}
        try:
            row |= _measure(edges // DEGREE, device)
        except (RuntimeError, MemoryError) as error:
            rows.append(row | {"error": str(error).strip().split("\n")[0]})
            break
        rows.append(row | _growth(rows[-1] if rows else None, row))
    done = [row for row in rows if "error" not in row]
    if len(done) > 1:
        rows.append({"edges": f"{done[0]['edges']} to {done[-1]['edges']}"} | _growth(done[0], done[-1]))
    return rows


def _measure(nodes: int, device: str) -> Measurement:
    graph = torch.Generator(device).manual_seed(0)
    edge_index = torch.randint(nodes, (2, nodes * DEGREE), device=device, generator=graph)
    edges = Edges.build(edge_index, num_nodes=nodes)
    z = torch.randn(nodes, CHANNELS, device=device, requires_grad=True)
    with seeded(0):
        diffusivity = ScaledDot(CHANNELS, 32, heads=4).to(device)
    flows: dict[str, Flow] = {"frozen": LinearFlow(diffusivity), "live": BeltramiFlow(diffusivity)}
    works = {}
    for name, flow in flows.items():
        f = flow.bind(z.detach(), edges)
        out = f(0.0, z)
        works[f"{name}_forward"] = lambda f=f: f(0.0, z.detach())
        works[f"{name}_backward"] = lambda out=out: torch.autograd.grad(out.sum(), z, retain_graph=True)
    return {f"{name}_s": taken for name, taken in Timer(device, seconds=0.05, rounds=5).compare(works).items()}


def _growth(before: Measurement | None, now: Measurement) -> Measurement:
    if before is None:
        return {}
    more = math.log(now["edges"] / before["edges"])
    names = [name for name in now if name.endswith("_s")]
    return {name.replace("_s", "_exponent"): round(math.log(now[name] / before[name]) / more, 3) for name in names}
