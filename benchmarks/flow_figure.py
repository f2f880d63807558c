"""Draw docs/flow.png: the nodes of the digits graph at four times of a trained flow, in one fixed projection.

python benchmarks/flow_figure.py
"""

from pathlib import Path

import matplotlib.pyplot as plt
import torch
from matplotlib.figure import Figure

from beltrami.config import load_recipe
from beltrami.model import BLEND
from beltrami.run import load_problem, run_config

FRACTIONS = (0.0, 0.1, 0.3, 1.0)  # of the terminal time


def draw() -> Figure:
    """Train recipe ``blend`` on the digits and return the figure."""
    config = load_recipe("blend", "digits", seed=0)
    problem = load_problem(config)
    result, model = run_config(config, problem=problem)
    assert isinstance(model, BLEND)
    model.eval()
    inputs = model.prepare(problem.x, problem.edges, pos=problem.pos)
    ts = [fraction * result.best_time for fraction in FRACTIONS]
    with torch.no_grad():
        z = model.evolution.trajectory(model.encode(inputs), inputs.edges, ts).ys  # (t, n, d)
    mean = z[-1].mean(0)
    axes = torch.linalg.svd(z[-1] - mean, full_matrices=False).Vh[:2]  # the plane in which z(T) varies most
    points = ((z - mean) @ axes.T).numpy()
    figure, panels = plt.subplots(1, len(ts), figsize=(11, 2.9), layout="constrained")
    colours = plt.get_cmap("tab10")(problem.dataset.y.numpy())
    for panel, t, at in zip(panels, ts, points, strict=True):
        panel.scatter(at[:, 0], at[:, 1], s=5, c=colours, linewidths=0)
        panel.set_title(f"t = {t:.1f}", fontsize=11)
        panel.set_aspect("equal", adjustable="datalim")
        panel.set_xticks([])
        panel.set_yticks([])
    return figure


if __name__ == "__main__":
    draw().savefig(Path(__file__).parents[1] / "docs" / "flow.png", dpi=130, facecolor="white")
