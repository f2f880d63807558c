"""The flow viewer in a browser: time, pointer, keyboard, search, colours, lasso, pixels, and what a frame costs."""

import csv
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy
import pytest
from browser import accessibility_faults, headless_browser, open_page
from numpy.typing import NDArray
from run_data_examples import NASTY, moving_run

from beltrami.report.page import report_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]
VIEWER = "document.getElementById('flow').viewer"
COUNTERS = """window.calls = { draws: 0, bytes: 0 };
const count = (name, add) => {
  const original = WebGL2RenderingContext.prototype[name];
  WebGL2RenderingContext.prototype[name] = function (...given) { add(given); return original.apply(this, given); };
};
for (const name of ["drawArrays", "drawArraysInstanced", "drawElements", "drawElementsInstanced"]) {
  count(name, () => { calls.draws += 1; });
}
for (const name of ["bufferData", "bufferSubData", "texImage2D", "texImage3D", "texSubImage2D", "texSubImage3D"]) {
  count(name, (given) => { calls.bytes += given.reduce((sum, each) => sum + (each?.byteLength ?? 0), 0); });
}"""
NO_WEBGL = "HTMLCanvasElement.prototype.getContext = () => null;"
STILL: dict[str, Any] = {
    "viewport": {"width": 1000, "height": 900},
    "reduced_motion": "reduce",
    "color_scheme": "light",
}


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    with headless_browser() as found:
        yield found


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("viewer") / "report.html"
    path.write_text(report_page(moving_run()))
    return path


@pytest.fixture
def page(browser: "Browser", file: Path) -> Iterator["Page"]:
    """The page, without motion of its own; at the end nothing may have gone wrong and nothing have been requested."""
    complaints: list[str] = []
    found = open_page(browser, file, complaints, script=COUNTERS, **STILL)
    found.locator("canvas").scroll_into_view_if_needed()
    yield found
    found.close()
    assert [each for each in complaints if not each.startswith("blob:")] == []  # a blob is a download


def settle(page: "Page") -> None:
    """Wait until the picture is drawn with all its edges."""
    page.evaluate(
        f"new Promise((done) => {{ {VIEWER}.redraw(); requestAnimationFrame(() => requestAnimationFrame(done)); }})"
    )


def wait_until(page: "Page", condition: str) -> None:
    """Wait for a condition; the page's policy forbids the browser's own way, which evaluates text."""
    for _ in range(200):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"never true: {condition}")


def place(page: "Page", node: int) -> tuple[float, float]:
    """Return where a node is on the canvas, in pixels of the page."""
    x, y = page.evaluate(
        f"(() => {{ const v = {VIEWER}; return v.picture.toPage(v.flow.place({node}, v.picture.state.at)); }})()"
    )
    return x, y


def point(page: "Page", node: int) -> tuple[float, float]:
    """Return where a node is in the window."""
    box = page.locator("canvas").bounding_box()
    assert box is not None
    x, y = place(page, node)
    return box["x"] + x, box["y"] + y


def pixels(page: "Page") -> NDArray[numpy.uint8]:
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    settle(page)
    return numpy.asarray(image.open(io.BytesIO(page.locator("canvas").screenshot())).convert("RGB"))


def colour_at(page: "Page", x: float, y: float) -> list[int]:
    return [int(value) for value in pixels(page)[round(y), round(x)]]


def colour(page: "Page", name: str) -> list[int]:
    value = page.evaluate(f"getComputedStyle(document.documentElement).getPropertyValue('{name}').trim()")
    return [int(value[k : k + 2], 16) for k in (1, 3, 5)]


def near(a: list[int], b: list[int], most: int = 24) -> bool:
    return max(abs(x - y) for x, y in zip(a, b, strict=True)) <= most


def chosen(page: "Page") -> str:
    return page.locator(".node-panel h3").inner_text()


def set_time(page: "Page", frame: float) -> None:
    page.evaluate(f"{VIEWER}.setTime({frame})")


