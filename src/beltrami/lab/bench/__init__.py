"""Benchmarks: what the library costs, each figure a ratio to a baseline in the same process on the same work."""
