"""Study: a table of the paper as data, rows by columns."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from beltrami.config.recipe.catalogue import is_file
from beltrami.errors import UnknownName
from beltrami.lab.study.method import Method
from beltrami.lab.study.quantity import Quantity
from beltrami.lab.study.sampling import Sampling
from beltrami.lab.study.work import Train, Work


@dataclass(frozen=True)
class Study:
    """Methods on datasets, each over the same splits and seeds.

    Args:
        name: what the command line calls it.
        title: what it asks, in one line.
        rows: the methods.
        datasets: the columns.
        draw: splits and seeds.
        quantities: a table for each.
        exceptions: splits and seeds of datasets that have their own.
        work: what is done with each run.
        curve: what the rows' ``at`` is, where they are points of curves.
        note: what the paper says of it outside of its tables.
    """

    name: str
    title: str
    rows: tuple[Method, ...]
    datasets: tuple[str, ...]
    draw: Sampling
    quantities: tuple[Quantity, ...]
    exceptions: Mapping[str, Sampling] = field(default_factory=dict)
    work: Work = field(default_factory=Train)
    curve: str | None = None
    note: str = ""

    def row(self, name: str) -> Method:
        """The row of this name, or of a configuration file; one that is not there, or lacks its recipe, is refused."""
        if is_file(name):
            return Method(Path(name).stem, name)
        rows = {row.name: row for row in self.rows if row.known}
        if name not in rows:
            raise UnknownName(f"method of study {self.name!r}", name, rows)
        return rows[name]

    def draw_of(self, dataset: str, *, splits: int | None, inits: int | None) -> Sampling:
        """Splits and seeds on a dataset; a protocol of one split has no use for ``splits``, beside others that do."""
        draw = self.exceptions.get(dataset, self.draw)
        own = draw.fixed and not self.draw.fixed
        return draw.resized(splits=None if own else splits, inits=inits)
