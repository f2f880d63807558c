"""Benchmarks: what the library costs, each figure a ratio to its rival in the same process on the same work."""

from beltrami.lab.bench.problem import SIZES
from beltrami.lab.bench.report import Measurement, Report
from beltrami.lab.bench.suite import SUITES, bench

__all__ = ["bench", "SUITES", "SIZES", "Report", "Measurement"]
