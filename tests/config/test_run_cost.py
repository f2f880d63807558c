"""Estimates of memory agree with what autograd keeps, and with what a process grows by."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor
from toy import small_config, toy_problem

from beltrami.config import RunConfig, load_recipe, override
from beltrami.config.build import build_training, count_parameters
from beltrami.config.cost_check import sizes_of
from beltrami.config.run_cost import Sizes, estimate_run
from beltrami.run import load_problem
from beltrami.train import Classification, seeded
from beltrami.train.program import LossStep

CONSTANT = ("scheme.kind=constant", "scheme.solver=rk4", "scheme.dt=1")
LIVE = ("flow.kind=live", *CONSTANT, "scheme.time=4")


def saved_bytes(config: RunConfig) -> tuple[int, Sizes]:
    """Return the bytes that autograd keeps for a training step, and the sizes of the problem."""
    problem = load_problem(config)
    with seeded(0):
        model = problem.model(config)
    inputs, saved = model.prepare(problem.x, problem.edges, pos=problem.pos), dict[int, int]()
    known = {tensor.data_ptr() for tensor in (*model.parameters(), *model.buffers())}

    def pack(x: Tensor) -> Tensor:
        if x.layout == torch.strided and x.data_ptr() not in known:
            saved[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
        return x

    task, consistency = Classification(model.num_classes), build_training(config.train).consistency
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        LossStep(model, inputs, problem.dataset.y, problem.split.train, consistency, task)()
    return sum(saved.values()), sizes_of(config, problem.dataset)


@pytest.mark.parametrize(
    ("recipe", "settings"),
    [
        ("blend", ()),
        ("blend", CONSTANT),
        ("blend", LIVE),
        ("blend", (*LIVE, "diffusivity.kind=cosine")),
        ("blend", (*LIVE, "diffusivity.kind=gaussian")),
        ("blend", ("stencil.kind=knn", "stencil.k=32")),
        ("blend", ("position.kind=ppr", *LIVE)),
        ("blend", ("train.consistency.kind=squared", "train.consistency.weight=1")),
        ("transformer-flow", ("position.kind=laplacian",)),
        ("gat", ()),
        ("gode", ()),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
@pytest.mark.slow
def test_a_training_step_keeps_what_was_estimated_within_a_factor_of_two(
    recipe: str, settings: tuple[str, ...]
) -> None:
    config = override(load_recipe(recipe, "digits"), settings)
    saved, sizes = saved_bytes(config)
    widths = {"features": sizes.features, "positions": sizes.positions, "num_classes": sizes.num_classes}
    cost = estimate_run(config, sizes, parameters=int(count_parameters(config, **widths)))
    assert 0.5 < cost.step / saved < 2


PEAK = """
import sys
from pathlib import Path
from beltrami.config import load_recipe, override
from beltrami.config.cost_check import check_cost, sizes_of
from beltrami.run import load_problem, run_config
peak = lambda: int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
config = override(load_recipe("blend", "digits"), sys.argv[1:])
problem = load_problem(config)
before = peak()
run_config(config, problem=problem)
print(1024 * (peak() - before), check_cost(config, sizes_of(config, problem.dataset)).total)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the peak of a process from /proc")
def test_a_process_grows_by_what_was_estimated_within_a_factor_of_two() -> None:
    """In a flow of 40 steps, whose states are larger than anything else that training allocates."""
    settings = [*LIVE, "scheme.dt=0.1", "train.epochs=1", "train.time_grid.kind=terminal"]
    command = [sys.executable, "-c", PEAK, *settings]
    grown, estimated = map(int, subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    assert 0.5 < estimated / grown < 2


def test_wide_models_are_counted_without_memory() -> None:
    config = override(load_recipe("blend", "cora"), ["model.feat=100000"])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert count_parameters(config, features=100_000, positions=5, num_classes=7) > 1e10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**19  # KiB


def test_counts_agree_with_the_model_and_leave_the_random_state_alone() -> None:
    config, state = small_config(), torch.get_rng_state()
    count = count_parameters(config, features=6, positions=0, num_classes=2)
    assert torch.equal(torch.get_rng_state(), state)
    assert count == sum(parameter.numel() for parameter in toy_problem().model(config).parameters())


def test_checkpoints_need_less_and_more_passes_need_more() -> None:
    sizes = Sizes(10_000, 100_000, 100)
    costs = {}
    for adjoint in ("direct", "checkpointed", "continuous"):
        config = override(small_config(), [*LIVE, "scheme.dt=0.01", f"scheme.adjoint.kind={adjoint}"])
        costs[adjoint] = estimate_run(config, sizes, parameters=1000)
    assert costs["direct"].steps == 400
    assert max(costs["checkpointed"].step, costs["continuous"].step) < costs["direct"].step / 4
    twice = override(small_config(), [*LIVE, "train.consistency.kind=squared", "train.consistency.weight=1"])
    once = override(small_config(), LIVE)
    assert estimate_run(twice, sizes, parameters=0).step == 2 * estimate_run(once, sizes, parameters=0).step