def test_nodes_are_drawn_at_their_places_in_the_colours_of_their_classes(page: "Page") -> None:
    data = moving_run()
    ground = colour(page, "--card")
    for frame in (0, 2):
        set_time(page, frame)
        for node in (2, 7, 11):
            label = int(data.nodes.label[node])
            assert near(colour_at(page, *place(page, node)), colour(page, f"--c{label}"))
    x, y = place(page, 9)
    set_time(page, 0.5)  # between two key frames, half way to the middle
    assert near(colour_at(page, x, y), ground)
    start, end = data.flow.positions[0, 9], data.flow.positions[1, 9]  # type: ignore[union-attr]
    side = page.evaluate(f"{VIEWER}.picture.frame().side")
    half = page.evaluate(f"{VIEWER}.flow.half")
    now = place(page, 9)[0]
    set_time(page, 0)
    assert now - place(page, 9)[0] == pytest.approx((end - start)[0] / 2 / (2 * half) * side, abs=0.1)


def test_every_colour_mode_paints_its_own_colours(page: "Page") -> None:
    data = moving_run()
    box = page.locator("#viewer-colour")
    box.select_option("predicted")
    assert near(
        colour_at(page, *place(page, 7)), colour(page, "--c0")
    )  # at time 0 all are predicted as the first class
    set_time(page, 2)
    predicted = int(data.nodes.predicted[7])
    assert near(colour_at(page, *place(page, 7)), colour(page, f"--c{predicted}"))
    box.select_option("confidence")
    assert near(colour_at(page, *place(page, 7)), colour(page, "--doubt4"))  # confidence 1
    box.select_option("error")
    wrong = next(k for k in range(12) if data.nodes.label[k] >= 0 and data.nodes.label[k] != data.nodes.predicted[k])
    right = next(k for k in range(12) if data.nodes.label[k] >= 0 and data.nodes.label[k] == data.nodes.predicted[k])
    unknown = int(numpy.flatnonzero(data.nodes.label < 0)[0])
    for node, name in ((wrong, "--wrong"), (right, "--right"), (unknown, "--unknown")):
        assert near(colour_at(page, *place(page, node)), colour(page, name))
    box.select_option("label")
    page.locator(".legend button").first.click()
    other = next(k for k in range(12) if data.nodes.label[k] > 0)
    assert not near(colour_at(page, *place(page, other)), colour(page, f"--c{int(data.nodes.label[other])}"))


def test_edges_appear_and_vanish_with_the_moving_mesh(page: "Page") -> None:
    def between(a: int, b: int) -> list[int]:
        (x0, y0), (x1, y1) = place(page, a), place(page, b)
        return colour_at(page, (x0 + x1) / 2, (y0 + y1) / 2)

    ground = colour(page, "--card")
    set_time(page, 0.2)
    assert not near(between(7, 8), ground, 10)
    assert not near(between(0, 4), ground, 10)
    assert near(between(10, 11), ground, 3)
    set_time(page, 1.8)
    assert near(between(7, 8), ground, 3)
    assert not near(between(0, 4), ground, 10)
    assert not near(between(10, 11), ground, 10)
    page.locator("#viewer-edges").fill("0")
    assert near(between(10, 11), ground, 3)


def test_play_runs_to_the_end_and_the_slider_sets_the_time(page: "Page") -> None:
    said = page.locator(".time-said")
    assert said.inner_text().startswith("t = 0.00 of 4.00")
    slider = page.locator("#viewer-time")
    slider.press("End")
    assert said.inner_text().startswith("t = 4.00 of 4.00")
    assert "test accuracy" in said.inner_text()
    slider.press("Home")
    slider.press("PageUp")
    assert 0 < page.evaluate(f"{VIEWER}.picture.state.at") < 2
    set_time(page, 1.8)
    play = page.get_by_role("button", name="Play")
    play.click()
    page.get_by_role("button", name="Pause").wait_for()
    wait_until(page, f"!{VIEWER}.playing")
    assert said.inner_text().startswith("t = 4.00")
    assert play.is_visible()


def test_the_flow_plays_once_when_it_is_seen_unless_motion_is_reduced(browser: "Browser", file: Path) -> None:
    moving = open_page(browser, file, [], viewport={"width": 1000, "height": 1200}, reduced_motion="no-preference")
    wait_until(moving, f"{VIEWER}.picture.state.at > 0")
    moving.close()
    still = open_page(browser, file, [], **STILL)
    still.wait_for_timeout(300)
    assert still.evaluate(f"{VIEWER}.picture.state.at") == 0
    still.close()


