"""The page of a denoised image: before and after under one divider, the flow over time, and its numbers."""

import base64
from dataclasses import dataclass, field
from pathlib import Path

import numpy
import torch
from torch import Tensor

from beltrami.image import Surface, noise_level, psnr
from beltrami.image.image_file import Picture, encode_image
from beltrami.report.figure import Figure, Line
from beltrami.report.markup import text
from beltrami.report.page import figure_grid
from beltrami.report.page_shell import asset, html_page, page_main

MOST_STATES, MOST_KEPT = 9, 33  # images that the page shows, and that its curves are drawn from
LONGEST = 1_000  # pixels of the longer side on the page; larger images are reduced there

DIVIDED = """<div id="divided" class="divided" hidden>
<div class="stack"><img id="later" alt="After"><img id="earlier" alt="Before"></div>
<div class="sliders"><label>Before | after <input type="range" id="divider" min="0" max="100" value="50"></label>
<label>Time of the image after <input type="range" id="time" min="0" max="{last}" value="{last}"></label>
<output id="said" for="time"></output></div></div>"""
EDGES = """<figure class="single"><img alt="Edge indicator of the result" src="{source}">
<figcaption>The edge indicator of the result, eq. (4) of the paper: dark where the image changes, where the flow hardly
smooths.</figcaption></figure>"""


@dataclass(eq=False)
class ImageFlowData:
    """Images (c, h, w) at increasing times from 0, what they are called, and the surface whose metric drove them."""

    name: str
    surface: Surface
    clean: Tensor | None = None
    times: list[float] = field(default_factory=list)
    images: list[Tensor] = field(default_factory=list)

    def add(self, t: float, image: Tensor) -> None:
        """Add an image; of more than ``MOST_KEPT`` the one between the two nearest others is left out."""
        self.times.append(t)
        self.images.append(image)
        if len(self.times) > MOST_KEPT:
            gaps = [after - before for before, after in zip(self.times, self.times[2:], strict=False)]
            place = gaps.index(min(gaps)) + 1
            del self.times[place], self.images[place]


def image_page(data: ImageFlowData) -> str:
    """Return the page as HTML text; the images are within it."""
    height, width = data.images[0].shape[-2:]
    shown = sorted({round(k) for k in numpy.linspace(0, len(data.times) - 1, min(MOST_STATES, len(data.times)))})
    small = [_reduced(data.images[k]) for k in shown]
    indicator = _reduced(data.surface.pullback(data.images[-1]).indicator[None])
    reduced = " They are reduced on this page; the file has all pixels." if max(height, width) > LONGEST else ""
    tiles = "".join(
        f'<li><figure><img class="state" alt="The image at time {data.times[k]:.3g}" src="{_uri(image)}" '
        f'data-time="{data.times[k]:.4g}"><figcaption>t = {data.times[k]:.3g}</figcaption></figure></li>'
        for k, image in zip(shown, small, strict=True)
    )
    colours = "grey" if data.images[0].shape[0] == 1 else "colour"
    facts = f"{width} x {height} pixels, {colours}; alpha {data.surface.alpha:.4g}, patch {data.surface.patch}"
    sections = {
        "before-after": ("Before and after", DIVIDED.format(last=len(shown) - 1)),
        "over-time": ("The flow over time", f'<ol class="states">{tiles}</ol>'),
        "edges": ("Edges that were kept", EDGES.format(source=_uri(indicator))),
        "numbers": ("Numbers", figure_grid(figures(data))),
    }
    lead = f'<p class="lead">{facts}, time {data.times[-1]:.4g}.{reduced}</p>'
    head = f'<header><div><p class="kicker">beltrami denoise</p><h1>{text(data.name)}</h1>{lead}</div></header>'
    return html_page(
        data.name, f"{head}\n{page_main(sections)}", styles=(asset("image.css"),), scripts=(asset("image.js"),)
    )


def figures(data: ImageFlowData) -> list[Figure]:
    """Return the noise and, with a clean image, the PSNR over time."""
    times = numpy.array(data.times)
    noise = numpy.array([noise_level(image) for image in data.images])
    says = "The estimated standard deviation of the noise falls as the image is smoothed. Values lie between 0 and 1."
    found = [Figure("noise", "Noise over time", says, "time t", "estimated noise", [Line("noise", times, noise)])]
    if data.clean is not None:
        against = numpy.array([psnr(image, data.clean) for image in data.images])
        says = "The peak signal-to-noise ratio against the clean image: higher is closer."
        found.append(Figure("psnr", "PSNR over time", says, "time t", "PSNR (dB)", [Line("PSNR", times, against)]))
    return found


def _reduced(image: Tensor) -> Tensor:
    """Return an image whose longer side is at most ``LONGEST``: means over areas."""
    height, width = image.shape[-2:]
    if max(height, width) <= LONGEST:
        return image
    factor = LONGEST / max(height, width)
    size = max(1, round(height * factor)), max(1, round(width * factor))
    return torch.nn.functional.interpolate(image[None], size=size, mode="area")[0]


def _uri(image: Tensor) -> str:
    content = encode_image(Picture(image.detach().cpu().clamp(0, 1)), Path("state.png"))
    return "data:image/png;base64," + base64.b64encode(content).decode()
