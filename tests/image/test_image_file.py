"""Image files: a written file is read back bit by bit; unreadable files are refused."""

import io
import struct
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from beltrami.errors import DataError
from beltrami.image import Surface
from beltrami.image.image_file import GAP, Picture, comparison, encode_image, read_image

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
def test_written_file_is_read_back(tmp_path: Path, suffix: str, bits: int, samples: int) -> None:
    array, path = pixels(samples, bits), tmp_path / f"image{suffix}"
    path.write_bytes(encode_image(picture(array), path))
    again = read_image(path)
    assert (again.bits, again.x.shape) == (bits, (samples - (samples in (2, 4)), 9, 7))
    assert path.read_bytes() == encode_image(again, path)
    colours = np.rint(again.x.permute(1, 2, 0).double().numpy() * (2**bits - 1))
    np.testing.assert_array_equal(colours, array[..., : colours.shape[-1]])
    if samples in (2, 4):
        np.testing.assert_array_equal(again.opacity, array[..., -1])
    else:
        assert again.opacity is None


@pytest.mark.parametrize("samples", [1, 3])
def test_jpeg_is_read_and_written_approximately(tmp_path: Path, samples: int) -> None:
    rows, columns = np.mgrid[:32, :40]
    array = np.stack([(3 * rows + 2 * columns + 20 * c).astype(np.uint8) for c in range(samples)], axis=-1)
    path = tmp_path / "image.JPG"
    path.write_bytes(encode_image(picture(array), path))
    assert opened(path).mode == ("L" if samples == 1 else "RGB")
    again = read_image(path).x.permute(1, 2, 0).numpy() * 255
    assert np.abs(again - array).max() < 12


@pytest.mark.parametrize("samples", SAMPLES.values(), ids=SAMPLES)
def test_other_libraries_read_our_files(tmp_path: Path, samples: int) -> None:
    array = pixels(samples, 16)
    wide, narrow = tmp_path / "image.tif", tmp_path / "image.png"
    wide.write_bytes(encode_image(picture(array), wide))
    np.testing.assert_array_equal(np.atleast_3d(tifffile.imread(wide)), array)
    narrow.write_bytes(encode_image(picture(array), narrow))
    image = opened(narrow)  # Pillow checks every chunk, though it keeps 8 bits of most
    assert image.size == (7, 9)
    if samples == 1:
        np.testing.assert_array_equal(np.asarray(image), array[..., 0])
    elif samples >= 3:
        assert np.abs(np.asarray(image).astype(int) - array // 256).max() <= 1


def png_file(body: bytes, *, width: int, height: int, samples: int, interlaced: bool = False) -> bytes:
    """Return a PNG of 16 bits with the filtered rows ``body``, in two chunks after a text chunk."""
    header = struct.pack(">IIBBBBB", width, height, 16, {1: 0, 2: 4, 3: 2, 4: 6}[samples], 0, 0, interlaced)
    data, content = zlib.compress(body), b"\x89PNG\r\n\x1a\n"
    chunks = ((b"IHDR", header), (b"tEXt", b"a\0b"), (b"IDAT", data[:20]), (b"IDAT", data[20:]), (b"IEND", b""))
    for kind, part in chunks:
        content += struct.pack(">I", len(part)) + kind + part + struct.pack(">I", zlib.crc32(kind + part))
    return content


def filtered(array: NDArray[np.uint16], kinds: list[int]) -> bytes:
    """Return the rows of an image under the given PNG filters, byte by byte as in the standard."""
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
    return bytes(out)


@pytest.mark.parametrize("samples", SAMPLES.values(), ids=SAMPLES)
def test_16_bit_png_is_read_under_all_filters_and_interlaced(tmp_path: Path, samples: int) -> None:
    array, path = pixels(samples, 16, height=11, width=5), tmp_path / "image.png"
    passes = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]  # Adam7
    parts = [array[top::down, left::right] for top, left, down, right in passes]
    plain = filtered(array, [0, 1, 2, 3, 4, 4, 3, 2, 1, 0, 4])
    woven = b"".join(filtered(part, [0] * len(part)) for part in parts if part.size)
    for body, interlaced in ((plain, False), (woven, True)):
        path.write_bytes(png_file(body, width=5, height=11, samples=samples, interlaced=interlaced))
        again = read_image(path)
        assert again.bits == 16
        np.testing.assert_array_equal(encode_image(again, path), encode_image(picture(array), path))


