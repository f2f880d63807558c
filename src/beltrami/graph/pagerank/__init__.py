"""Diffusion kernels of a graph: personalised PageRank and heat."""