def test_hover_shows_a_node_as_text_and_its_edges(page: "Page") -> None:
    settle(page)
    (x0, y0), (x1, y1) = place(page, 7), place(page, 8)
    before = colour_at(page, (x0 + x1) / 2, (y0 + y1) / 2)
    page.mouse.move(*point(page, 0))
    tip = page.locator(".tip")
    assert NASTY[0] in tip.inner_text()
    assert tip.locator("script").count() == 0
    page.mouse.move(*point(page, 7))
    assert "node 0" in tip.inner_text()
    assert "40.0% at this time" in tip.inner_text()
    assert "receives 0.5 from node 1" in tip.inner_text()  # its neighbour with the weight at this time
    after = colour_at(page, (x0 + x1) / 2, (y0 + y1) / 2)
    assert not near(before, after, 10)  # the edge of the node has the accent's colour
    x, y = point(page, 7)
    page.mouse.move(x, y - 40)
    assert tip.is_hidden()


def test_hover_shows_the_path_of_a_node_through_all_times(page: "Page") -> None:
    set_time(page, 1)
    x, y = place(page, 9)
    set_time(page, 2)  # the node has gone on, and its path passes there
    settle(page)
    (x0, y0), (x1, y1) = (x, y), place(page, 9)
    middle = ((3 * x0 + x1) / 4, (3 * y0 + y1) / 4)
    page.mouse.move(0, 0)
    assert near(colour_at(page, *middle), colour(page, "--card"), 3)
    page.mouse.move(*point(page, 9))
    assert not near(colour_at(page, *middle), colour(page, "--card"), 40)


def test_a_click_shows_facts_neighbours_and_explanation(page: "Page") -> None:
    page.mouse.click(*point(page, 0))
    panel = page.locator(".node-panel")
    assert chosen(page) == NASTY[0]
    assert page.locator(".tip").is_hidden()  # the panel has moved the picture
    assert "Exact shares, which sum to the margin." in panel.inner_text()
    neighbour = panel.locator("tr", has=page.get_by_role("button", name=NASTY[4]))
    assert neighbour.first.inner_text().split()[-1] == "0.25"  # node 0 receives this from node 4 at time 0
    panel.get_by_role("button", name=NASTY[4]).click()
    assert chosen(page) == NASTY[4]
    assert "beltrami explain 'runs/<b>graph</b>' @SUM" not in panel.inner_text()  # quoted for the shell
    assert "beltrami explain 'runs/<b>graph</b>' '@SUM(A1)'" in panel.inner_text()
    set_time(page, 1.5)  # the weights at a later time
    assert "0.125" in panel.inner_text()
    panel.get_by_role("button", name="Close").click()
    assert panel.is_hidden()


def test_search_finds_names_of_any_text(page: "Page") -> None:
    field = page.get_by_role("combobox", name="Find a node")
    for asked, found in (("<script", NASTY[0]), ("two", NASTY[2]), ("=1", NASTY[3]), ("node 4", "node 4")):
        field.fill(asked)
        assert page.locator("#viewer-matches li").first.text_content() == found
        field.press("Enter")
        assert page.locator(".node-panel h3").text_content() == found
    field.fill("no such node")
    assert page.locator("#viewer-matches").inner_text() == "No node has this name"
    field.press("Enter")
    field.press("Escape")
    assert page.locator("#viewer-matches").is_hidden()


def save_selected(page: "Page", press: "Callable[[], None]") -> list[list[str]]:
    with page.expect_download() as download:
        press()
    with Path(download.value.path()).open(newline="") as file:
        return list(csv.reader(file))


