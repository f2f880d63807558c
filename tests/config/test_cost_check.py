"""A run that does not fit into memory is refused with a setting that does; a lack of memory is explained."""

import pytest
import torch
from toy import small_config, toy_problem

from beltrami.config import check_settings, cost_check, limits, load_recipe, override
from beltrami.config.cost_check import check_cost, explain_out_of_memory, explained_memory, is_out_of_memory
from beltrami.config.run_cost import Sizes
from beltrami.run import run_config

CORA = Sizes(2485, 10138, 1433, 2485, 7, dense=False, nonzeros=200_000)
LIVE = ("flow.kind=live", "scheme.kind=constant", "scheme.solver=rk4", "scheme.dt=1", "scheme.time=4")
ADAPTIVE = ("flow.kind=live", "scheme.kind=adaptive", "scheme.solver=dopri5", "scheme.rtol=1e-4", "scheme.atol=1e-6")


@pytest.fixture(autouse=True)
def free(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine has 16 GiB of free memory."""
    for module in (limits, cost_check):
        monkeypatch.setattr(module, "free_memory", lambda device="cpu": 16 * 2**30)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["model.feat=10000000"], "`model.feat=10000000` needs about 53.7 GiB for the weights, and 16 GiB are free"),
        (["train.consistency.passes=1000000"], r"TiB for a training step of 11 .*`train.consistency.passes=1` would"),
        ([*ADAPTIVE, "scheme.time=3000"], "GiB for a training step, .*`scheme.adjoint.kind=checkpointed`"),
        (
            ["train.time_grid.resolution=3300", "model.feat=128"],
            "for a validation, .*`train.time_grid.kind=terminal` or `model.feat",
        ),
        (["position.kind=hyperbolic", "position.channels=1000000000"], "`position.kind=hyperbolic` needs about 36.2"),
        (["position.kind=deepwalk", "position.walk_length=100000"], "`position.kind=deepwalk` needs about 6.99 TiB"),
    ],
    ids=lambda value: "" if isinstance(value, str) else value[-1],
)
def test_a_run_that_does_not_fit_is_refused_with_a_setting_that_does(settings: list[str], message: str) -> None:
    config = override(load_recipe("blend", "cora"), settings)
    check_settings(config)
    with pytest.raises(ValueError, match=message):
        check_cost(config, CORA)


def test_all_pairs_of_a_large_graph_are_refused() -> None:
    config = override(load_recipe("grand", "cora"), ["stencil.kind=complete"])
    with pytest.raises(ValueError, match=r"`stencil.kind=complete` makes 6.4e\+09 edges, which need about 358 GiB"):
        check_cost(config, Sizes(80_000, 10**6, 10))
    with pytest.raises(ValueError, match=r"`model.kind=transformer-flow` makes 6.4e\+09 edges"):
        check_cost(load_recipe("transformer-flow", "cora"), Sizes(80_000, 10**6, 10, positions=4))


@pytest.mark.parametrize("dataset", ["cora", "citeseer", "pubmed", "photo", "computers", "coauthor-cs"])
def test_recipes_fit(dataset: str) -> None:
    for recipe in ("blend", "grand", "gat", "cgnn"):
        check_cost(load_recipe(recipe, dataset), Sizes(20_000, 500_000, 8_000, 20_000, 15, dense=False, nonzeros=10**6))


def test_a_run_that_fits_runs() -> None:
    result, _ = run_config(small_config(), problem=toy_problem())
    assert result.epochs == 2


CPU = "DefaultCPUAllocator: can't allocate memory: you tried to allocate 400000000000 bytes. Error code 12"
CUDA = "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 139.81 GiB"
NUMPY = "Unable to allocate 14.9 GiB for an array with shape (2000000000,) and data type int64"


@pytest.mark.parametrize(
    ("error", "asked"),
    [
        (RuntimeError(f"[enforce fail at alloc_cpu.cpp:124] err == 0. {CPU}"), " for 373 GiB more"),
        (torch.OutOfMemoryError(CUDA), " for 20 GiB more"),
        (MemoryError(NUMPY), " for 14.9 GiB more"),
        (MemoryError(), ""),
    ],
    ids=["cpu", "cuda", "numpy", "python"],
)
def test_a_lack_of_memory_is_explained_in_one_sentence(error: Exception, asked: str) -> None:
    assert is_out_of_memory(error)
    advice = "choose fewer channels, fewer steps or a smaller graph."
    assert explain_out_of_memory(error) == f"the memory did not suffice{asked}, and 16 GiB are free: {advice}"


def test_a_lack_of_memory_names_settings_that_would_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    cost = check_cost(override(load_recipe("blend", "cora"), LIVE), CORA)
    monkeypatch.setattr(cost_check, "free_memory", lambda device: 110 * 2**20)
    fitting = r"`scheme.adjoint.kind=checkpointed` or `train.consistency.passes=1` would fit"
    with pytest.raises(MemoryError, match=f"for 373 GiB more, and 110 MiB are free: {fitting}"), explained_memory(cost):
        raise RuntimeError(CPU)


def test_a_real_lack_of_memory_is_recognised() -> None:
    with pytest.raises(MemoryError, match="the memory did not suffice for 32 PiB more"), explained_memory():
        torch.empty(2**53)
    with pytest.raises(MemoryError, match="the memory did not suffice"), explained_memory():
        bytearray(2**60)


def test_other_errors_are_left_alone() -> None:
    with pytest.raises(RuntimeError, match="shape"), explained_memory():
        raise RuntimeError("shape mismatch")
