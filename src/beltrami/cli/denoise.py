"""The verb for images."""

import os
import time as clock
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from beltrami.cli.option import Device, check_device
from beltrami.errors import UnknownName

if TYPE_CHECKING:
    from torch import Tensor

    from beltrami.image.file import Picture

COMPARISON = "-compare.png"  # takes the place of OUT's suffix


def denoise(
    source: Annotated[Path, typer.Argument(help="The noisy image: PNG, JPEG or TIFF.", metavar="IN")],
    out: Annotated[Path, typer.Argument(help="The file to write, another than IN.", metavar="OUT")],
    alpha: Annotated[
        float | None,
        typer.Option(
            help="Height of the surface; edges above 1/A are kept. By the image's noise if not given.", metavar="A"
        ),
    ] = None,
    time: Annotated[float, typer.Option(help="How long to evolve.", metavar="T")] = 6.0,
    patch: Annotated[int, typer.Option(help="Side of the patches that see edges, odd; 1 for none.", metavar="K")] = 5,
    scheme: Annotated[str, typer.Option(help="Time stepping: explicit or implicit.", metavar="S")] = "explicit",
    compare: Annotated[
        bool, typer.Option("--compare", help="Also write input, output and edge indicator side by side.")
    ] = False,
    clean: Annotated[
        Path | None, typer.Option(help="The image without noise: prints PSNR and SSIM.", metavar="CLEAN")
    ] = None,
    device: Device = "cpu",
) -> None:
    """Remove the noise of an image by the Beltrami flow, which keeps its edges.

    Grey and colour, 8 and 16 bits a sample. OUT has the mode and depth of IN; an alpha channel is kept as it is.
    `--compare` writes its picture beside OUT, as `OUT-compare.png`.

    Examples:

    - `beltrami denoise noisy.png smooth.png`

    - `beltrami denoise noisy.tif smooth.tif --alpha 20 --time 8 --compare`

    - `beltrami denoise noisy.png smooth.png --clean original.png`
    """
    import torch

    from beltrami.image import Explicit, Implicit, LaplaceBeltrami, Surface, evolve, matched_alpha
    from beltrami.image.comparison import comparison
    from beltrami.image.file import check_fits, encode, read
    from beltrami.report.image import denoised
    from beltrami.train import write_atomically

    where = check_device(device)
    places = [out, out.with_name(out.stem + COMPARISON)] if compare else [out]
    _check_names(places, [source] if clean is None else [source, clean])
    steppings = {"explicit": Explicit(), "implicit": Implicit()}
    if scheme not in steppings:
        raise UnknownName("scheme", scheme, steppings)
    picture = read(source)
    check_fits(picture, out)
    truth = None if clean is None else _read_clean(clean, picture, source)
    began = clock.perf_counter()
    with torch.no_grad():
        x = picture.x.to(where)
        surface = Surface(matched_alpha(x) if alpha is None else alpha, patch)
        y = evolve(x, LaplaceBeltrami(surface), time=time, stepping=steppings[scheme]).clamp(0.0, 1.0)
        pictures = [picture.with_colours(y)] + ([comparison(x, y, surface)] if compare else [])
    seconds = clock.perf_counter() - began
    for path, content in zip(places, pictures, strict=True):
        write_atomically(path, encode(content, path))
    denoised(picture.x, y.cpu(), surface, clean=truth, seconds=seconds, paths=places)


def _check_names(places: Sequence[Path], kept: Sequence[Path]) -> None:
    """Before any work: suffixes that are images', places that can be written, and none of them an input."""
    from beltrami.image.file import check_suffix

    for path in (*kept, *places):
        check_suffix(path)
    for path in places:
        if path.is_dir():
            raise OSError(f"{path} is a folder: name a file in it.")
        if path.resolve() in [other.resolve() for other in kept]:
            raise ValueError(f"{path} would overwrite an input: give OUT another name.")
        if not os.access(path.parent, os.W_OK):
            raise OSError(f"cannot write to the folder {path.parent}: choose another place for OUT.")


def _read_clean(path: Path, noisy: "Picture", source: Path) -> "Tensor":
    from beltrami.image.file import read

    x = read(path).x
    if x.shape != noisy.x.shape:
        (c, h, w), (channels, height, width) = x.shape, noisy.x.shape
        raise ValueError(
            f"{path} has {w} x {h} pixels of {c} colours and {source} {width} x {height} of {channels}: "
            "`--clean` needs the same image without its noise."
        )
    return x
