"""The server of ``beltrami watch``: the page, explanations on demand, and who may ask."""

import http.client
import json
from collections.abc import Iterator
from dataclasses import replace
from threading import Thread
from typing import Any

import pytest
from browser import accessibility_faults, headless_browser
from run_data_examples import NASTY, moving_run

from beltrami.errors import DataError
from beltrami.report.run_data import Reasons, RunData, Share
from beltrami.report.watch import PageServer, page_server


class ExplainedRun:
    """A run that explains every node by its own share."""

    def explain(self, node: int) -> Reasons:
        if node > 11:
            raise ValueError(f"`node` must be from 0 to 11; got {node}.")
        return Reasons(node, "Theory", "", 2.0, "one share", [Share(node, 2.0)], [Share(0, 1.0, node)])


@pytest.fixture(scope="module")
def server() -> Iterator[PageServer]:
    run: Any = ExplainedRun()
    with page_server(run, replace(moving_run(), reasons={})) as found:
        Thread(target=found.serve_forever, args=(0.05,), daemon=True).start()
        yield found
        found.shutdown()


def ask(server: PageServer, path: str, **headers: str) -> tuple[int, str, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    content = answer.read().decode()
    connection.close()
    return answer.status, answer.headers["Content-Type"], content


def test_the_page_and_explanations_are_served(server: PageServer) -> None:
    status, kind, page = ask(server, "/")
    assert (status, kind) == (200, "text/html; charset=utf-8")
    assert page.encode() == server.page
    status, kind, content = ask(server, "/explain/0")
    assert (status, kind) == (200, "application/json; charset=utf-8")
    found = json.loads(content)
    assert found["nodes"] == [[0, NASTY[0], "unknown", 2.0]]
    assert found["edges"] == [[0, NASTY[0], 0, NASTY[0], 1.0]]


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/explain/99", 400, "from 0 to 11; got 99"),
        ("/explain/x", 400, "`x` is no number of a node"),
        ("/explain/", 400, "`` is no number of a node"),
        ("/../etc/passwd", 404, "no such page"),
    ],
)
def test_other_questions_are_refused(server: PageServer, path: str, status: int, words: str) -> None:
    found, _, content = ask(server, path)
    assert found == status
    assert words in content


def test_a_site_under_another_name_may_not_ask(server: PageServer) -> None:
    assert ask(server, "/", Host="evil.example")[0] == 403
    assert ask(server, "/explain/0", Host=f"evil.example:{server.server_port}")[0] == 403
    assert ask(server, "/", Host=f"localhost:{server.server_port}")[0] == 200


def test_a_port_that_is_taken_is_refused_in_one_sentence(server: PageServer) -> None:
    run: Any = ExplainedRun()
    data: RunData = moving_run()
    with (
        pytest.raises(DataError, match=f"port {server.server_port} cannot be used"),
        page_server(run, data, port=server.server_port),
    ):
        raise AssertionError("the port was taken")


@pytest.mark.browser
@pytest.mark.slow
def test_a_click_asks_the_server_for_an_explanation(server: PageServer) -> None:
    with headless_browser() as browser:
        page = browser.new_page(reduced_motion="reduce")
        complaints: list[str] = []
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.on(
            "request", lambda each: complaints.append(each.url) if not each.url.startswith(server.address) else None
        )
        page.goto(server.address)
        field, panel = page.get_by_role("combobox", name="Find a node"), page.locator(".node-panel")
        for name in ("node 4", *NASTY):
            field.fill(name.split("\n")[0])
            field.press("Enter")
            page.get_by_role("cell", name="2 (100.0%)").wait_for()
            assert "Theory: 2 (one share)." in panel.inner_text()
            assert panel.locator("h3").text_content() == name
            shares = panel.locator("table", has=page.locator("caption", has_text="Shares of nodes"))
            assert shares.locator("th").text_content() == name
        assert page.locator("script[src], img, iframe").count() == 0
        assert accessibility_faults(page) == []
        assert complaints == []
        page.close()
