"""Read and write images as PNG, JPEG or TIFF, with 8 or 16 bits per sample."""

import io
import math
import struct
import warnings
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from beltrami import file_limits as limits
from beltrami.arguments import AnyPath, checked
from beltrami.errors import DataError
from beltrami.image.surface import Surface

FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".tif": "TIFF", ".tiff": "TIFF"}
METADATA = ("icc_profile", "exif", "dpi")  # read by Pillow beside the pixels, and written again at 8 bits
JPEG_QUALITY = 95
COLOUR_TYPES = {1: 0, 3: 2, 2: 4, 4: 6}  # PNG's colour type by the number of samples
PIXEL_BYTES = 40  # of memory for each pixel while an image is read: samples of the file, bytes and floats
TIFF_RATIO = 4096  # the most pixels for each byte of a TIFF file: LZW of a blank page has fewer
GAP = 8  # white pixels between the panels of a comparison


@dataclass(frozen=True, eq=False)
class Picture:
    """An image with the properties needed to save it as it was read.

    ``x`` are colours from 0 to 1 (c, h, w), one channel or three; ``opacity`` is the alpha channel (h, w), never
    changed; ``metadata`` are colour profile, EXIF and resolution, in Pillow's form.
    """

    x: Tensor
    opacity: NDArray[np.integer] | None = None
    bits: int = 8
    metadata: Mapping[str, Any] = field(default_factory=dict)


def image_format(path: Path) -> str:
    """Return the format that a file's suffix names."""
    if path.suffix.lower() not in FORMATS:
        what = f"the suffix {path.suffix!r}" if path.suffix else "no suffix"
        raise ValueError(f"{path} has {what}: images are .png, .jpg, .jpeg, .tif or .tiff.")
    return FORMATS[path.suffix.lower()]


def check_format(picture: Picture, path: Path) -> None:
    """Refuse a file name whose format cannot hold the picture."""
    if image_format(path) == "JPEG" and (picture.bits > 8 or picture.opacity is not None):
        what = "16 bits" if picture.bits > 8 else "an alpha channel"
        raise ValueError(f"{path}: JPEG cannot hold {what}, as the input has; name a .png or .tif file.")


@checked
def read_image(path: AnyPath) -> Picture:
    """Return the picture in a PNG, JPEG or TIFF file."""
    path = Path(path)
    kind = image_format(path)
    try:
        content = limits.read_limited(path, most=limits.IMAGE_BYTES)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}.") from error
    try:
        pixels, metadata = (_read_tiff(content), {}) if kind == "TIFF" else _read_with_pillow(content)
    except DataError as error:
        raise DataError(f"cannot read {path} as {kind}: {error}") from error
    if not pixels.size:
        raise DataError(f"cannot read {path} as {kind}: it has no pixels.")
    bits = 8 * pixels.dtype.itemsize
    colours, opacity = (pixels[..., :-1], pixels[..., -1]) if pixels.shape[-1] in (2, 4) else (pixels, None)
    x = torch.from_numpy(colours.astype(np.float32) / (2**bits - 1)).permute(2, 0, 1).contiguous()
    return Picture(x, opacity, bits, metadata)


def encode_image(picture: Picture, path: Path) -> bytes:
    """Return the content of a file of this name; the caller writes it."""
    check_format(picture, path)
    scaled = picture.x.detach().permute(1, 2, 0).cpu().double().clamp(0.0, 1.0) * (2**picture.bits - 1)
    pixels = np.rint(scaled.numpy()).astype(np.uint16 if picture.bits == 16 else np.uint8)
    if picture.opacity is not None:
        pixels = np.concatenate((pixels, picture.opacity[..., None]), axis=-1)
    kind, out = image_format(path), io.BytesIO()
    squeezed = pixels[..., 0] if pixels.shape[-1] == 1 else pixels
    if kind == "TIFF":
        tags: dict[str, Any] = {"photometric": "minisblack" if len(picture.x) == 1 else "rgb"}
        tags |= {} if pixels.shape[-1] == 1 else {"planarconfig": "contig"}
        tags |= {} if picture.opacity is None else {"extrasamples": ["unassalpha"]}
        _library("tifffile").imwrite(out, squeezed, metadata=None, **tags)
    elif picture.bits == 16:
        return _png_of_16_bits(pixels)
    else:
        quality = {"quality": JPEG_QUALITY} if kind == "JPEG" else {}
        _library("PIL.Image").fromarray(squeezed).save(out, format=kind, **picture.metadata, **quality)
    return out.getvalue()


def comparison(before: Tensor, after: Tensor, surface: Surface) -> Picture:
    """Return the input, the output (both (c, h, w)) and the output's edge indicator, eq. (4), side by side."""
    indicator = surface.pullback(after).indicator
    panels = [panel.clamp(0.0, 1.0).expand(3, -1, -1) for panel in (before, after, indicator[None])]
    white = torch.ones_like(panels[0][..., :1]).expand(-1, -1, GAP)
    return Picture(torch.cat((panels[0], white, panels[1], white, panels[2]), dim=-1))


