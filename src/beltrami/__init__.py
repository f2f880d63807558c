"""Beltrami neural diffusion on graphs: a flow on a stencil by a scheme."""
