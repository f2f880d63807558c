"""The page of a denoised image: all images within it, names as text, curves of noise and PSNR."""

import base64
import io
import re
from pathlib import Path

import numpy
import pytest
import torch
from browser import accessibility_faults, headless_browser, open_page

from beltrami.image import Surface, noise_level, psnr
from beltrami.report.image_page import LONGEST, MOST_KEPT, MOST_STATES, ImageFlowData, figures, image_page

Image = pytest.importorskip("PIL.Image")


def example(*, channels: int = 3, size: int = 24, count: int = 4, clean: bool = True) -> ImageFlowData:
    """Images of noise that becomes weaker."""
    torch.manual_seed(0)
    flat, noise = torch.full((channels, size, size), 0.5), torch.randn(channels, size, size)
    data = ImageFlowData("<b>in</b>.png", Surface(3.0, 1), flat if clean else None)
    for k in range(count):
        data.add(0.5 * k, (flat + 0.1 * noise / (k + 1)).clamp(0, 1))
    return data


def images_of(page: str) -> list[numpy.ndarray]:
    found = re.findall(r'class="state" [^>]*src="data:image/png;base64,([^"]+)"', page)
    return [numpy.asarray(Image.open(io.BytesIO(base64.b64decode(each)))) for each in found]


@pytest.mark.parametrize("channels", [1, 3])
def test_the_page_holds_the_images_of_the_flow(channels: int) -> None:
    data = example(channels=channels)
    page = image_page(data)
    for shown, image in zip(images_of(page), data.images, strict=True):
        expected = (255 * image).round().to(torch.uint8).permute(1, 2, 0).squeeze(-1)
        numpy.testing.assert_array_equal(shown, expected.numpy())
    assert set(re.findall(r"https?://[^\"' ]+", page)) <= {"http://www.w3.org/2000/svg"}  # a name, not an address
    assert "<b>in" not in page
    assert "&lt;b&gt;in" in page


@pytest.mark.browser
@pytest.mark.slow
def test_the_sliders_move_the_divider_and_the_time_without_requests(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(image_page(example()))
    complaints: list[str] = []
    with headless_browser() as browser:
        page = open_page(browser, tmp_path / "page.html", complaints)
        page.locator("#divider").press("Home")
        page.locator("#time").press("Home")
        assert page.locator("#said").inner_text() == "t = 0"
        assert page.locator("#later").get_attribute("src") == page.locator("#earlier").get_attribute("src")
        assert page.locator("#earlier").evaluate("each => each.style.clipPath") == "inset(0px 100% 0px 0px)"
        assert accessibility_faults(page) == []
        page.close()
    assert [each for each in complaints if not each.startswith("data:")] == []


def test_curves_show_noise_and_psnr() -> None:
    data = example()
    noise, against = figures(data)
    numpy.testing.assert_allclose(noise.series[0].y, [noise_level(image) for image in data.images])  # type: ignore[union-attr]
    assert data.clean is not None
    numpy.testing.assert_allclose(against.series[0].y, [psnr(image, data.clean) for image in data.images])  # type: ignore[union-attr]
    assert len(figures(example(clean=False))) == 1


def test_of_many_images_some_are_kept_at_even_distances() -> None:
    data = example(count=200, channels=1, size=8)
    assert (len(data.times), data.times[0], data.times[-1]) == (MOST_KEPT, 0.0, 99.5)
    gaps = numpy.diff(data.times)
    assert gaps.max() <= 4 * gaps.min()
    assert len(images_of(image_page(data))) == MOST_STATES


def test_a_large_image_is_reduced_to_means_over_areas() -> None:
    data = ImageFlowData("large", Surface(1.0, 1))
    halves = torch.zeros(1, 4, 2 * LONGEST)
    halves[..., 1::2] = 1.0
    data.add(0.0, halves)
    page = image_page(data)
    (image,) = images_of(page)
    assert image.shape == (2, LONGEST)
    assert set(image.ravel().tolist()) <= {127, 128}
    assert "They are reduced on this page" in page
