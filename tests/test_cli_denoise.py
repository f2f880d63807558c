"""`beltrami denoise`: its output, and its refusals."""

import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from shell import Beltrami

from beltrami.image import Explicit, LaplaceBeltrami, Surface, evolve, psnr
from beltrami.image.image_file import Picture, encode_image, read_image

pytest.importorskip("PIL")
pytest.importorskip("tifffile")


@pytest.fixture
def denoise(beltrami: Beltrami) -> Beltrami:
    """Run `beltrami denoise`."""
    return partial(beltrami, "denoise")


def save(
    name: str, *, channels: int = 1, bits: int = 8, opacity: bool = False, size: int = 24, seed: int = 0
) -> Picture:
    """Save an image of two halves in the working folder: noisy, or clean if the seed is negative."""
    x = torch.full((channels, size, size + 4), 0.2)
    x[:, :, size // 2 :] = 0.8
    if seed >= 0:
        x = x + 0.1 * torch.randn(x.shape, generator=torch.Generator().manual_seed(seed))
    alpha = np.arange(size * (size + 4)).reshape(size, -1) % 2**bits
    kept: Any = alpha.astype(np.uint16 if bits == 16 else np.uint8) if opacity else None
    picture = Picture(x.clamp(0, 1), kept, bits)
    Path(name).write_bytes(encode_image(picture, Path(name)))
    return read_image(Path(name))


@pytest.mark.parametrize(
    ("suffix", "channels", "bits", "opacity"),
    [
        (".png", 3, 8, True),
        (".png", 3, 16, False),
        (".jpg", 3, 8, False),
        (".tiff", 1, 16, True),
    ],
)
def test_output_has_the_mode_and_depth_of_the_input(
    denoise: Beltrami, suffix: str, channels: int, bits: int, opacity: bool
) -> None:
    before = save(f"in{suffix}", channels=channels, bits=bits, opacity=opacity)
    content = Path(f"in{suffix}").read_bytes()
    outcome = denoise(f"in{suffix}", f"out{suffix}")
    assert (outcome.code, outcome.err) == (0, "")
    after = read_image(Path(f"out{suffix}"))
    assert (after.bits, after.x.shape) == (bits, before.x.shape)
    np.testing.assert_array_equal(after.opacity, before.opacity)
    assert after.x[:, :8, :8].std() < 0.5 * before.x[:, :8, :8].std()
    assert Path(f"in{suffix}").read_bytes() == content
    assert sorted(path.name for path in Path().iterdir()) == [f"in{suffix}", f"out{suffix}"]


def test_output_is_the_flow_at_the_given_time(denoise: Beltrami) -> None:
    before = save("in.png", channels=3, bits=16)
    assert denoise("in.png", "out.png", "--alpha", "7", "--time", "2.5", "--patch", "3").code == 0
    expected = evolve(before.x, LaplaceBeltrami(Surface(7.0, 3)), time=2.5, stepping=Explicit())
    torch.testing.assert_close(read_image(Path("out.png")).x, expected.clamp(0, 1), atol=1.01 / 65535, rtol=0)


def test_schemes_give_nearly_the_same_image(denoise: Beltrami) -> None:
    save("in.png")
    assert denoise("in.png", "one.png", "--scheme", "explicit").code == 0
    assert denoise("in.png", "other.png", "--scheme", "implicit").code == 0
    apart = read_image(Path("one.png")).x - read_image(Path("other.png")).x
    assert 0 < apart.abs().max() < 0.15
    assert apart.abs().mean() < 0.02


def test_quality_is_printed_for_a_clean_image(denoise: Beltrami) -> None:
    before, clean = save("in.png"), save("clean.png", seed=-1)
    outcome = denoise("in.png", "out.png", "--clean", "clean.png")
    after = read_image(Path("out.png"))
    printed = re.search(r"PSNR +([\d.]+) -> ([\d.]+) dB", outcome.out)
    assert printed is not None
    assert float(printed[1]) == pytest.approx(psnr(before.x, clean.x), abs=0.006)
    assert float(printed[2]) == pytest.approx(psnr(after.x, clean.x), abs=0.02)  # printed before rounding to 8 bits
    assert float(printed[2]) > float(printed[1]) + 5
    assert re.search(r"SSIM +0\.\d+ -> 0\.\d+", outcome.out)


def test_comparison_is_written_next_to_the_output(denoise: Beltrami) -> None:
    before = save("in.tif", bits=16)
    outcome = denoise("in.tif", "out.tif", "--compare")
    assert outcome.out.count("saved in") == 2
    x = read_image(Path("out-compare.png")).x
    assert x.shape == (3, 24, 3 * 28 + 16)
    torch.testing.assert_close(x[:, :, :28], before.x.expand(3, -1, -1), atol=0.51 / 255, rtol=0)


def test_image_of_one_pixel_is_unchanged(denoise: Beltrami) -> None:
    Path("in.png").write_bytes(encode_image(Picture(torch.full((1, 1, 1), 0.6)), Path("in.png")))
    outcome = denoise("in.png", "out.png", "--clean", "in.png")
    assert outcome.code == 0
    assert "inf dB" in outcome.out
    assert "SSIM" not in outcome.out
    assert torch.equal(read_image(Path("out.png")).x, read_image(Path("in.png")).x)


@pytest.mark.parametrize(
    ("arguments", "code", "match"),
    [
        (["in.png", "in.png"], 2, r"in\.png would overwrite an input: give OUT another name"),
        (["in.png", "./link.png"], 2, "would overwrite an input"),
        (["in.png", "clean.png", "--clean", "clean.png"], 2, "clean.png would overwrite an input"),
        (["in-compare.png", "in.png", "--compare"], 2, "in-compare.png would overwrite an input"),
        (["in.png", "out.gif"], 2, r"out\.gif has the suffix '\.gif': images are \.png"),
        (["in.png", "out"], 2, "out has no suffix"),
        (["in.png", "folder.png"], 1, "folder.png is a folder: name a file in it"),
        (["in.png", "nowhere/out.png"], 1, "cannot write to the folder nowhere"),
        (["missing.png", "out.png"], 1, r"cannot read missing\.png: No such file"),
        (["text.png", "out.png"], 1, r"cannot read text\.png as PNG: it is not an image"),
        (["in.png", "out.jpg"], 2, "JPEG cannot hold an alpha channel"),
        (
            ["in.png", "out.png", "--clean", "wide.png"],
            2,
            r"wide\.png has 34 x 30 pixels of 1 colours and in\.png 28 x 24",
        ),
        (["in.png", "out.png", "--scheme", "implict"], 2, r"unknown scheme 'implict': did you mean 'implicit'\?"),
        (["in.png", "out.png", "--alpha", "-1"], 2, "Surface needs a finite `alpha` of at least 0; got -1.0"),
        (["in.png", "out.png", "--time", "0"], 2, "`time` must be positive; got 0.0"),
        (["in.png", "out.png", "--patch", "4"], 2, "odd `patch`"),
    ],
)
def test_bad_arguments_are_refused(denoise: Beltrami, arguments: list[str], code: int, match: str) -> None:
    save("in.png", opacity=True)
    save("in-compare.png")
    save("clean.png", seed=-1)
    save("wide.png", size=30)
    Path("link.png").symlink_to("in.png")
    Path("folder.png").mkdir()
    Path("text.png").write_text("not an image, and long enough for a header")
    contents = {path.name: path.read_bytes() for path in Path().iterdir() if path.is_file()}
    outcome = denoise(*arguments)
    assert (outcome.code, outcome.out) == (code, "")
    assert outcome.err.startswith("beltrami: ")
    assert outcome.err.count("\n") == 1
    assert re.search(match, outcome.err), outcome.err
    assert {path.name: path.read_bytes() for path in Path().iterdir() if path.is_file()} == contents


def test_help_names_the_options(denoise: Beltrami) -> None:
    outcome = denoise("--help")
    for word in ("IN", "OUT", "--alpha", "--time", "--patch", "--scheme", "--compare", "--clean", "--device"):
        assert word in outcome.out
