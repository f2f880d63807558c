"""Errors of the library, and checks of tensors that users pass in."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor  # torch is imported where it is needed, so that `beltrami --help` is fast


LONGEST = 1000  # characters of a message about a file


class SolverError(RuntimeError):
    """Time stepping failed; the message names the time reached, the step size and a remedy."""


class NotFinite(SolverError):
    """A state, a loss or a weight became NaN or infinite; the message names where."""


class DataError(RuntimeError):
    """A dataset or result file is missing, corrupt or of another kind than its name says. The message is one line; what
    it repeats of a file is shortened."""

    def __init__(self, message: str) -> None:
        text = " ".join(message.splitlines())
        super().__init__(text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} ... {text[-LONGEST // 4 :]}")


class Interrupted(KeyboardInterrupt):
    """The user asked to stop; the message says what was kept and how to go on. ``code`` is the exit code."""

    def __init__(self, message: str, *, code: int = 130) -> None:
        super().__init__(message)
        self.code = code


class DirectedGraphWarning(UserWarning):
    """Edges of a user's graph lack their reverse edges."""


class UnknownName(ValueError):
    """An unknown name of a thing of this kind, such as a ``"dataset"``; the message suggests the nearest known name."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        near = get_close_matches(name.lower(), names, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}? " if near else ""
        super().__init__(f"unknown {kind} {name!r}: {hint}Known: {', '.join(names)}.")


def in_words(error: Exception) -> str:
    """Return an error as one line, with its class unless it is an error of this library."""
    text = " ".join(str(error).split())
    return text if isinstance(error, (SolverError, DataError)) else f"{type(error).__name__}: {text}"


def check_graph(edge_index: Tensor, *, num_nodes: int) -> None:
    """Refuse an edge index that is not (2, m) integers within ``num_nodes`` nodes."""
    import torch

    if num_nodes >= 2**31:
        raise ValueError(f"`num_nodes` must be below 2**31; got {num_nodes}.")
    if num_nodes <= 0:
        raise ValueError(f"the graph is empty: it has {num_nodes} nodes; at least one is needed.")
    if edge_index.dim() != 2 or edge_index.shape[0] != 2:
        raise ValueError(f"`edge_index` must have shape (2, m); got {tuple(edge_index.shape)}.")
    if edge_index.dtype not in (torch.int64, torch.int32):
        raise ValueError(f"`edge_index` must hold integers (torch.int64); got {edge_index.dtype}.")
    low, high = (int(edge_index.min()), int(edge_index.max())) if edge_index.numel() else (0, 0)
    if low < 0 or high >= num_nodes:
        wrong = low if low < 0 else high
        raise ValueError(
            f"`edge_index` names node {wrong}, but the graph has {num_nodes} nodes: they run from 0 to {num_nodes - 1}."
        )


def as_classes(y: Tensor, *, name: str = "y") -> Tensor:
    """Return class numbers (n,) as torch.int64, from integers, booleans or whole floats of shape (n,) or (n, 1)."""
    import torch

    y = y if y.layout == torch.strided else y.to_dense()
    y = y[:, 0] if y.dim() == 2 and y.shape[1] == 1 else y
    if y.dim() != 1:
        remedy = f": for one-hot rows, use `{name}.argmax(1)`" if y.dim() == 2 else ""
        raise ValueError(f"`{name}` must hold one class per node, shape (n,); got shape {tuple(y.shape)}{remedy}.")
    if y.is_floating_point():
        odd = y[~(y.trunc().eq(y) & (y.abs() < 2**53))]  # NaN too
        if len(odd):
            raise ValueError(
                f"`{name}` holds {odd[0].item():g}, and classes are whole numbers from 0: convert them, or for targets "
                "that are numbers use `task=Regression()`."
            )
    elif y.dtype != torch.bool and y.is_complex():
        raise ValueError(f"`{name}` must hold classes as integers (torch.int64); got {y.dtype}.")
    return y.long()


def check_state(z: Tensor, *, num_nodes: int) -> None:
    """Refuse a state that is not a dense floating-point matrix (n, d); its values are not read."""
    import torch

    if z.dim() != 2 or len(z) != num_nodes or not z.is_floating_point() or z.layout != torch.strided:
        found = f"{z.dtype} of shape {tuple(z.shape)}, {z.layout}"
        raise ValueError(f"`z` must be a dense floating-point matrix ({num_nodes}, channels); got {found}.")


def check_matrix(x: Tensor, *, name: str, rows: int | None = None, columns: int | None = None) -> None:
    """Refuse anything but a finite floating-point matrix (n, d), dense or sparse, of the expected size."""
    import torch

    if x.dim() != 2:
        raise ValueError(f"`{name}` must be a matrix (nodes, channels); got shape {tuple(x.shape)}.")
    if not x.dtype.is_floating_point:
        raise ValueError(f"`{name}` must be floating point; got {x.dtype}. Try `{name}.float()`.")
    if rows is not None and x.shape[0] != rows:
        raise ValueError(f"`{name}` has {x.shape[0]} rows where the graph has {rows} nodes.")
    if columns is not None and x.shape[1] != columns:
        raise ValueError(f"`{name}` has {x.shape[1]} columns where {columns} are expected.")
    if torch.compiler.is_compiling():
        return  # values are not known
    values = x if x.layout == torch.strided else x.coalesce().values() if x.layout == torch.sparse_coo else x.values()
    if not bool(torch.isfinite(values).all()):
        bad = int((~torch.isfinite(values)).sum())
        raise ValueError(f"`{name}` holds {bad} values that are NaN or infinite: clean or impute them first.")
