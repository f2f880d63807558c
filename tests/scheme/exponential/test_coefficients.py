"""The kernel of Chebyshev coefficients against plain operations, values and derivatives."""

import pytest
import torch

from beltrami.scheme.exponential.polynomial import Chebyshev


@pytest.mark.parametrize("rate", [0.0, 1e-9, 0.02, 0.5, 1.0])
def test_coefficients_and_derivatives_are_those_of_plain_operations(kernels: str, rate: float) -> None:
    from beltrami.scheme.exponential.coefficients_triton import coefficients

    times = torch.tensor([1e-3, 0.7, 18.3, 40.0], dtype=torch.float64, device=kernels)
    size, wanted = Chebyshev().size(40.0), 21
    g = torch.linspace(-1, 1, 4 * wanted, dtype=torch.float64, device=kernels).reshape(4, wanted)
    alpha = torch.tensor(rate, dtype=torch.float64, device=kernels, requires_grad=True)
    found = coefficients(alpha, times, size=size, wanted=wanted, dtype=torch.float64)
    plain = (times[:, None] * Chebyshev().coefficients(alpha * times, size=size))[:, :wanted]
    torch.testing.assert_close(found, plain, rtol=1e-13, atol=1e-13)
    slopes = [torch.autograd.grad((d * g).sum(), alpha)[0] for d in (found, plain)]
    torch.testing.assert_close(*slopes, rtol=1e-10, atol=1e-12)


def test_single_precision_is_the_rounded_result(kernels: str) -> None:
    from beltrami.scheme.exponential.coefficients_triton import coefficients

    times, alpha = torch.tensor([5.0], dtype=torch.float64, device=kernels), torch.tensor(0.6, device=kernels)
    single, double = (
        coefficients(alpha, times, size=30, wanted=12, dtype=dtype) for dtype in (torch.float32, torch.float64)
    )
    torch.testing.assert_close(single, double.float(), rtol=0, atol=0)
