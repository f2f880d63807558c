"""The choice of the backend that computes the sparse products, made once per call by :func:`backend`.

| backend   | serves                                        | chosen by "auto"             |
|-----------|-----------------------------------------------|------------------------------|
| triton    | floating point on CUDA devices                | always                       |
| numba     | single and double precision on the CPU        | for several heads, in place, or for attention |
| vendor    | single and double precision (MKL, cuSPARSE)   | else                         |
| reference | any type on any device, in plain torch        | else                         |
"""

# mypy: disable-error-code="no-any-return"
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from beltrami.arguments import checked
from beltrami.errors import UnknownName
from beltrami.graph.edges import Compressed

BACKENDS = ("reference", "vendor", "numba", "triton")
SINGLE_AND_DOUBLE = (torch.float32, torch.float64)
TRITON_DTYPES = (*SINGLE_AND_DOUBLE, torch.bfloat16, torch.float16)
_INSTALLED = {package: find_spec(package) is not None for package in ("numba", "triton")}
_selected = "auto"


@checked
@contextmanager
def use(name: str) -> Iterator[None]:
    """Select one of ``BACKENDS``, or "auto", for all products computed in a ``with`` block, backward passes included.

    The selection holds for the whole process, since backward passes on a GPU run in other threads. Tensors that the
    backend does not serve go to the reference.
    """
    global _selected
    if name not in ("auto", *BACKENDS):
        raise UnknownName("backend", name, ("auto", *BACKENDS))
    if name == "numba" and not _is_installed("numba"):
        raise ValueError("backend 'numba' is not available: install numba, by `pip install beltrami[fast]`.")
    if name == "triton" and not (_is_installed("triton") and (torch.cuda.is_available() or _is_interpreted())):
        raise ValueError("backend 'triton' is not available: it needs the package triton and a CUDA device.")
    previous, _selected = _selected, name
    try:
        yield
    finally:
        _selected = previous


def backend(tensor: Tensor, *, heads: int = 1, in_place: bool = False) -> str:
    """Return the name of the backend that serves a tensor; ``in_place`` if products are added to an existing tensor."""
    if _selected != "auto":
        return _selected if _serves(_selected, tensor) else "reference"
    if tensor.is_cuda and _serves("triton", tensor):
        return "triton"
    if (heads > 1 or in_place) and _serves("numba", tensor):
        return "numba"
    return "vendor" if _serves("vendor", tensor) else "reference"


def has_kernel(tensor: Tensor) -> bool:
    """Whether the Triton kernels serve a tensor."""
    return backend(tensor) == "triton"


def attention_backend(tensor: Tensor) -> str | None:
    """Return the backend whose fused attention serves a tensor, "triton" or "numba"; None if there is none. Numba's has
    no rules for ``torch.func`` transforms, inside which plain operations serve."""
    name = backend(tensor, in_place=True)  # by numba, if it is installed, for one head too
    if name == "numba" and torch._C._are_functorch_transforms_active():
        return None
    return name if name in ("triton", "numba") else None


def loops_over_runs(tensor: Tensor) -> bool:
    """Whether the runs of a ``torch.func.vmap`` batch are computed in turn, as on a CPU, or in one product."""
    return tensor.device.type == "cpu"


def spmm(pattern: Compressed, values: Tensor, dense: Tensor) -> Tensor:
    """Sparse matrix times dense matrix, for each head: (m, h), (c, h, k) -> (r, h, k)."""
    return _module(backend(dense, heads=dense.shape[1])).spmm(pattern, values, dense)


def sddmm(pattern: Compressed, left: Tensor, right: Tensor) -> Tensor:
    """Dot products of dense rows at the entries of a pattern: (r, h, k), (c, h, k) -> (m, h), in its order."""
    return _module(backend(left, heads=left.shape[1])).sddmm(pattern, left, right)


def row_sums(pattern: Compressed, values: Tensor) -> Tensor:
    """Sums of edge values over the rows of a pattern, in a fixed order: (m, d) -> (r, d)."""
    if has_kernel(values):
        return _module("triton").row_sums(pattern, values)
    # The incidence matrix has a row for each row and a column for each edge. Products have a fixed order of summation
    # on every device; scatter-add with atomics has not.
    incidence = Compressed(pattern.ptr, pattern.edge, pattern.edge)
    return spmm(incidence, values.new_ones(len(values), 1), values[:, None])[:, 0]


def row_max(pattern: Compressed, values: Tensor) -> Tensor:
    """Largest edge value in each row of a pattern, minus infinity for an empty row: (m, d) -> (r, d)."""
    if has_kernel(values):
        return _module("triton").row_sums(pattern, values, largest=True)
    row = pattern.row.long()[:, None].expand(-1, values.shape[1])
    lowest = values.new_full((len(pattern.ptr) - 1, values.shape[1]), -torch.inf)
    return lowest.scatter_reduce(0, row, values.index_select(0, pattern.edge), "amax")


def gather(values: Tensor, index: Tensor) -> Tensor:
    """Rows of ``values`` by their numbers: (n, h), (m,) -> (m, h)."""
    if has_kernel(values):
        return _module("triton").gather(values, index)
    return values.index_select(0, index)


def _serves(name: str, tensor: Tensor) -> bool:
    if name == "triton":
        device = tensor.is_cuda or (tensor.device.type == "cpu" and _is_interpreted())
        return device and tensor.dtype in TRITON_DTYPES and _is_installed("triton")
    if name == "numba":
        return tensor.device.type == "cpu" and tensor.dtype in SINGLE_AND_DOUBLE and _is_installed("numba")
    return name == "reference" or tensor.dtype in SINGLE_AND_DOUBLE


@cache
def _module(name: str) -> Any:
    return import_module("beltrami.graph.ops." + ("triton.sparse_product" if name == "triton" else name))


def _is_installed(package: str) -> bool:
    return _INSTALLED[package]


def _is_interpreted() -> bool:
    """Whether Triton runs its kernels in Python on the CPU, as TRITON_INTERPRET=1 asks for."""
    if not _is_installed("triton"):
        return False
    import triton

    return bool(triton.knobs.runtime.interpret)
