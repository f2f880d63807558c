"""Images on disk: what is written is read again, bit by bit; what cannot be is refused in one sentence."""

import io
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from beltrami.errors import DataError
from beltrami.image import png
from beltrami.image.comparison import GAP, comparison
from beltrami.image.file import Picture, encode, read
from beltrami.image.surface import Surface

Image = pytest.importorskip("PIL.Image")
tifffile = pytest.importorskip("tifffile")

SAMPLES = {"grey": 1, "grey with alpha": 2, "colour": 3, "colour with alpha": 4}


def pixels(samples: int, bits: int, *, height: int = 9, width: int = 7) -> NDArray[Any]:
    kind = np.uint16 if bits == 16 else np.uint8
    return np.random.default_rng(0).integers(0, 2**bits, (height, width, samples)).astype(kind)


def picture(array: NDArray[Any]) -> Picture:
    samples, bits = array.shape[-1], 8 * array.dtype.itemsize
    colours = array[..., :-1] if samples in (2, 4) else array
    x = torch.from_numpy(colours.astype(np.float32)).permute(2, 0, 1) / (2**bits - 1)
    return Picture(x, array[..., -1] if samples in (2, 4) else None, bits)


@pytest.mark.parametrize("suffix", [".png", ".tif"])
@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("samples", SAMPLES.values(), ids=SAMPLES)
def test_what_is_written_is_read_again(tmp_path: Path, suffix: str, bits: int, samples: int) -> None:
    array, path = pixels(samples, bits), tmp_path / f"image{suffix}"
    path.write_bytes(encode(picture(array), path))
    again = read(path)
    assert (again.bits, again.x.shape) == (bits, (samples - (samples in (2, 4)), 9, 7))
    assert path.read_bytes() == encode(again, path)
    colours = np.rint(again.x.permute(1, 2, 0).double().numpy() * (2**bits - 1))
    np.testing.assert_array_equal(colours, array[..., : colours.shape[-1]])
    if samples in (2, 4):
        np.testing.assert_array_equal(again.opacity, array[..., -1])
    else:
        assert again.opacity is None


@pytest.mark.parametrize("samples", [1, 3])
def test_jpeg_is_read_and_written_nearly_alike(tmp_path: Path, samples: int) -> None:
    rows, columns = np.mgrid[:32, :40]
    array = np.stack([(3 * rows + 2 * columns + 20 * c).astype(np.uint8) for c in range(samples)], axis=-1)
    path = tmp_path / "image.JPG"
    path.write_bytes(encode(picture(array), path))
    assert opened(path).mode == ("L" if samples == 1 else "RGB")
    again = read(path).x.permute(1, 2, 0).numpy() * 255
    assert np.abs(again - array).max() < 12


