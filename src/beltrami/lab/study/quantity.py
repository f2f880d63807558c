"""Quantity: a number that a table of a study shows."""

from dataclasses import dataclass

from beltrami.lab.study.comparison import Comparison
from beltrami.lab.study.paper import PaperTable


@dataclass(frozen=True)
class Quantity:
    """What is read from the lines of a study, and how it is printed.

    Args:
        name: where the number stands in a line; dots go down into groups.
        title: in words.
        digits: after the decimal point.
        paper: the paper's figures of it.
        pairs: rows to be compared by it, on the splits and seeds they share.
        timed: whether it is a time. On each dataset it is then read from the runs on one device, that of most of them:
            times of two machines say nothing of each other.
    """

    name: str
    title: str
    digits: int
    paper: PaperTable | None = None
    pairs: tuple[Comparison, ...] = ()
    timed: bool = False


def accuracy(*pairs: Comparison, paper: PaperTable | None = None) -> Quantity:
    """Test accuracy, and what one row is worth over another."""
    return Quantity("test_accuracy", "test accuracy (%)", 2, paper, pairs)


SECONDS = Quantity("train_seconds", "training time (s)", 1, timed=True)
EVALUATIONS = Quantity("evaluations.forward", "evaluations of f while training", 0)
