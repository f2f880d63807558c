"""The data of the flow viewer: what is packed is what was there, to 16 bits; and its size."""

import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import pytest
from numpy.typing import NDArray
from run_data_examples import NASTY, class_run, label_run, moving_run, number_run, with_flow

from beltrami.report.page import report_page, watch_page
from beltrami.report.run_data import FlowData, Mesh, RunData
from beltrami.report.still_picture import still_picture
from beltrami.report.viewer import viewer_section
from beltrami.report.viewer_data import GONE, NEW, viewer_data


def packed(data: RunData) -> dict[str, Any]:
    assert data.flow is not None
    found: dict[str, Any] = json.loads(json.dumps(viewer_data(data, data.flow), allow_nan=False))
    return found


def unpacked(text: str, type: str) -> NDArray[Any]:
    return numpy.frombuffer(base64.b64decode(text), dtype=type)


def test_positions_are_packed_to_16_bits_of_the_square() -> None:
    data = moving_run()
    found = packed(data)
    assert data.flow is not None
    unit = unpacked(found["positions"], "<u2").reshape(3, 12, 2) / 65535
    positions = (unit - 0.5) * 2 * found["half"] + found["centre"]
    numpy.testing.assert_allclose(positions, data.flow.positions, atol=2 * found["half"] / 65535)
    assert found["times"] == [0.0, 2.0, 4.0]


def test_predictions_confidences_and_weights_are_packed_by_time() -> None:
    data = moving_run()
    found = packed(data)
    assert data.flow is not None
    assert data.flow.confidence is not None
    values = unpacked(found["values"], "<u2").reshape(3, 12, 2)
    numpy.testing.assert_array_equal(values[..., 0], data.flow.predicted)
    numpy.testing.assert_allclose(values[..., 1] / 65535, data.flow.confidence, atol=1e-5)
    weights = unpacked(found["weights"], "<i2").reshape(-1, 2, found["weightTimes"]) / 32767 * found["largestWeight"]
    numpy.testing.assert_allclose(weights, numpy.concatenate([mesh.weights for mesh in data.flow.meshes]), atol=1e-4)
    pairs = unpacked(found["pairs"], "<u2").reshape(-1, 2)
    assert pairs.tolist() == [[7, 8], [0, 4], [0, 4], [10, 11]]
    assert [(mesh["first"], mesh["count"]) for mesh in found["meshes"]] == [(0, 2), (2, 2)]


def test_pairs_that_come_and_go_are_marked() -> None:
    changes = unpacked(packed(moving_run())["changes"], "u1")
    assert changes.tolist() == [GONE, 0, 0, NEW]


def test_weights_that_do_not_change_are_stored_once() -> None:
    data = with_flow(class_run())
    found = packed(data)
    assert found["weightTimes"] == 1
    assert len(unpacked(found["weights"], "<i2")) == 2


def test_facts_are_those_of_the_nodes_that_are_drawn() -> None:
    data = moving_run()
    assert data.flow is not None
    drawn = numpy.array([1, 3, 10])
    part = replace(
        data.flow,
        positions=data.flow.positions[:, drawn],
        predicted=data.flow.predicted[:, drawn],
        confidence=data.flow.confidence[:, drawn] if data.flow.confidence is not None else None,
        meshes=[Mesh(0.0, 4.0, numpy.array([[0, 2]]), numpy.ones((1, 2, 2)))],
        nodes=drawn,
    )
    nodes = packed(replace(data, flow=part))["nodes"]
    assert nodes["number"] == [1, 3, 10]
    assert nodes["id"] == [data.nodes.ids[k] for k in drawn]
    assert nodes["degree"] == data.nodes.degree[drawn].tolist()
    known = data.nodes.label[drawn] >= 0
    assert [label is not None for label in nodes["label"]] == known.tolist()


@pytest.mark.parametrize("data", [label_run(), number_run()], ids=lambda data: str(data.kind))
def test_labels_and_numbers_have_a_viewer(data: RunData) -> None:
    flow = with_flow(class_run(n=len(data.nodes.ids))).flow
    assert flow is not None
    if data.kind == "numbers":
        flow = replace(flow, predicted=numpy.stack([data.nodes.predicted] * 2), confidence=None)
    found = packed(replace(data, flow=flow))
    label = found["nodes"]["label"]
    assert label[0] is None
    if data.kind == "labels":
        assert label[10] == numpy.flatnonzero(data.nodes.label[10]).tolist()
    else:
        assert label[10] == data.nodes.label[10]
        low, high = found["range"]
        values = unpacked(found["values"], "<u2").reshape(2, -1, 2)[1, :, 0] / 65535 * (high - low) + low
        numpy.testing.assert_allclose(values, data.nodes.predicted, atol=(high - low) / 65535)


def test_a_flow_without_edges_and_a_single_point_can_be_drawn() -> None:
    data = class_run(n=12)
    flow = FlowData(
        numpy.array([0.0]), numpy.zeros((1, 12, 2)), ("a", "b"), "A point.", False, numpy.zeros((1, 12)), None, []
    )
    found = packed(replace(data, flow=flow))
    assert found["half"] > 0
    assert found["meshes"] == []
    assert still_picture(data, flow).count("t = ") == 1


def test_names_cannot_end_the_data_or_become_markup() -> None:
    page = report_page(moving_run())
    assert NASTY[0] not in page
    assert NASTY[6] not in page
    assert "\\u003cscript\\u003ealert(1)" in page


def test_the_still_picture_shows_each_node_once_at_three_times() -> None:
    data = moving_run()
    assert data.flow is not None
    picture = still_picture(data, data.flow)
    assert picture.count("h0") == 3 * 12
    assert picture.count("t = ") == 3


def test_a_page_from_a_file_may_connect_nowhere_and_a_watched_one_to_its_server() -> None:
    data = moving_run()
    assert "connect-src &#x27;none&#x27;" in report_page(data)
    watched = watch_page(data, explain_at="/explain/")
    assert "connect-src &#x27;self&#x27;" in watched
    assert '"explainAt": "/explain/"' in watched


@pytest.mark.slow
def test_20000_nodes_and_500000_edges_are_below_15_megabytes() -> None:
    random = numpy.random.default_rng(0)
    n, m, frames = 20_000, 500_000, 16
    data = class_run(n=n, classes=tuple(f"class {k}" for k in range(40)))
    pairs = numpy.sort(random.integers(0, n, (m, 2)), axis=1)
    flow = FlowData(
        times=numpy.linspace(0, 8, frames),
        positions=random.normal(size=(frames, n, 2)),
        axes=("a", "b"),
        projection="Random places.",
        disc=False,
        predicted=random.integers(0, 40, (frames, n)),
        confidence=random.random((frames, n)),
        meshes=[Mesh(0.0, 8.0, pairs, random.random((m, 2, 2)))],
    )
    size = len(viewer_section(replace(data, flow=flow), flow).encode())
    assert 1e7 < size < 1.5e7


def test_the_recorded_pages_kept_to_their_limits() -> None:
    rows = json.loads((Path(__file__).parents[2] / "results" / "pages.json").read_text())["rows"]
    assert [row["page"].split(":")[0] for row in rows] == ["cora", "pubmed", "generated"]
    assert rows[0]["seconds"] < 20
    assert all(row["bytes"] < 1.5e7 for row in rows)
    assert {(row["draw_calls_per_frame"], row["bytes_uploaded_per_frame"]) for row in rows} == {(2, 0)}
