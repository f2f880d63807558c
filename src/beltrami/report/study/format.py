"""Words: the numbers of a study as text."""

from beltrami.lab.study import Cell, Comparison, Sample, Table, ratio

NOTHING = "-"


def measured(cell: Cell, *, digits: int) -> str:
    """Mean and standard deviation over runs."""
    if cell.sample is None:
        return NOTHING
    mean = f"{cell.sample.mean:,.{digits}f}"
    return mean if cell.deviation is None else f"{mean} ± {cell.deviation:,.{digits}f}"


def known(cell: Cell, *, digits: int) -> str:
    """The interval of the mean, how many runs there were, and how many failed; nothing for a single run."""
    parts = []
    if cell.sample is not None and cell.sample.half is not None:
        parts.append(_interval(cell.sample, digits))
    if cell.runs > 1:
        parts.append(f"n = {cell.runs}")
    if cell.failed:
        parts.append(f"{cell.failed} failed")
    return ", ".join(parts)


def printed(cell: Cell) -> str:
    """The paper's figure."""
    return "" if cell.paper is None else f"paper {cell.paper}"


def compared(sample: Sample, pair: Comparison, *, digits: int) -> str:
    """A difference with its sign, or a ratio, with its interval and the number of splits or seeds behind it."""
    mean = f"{sample.mean:,.2f}x" if pair.compare is ratio else f"{sample.mean:+,.{digits}f}"
    spread = "" if sample.half is None else f" {_interval(sample, 2 if pair.compare is ratio else digits)}"
    return f"{mean}{spread}, n = {sample.count}"


def title(pair: Comparison) -> str:
    return f"{pair.one} {'/' if pair.compare is ratio else '-'} {pair.other}"


def failures(table: Table) -> str:
    """One sentence on the runs that failed; empty where none did."""
    if not table.failed:
        return ""
    runs = "1 run" if table.failed == 1 else f"{table.failed} runs"
    return f"{runs} failed and count for nothing here; the lines of the results file say why."


def _interval(sample: Sample, digits: int) -> str:
    low, high = sample.interval or (sample.mean, sample.mean)
    return f"[{low:,.{digits}f}, {high:,.{digits}f}]"