def _read_with_pillow(content: bytes) -> tuple[NDArray[Any], dict[str, Any]]:
    """Return the pixels (h, w, samples) of a PNG or JPEG file, and its metadata."""
    try:
        image = _open(content)
        raw = image.tile[0][3]  # the layout of the samples in the file
        if raw == "LA;16B":  # two samples of 16 bits are laid out as four of 8
            pixels = _decode_as(content, "RGBA").view(">u2")
        elif raw in ("RGB;16B", "RGBA;16B"):  # Pillow keeps the first of two bytes; as little-endian, the second
            high, low = _decode_as(content, raw), _decode_as(content, raw[:-1] + "L")
            pixels = high * np.uint16(256) + low
        else:
            image.load()
            pixels = np.asarray(image)
    except (OSError, SyntaxError, ValueError, IndexError) as error:
        raise DataError("it is not an image, or it is damaged.") from error
    if image.mode not in ("L", "LA", "RGB", "RGBA", "I;16") or "transparency" in image.info:
        what = "a transparent colour" if "transparency" in image.info else f"mode {image.mode}"
        raise DataError(f"it has {what}; save it as grey or RGB, with or without an alpha channel.")
    metadata = {name: image.info[name] for name in METADATA if name in image.info}
    return np.atleast_3d(pixels.astype(pixels.dtype.newbyteorder("="))), metadata


def _open(content: bytes) -> Any:
    """Return a PNG or JPEG image of Pillow, whose pixels are not yet decoded."""
    pillow = _library("PIL.Image")
    try:
        with warnings.catch_warnings(action="error", category=pillow.DecompressionBombWarning):
            image = pillow.open(io.BytesIO(content), formats=("PNG", "JPEG"))
    except (pillow.DecompressionBombWarning, pillow.DecompressionBombError):
        raise DataError(f"it has more than {limits.IMAGE_PIXELS} pixels; save a part of it.") from None
    _check_size(*image.size, most=limits.DEFLATE_RATIO * len(content))
    return image


def _check_size(width: int, height: int, *, most: int) -> None:
    """Refuse an image that is too large, or that has more pixels than its file can hold, before they are decoded."""
    if width * height > limits.IMAGE_PIXELS:
        raise DataError(f"it has {width} by {height} pixels, and at most {limits.IMAGE_PIXELS} are read; save a part.")
    if width * height > most:
        raise DataError(f"it is damaged: it states {width} by {height} pixels, which its file is too short for.")
    limits.check_memory(PIXEL_BYTES * width * height, what="it")


def _decode_as(content: bytes, raw: str) -> NDArray[np.uint8]:
    """Return the bytes (h, w, samples) that Pillow decodes if the samples are laid out as ``raw``."""
    image = _open(content)
    image.tile = [(*image.tile[0][:3], raw)]
    image.load()
    return np.asarray(image)


def _png_of_16_bits(pixels: NDArray[np.uint16]) -> bytes:
    """Return a PNG file of 16-bit pixels (h, w, samples), which Pillow cannot write in colour."""
    height, width, samples = pixels.shape
    rows = np.ascontiguousarray(pixels.astype(">u2")).view(np.uint8).reshape(height, -1)
    lines = np.full((height, 1 + rows.shape[1]), 2, dtype=np.uint8)  # filter 2: differences from the row above
    lines[:, 1:] = np.diff(rows, axis=0, prepend=np.zeros((1, rows.shape[1]), dtype=np.uint8))
    header = struct.pack(">IIBBBBB", width, height, 16, COLOUR_TYPES[samples], 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 6)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )


def _read_tiff(content: bytes) -> NDArray[Any]:
    """Return the pixels (h, w, samples) of a TIFF file with one page."""
    tifffile = _library("tifffile")
    try:
        with tifffile.TiffFile(io.BytesIO(content)) as file:
            pages, page = len(file.pages), file.pages[0]
            kind, dtype, axes = page.photometric.name, page.dtype, page.axes
            wanted = pages == 1 and dtype in (np.uint8, np.uint16) and kind in ("MINISBLACK", "RGB")
            if wanted:
                width = math.prod(page.shape) // max(page.imagelength * page.samplesperpixel, 1)
                _check_size(width, page.imagelength, most=TIFF_RATIO * len(content))
            pixels = page.asarray() if wanted else np.empty(0)
    except DataError:
        raise
    except Exception as error:  # tifffile raises many types on damaged files
        codec = "its compression needs imagecodecs: pip install imagecodecs, or save it without."
        raise DataError(codec if "imagecodecs" in str(error) else "it is not an image, or it is damaged.") from error
    if pages != 1:
        raise DataError(f"it has {pages} pages; save the one you want by itself.")
    if not wanted:
        raise DataError(f"it holds {dtype} as {kind}; save it as grey or RGB of 8 or 16 bits.")
    pixels = np.atleast_3d(np.moveaxis(pixels, 0, -1) if axes == "SYX" else pixels)
    if pixels.ndim != 3 or pixels.shape[-1] > 4:
        raise DataError(f"its axes are {axes}, of size {pixels.shape}; save it as one grey or RGB image.")
    return pixels


def _library(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError as error:
        raise DataError("images need Pillow and tifffile: pip install 'beltrami[image]'.") from error
