"""Worker: a process that trains what it is given, on one thread; ``Crew`` starts it by :func:`main`.

It reads pickled messages from its standard input, each a tuple whose first entry says what it is, and answers on its
standard output. When the input ends, so does it.
"""

import os
import pickle
import signal
import sys
from dataclasses import dataclass
from typing import Any, BinaryIO

import torch
from torch import Tensor

from beltrami.data import Split
from beltrami.errors import SolverError
from beltrami.model import Classifier, Inputs
from beltrami.train.fit import Fit, Training
from beltrami.train.rounds import fit_many

Found = tuple[Fit | SolverError, dict[str, Tensor]]


@dataclass(frozen=True)
class Problem:
    """What all runs of an ensemble have in common: the inputs, the classes (n,), and how to train."""

    inputs: Inputs
    y: Tensor
    training: Training


def state(model: Classifier) -> dict[str, Tensor]:
    """The parameters and buffers of a model, the random state of its dropout among them, by name."""
    return {name: tensor.detach() for name, tensor in (*model.named_parameters(), *model.named_buffers())}


def work(problem: Problem, models: list[Classifier], splits: list[Split], out: BinaryIO) -> list[Found]:
    """Train some models as one program, telling of every epoch; where that breaks down, say so for each of them."""

    def tell(number: int, going: int) -> None:
        pickle.dump(("epoch", number, going), out)
        out.flush()

    try:
        found = fit_many(models, problem.inputs, problem.y, splits, problem.training, on_epoch=tell)
    except SolverError as error:
        if len(models) > 1:  # only some may be to blame: each on its own
            return [work(problem, [model], [split], out)[0] for model, split in zip(models, splits, strict=True)]
        found = [error]
    return [(one, state(model)) for one, model in zip(found, models, strict=True)]


def serve(source: BinaryIO, out: BinaryIO) -> None:
    """Answer messages until there are no more."""
    problem: Problem | None = None
    while True:
        try:
            kind, *content = pickle.load(source)
        except EOFError:
            return
        answer: tuple[str, Any]
        try:
            if kind == "problem":
                (problem,) = content
                continue
            assert problem is not None, "the problem comes first"
            models, splits = content
            answer = ("found", work(problem, models, splits, out))
        except Exception as error:
            answer = ("error", error)
        pickle.dump(answer, out)
        out.flush()


def main() -> None:
    """Keep the standard output for answers; what others print goes where errors go."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever interrupts the crew ends its workers
    torch.set_num_threads(1)
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        serve(sys.stdin.buffer, answers)
    except BrokenPipeError:  # nobody listens any more
        os._exit(1)
