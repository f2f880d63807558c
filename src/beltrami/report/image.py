"""What a person sees of a denoised image."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from torch import Tensor

from beltrami.image import Surface, noise_level, psnr, ssim

SMALLEST = 11  # pixels a side that SSIM's window needs


def denoised(
    before: Tensor, after: Tensor, surface: Surface, *, clean: Tensor | None, seconds: float, paths: Sequence[Path]
) -> None:
    """The image's size and noise, what was done to it, and how near it is to the clean one where that is known.

    Shapes:
        ``before``, ``after``, ``clean`` (c, h, w).
    """
    channels, height, width = before.shape
    facts = {
        "image": f"{width} x {height}, {'grey' if channels == 1 else 'colour'}",
        "noise": f"{noise_level(before):.4f} -> {noise_level(after):.4f}",
        "alpha": f"{surface.alpha:.4g}, patches {surface.patch} x {surface.patch}",
        "time": f"{seconds:.1f} s",
    }
    if clean is not None:
        facts["PSNR"] = f"{psnr(before, clean):.2f} -> {psnr(after, clean):.2f} dB"
        if min(height, width) >= SMALLEST:
            facts["SSIM"] = f"{ssim(before, clean):.3f} -> {ssim(after, clean):.3f}"
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for name, value in facts.items():
        table.add_row(f"[dim]{name}[/]", value)
    console = Console(highlight=False)
    console.print(table)
    for path in paths:
        console.print(f"[dim]saved in[/] {path}")
