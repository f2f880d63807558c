"""The moving picture of a flow as a GIF or MP4 file: nodes move from z(0) to z(T), and edges with them."""

import io
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy
from numpy.typing import NDArray

from beltrami.data.file import write_atomically
from beltrami.position import Progress
from beltrami.report.plot import COLOURS, STYLE
from beltrami.report.run_data import FlowData, Mesh, RunData

if TYPE_CHECKING:
    from matplotlib.collections import LineCollection

FORMATS = ("gif", "mp4")
SECONDS, FRAMES_PER_SECOND, HOLD = 4.8, 10, 1.0  # HOLD: seconds at either end
WIDTH, HEIGHT, DPI = 560, 432, 100  # pixels, multiples of 16 for MP4; and pixels in an inch
MOST_EDGES = 2_000  # that are drawn; the strongest
MOST_COLOURS = 24  # of nodes, in a GIF
MARGIN = 0.04  # around the nodes, relative to the width of the picture
UNKNOWN = "#9aa4ae"

Pixels = NDArray[numpy.uint8]


def save_film(data: RunData, path: Path, *, progress: Progress | None = None) -> None:
    """Write the moving picture of a run's flow to a .gif or .mp4 file.

    Nodes have the colour of their class, or of the predicted one where it is not known.
    """
    if data.flow is None:
        raise ValueError(f"{data.folder} has no flow, so that nothing moves: ask for figures with `--format png`.")
    count = round((SECONDS + 2 * HOLD) * FRAMES_PER_SECOND)
    frames = _counted(_frames(data, data.flow, count), count, progress)
    write_atomically(path, _gif(frames, _palette(_colours(data))) if path.suffix == ".gif" else _mp4(frames))


def place(flow: FlowData, part: float) -> NDArray[Any]:
    """Return the positions (n, 2) at a part of the film, from 0 to 1: straight lines between the key frames."""
    at = part * (len(flow.times) - 1)
    low = min(int(at), max(len(flow.times) - 2, 0))
    high = min(low + 1, len(flow.times) - 1)
    between: NDArray[Any] = flow.positions[low] * (1 - (at - low)) + flow.positions[high] * (at - low)
    return between


def _frames(data: RunData, flow: FlowData, count: int) -> Iterator[Pixels]:
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        figure = Figure(figsize=(WIDTH / DPI, HEIGHT / DPI), dpi=DPI, facecolor="white")
        canvas, axes = FigureCanvasAgg(figure), figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        (x, y), unit = _view(flow)
        axes.set(xlim=(x - WIDTH * unit, x + WIDTH * unit), ylim=(y - HEIGHT * unit, y + HEIGHT * unit))
        if flow.disc:
            turn = numpy.linspace(0, 2 * numpy.pi, 200)
            axes.plot(numpy.cos(turn), numpy.sin(turn), color="#cccccc", linewidth=1)
        lines = LineCollection([], linewidths=0.5, colors="#7a8794", zorder=1)
        axes.add_collection(lines, autolim=False)
        size, start = float(numpy.clip(14_000 / flow.positions.shape[1], 3, 60)), flow.positions[0]
        dots = axes.scatter(start[:, 0], start[:, 1], s=size, c=_colours(data), linewidths=0, zorder=2)
        time = axes.text(0.015, 0.985, "", transform=axes.transAxes, va="top", fontsize=12, color="#333333")
        for k in range(count):
            part = numpy.clip((k / FRAMES_PER_SECOND - HOLD) / SECONDS, 0, 1)
            at, t = place(flow, part), float(numpy.interp(part, numpy.linspace(0, 1, len(flow.times)), flow.times))
            dots.set_offsets(at)
            _set_lines(lines, flow, at, t)
            time.set_text(f"t = {t:.1f}" if flow.times[-1] >= 2 else f"t = {t:.2f}")
            canvas.draw()  # type: ignore[no-untyped-call]
            yield numpy.asarray(canvas.buffer_rgba())[..., :3].copy()  # type: ignore[no-untyped-call]


