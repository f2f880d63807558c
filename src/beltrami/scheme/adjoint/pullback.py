"""The vector-Jacobian product with respect to tensors that a function closes over."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor


def pullback(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], cotangents: Sequence[Tensor], *, create_graph: bool = False
) -> list[Tensor]:
    """sum_k (d output_k / d input_l)^T cotangent_k for each l, zero where nothing depends on the input.

    The derivative is partial: where one input was computed from another, as attention from the state it attends to,
    nothing flows between them. The graph before the inputs stays intact for whoever comes next.
    """
    pairs = [(y, v) for y, v in zip(outputs, cotangents, strict=True) if y.requires_grad]
    if not pairs or not inputs:
        return [torch.zeros_like(x) for x in inputs]
    with _severed(inputs):
        gradients = torch.autograd.grad(
            [y for y, _ in pairs],
            inputs,
            [v for _, v in pairs],
            retain_graph=True,
            create_graph=create_graph,
            allow_unused=True,
        )
    return [torch.zeros_like(x) if g is None else g for x, g in zip(inputs, gradients, strict=True)]


def spread(gradients: Sequence[Tensor], needed: Sequence[bool]) -> list[Tensor | None]:
    """The gradients in the places where they are needed, None in the others."""
    rest = iter(gradients)
    return [next(rest) if n else None for n in needed]


@contextmanager
def _severed(inputs: Sequence[Tensor]) -> Iterator[None]:
    # A node's prehook runs after the engine has captured the gradient that reaches it, and only if somebody further
    # up wants it too: there we hand on nothing.
    nodes = [(x.grad_fn, x.output_nr) for x in inputs if x.grad_fn is not None]
    handles = [node.register_prehook(partial(_stop, number)) for node, number in nodes]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _stop(number: int, gradients: tuple[Tensor | None, ...]) -> tuple[Tensor | None, ...]:
    return tuple(None if k == number else g for k, g in enumerate(gradients))
