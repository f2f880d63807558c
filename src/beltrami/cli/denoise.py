"""`beltrami denoise`: remove noise from an image."""

import os
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from beltrami.cli.option import Device, check_device
from beltrami.errors import UnknownName

if TYPE_CHECKING:
    from torch import Tensor

    from beltrami.image import Surface
    from beltrami.image.image_file import Picture

COMPARISON = "-compare.png"  # replaces the suffix of OUT
SSIM_WINDOW = 11  # pixels: smaller images have no SSIM


def denoise(
    source: Annotated[Path, typer.Argument(help="The noisy image: PNG, JPEG or TIFF.", metavar="IN")],
    out: Annotated[Path, typer.Argument(help="The file to write; not IN.", metavar="OUT")],
    alpha: Annotated[
        float | None,
        typer.Option(
            help="Height of the surface; edges above 1/A are kept. Default: matched to the noise.", metavar="A"
        ),
    ] = None,
    time: Annotated[float, typer.Option(help="Time to evolve.", metavar="T")] = 6.0,
    patch: Annotated[int, typer.Option(help="Side of the patches that find edges, odd; 1 for none.", metavar="K")] = 5,
    scheme: Annotated[str, typer.Option(help="Time stepping: explicit or implicit.", metavar="S")] = "explicit",
    compare: Annotated[
        bool, typer.Option("--compare", help="Also write input, output and edge indicator side by side.")
    ] = False,
    clean: Annotated[
        Path | None, typer.Option(help="The image without noise: prints PSNR and SSIM.", metavar="CLEAN")
    ] = None,
    device: Device = "cpu",
) -> None:
    """Remove noise from an image by the Beltrami flow, which keeps edges.

    Grey and colour, 8 and 16 bits per sample. OUT has the mode and depth of IN; an alpha channel is copied unchanged.
    `--compare` writes a second image beside OUT, `OUT-compare.png`.

    Examples:

    - `beltrami denoise noisy.png smooth.png`

    - `beltrami denoise noisy.tif smooth.tif --alpha 20 --time 8 --compare`

    - `beltrami denoise noisy.png smooth.png --clean original.png`
    """
    import torch

    from beltrami.image import Explicit, Implicit, LaplaceBeltrami, Surface, evolve, matched_alpha
    from beltrami.image.image_file import check_format, comparison, encode_image, read_image
    from beltrami.train import write_atomically

    torch_device = check_device(device)
    paths = [out, out.with_name(out.stem + COMPARISON)] if compare else [out]
    _check_paths(paths, [source] if clean is None else [source, clean])
    steppings = {"explicit": Explicit(), "implicit": Implicit()}
    if scheme not in steppings:
        raise UnknownName("scheme", scheme, steppings)
    picture = read_image(source)
    check_format(picture, out)
    clean_x = None if clean is None else _read_clean(clean, picture, source)
    start = perf_counter()
    with torch.no_grad():
        x = picture.x.to(torch_device)
        surface = Surface(matched_alpha(x) if alpha is None else alpha, patch)
        y = evolve(x, LaplaceBeltrami(surface), time=time, stepping=steppings[scheme]).clamp(0.0, 1.0)
        pictures = [picture.with_colours(y)] + ([comparison(x, y, surface)] if compare else [])
    seconds = perf_counter() - start
    for path, content in zip(paths, pictures, strict=True):
        write_atomically(path, encode_image(content, path))
    _print_summary(picture.x, y.cpu(), surface, clean=clean_x, seconds=seconds, paths=paths)


def _check_paths(outputs: Sequence[Path], inputs: Sequence[Path]) -> None:
    """Refuse, before any work, suffixes of no image, outputs that cannot be written, and outputs over an input."""
    from beltrami.image.image_file import image_format

    for path in (*inputs, *outputs):
        image_format(path)
    for path in outputs:
        if path.is_dir():
            raise OSError(f"{path} is a folder: name a file in it.")
        if path.resolve() in [other.resolve() for other in inputs]:
            raise ValueError(f"{path} would overwrite an input: give OUT another name.")
        if not os.access(path.parent, os.W_OK):
            raise OSError(f"cannot write to the folder {path.parent}: choose another folder for OUT.")


def _read_clean(path: Path, noisy: "Picture", source: Path) -> "Tensor":
    from beltrami.image.image_file import read_image

    x = read_image(path).x
    if x.shape != noisy.x.shape:
        (c, h, w), (channels, height, width) = x.shape, noisy.x.shape
        raise ValueError(
            f"{path} has {w} x {h} pixels of {c} colours and {source} {width} x {height} of {channels}: "
            "`--clean` needs the same image without its noise."
        )
    return x


def _print_summary(
    before: "Tensor",
    after: "Tensor",
    surface: "Surface",
    *,
    clean: "Tensor | None",
    seconds: float,
    paths: Sequence[Path],
) -> None:
    """Print size, noise and settings, PSNR and SSIM if a clean image is given, and the files written."""
    from rich.console import Console
    from rich.table import Table

    from beltrami.image import noise_level, psnr, ssim

    channels, height, width = before.shape
    facts = {
        "image": f"{width} x {height}, {'grey' if channels == 1 else 'colour'}",
        "noise": f"{noise_level(before):.4f} -> {noise_level(after):.4f}",
        "alpha": f"{surface.alpha:.4g}, patches {surface.patch} x {surface.patch}",
        "time": f"{seconds:.1f} s",
    }
    if clean is not None:
        facts["PSNR"] = f"{psnr(before, clean):.2f} -> {psnr(after, clean):.2f} dB"
        if min(height, width) >= SSIM_WINDOW:
            facts["SSIM"] = f"{ssim(before, clean):.3f} -> {ssim(after, clean):.3f}"
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for name, value in facts.items():
        table.add_row(f"[dim]{name}[/]", value)
    console = Console(highlight=False)
    console.print(table)
    for path in paths:
        console.print(f"[dim]saved in[/] {path}")
