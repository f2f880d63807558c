"""Checks that every encoding must pass, and descriptions that distinguish encodings."""

import json
from dataclasses import dataclass

import pytest
import torch
from checks import ENCODINGS, RANDOM_ENCODINGS, check_encoding, check_random_encoding, crooked
from torch import Tensor

from beltrami.graph import Edges
from beltrami.position import PPR, DeepWalk, Encoding, Heat, LaplacianEigenvectors
from beltrami.position.base import generator_on


@dataclass(frozen=True)
class Ball:
    """A dataclass as a parameter."""

    curvature: float


class Outer(Encoding):
    """An encoding with another object as a parameter."""

    version = 3

    def __init__(self, inner: object, scales: tuple[float, ...] = (1.0,)) -> None:
        self.inner = inner
        self.scales = scales
        self._seen = object()

    def __call__(self, edges: Edges, generator: torch.Generator | None = None) -> Tensor:
        raise NotImplementedError


@pytest.mark.parametrize("encoding", ENCODINGS, ids=repr)
def test_every_deterministic_encoding_passes_its_checks(encoding: Encoding) -> None:
    check_encoding(encoding, crooked())


@pytest.mark.slow
@pytest.mark.parametrize("encoding", RANDOM_ENCODINGS, ids=repr)
def test_every_random_encoding_passes_its_checks(encoding: Encoding) -> None:
    check_random_encoding(encoding, crooked())


def test_the_description_has_method_version_and_parameters() -> None:
    described = PPR(restart=0.1, top=None).describe()
    assert described == {
        "method": "beltrami.PPR",
        "version": 1,
        "parameters": {"restart": 0.1, "top": None},
    }


def test_the_description_does_not_contain_the_progress_function() -> None:
    assert DeepWalk(4).describe() == DeepWalk(4, progress=lambda what, done, total: None).describe()


def test_parameters_that_are_encodings_are_described() -> None:
    described = Outer(PPR(), (1.0, 2.0)).describe()
    assert described["version"] == 3
    assert described["parameters"] == {"inner": PPR().describe(), "scales": [1.0, 2.0]}
    assert json.loads(json.dumps(described)) == described


def test_parameters_that_are_dataclasses_are_described_by_their_fields() -> None:
    flat, round_ = Outer(Ball(0.0)).describe(), Outer(Ball(1.0)).describe()
    assert flat != round_
    assert flat == Outer(Ball(0.0)).describe()


def test_a_parameter_without_a_plain_description_is_refused() -> None:
    with pytest.raises(ValueError, match="dataclasses or encodings; `inner` is a Generator"):
        Outer(torch.Generator()).describe()


@pytest.mark.parametrize("encoding", [PPR(), Heat(time=1.0), LaplacianEigenvectors(1)], ids=lambda e: type(e).__name__)
def test_an_encoding_by_a_symmetric_kernel_refuses_a_directed_graph(encoding: Encoding) -> None:
    one_way = Edges.build(torch.tensor([[0, 1, 2], [1, 2, 3]]), num_nodes=4)
    uneven = Edges.build(torch.tensor([[0, 1], [1, 0]]), num_nodes=4, weight=torch.tensor([1.0, 2.0]))
    for edges in (one_way, uneven):
        with pytest.raises(ValueError, match=f"{type(encoding).__name__} needs an undirected graph, both directions"):
            encoding(edges)


def test_a_generator_is_used_where_it_is() -> None:
    generator = torch.Generator()
    assert generator_on(torch.device("cpu"), generator, needed_by="Walker") is generator
