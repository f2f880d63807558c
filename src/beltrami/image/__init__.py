"""The Beltrami flow of images, as surfaces over the pixel grid."""

from beltrami.image.image_flow import Divergence, ImageFlow, InverseMetric, LaplaceBeltrami, Projected, bilateral
from beltrami.image.pixels import EIGHT, PixelGraph, disc
from beltrami.image.quality import matched_alpha, noise_level, psnr, ssim
from beltrami.image.stepping import Explicit, Implicit, evolve
from beltrami.image.surface import Surface

__all__ = ["Surface", "ImageFlow", "LaplaceBeltrami", "Projected", "Divergence", "InverseMetric", "bilateral"]
__all__ += ["Explicit", "Implicit", "evolve", "PixelGraph", "EIGHT", "disc"]
__all__ += ["noise_level", "matched_alpha", "psnr", "ssim"]
