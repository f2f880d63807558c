"""Benchmarks: what the library costs, each figure a ratio to a baseline in the same process on the same work."""

from beltrami.lab.bench.measure import BenchReport, Measurement
from beltrami.lab.bench.problem import SIZES
from beltrami.lab.bench.suite import SUITES, run_suite

__all__ = ["run_suite", "SUITES", "SIZES", "BenchReport", "Measurement"]