@pytest.mark.parametrize("samples", SAMPLES.values(), ids=SAMPLES)
def test_others_read_what_we_write(tmp_path: Path, samples: int) -> None:
    array = pixels(samples, 16)
    wide, narrow = tmp_path / "image.tif", tmp_path / "image.png"
    wide.write_bytes(encode(picture(array), wide))
    np.testing.assert_array_equal(np.atleast_3d(tifffile.imread(wide)), array)
    narrow.write_bytes(encode(picture(array), narrow))
    image = opened(narrow)  # Pillow checks every chunk, though it keeps but 8 bits of most
    assert image.size == (7, 9)
    if samples == 1:
        np.testing.assert_array_equal(np.asarray(image), array[..., 0])
    elif samples >= 3:
        assert np.abs(np.asarray(image).astype(int) - array // 256).max() <= 1


def filtered(array: NDArray[np.uint16], kinds: list[int]) -> bytes:
    """A PNG whose rows go through the given filters, byte by byte as the standard words them."""
    height, width, samples = array.shape
    rows = array.astype(">u2").tobytes()
    stride, size = width * samples * 2, samples * 2
    out = bytearray()
    for y in range(height):
        out.append(kinds[y])
        for k in range(stride):
            here = rows[y * stride + k]
            a = rows[y * stride + k - size] if k >= size else 0
            b = rows[(y - 1) * stride + k] if y else 0
            c = rows[(y - 1) * stride + k - size] if y and k >= size else 0
            p = a + b - c
            nearest = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
            out.append((here - (0, a, b, (a + b) // 2, nearest)[kinds[y]]) % 256)
    head = struct.pack(">IIBBBBB", width, height, 16, {1: 0, 2: 4, 3: 2, 4: 6}[samples], 0, 0, 0)
    body, content = zlib.compress(bytes(out)), b"\x89PNG\r\n\x1a\n"
    for kind, data in ((b"IHDR", head), (b"IDAT", body[:20]), (b"tEXt", b"a\0b"), (b"IDAT", body[20:]), (b"IEND", b"")):
        content += struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return content


@pytest.mark.parametrize("samples", SAMPLES.values(), ids=SAMPLES)
def test_all_filters_of_png_are_undone(samples: int) -> None:
    array = pixels(samples, 16, height=11, width=5)
    np.testing.assert_array_equal(png.decode(filtered(array, [0, 1, 2, 3, 4, 4, 3, 2, 1, 0, 4])), array)
    np.testing.assert_array_equal(png.decode(filtered(array, [4] * 11)), array)
    np.testing.assert_array_equal(png.decode(filtered(array, [3] * 11)), array)


def test_colour_profile_is_carried_along(tmp_path: Path) -> None:
    path = tmp_path / "image.png"
    Image.fromarray(pixels(3, 8)).save(path, icc_profile=b"a profile of 25 characters")
    again = read(path)
    path.write_bytes(encode(again.with_colours(again.x), path))
    assert opened(path).info["icc_profile"] == b"a profile of 25 characters"


def test_colours_outside_are_cut_off_not_wrapped(tmp_path: Path) -> None:
    path = tmp_path / "image.png"
    before = picture(pixels(1, 8, height=1, width=3))
    path.write_bytes(encode(before.with_colours(torch.tensor([[[-0.5, 0.5, 1.5]]])), path))
    assert np.asarray(opened(path)).tolist() == [[0, 128, 255]]


def opened(path: Path) -> Any:
    """Pillow's image of a file, which is closed again."""
    image = Image.open(io.BytesIO(path.read_bytes()))
    image.load()
    return image


def damage(content: bytes, place: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :]


def interlaced() -> bytes:
    head = struct.pack(">IIBBBBB", 4, 4, 16, 2, 0, 0, 1)
    return png.SIGNATURE + struct.pack(">I", 13) + b"IHDR" + head + struct.pack(">I", zlib.crc32(b"IHDR" + head))


def saved(mode: str, kind: str = "PNG", **options: Any) -> bytes:
    out = io.BytesIO()
    Image.new(mode, (4, 4)).save(out, format=kind, **options)
    return out.getvalue()


def tiff(array: NDArray[Any], **options: Any) -> bytes:
    out = io.BytesIO()
    tifffile.imwrite(out, array, **options)
    return out.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("a.png", b"no image at all, though it has some length to it", r"a\.png as PNG: it is no PNG file"),
        ("a.png", png.encode(pixels(3, 16))[:200], "damaged or cut short"),
        ("a.png", damage(png.encode(pixels(3, 16)), 100), "damaged or cut short"),
        ("a.png", interlaced(), "interlaced, which is not read at 16 bits"),
        ("a.png", saved("RGB")[:45], "no image, or a damaged one"),
        ("a.png", saved("P"), "it has mode P; save it as grey or RGB"),
        ("a.png", saved("RGB", transparency=(0, 0, 0)), "it has a transparent colour; save it"),
        ("a.jpg", b"nonsense", "no image, or a damaged one"),
        ("a.jpg", saved("CMYK", "JPEG"), "it has mode CMYK"),
        ("a.tif", b"nonsense", "no image, or a damaged one"),
        ("a.tif", tiff(np.zeros((4, 4), np.float32)), "it holds float32 as MINISBLACK; save it as grey or RGB"),
        ("a.tif", tiff(np.zeros((2, 4, 5), np.uint8), photometric="minisblack"), "it has 2 pages; save the one"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_read_is_refused(tmp_path: Path, name: str, content: bytes, match: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=match):
        read(path)


def test_names_that_cannot_be_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"the suffix '\.gif': images are \.png"):
        read(tmp_path / "a.gif")
    with pytest.raises(ValueError, match="has no suffix"):
        read(tmp_path / "a")
    with pytest.raises(DataError, match=r"cannot read .*a\.png: No such file"):
        read(tmp_path / "a.png")
    with pytest.raises(ValueError, match="JPEG cannot hold 16 bits"):
        encode(picture(pixels(3, 16)), tmp_path / "a.jpg")
    with pytest.raises(ValueError, match="JPEG cannot hold an alpha channel"):
        encode(picture(pixels(4, 8)), tmp_path / "a.jpg")


def test_comparison_shows_input_output_and_edges() -> None:
    before, after = torch.rand(1, 5, 6), torch.zeros(1, 5, 6)
    after[..., 3:] = 1.0
    x = comparison(before, after, Surface(10.0)).x
    assert x.shape == (3, 5, 18 + 2 * GAP)
    for c in range(3):
        torch.testing.assert_close(x[c, :, :6], before[0])
        torch.testing.assert_close(x[c, :, 6 + GAP : 12 + GAP], after[0])
    edges = x[0, :, -6:]
    assert edges[:, [0, 5]].min() == 1.0
    assert edges[:, [2, 3]].max() < 0.2