def test_the_lasso_selects_nodes_and_saves_them_without_formulas(page: "Page") -> None:
    page.get_by_role("button", name="Lasso").click()
    page.locator("canvas").evaluate("each => each.scrollIntoView({ block: 'center' })")
    (left, top), (right, _) = point(page, 0), point(page, 3)
    page.mouse.move(left - 20, top - 20)
    page.mouse.down()
    for x, y in ((right + 20, top - 20), (right + 20, top + 20), (left - 20, top + 20)):
        page.mouse.move(x, y, steps=3)
    page.mouse.up()
    assert page.locator(".count").inner_text() == "4 nodes are selected"
    rows = save_selected(page, page.get_by_role("button", name="Save as CSV").click)
    assert rows[0] == ["node", "label", "predicted", "probability", "part"]
    assert [row[0] for row in rows[1:]] == [NASTY[0], NASTY[1], NASTY[2], "'=1+1"]
    names = moving_run().names
    assert {row[2] for row in rows[1:]} <= {*names, "'=1+1"}
    page.get_by_role("button", name="Clear").click()
    assert page.locator(".selection").is_hidden()


def test_everything_works_by_keyboard_alone(page: "Page") -> None:
    page.keyboard.press("Tab")  # skip to the content, then into the picture
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.tagName") == "CANVAS"
    before = place(page, 0)
    for key, moves in (("ArrowRight", True), ("+", True), ("-", True), ("0", False)):
        page.keyboard.press(key)
        assert (place(page, 0) != before) is moves
    page.keyboard.press(".")
    assert page.evaluate(f"{VIEWER}.picture.state.at") == 0.25
    page.keyboard.press("End")
    assert page.locator(".time-said").inner_text().startswith("t = 4.00")
    page.keyboard.press("Home")
    page.keyboard.press("Space")
    assert page.evaluate(f"{VIEWER}.playing")
    page.keyboard.press("Space")
    assert not page.evaluate(f"{VIEWER}.playing")

    def tab_to(name: str) -> None:
        for _ in range(40):
            page.keyboard.press("Tab")
            if name in page.evaluate(
                "(document.activeElement.getAttribute('aria-label') ?? '') + document.activeElement.textContent"
            ):
                return
        raise AssertionError(f"Tab never reaches {name}")

    tab_to("Find a node")
    page.keyboard.type("node 3")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    assert chosen(page) == "node 3"
    tab_to("Select all in view")
    page.evaluate(f"{VIEWER}.resetView()")
    page.keyboard.press("Enter")
    assert page.locator(".count").inner_text() == "12 nodes are selected"
    tab_to("Save as CSV")
    assert len(save_selected(page, lambda: page.keyboard.press("Enter"))) == 13
    tab_to("Close")
    page.keyboard.press("Enter")
    assert page.locator(".node-panel").is_hidden()
    assert page.evaluate("document.activeElement.tagName") == "CANVAS"  # the focus is not lost


def test_dragging_and_the_wheel_move_the_picture(page: "Page") -> None:
    x, y = point(page, 5)
    page.mouse.move(x + 30, y + 60)
    page.mouse.down()
    page.mouse.move(x + 80, y + 90, steps=4)
    page.mouse.up()
    assert point(page, 5) == pytest.approx((x + 50, y + 30), abs=0.5)
    zoom = f"{VIEWER}.picture.view.zoom"
    page.evaluate("document.activeElement.blur()")
    page.mouse.wheel(0, -10)  # the page scrolls while the picture has no focus
    page.wait_for_timeout(300)
    assert page.evaluate(zoom) == 1
    page.locator("canvas").focus()
    page.mouse.move(*point(page, 6))
    before = point(page, 6)
    page.mouse.wheel(0, -300)
    wait_until(page, f"{zoom} > 1")
    assert point(page, 6) == pytest.approx(before, abs=1.0)  # zoom keeps what is under the pointer


def test_moving_uploads_nothing_and_takes_two_draw_calls_a_frame(page: "Page") -> None:
    settle(page)
    page.evaluate("Object.assign(calls, { draws: 0, bytes: 0 })")
    frames, draws, uploaded = page.evaluate(
        f"""async () => {{
      const viewer = {VIEWER};
      let frames = 0;
      const draw = viewer.picture.draw.bind(viewer.picture);
      viewer.picture.draw = (...given) => {{ frames += 1; draw(...given); }};
      for (let k = 0; k <= 20; k++) {{
        viewer.setTime(k / 10);
        await new Promise(requestAnimationFrame);
      }}
      for (let k = 0; k < 10; k++) {{
        viewer.zoom(1.05);
        await new Promise(requestAnimationFrame);
      }}
      return [frames, calls.draws, calls.bytes];
    }}"""
    )
    assert frames >= 25
    assert uploaded == 0
    assert draws == 2 * frames  # edges and nodes


