"""The terminal tells what positions and rewired graphs are like, and nothing where nobody watches."""

from pathlib import Path

import pytest
import torch
from checks import bare, crooked, kite

from beltrami.graph.statistics import Rewiring
from beltrami.report.space import encoded, rewired, working

KITE_LABELS = torch.tensor([0, 0, 1, 1])


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "dumb")


def words(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Each line with its blanks evened."""
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("sparse", [False, True])
def test_positions_are_told_by_shape_density_and_time(capsys: pytest.CaptureFixture[str], sparse: bool) -> None:
    u = torch.eye(4, 5)
    encoded(u.to_sparse() if sparse else u, seconds=1.25, from_cache=sparse, path=Path("here"))
    assert words(capsys) == [
        f"positions 4 x 5, {'sparse' if sparse else 'dense'}",
        "density 0.2000",
        f"time 1.2 s, {'from the cache' if sparse else 'computed'}",
        "saved in here",
    ]


def test_rewiring_is_told_in_two_columns(capsys: pytest.CaptureFixture[str]) -> None:
    rewired(Rewiring.of(kite(), bare().with_loops(1.0), KITE_LABELS), seconds=0.5, path=Path("here"))
    assert words(capsys) == [
        "before after",
        "nodes 4 4",
        "directed edges 8 0",
        "self-loops 0 4",
        "mean degree 2.00 0.00",
        "smallest degree 1 0",
        "largest degree 3 0",
        "components 1 4",
        "label homophily 50.0% -",
        "0.0% of the old edges are kept; - of the new ones are old",
        "made in 0.5 s, saved in here",
    ]


def test_overlap_is_told_in_its_order(capsys: pytest.CaptureFixture[str]) -> None:
    fewer = crooked().edge_index[:, :6]
    new = type(crooked()).build(fewer, num_nodes=6)
    rewired(Rewiring.of(crooked(), new, torch.zeros(6)), seconds=0.5, path=Path("here"))
    assert "50.0% of the old edges are kept; 100.0% of the new ones are old" in words(capsys)


def test_work_is_silent_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    with working("cora / ppr") as show:
        show("PPR", 5, 10)
        show("cora.x", 100, None)
    assert capsys.readouterr() == ("", "")


def test_work_is_shown_on_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    with working("cora / ppr") as show:
        show("PPR", 5, 10)
    out, err = capsys.readouterr()
    assert out == ""
    assert "cora / ppr" in err
    assert "5/10" in err
