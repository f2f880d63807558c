"""GPU kernels of the hot operations, in Triton. Imported only where they run."""
