"""Studies: the paper's tables, measured again. A study is data; its runs leave lines, and its tables come from them."""

from beltrami.experiment.study.borrow import borrow
from beltrami.experiment.study.catalogue import STUDIES, study_named
from beltrami.experiment.study.conduct import Watch, conduct, pending
from beltrami.experiment.study.draw import Draw
from beltrami.experiment.study.ledger import Ledger, read_folder, read_lines
from beltrami.experiment.study.line import Line, latest
from beltrami.experiment.study.pair import Pair, difference, ratio
from beltrami.experiment.study.place import Here, Place
from beltrami.experiment.study.plan import Task, plan
from beltrami.experiment.study.quantity import Quantity
from beltrami.experiment.study.row import Row
from beltrami.experiment.study.sample import Sample
from beltrami.experiment.study.study import Study
from beltrami.experiment.study.table import Cell, Table, tabulate

__all__ = [
    "STUDIES",
    "study_named",
    "Study",
    "Row",
    "Draw",
    "Quantity",
    "Pair",
    "difference",
    "ratio",
    "Task",
    "plan",
    "borrow",
    "pending",
    "conduct",
    "Place",
    "Here",
    "Watch",
    "Ledger",
    "Line",
    "latest",
    "read_lines",
    "read_folder",
    "Table",
    "Cell",
    "Sample",
    "tabulate",
]
