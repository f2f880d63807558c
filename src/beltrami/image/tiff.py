"""TIFF of 8 or 16 bits a sample, by tifffile: Pillow knows no colour of 16 bits."""

import io
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beltrami.errors import DataError


def decode(content: bytes) -> NDArray[Any]:
    """The pixels of a file with one page, (height, width, samples), 8 or 16 bits each."""
    try:
        with _tifffile().TiffFile(io.BytesIO(content)) as file:
            if len(file.pages) != 1:
                raise DataError(f"it has {len(file.pages)} pages; save the one you want by itself.")
            page = file.pages[0]
            if page.dtype not in (np.uint8, np.uint16) or page.photometric.name not in ("MINISBLACK", "RGB"):
                raise DataError(
                    f"it holds {page.dtype} as {page.photometric.name}; save it as grey or RGB of 8 or 16 bits."
                )
            pixels = page.asarray()
    except DataError:
        raise
    except Exception as error:  # tifffile raises whatever a damaged file leads it to
        if "imagecodecs" in str(error):
            raise DataError(
                "its compression needs imagecodecs: pip install imagecodecs, or save it without."
            ) from error
        raise DataError("it is no image, or a damaged one.") from error
    pixels = np.atleast_3d(np.moveaxis(pixels, 0, -1) if page.axes == "SYX" else pixels)
    if pixels.ndim != 3 or pixels.shape[-1] > 4:
        raise DataError(f"its axes are {page.axes}, of size {pixels.shape}; save it as one grey or RGB image.")
    return pixels


def encode(pixels: NDArray[Any], *, opacity: bool) -> bytes:
    """A file with these pixels, (height, width, samples), the last of which is the alpha channel if there is one."""
    out = io.BytesIO()
    colours = pixels.shape[-1] - opacity
    _tifffile().imwrite(
        out,
        pixels[..., 0] if pixels.shape[-1] == 1 else pixels,
        photometric="minisblack" if colours == 1 else "rgb",
        planarconfig=None if pixels.shape[-1] == 1 else "contig",
        extrasamples=["unassalpha"] if opacity else None,
        metadata=None,
    )
    return out.getvalue()


def _tifffile() -> ModuleType:
    try:
        import tifffile
    except ImportError as error:
        raise DataError("TIFF needs tifffile: pip install 'beltrami[image]'.") from error
    module: ModuleType = tifffile
    return module
