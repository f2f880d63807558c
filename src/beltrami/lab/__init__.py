"""Studies, tuning and benchmarks: what the library itself does not need."""
