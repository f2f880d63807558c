"""An explanation fits 80 columns and shows the sum, the largest shares and the labels."""

from dataclasses import replace

import pytest
import torch

from beltrami.predict.shares import Explanation
from beltrami.report.explanation import print_explanation

IDS = ["anna", "bert", "carl [0]", "dora", "a very long identifier of a node that fills the line by itself"]
EXPLANATION = Explanation(
    node=2,
    predicted=1,
    other=0,
    margin=4.0,
    constant=0.5,
    remainder=-1e-9,
    method="exact",
    node_shares=torch.tensor([0.5, -1.0, 3.0, 1.0, 0.0], dtype=torch.float64),
    edge_index=torch.tensor([[0, 1, 2, 3], [1, 2, 2, 2]]),
    edge_shares=torch.tensor([0.5, -2.0, 9.0, 1.0], dtype=torch.float64),
)
CLASSES = torch.tensor([1, 1, 1, 0, 1])
LABELLED = torch.tensor([True, True, False, True, False])


@pytest.fixture(autouse=True)
def narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    out = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert max(map(len, out)) <= 80
    return out


def test_an_explanation_is_printed_with_sum_nodes_edges_and_labels(capsys: pytest.CaptureFixture[str]) -> None:
    print_explanation(EXPLANATION, IDS, ["cat", "dog"], y=CLASSES, labelled=LABELLED)
    assert lines(capsys) == [
        "carl [0]: dog",
        "margin over cat          +4.0000  100.0%",
        "shares of all nodes      +3.5000   87.5%",
        "constant of the decoder  +0.5000   12.5%",
        "remainder                +0.0000    0.0%",
        "exact: the weights of edges are frozen, and the shares sum to the margin",
        "",
        "from node  label    share  of margin  hops",
        "carl [0]   -      +3.0000      75.0%     0",
        "bert       dog    -1.0000     -25.0%     1",
        "dora       cat    +1.0000      25.0%     1",
        "anna       dog    +0.5000      12.5%     2",
        "",
        "along edge                 share  of margin",
        "bert        -> carl [0]  -2.0000     -50.0%",
        "dora        -> carl [0]  +1.0000      25.0%",
        "anna        -> bert      +0.5000      12.5%",
        "what passes several edges counts at each: these do not sum to the margin",
        "",
        "labelled nodes among the 3 that have 90% of the absolute shares:",
        "1  agree with dog      -1.0000  bert",
        "1  have another label  +1.0000  dora",
    ]


def test_long_names_are_folded(capsys: pytest.CaptureFixture[str]) -> None:
    shares, index = EXPLANATION.node_shares.flip(0), torch.tensor([[0, 4], [4, 0]])
    explanation = replace(EXPLANATION, node_shares=shares, edge_index=index, edge_shares=torch.tensor([1.0, 2.0]))
    print_explanation(explanation, [name * 2 for name in IDS], ["cat", "dog"], count=1)
    assert "-" in "".join(lines(capsys))


def test_a_model_without_weights_on_edges_lists_nodes_alone(capsys: pytest.CaptureFixture[str]) -> None:
    explanation = replace(EXPLANATION, edge_shares=None, method="integrated gradients", other=None, margin=0.0)
    print_explanation(explanation, IDS, ["cat", "dog"], count=2)
    out = lines(capsys)
    assert not any(line.startswith(("along edge", "labelled")) for line in out)
    assert out[1] == "margin               +0.0000  -"
    assert out[-1] == "bert       -      -1.0000          -     1"


def test_numbers_and_several_labels_are_shown_as_labels(capsys: pytest.CaptureFixture[str]) -> None:
    print_explanation(EXPLANATION, IDS, ["cat", "price"], y=torch.full((5,), 2.5), labelled=LABELLED)
    out = lines(capsys)
    assert "bert       +2.5000  -1.0000     -25.0%     1" in out
    assert not any(line.startswith("labelled") for line in out)
    print_explanation(EXPLANATION, IDS, ["cat", "dog"], y=torch.tensor([[1, 1]] * 5), labelled=LABELLED)
    assert "bert       cat;dog  -1.0000     -25.0%     1" in lines(capsys)
