"""What every encoding promises: its battery, and a description that tells it from any other."""

import json
from dataclasses import dataclass

import pytest
import torch
from checks import RANDOM_ENCODINGS, check_random_encoding, crooked
from torch import Tensor

from beltrami.graph import Edges
from beltrami.position import PPR, DeepWalk, Encoding, Heat, LaplacianEigenvectors


@dataclass(frozen=True)
class Ball:
    """A space, as a parameter."""

    curvature: float


class Wrapped(Encoding):
    """Whatever it is given, scaled."""

    version = 3

    def __init__(self, inner: object, scales: tuple[float, ...] = (1.0,)) -> None:
        self.inner = inner
        self.scales = scales
        self._seen = object()

    def __call__(self, edges: Edges, generator: torch.Generator | None = None) -> Tensor:
        raise NotImplementedError


@pytest.mark.parametrize("encoding", RANDOM_ENCODINGS, ids=lambda e: str(e.describe()["parameters"]))
def test_every_random_encoding_passes_its_battery(encoding: Encoding) -> None:
    check_random_encoding(encoding, crooked())


def test_description_names_method_version_and_parameters() -> None:
    described = PPR(restart=0.1, top=None).describe()
    assert described == {
        "method": "beltrami.position.ppr.PPR",
        "version": 1,
        "parameters": {"restart": 0.1, "top": None},
    }


def test_description_does_not_mention_who_is_listening() -> None:
    assert DeepWalk(4).describe() == DeepWalk(4, progress=lambda what, done, total: None).describe()


def test_encodings_within_an_encoding_are_described_too() -> None:
    described = Wrapped(PPR(), (1.0, 2.0)).describe()
    assert described["version"] == 3
    assert described["parameters"] == {"inner": PPR().describe(), "scales": [1.0, 2.0]}
    assert json.loads(json.dumps(described)) == described


def test_dataclasses_are_described_by_their_fields() -> None:
    flat, round_ = Wrapped(Ball(0.0)).describe(), Wrapped(Ball(1.0)).describe()
    assert flat != round_
    assert flat == Wrapped(Ball(0.0)).describe()


def test_what_has_no_plain_description_is_refused() -> None:
    with pytest.raises(ValueError, match="dataclasses and other encodings; `inner` is a Generator"):
        Wrapped(torch.Generator()).describe()


@pytest.mark.parametrize("encoding", [PPR(), Heat(time=1.0), LaplacianEigenvectors(1)], ids=lambda e: type(e).__name__)
def test_an_encoding_by_a_symmetric_kernel_refuses_a_directed_graph(encoding: Encoding) -> None:
    one_way = Edges.build(torch.tensor([[0, 1, 2], [1, 2, 3]]), num_nodes=4)
    uneven = Edges.build(torch.tensor([[0, 1], [1, 0]]), num_nodes=4, weight=torch.tensor([1.0, 2.0]))
    for edges in (one_way, uneven):
        with pytest.raises(ValueError, match=f"{type(encoding).__name__} needs an undirected graph, both directions"):
            encoding(edges)
