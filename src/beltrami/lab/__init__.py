"""The laboratory: studies, tuning and benchmarks. The library does not need it."""
