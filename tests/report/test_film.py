"""Moving pictures of a flow: the nodes are where the key frames put them, and the files can be read."""

import io
from pathlib import Path

import numpy
import pytest

from beltrami.report.film import FRAMES_PER_SECOND, HEIGHT, HOLD, SECONDS, WIDTH, place, save_film
from beltrami.report.plot import COLOURS
from beltrami.report.run_data import FlowData, Mesh, NodeData, RunData

pytest.importorskip("PIL", reason="PIL is not installed")

from PIL import Image
from PIL.GifImagePlugin import GifImageFile


def example(kind: str = "classes", *, frames: int = 3) -> RunData:
    """Two nodes that change places, joined by an edge; the second has no label."""
    way = numpy.linspace(-1, 1, frames)[:, None]
    positions = numpy.stack((numpy.hstack((way, 0 * way)), numpy.hstack((-way, 0 * way))), axis=1)
    mesh = Mesh(0.0, 4.0, numpy.array([[0, 1]]), numpy.ones((1, 2, 2)))
    times = numpy.linspace(0, 4, frames)
    flow = FlowData(times, positions, ("a", "b"), "", False, numpy.zeros((frames, 2)), None, [mesh])
    label = {"classes": numpy.array([0, -1]), "labels": numpy.array([[1, 0], [-1, -1]])}
    predicted = {"classes": numpy.array([0, 1]), "labels": numpy.array([[1, 0], [0, 0]])}
    numbers = numpy.array([2.0, numpy.nan]), numpy.array([2.0, 3.0])
    y, found = (each.get(kind, number) for each, number in zip((label, predicted), numbers, strict=True))
    nodes = NodeData(["p", "q"], numpy.array([1, 0]), y, found, None, numpy.ones(2, int))
    return RunData("title", "folder", kind, ["a", "b"], "accuracy", {}, {}, {}, nodes, flow=flow)


def test_nodes_move_on_straight_lines_between_key_frames() -> None:
    flow = example().flow
    assert flow is not None
    for part, x in ((0, -1), (0.25, -0.5), (0.5, 0), (1, 1)):
        numpy.testing.assert_allclose(place(flow, part), [[x, 0], [-x, 0]], atol=1e-12)


@pytest.mark.slow
def test_a_gif_shows_each_node_in_the_colour_of_its_class(tmp_path: Path) -> None:
    path = tmp_path / "film.gif"
    save_film(example(), path)
    with Image.open(path) as film:
        assert isinstance(film, GifImageFile)
        frames = []
        for number in (0, film.n_frames - 1):
            film.seek(number)
            frames.append(numpy.asarray(film.convert("RGB")).astype(int))
    shown = []
    for pixels in frames:
        assert pixels.shape == (HEIGHT, WIDTH, 3)
        assert (pixels[0, -1] == 255).all()
        halves = [half.reshape(-1, 3) for half in (pixels[:, : WIDTH // 2], pixels[:, WIDTH // 2 :])]
        shown.append([[int((abs(half - _rgb(k)).max(1) < 24).sum()) for k in (0, 1)] for half in halves])
    (first, last), many = shown, 30  # pixels of a colour, by the half of the picture and the class
    assert first[0][0] > many > first[0][1]
    assert first[1][1] > many > first[1][0]
    assert last[0][1] > many > last[0][0]
    assert last[1][0] > many > last[1][1]


@pytest.mark.parametrize("kind", ["labels", "numbers"])
def test_other_kinds_of_labels_and_one_key_frame_are_shown(kind: str, tmp_path: Path) -> None:
    save_film(example(kind, frames=1), tmp_path / "film.gif")
    assert Image.open(io.BytesIO((tmp_path / "film.gif").read_bytes())).size == (WIDTH, HEIGHT)


@pytest.mark.slow
def test_an_mp4_has_all_frames(tmp_path: Path) -> None:
    from imageio_ffmpeg import count_frames_and_secs

    counted: list[int] = []

    def progress(name: str, done: int, total: int | None) -> None:
        counted.append(done)

    save_film(example(), tmp_path / "film.mp4", progress=progress)
    frames, seconds = count_frames_and_secs(str(tmp_path / "film.mp4"))
    assert frames == counted[-1] == round((SECONDS + 2 * HOLD) * FRAMES_PER_SECOND)
    assert seconds == pytest.approx(frames / FRAMES_PER_SECOND, abs=0.1)


def test_a_run_without_a_flow_is_refused(tmp_path: Path) -> None:
    data = example()
    still = RunData(**{**vars(data), "flow": None})
    with pytest.raises(ValueError, match="has no flow, so that nothing moves"):
        save_film(still, tmp_path / "film.gif")
    assert not list(tmp_path.iterdir())


def _rgb(k: int) -> list[int]:
    return [int(COLOURS[k][place : place + 2], 16) for place in (1, 3, 5)]
