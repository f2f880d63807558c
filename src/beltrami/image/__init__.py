"""The Beltrami flow of images, as surfaces over the pixel grid."""

from beltrami.image.image_flow import (
    Divergence,
    Explicit,
    ImageFlow,
    Implicit,
    InverseMetric,
    LaplaceBeltrami,
    Projected,
    bilateral,
    evolve,
    states,
)
from beltrami.image.quality import matched_alpha, noise_level, psnr, ssim
from beltrami.image.surface import PixelGraph, Surface

__all__ = ["Surface", "ImageFlow", "LaplaceBeltrami", "Projected", "Divergence", "InverseMetric", "bilateral"]
__all__ += ["Explicit", "Implicit", "evolve", "states", "PixelGraph", "noise_level", "matched_alpha", "psnr", "ssim"]
