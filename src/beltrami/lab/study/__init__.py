"""Studies: the paper's tables, measured again. A study is data; its runs leave lines, and its tables come from them."""

from beltrami.lab.study.catalogue import STUDIES, study_named
from beltrami.lab.study.comparison import Comparison, difference, ratio
from beltrami.lab.study.executor import Executor, LocalExecutor
from beltrami.lab.study.method import Method
from beltrami.lab.study.plan import PlannedRun, plan
from beltrami.lab.study.quantity import Quantity
from beltrami.lab.study.record import Record, latest
from beltrami.lab.study.record_log import RecordLog, read_folder, read_lines
from beltrami.lab.study.reuse import reuse
from beltrami.lab.study.run_study import Watch, pending, run_study
from beltrami.lab.study.sample import Sample
from beltrami.lab.study.sampling import Sampling
from beltrami.lab.study.study import Study
from beltrami.lab.study.table import Cell, Table, tabulate

__all__ = [
    "STUDIES",
    "study_named",
    "Study",
    "Method",
    "Sampling",
    "Quantity",
    "Comparison",
    "difference",
    "ratio",
    "PlannedRun",
    "plan",
    "reuse",
    "pending",
    "run_study",
    "Executor",
    "LocalExecutor",
    "Watch",
    "RecordLog",
    "Record",
    "latest",
    "read_lines",
    "read_folder",
    "Table",
    "Cell",
    "Sample",
    "tabulate",
]