def _view(flow: FlowData) -> tuple[Any, float]:
    """Return the centre of the picture, and half the length that a pixel stands for; all nodes fit at all times."""
    low, high = flow.positions.min((0, 1)), flow.positions.max((0, 1))
    if flow.disc:
        low, high = numpy.full(2, -1.0), numpy.ones(2)
    extent = numpy.maximum(high - low, 1e-12) / (WIDTH, HEIGHT)
    return (low + high) / 2, (0.5 + MARGIN) * float(extent.max())


def _set_lines(lines: "LineCollection", flow: FlowData, at: NDArray[Any], t: float) -> None:
    """Draw the strongest edges of the graph at time t, the stronger the darker."""
    if not flow.meshes:
        return
    mesh = next((mesh for mesh in flow.meshes if t <= mesh.stop), flow.meshes[-1])
    pairs, weights = mesh.pairs[:MOST_EDGES], _weights(mesh, t)[:MOST_EDGES]
    lines.set_segments(list(at[pairs]))
    top = float(numpy.quantile(weights, 0.95)) if len(weights) else 1.0
    lines.set_alpha(list(0.08 + 0.4 * numpy.clip(weights / (top or 1.0), 0, 1)))


def _weights(mesh: Mesh, t: float) -> NDArray[Any]:
    """Return the larger diffusivity of the two directions of each pair at time t."""
    part = 0.0 if mesh.stop <= mesh.start else min(max((t - mesh.start) / (mesh.stop - mesh.start), 0.0), 1.0)
    both = mesh.weights[..., 0] * (1 - part) + mesh.weights[..., 1] * part
    larger: NDArray[Any] = both.max(1)
    return larger


def _colours(data: RunData) -> list[Any]:
    """Return a colour for each node: of its class, else of its predicted class; of a number by a scale."""
    shown = getattr(data.flow, "nodes", None)
    every = slice(None) if shown is None else shown
    label, predicted = data.nodes.label[every], data.nodes.predicted[every]
    if data.kind == "classes":
        return [COLOURS[int(c) % len(COLOURS)] for c in numpy.where(label >= 0, label, predicted)]
    if data.kind == "labels":  # of the first label that is predicted
        return [COLOURS[int(row.argmax()) % len(COLOURS)] if row.any() else UNKNOWN for row in predicted]
    from matplotlib import colormaps

    values = numpy.where(numpy.isnan(label), predicted, label)
    extent = float(values.max() - values.min()) or 1.0
    return list(colormaps["viridis"]((values - values.min()) / extent))


def _counted(frames: Iterator[Pixels], count: int, progress: Progress | None) -> Iterator[Pixels]:
    for done, frame in enumerate(frames, 1):
        if progress is not None:
            progress("frames", done, count)
        yield frame


def _gif(frames: Iterator[Pixels], palette: list[int]) -> bytes:
    from PIL import Image

    colours = Image.new("P", (1, 1))
    colours.putpalette(palette)
    images = (Image.fromarray(frame).quantize(palette=colours, dither=Image.Dither.NONE) for frame in frames)
    first, *others = images
    stream, duration = io.BytesIO(), 1000 // FRAMES_PER_SECOND
    first.save(stream, "GIF", save_all=True, append_images=others, duration=duration, loop=0, optimize=True)
    return stream.getvalue()


def _palette(colours: list[Any]) -> list[int]:
    """Return a few of the nodes' colours, their mixtures with white and greys, as red, green, blue in one list."""
    from matplotlib.colors import to_rgb

    distinct = sorted({to_rgb(colour) for colour in colours})
    chosen = distinct[:: max(1, len(distinct) // MOST_COLOURS)]
    mixed = [[1 - part * (1 - c) for c in colour] for colour in chosen for part in (1.0, 0.65, 0.3)]
    greys = [[grey] * 3 for grey in numpy.linspace(0.25, 1, 9)]
    return [round(255 * value) for colour in (*mixed, *greys) for value in colour]


def _mp4(frames: Iterator[Pixels]) -> bytes:
    from imageio_ffmpeg import write_frames

    with TemporaryDirectory() as folder:
        path, first = Path(folder) / "film.mp4", next(frames)
        writer = write_frames(str(path), (first.shape[1], first.shape[0]), fps=FRAMES_PER_SECOND, quality=7)
        writer.send(None)
        for frame in (first, *frames):
            writer.send(numpy.ascontiguousarray(frame))
        writer.close()
        return path.read_bytes()
