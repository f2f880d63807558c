"""The choice of the backend: by the rule of "auto", and by ``ops.use``."""

from collections.abc import Callable

import pytest
import torch
from checks import alone, normal, ragged
from torch import Tensor

from beltrami.errors import UnknownName
from beltrami.graph import aggregate, collect, edge_dot, ops
from beltrami.graph.ops import dispatch, reference

single = torch.ones(3)


def test_auto_prefers_numba_for_several_heads_and_the_vendor_for_one() -> None:
    pytest.importorskip("numba")
    assert dispatch.backend(single) == "vendor"
    assert dispatch.backend(single, heads=2) == "numba"
    assert dispatch.backend(single, in_place=True) == "numba"


def test_auto_takes_the_vendor_without_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "_is_installed", lambda package: False)
    assert dispatch.backend(single, heads=2) == "vendor"


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.long])
@pytest.mark.parametrize("name", ["auto", "vendor", "numba"])
def test_other_types_go_to_the_reference(name: str, dtype: torch.dtype) -> None:
    if name == "numba":
        pytest.importorskip("numba")
    with ops.use(name):
        assert dispatch.backend(single.to(dtype), heads=2) == "reference"


def test_the_cpu_takes_no_kernel_unless_they_are_interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not dispatch.has_kernel(single)
    monkeypatch.setattr(dispatch, "_selected", "triton")
    monkeypatch.setattr(dispatch, "_is_interpreted", lambda: False)
    assert dispatch.backend(single) == "reference"


@pytest.mark.gpu
def test_auto_takes_triton_on_cuda_devices() -> None:
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
        assert dispatch.has_kernel(single.to("cuda", dtype))
    assert dispatch.backend(torch.ones(3, dtype=torch.long, device="cuda")) == "reference"
    with ops.use("vendor"):
        assert dispatch.backend(single.to("cuda")) == "vendor"


def test_use_ends_with_its_block_also_by_an_error_and_may_be_nested() -> None:
    with ops.use("reference"):
        with ops.use("vendor"):
            assert dispatch.backend(single, heads=2) == "vendor"
        assert dispatch.backend(single, heads=2) == "reference"
        with pytest.raises(ValueError, match="invalid literal"), ops.use("vendor"):
            dispatch.backend(single, heads=int("unknown"))
        assert dispatch.backend(single) == "reference"
    assert dispatch.backend(single) == "vendor"


def test_use_calls_the_named_backend_in_the_backward_pass_too(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def counted(name: str, product: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def call(*args: object) -> Tensor:
            calls.append(name)
            return product(*args)

        return call

    for name in ("spmm", "sddmm"):
        monkeypatch.setattr(reference, name, counted(name, getattr(reference, name)))
    edges, a = alone(loop=True), normal(1).requires_grad_()
    with ops.use("reference"):
        aggregate(a, normal(1, 2), edges).sum().backward()
    assert calls == ["spmm", "sddmm"]


@pytest.mark.parametrize("name", ["vendor", "numba"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_backend_gives_the_products_of_the_reference(name: str, dtype: torch.dtype) -> None:
    if name == "numba":
        pytest.importorskip("numba")
    edges, found = ragged(), {}
    for backend in (name, "reference"):
        a = normal(9, 3).to(dtype).requires_grad_()
        p, q = (normal(6, 3, 4, seed=s).to(dtype).requires_grad_() for s in (1, 2))
        with ops.use(backend):
            out = aggregate(a, p, edges).square().sum() + edge_dot(p, q, edges).square().sum()
            out = out + collect(a, edges, senders=True).square().sum()
            found[backend] = (out, *torch.autograd.grad(out, (a, p, q)))
    for one, other in zip(found[name], found["reference"], strict=True):
        torch.testing.assert_close(one, other)


def test_unknown_and_unavailable_backends_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnknownName, match="unknown backend 'tritn': did you mean 'triton'"), ops.use("tritn"):
        pass
    monkeypatch.setattr(dispatch, "_is_installed", lambda package: False)
    with pytest.raises(ValueError, match="backend 'numba' is not available: install numba"), ops.use("numba"):
        pass
    with pytest.raises(ValueError, match="needs the package triton and a CUDA device"), ops.use("triton"):
        pass