def test_a_chosen_node_adds_its_edges_its_path_and_itself_to_the_draw_calls(page: "Page") -> None:
    page.evaluate(f"{VIEWER}.choose(0)")
    settle(page)
    frames, draws, uploaded = page.evaluate(
        f"""async () => {{
      const viewer = {VIEWER};
      let frames = 0;
      const draw = viewer.picture.draw.bind(viewer.picture);
      viewer.picture.draw = (...given) => {{ frames += 1; draw(...given); }};
      Object.assign(calls, {{ draws: 0, bytes: 0 }});
      viewer.setTime(0.5); // in the same graph as before
      await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
      return [frames, calls.draws, calls.bytes];
    }}"""
    )
    assert frames >= 1
    assert uploaded == 0
    assert draws == 5 * frames


def test_sliding_and_moving_the_picture_measure_frames_as_playing_does(page: "Page") -> None:
    counted = page.evaluate(
        f"""async () => {{
      const viewer = {VIEWER}, found = [];
      viewer.picture.noteFrame = (time) => found.push(time);
      for (const move of [() => viewer.setTime(0.7), () => viewer.zoom(1.2), () => viewer.pan(0.1, 0)]) {{
        move();
        for (let k = 0; k < 3; k++) await new Promise(requestAnimationFrame);
      }}
      return found;
    }}"""
    )
    assert len(counted) == 3
    assert min(counted) > 0


def test_late_frames_thin_the_edges_while_something_moves(page: "Page") -> None:
    thinned = page.evaluate(
        f"""() => {{
      const {{ picture }} = {VIEWER};
      picture.state.edges = 500000;
      picture.movingEdges = Infinity;
      const found = [];
      for (const time of [16, 60, 60, 60, 16, 16]) {{ picture.noteFrame(time); found.push(picture.movingEdges); }}
      for (let k = 0; k < 40; k++) picture.noteFrame(60);
      return [...found, picture.movingEdges];
    }}"""
    )
    assert thinned[0] is None or thinned[0] == float("inf")
    assert thinned[3] == pytest.approx(500000 / 1.5**3)
    assert thinned[5] > thinned[3]
    assert thinned[-1] == 2000


def test_without_webgl_there_is_a_still_picture_and_in_print_too(browser: "Browser", file: Path, page: "Page") -> None:
    complaints: list[str] = []
    plain = open_page(browser, file, complaints, script=NO_WEBGL, **STILL)
    assert plain.locator(".still-picture svg").is_visible()
    assert plain.locator("canvas").is_hidden()
    assert complaints == []
    plain.close()
    assert page.locator(".still-picture svg").is_hidden()
    page.emulate_media(media="print")
    assert page.locator(".still-picture svg").is_visible()
    assert page.locator("canvas").is_hidden()


def test_a_lost_context_is_restored(page: "Page") -> None:
    settle(page)
    before = pixels(page)
    page.evaluate(
        f"{VIEWER}.lost = {VIEWER}.picture.gl.getExtension('WEBGL_lose_context'); {VIEWER}.lost.loseContext()"
    )
    settle(page)
    page.evaluate(f"{VIEWER}.lost.restoreContext()")
    for _ in range(100):
        if numpy.array_equal(pixels(page), before):
            break
        page.wait_for_timeout(50)
    numpy.testing.assert_array_equal(pixels(page), before)


def test_axe_finds_no_fault_with_a_node_chosen(page: "Page") -> None:
    page.mouse.click(*point(page, 0))
    page.evaluate(f"{VIEWER}.selectInside(() => true)")
    assert accessibility_faults(page) == []
    page.get_by_role("button", name="Dark theme").click()
    assert accessibility_faults(page, runOnly=["color-contrast"]) == []
