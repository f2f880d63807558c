"""Images: the Beltrami flow where it comes from, on surfaces over the pixel grid."""

from beltrami.image.bilateral import bilateral
from beltrami.image.diffusion import Diffusion
from beltrami.image.flow import Divergence, ImageFlow, InverseMetric, LaplaceBeltrami, Projected
from beltrami.image.graph import PixelGraph
from beltrami.image.grid import EIGHT, FOUR, disc
from beltrami.image.noise import matched_alpha, noise_level
from beltrami.image.quality import psnr, ssim
from beltrami.image.stepping import Explicit, Implicit, Stepping, evolve
from beltrami.image.surface import Pullback, Surface, patches

__all__ = [
    "Surface",
    "Pullback",
    "patches",
    "ImageFlow",
    "LaplaceBeltrami",
    "Projected",
    "Divergence",
    "InverseMetric",
    "Diffusion",
    "Stepping",
    "Explicit",
    "Implicit",
    "evolve",
    "bilateral",
    "PixelGraph",
    "FOUR",
    "EIGHT",
    "disc",
    "noise_level",
    "matched_alpha",
    "psnr",
    "ssim",
]