def test_colour_profile_exif_and_resolution_are_kept(tmp_path: Path) -> None:
    path, exif = tmp_path / "image.png", Image.Exif()
    exif[0x0112] = 3  # orientation
    Image.fromarray(pixels(3, 8)).save(path, icc_profile=b"a profile", exif=exif.tobytes(), dpi=(300, 300))
    again = read_image(path)
    path.write_bytes(encode_image(again, path))
    image = opened(path)
    assert image.info["icc_profile"] == b"a profile"
    assert image.info["dpi"] == pytest.approx((300, 300), rel=1e-3)
    assert dict(image.getexif()) == {0x0112: 3}


def test_colours_out_of_range_are_clamped(tmp_path: Path) -> None:
    path = tmp_path / "image.png"
    before = picture(pixels(1, 8, height=1, width=3))
    path.write_bytes(encode_image(replace(before, x=torch.tensor([[[-0.5, 0.5, 1.5]]])), path))
    assert np.asarray(opened(path)).tolist() == [[0, 128, 255]]


def opened(path: Path) -> Any:
    """Return Pillow's image of a file."""
    image = Image.open(io.BytesIO(path.read_bytes()))
    image.load()
    return image


def encoded(samples: int, bits: int) -> bytes:
    return encode_image(picture(pixels(samples, bits)), Path("a.png"))


def damage(content: bytes, index: int) -> bytes:
    return content[:index] + bytes([content[index] ^ 0xFF]) + content[index + 1 :]


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
        ("a.png", b"no image at all, though it has some length to it", r"a\.png as PNG: it is not an image"),
        ("a.png", encoded(3, 16)[:200], "not an image, or it is damaged"),
        ("a.png", damage(encoded(3, 16), 100), "not an image, or it is damaged"),
        ("a.png", saved("RGB")[:45], "not an image, or it is damaged"),
        ("a.png", saved("P"), "it has mode P; save it as grey or RGB"),
        ("a.png", saved("RGB", transparency=(0, 0, 0)), "it has a transparent colour; save it"),
        ("a.jpg", b"nonsense", "not an image, or it is damaged"),
        ("a.jpg", saved("CMYK", "JPEG"), "it has mode CMYK"),
        ("a.tif", b"nonsense", "not an image, or it is damaged"),
        ("a.tif", tiff(np.zeros((4, 4), np.float32)), "it holds float32 as MINISBLACK; save it as grey or RGB"),
        ("a.tif", tiff(np.zeros((2, 4, 5), np.uint8), photometric="minisblack"), "it has 2 pages; save the one"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_unreadable_files_are_refused(tmp_path: Path, name: str, content: bytes, match: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=match):
        read_image(path)


def test_bad_file_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"the suffix '\.gif': images are \.png"):
        read_image(tmp_path / "a.gif")
    with pytest.raises(ValueError, match="has no suffix"):
        read_image(tmp_path / "a")
    with pytest.raises(DataError, match=r"cannot read .*a\.png: No such file"):
        read_image(tmp_path / "a.png")
    with pytest.raises(ValueError, match="JPEG cannot hold 16 bits"):
        encode_image(picture(pixels(3, 16)), tmp_path / "a.jpg")
    with pytest.raises(ValueError, match="JPEG cannot hold an alpha channel"):
        encode_image(picture(pixels(4, 8)), tmp_path / "a.jpg")


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
