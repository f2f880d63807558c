"""Benchmarks: what the library costs, each figure a ratio to its rival in the same process on the same work."""

from beltrami.bench.case import SIZES
from beltrami.bench.report import Report, Row
from beltrami.bench.suite import SUITES, bench

__all__ = ["bench", "SUITES", "SIZES", "Report", "Row"]
