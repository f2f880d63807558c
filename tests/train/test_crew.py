"""Runs spread over processes are the runs one by one; what goes wrong in a process is told, and none lives on."""

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pytest
import torch
from toy import small_blend, two_cliques

from beltrami.data import Split
from beltrami.errors import SolverError
from beltrami.model import BLEND
from beltrami.train import Crew, Fit, TimeGrid, Training, fit

TOY = two_cliques()
NOISY = (TOY.x + 2 * torch.randn(TOY.x.shape, generator=torch.Generator().manual_seed(1))).double()
SENT = Training(8, partial(torch.optim.Adam, lr=0.03), horizon=TimeGrid(2.0, 4), look_every=3)


def models(count: int, *, dropout: float = 0.0) -> list[BLEND]:
    """With weights and dropout of their own, in double precision."""
    made = [small_blend(dropout=dropout).double() for _ in range(count)]
    for seed, model in enumerate(made):
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
            for name, buffer in model.named_buffers():
                if name.endswith("seed"):
                    buffer.fill_(1000 * seed + 17)
    return made


def splits(count: int) -> list[Split]:
    """The toy's, with the labelled nodes shifted from run to run."""
    own = TOY.split
    return [Split(own.train.roll(k), own.val.roll(k), own.test.roll(k), "toy", k) for k in range(count)]


@pytest.fixture(scope="module")
def crew() -> Iterator[Crew]:
    with Crew(2) as crew:
        yield crew


def test_spread_over_processes_is_one_by_one(crew: Crew) -> None:
    together, told = models(5, dropout=0.3), list[tuple[int, int]]()
    inputs = together[0].prepare(NOISY, TOY.edge_index)
    found = crew.fit_many(together, inputs, TOY.y, splits(5), SENT, on_epoch=lambda *now: told.append(now))
    for run, model in enumerate(models(5, dropout=0.3)):
        alone, other = fit(model, inputs, TOY.y, splits(5)[run], SENT), found[run]
        assert isinstance(other, Fit)
        assert (other.best_epoch, other.epochs, other.best.time) == (alone.best_epoch, alone.epochs, alone.best.time)
        assert other.best.minus_loss == pytest.approx(alone.best.minus_loss, abs=1e-8)
        for mine, theirs in zip(model.state_dict().values(), together[run].state_dict().values(), strict=True):
            torch.testing.assert_close(theirs, mine, rtol=1e-7, atol=1e-8)
    assert [number for number, _ in told].count(SENT.epochs) == 3  # five runs in stacks of two
    assert max(going for _, going in told) == 5


def test_a_run_that_fails_fails_alone(crew: Crew) -> None:
    many = models(3)
    with torch.no_grad():
        many[1].xi.linear.weight.fill_(float("nan"))
    found = crew.fit_many(many, many[0].prepare(NOISY, TOY.edge_index), TOY.y, splits(3), SENT)
    assert isinstance(found[1], SolverError)
    assert "the loss became nan in epoch 1" in str(found[1])
    assert isinstance(found[0], Fit)
    assert isinstance(found[2], Fit)


def test_an_error_in_a_worker_is_raised_here() -> None:
    many, split = models(2), TOY.split
    empty = replace(split, val=torch.zeros_like(split.val))
    with Crew(1) as crew:
        processes = [worker.process for worker in crew._workers]
        with pytest.raises(ValueError, match=r"the split has no validation nodes"):
            crew.fit_many(many, many[0].prepare(NOISY, TOY.edge_index), TOY.y, [empty, empty], SENT)
    assert all(process.poll() is not None for process in processes)


def test_the_death_of_a_worker_is_told_and_the_others_end() -> None:
    many = models(4)
    long = replace(SENT, epochs=10**6, patience=10**6)
    with Crew(2) as crew:
        processes = [worker.process for worker in crew._workers]

        def kill(number: int, going: int) -> None:
            os.kill(processes[0].pid, signal.SIGKILL)

        with pytest.raises(RuntimeError, match=r"a worker of the Crew ended with code -9"):
            crew.fit_many(many, many[0].prepare(NOISY, TOY.edge_index), TOY.y, splits(4), long, on_epoch=kill)
    assert all(process.poll() is not None for process in processes)


def test_an_interruption_leaves_no_process_behind() -> None:
    many = models(2)
    long = replace(SENT, epochs=10**6, patience=10**6)

    def interrupt(number: int, going: int) -> None:
        raise KeyboardInterrupt

    with Crew(2) as crew:
        processes = [worker.process for worker in crew._workers]
        with pytest.raises(KeyboardInterrupt):
            crew.fit_many(many, many[0].prepare(NOISY, TOY.edge_index), TOY.y, splits(2), long, on_epoch=interrupt)
        assert all(process.poll() is not None for process in processes)  # at once: its threads would wait for them


def test_what_cannot_be_done_is_refused(crew: Crew) -> None:
    many = models(2)
    inputs = many[0].prepare(NOISY, TOY.edge_index)
    with pytest.raises(ValueError, match=r"Crew needs a split for every model; got 2 models, 1 splits"):
        crew.fit_many(many, inputs, TOY.y, splits(1), SENT)
    with pytest.raises(ValueError, match=r"a Crew sends its work to other processes.*not lambdas"):
        crew.fit_many(many, inputs, TOY.y, splits(2), replace(SENT, optimiser=lambda groups: torch.optim.Adam(groups)))
    with pytest.raises(ValueError, match=r"a Crew works inside its block alone"):
        Crew(1).fit_many(many, inputs, TOY.y, splits(2), SENT)
    with pytest.raises(ValueError, match=r"Crew needs a `size` of at least 1; got 0"):
        Crew(0)
