"""Triton backend: GPU kernels, imported only where they run."""
