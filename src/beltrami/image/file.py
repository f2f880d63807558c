"""File: images on disk, as PNG, JPEG or TIFF, of 8 or 16 bits a sample."""

import io
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from beltrami.errors import DataError
from beltrami.image import png, tiff

FORMAT = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".tif": "TIFF", ".tiff": "TIFF"}
CARRIED = ("icc_profile", "exif", "dpi")  # what Pillow reads beside the pixels and can write again
QUALITY = 95  # of JPEG


@dataclass(frozen=True, eq=False)
class Picture:
    """An image with what is needed to save it as it came.

    Args:
        x: colours from 0 to 1, one channel or three.
        opacity: the alpha channel as it was read, which no flow touches; None for none.
        bits: of a sample, 8 or 16.
        extra: colour profile and the like, as Pillow has them.

    Shapes:
        ``x`` (c, h, w); ``opacity`` (h, w).
    """

    x: Tensor
    opacity: NDArray[np.integer] | None = None
    bits: int = 8
    extra: Mapping[str, Any] = field(default_factory=dict)

    def with_colours(self, x: Tensor) -> "Picture":
        """The same picture with these colours (c, h, w), and no others: what lies outside [0, 1] is cut off."""
        assert x.shape == self.x.shape
        return replace(self, x=x.clamp(0.0, 1.0))


def check_suffix(path: Path) -> str:
    """The format that a file's name asks for."""
    if path.suffix.lower() not in FORMAT:
        what = f"the suffix {path.suffix!r}" if path.suffix else "no suffix"
        raise ValueError(f"{path} has {what}: images are .png, .jpg, .jpeg, .tif or .tiff.")
    return FORMAT[path.suffix.lower()]


def read(path: Path) -> Picture:
    """The image in a file."""
    kind = check_suffix(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}.") from error
    try:
        if kind == "TIFF":
            return _picture(tiff.decode(content), {})
        if kind == "PNG" and png.header(content).depth == 16:
            return _picture(png.decode(content), {})
        return _read_by_pillow(content)
    except DataError as error:
        raise DataError(f"cannot read {path} as {kind}: {error}") from error


def check_fits(picture: Picture, path: Path) -> None:
    """Refuse a name whose format cannot hold the picture."""
    if check_suffix(path) == "JPEG" and (picture.bits > 8 or picture.opacity is not None):
        what = "16 bits" if picture.bits > 8 else "an alpha channel"
        raise ValueError(f"{path}: JPEG cannot hold {what}, as the input has; name a .png or .tif file.")


def encode(picture: Picture, path: Path) -> bytes:
    """What a file of this name would hold; writing it is the caller's."""
    check_fits(picture, path)
    kind, pixels = FORMAT[path.suffix.lower()], _pixels(picture)
    if kind == "TIFF":
        return tiff.encode(pixels, opacity=picture.opacity is not None)
    if picture.bits == 16:
        return png.encode(pixels)
    image = _pillow().fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels)
    out = io.BytesIO()
    image.save(out, format=kind, **picture.extra, **({"quality": QUALITY} if kind == "JPEG" else {}))
    return out.getvalue()


def _read_by_pillow(content: bytes) -> Picture:
    try:
        image = _pillow().open(io.BytesIO(content), formats=("PNG", "JPEG"))
        image.load()
    except (OSError, SyntaxError, ValueError) as error:  # what Pillow raises for files that are broken or none of its
        raise DataError("it is no image, or a damaged one.") from error
    if image.mode not in ("L", "LA", "RGB", "RGBA") or "transparency" in image.info:
        what = "a transparent colour" if "transparency" in image.info else f"mode {image.mode}"
        raise DataError(f"it has {what}; save it as grey or RGB, with or without an alpha channel.")
    extra = {name: image.info[name] for name in CARRIED if name in image.info}
    return _picture(np.atleast_3d(np.asarray(image)), extra)


def _picture(pixels: NDArray[Any], extra: Mapping[str, Any]) -> Picture:
    """From (h, w, samples) of one or three colours, and perhaps an alpha channel."""
    bits = 8 * pixels.dtype.itemsize
    colours, opacity = (pixels[..., :-1], pixels[..., -1]) if pixels.shape[-1] in (2, 4) else (pixels, None)
    x = torch.from_numpy(colours.astype(np.float32) / (2**bits - 1)).permute(2, 0, 1).contiguous()
    return Picture(x, opacity, bits, extra)


def _pixels(picture: Picture) -> NDArray[Any]:
    """The inverse of ``_picture``."""
    kind = np.uint16 if picture.bits == 16 else np.uint8
    scaled = picture.x.detach().permute(1, 2, 0).cpu().double().clamp(0.0, 1.0) * (2**picture.bits - 1)
    colours = np.rint(scaled.numpy()).astype(kind)
    return colours if picture.opacity is None else np.concatenate((colours, picture.opacity[..., None]), axis=-1)


def _pillow() -> ModuleType:
    try:
        import PIL.Image
    except ImportError as error:
        raise DataError("images need Pillow: pip install 'beltrami[image]'.") from error
    return PIL.Image
