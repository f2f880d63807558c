"""The metric of an image's surface against eq. (2) in a double loop."""

import numpy as np
import pytest
import torch
from torch import Tensor

from beltrami.image import Surface, bilateral


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def looped(x: Tensor, alpha: float, patch: int) -> np.ndarray:
    """Return G (h, w, 2, 2), computed pixel by pixel and channel by channel."""
    image = x.numpy()
    c, h, w = image.shape

    def difference(k: int, i: int, j: int, down: int, right: int) -> float:
        inside = 0 <= i + down < h and 0 <= j + right < w
        return float(image[k, i + down, j + right] - image[k, i, j]) if inside else 0.0

    def products(i: int, j: int) -> np.ndarray:
        total = np.zeros((2, 2))
        for k in range(c):
            up, down = -difference(k, i, j, -1, 0), difference(k, i, j, 1, 0)
            left, right = -difference(k, i, j, 0, -1), difference(k, i, j, 0, 1)
            cross = (up + down) / 2 * (left + right) / 2
            total += [[(up**2 + down**2) / 2, cross], [cross, (left**2 + right**2) / 2]]
        return total

    reach, out = patch // 2, np.empty((h, w, 2, 2))
    for i in range(h):
        for j in range(w):
            around = [
                products(a, b)
                for a in range(max(0, i - reach), min(h, i + reach + 1))
                for b in range(max(0, j - reach), min(w, j + reach + 1))
            ]
            out[i, j] = np.eye(2) + alpha**2 * np.mean(around, axis=0)
    return out


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("patch", [1, 3, 5])
def test_metric_is_the_double_loop(channels: int, patch: int) -> None:
    x = noise(channels, 6, 7)
    g = Surface(2.5, patch).pullback(x)
    expected = looped(x, 2.5, patch)
    for found, (a, b) in ((g.g11, (0, 0)), (g.g12, (0, 1)), (g.g12, (1, 0)), (g.g22, (1, 1))):
        np.testing.assert_allclose(found.numpy(), expected[..., a, b], rtol=1e-12)
    np.testing.assert_allclose(g.det.numpy(), np.linalg.det(expected), rtol=1e-12)
    np.testing.assert_allclose(g.indicator.numpy(), np.linalg.det(expected) ** -0.5, rtol=1e-12)


def test_metric_of_a_plane_is_known_and_its_indicator_is_eq_4() -> None:
    rows, columns = torch.meshgrid(torch.arange(8.0), torch.arange(9.0), indexing="ij")
    g = Surface(2.0).pullback((0.3 * rows - 0.4 * columns)[None])
    inside = (slice(1, -1), slice(1, -1))
    torch.testing.assert_close(g.g11[inside], torch.full((6, 7), 1 + 4 * 0.09))
    torch.testing.assert_close(g.g12[inside], torch.full((6, 7), 4 * -0.12))
    torch.testing.assert_close(g.indicator[inside], torch.full((6, 7), (1 + 4 * 0.25) ** -0.5))


def test_metric_with_patches_is_the_metric_of_patches_as_channels() -> None:
    x = noise(2, 11, 12)
    near = Surface(3.0, patch=3).pullback(x)
    padded = torch.nn.functional.pad(x[None], (1, 1, 1, 1), mode="replicate")[0]
    patches = torch.cat([padded[:, i : i + 11, j : j + 12] for i in range(3) for j in range(3)])  # (9 c, h, w)
    channels = Surface(3.0 / 3).pullback(patches)  # each of the nine pixels has weight 1/9
    for one, other in zip(near, channels, strict=True):
        torch.testing.assert_close(one[2:-2, 2:-2], other[2:-2, 2:-2])


@pytest.mark.parametrize("patch", [1, 3])
def test_determinant_is_never_below_one(patch: int) -> None:
    assert float(Surface(100.0, patch).pullback(noise(3, 9, 9)).det.min()) >= 1.0


def test_flat_plane_at_alpha_zero() -> None:
    g = Surface(0.0, 3).pullback(noise(1, 4, 5))
    assert torch.equal(g.det, torch.ones(4, 5, dtype=torch.float64))


def test_single_pixel_is_flat() -> None:
    assert float(Surface(5.0, 5).pullback(noise(1, 1, 1)).det) == 1.0


@pytest.mark.parametrize(
    ("alpha", "patch", "match"),
    [(-1.0, 1, "`alpha` of at least 0; got -1.0"), (float("nan"), 1, "finite `alpha`"), (1.0, 2, "odd `patch`")],
)
def test_bad_surfaces_are_refused(alpha: float, patch: int, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        Surface(alpha, patch)


def test_bad_images_are_refused() -> None:
    with pytest.raises(ValueError, match=r"`x` must be an image \(channels, height, width\)"):
        Surface(1.0).pullback(torch.zeros(3, 4))
    with pytest.raises(ValueError, match=r"must be floating point; got torch.uint8"):
        Surface(1.0).pullback(torch.zeros(1, 3, 4, dtype=torch.uint8))


@pytest.mark.parametrize("scale", [2.0**64, 2.0**-74])
@pytest.mark.parametrize("patch", [1, 3])
def test_the_metric_of_a_scaled_image_is_that_of_the_image_with_another_alpha(scale: float, patch: int) -> None:
    x = torch.randn(2, 6, 5, generator=torch.Generator().manual_seed(0))
    expected = Surface(3.0, patch).pullback(x)
    for found, entry in zip(Surface(3.0 / scale, patch).pullback(scale * x), expected, strict=True):
        torch.testing.assert_close(found, entry)
    torch.testing.assert_close(
        bilateral(scale * x, time=1.0, alpha=3.0 / scale) / scale, bilateral(x, time=1.0, alpha=3.0)
    )
