"""Models on a plain ``edge_index``: the graph is sorted and rewired once for a tensor."""

import copy

import pytest
import torch
from toy import CLASSES, FEATURES, RK4_STEPS, scaled_dot, two_cliques

from beltrami.flow import LinearFlow
from beltrami.graph import Edges
from beltrami.model import BLEND, Decoder, Encoder, Evolution
from beltrami.stencil import TopK

TOY = two_cliques()


@pytest.fixture
def model() -> BLEND:
    torch.manual_seed(0)
    evolution = Evolution(LinearFlow(scaled_dot()), scheme=RK4_STEPS, time=1.0, stencil=TopK(3))
    return BLEND.from_parts(Encoder(FEATURES, 8), evolution, Decoder(8, CLASSES)).eval()


@pytest.fixture
def rewired(monkeypatch: pytest.MonkeyPatch) -> list[Edges]:
    """The graphs that TopK has rewired."""
    graphs: list[Edges] = []
    rewire = TopK.rewire

    def counted(self: TopK, edges: Edges) -> Edges:
        graphs.append(edges)
        return rewire(self, edges)

    monkeypatch.setattr(TopK, "rewire", counted)
    return graphs


def test_a_second_pass_on_the_same_tensor_does_not_rewire(model: BLEND, rewired: list[Edges]) -> None:
    edge_index = TOY.edge_index.clone()
    first = model(TOY.x, edge_index)
    assert torch.equal(model(TOY.x, edge_index), first)
    assert torch.equal(copy.deepcopy(model)(TOY.x, edge_index), first)
    assert len(rewired) == 1
    edges = Edges.build(edge_index, num_nodes=len(TOY.y))
    assert torch.equal(model(TOY.x, edges), first)


def test_a_pass_after_an_in_place_change_rewires_the_new_graph(model: BLEND, rewired: list[Edges]) -> None:
    edge_index = TOY.edge_index.clone()
    first = model(TOY.x, edge_index)
    edge_index.copy_((edge_index + 1) % len(TOY.y))
    changed = model(TOY.x, edge_index)
    assert len(rewired) == 2
    assert not torch.equal(changed, first)
    assert torch.equal(changed, model(TOY.x, edge_index.clone()))


def test_a_pass_in_inference_mode_may_precede_training(model: BLEND, rewired: list[Edges]) -> None:
    edge_index = TOY.edge_index.clone()
    with torch.inference_mode():
        first = model(TOY.x, edge_index)
        model(TOY.x, edge_index)
    assert len(rewired) == 1
    out = model(TOY.x, edge_index)
    out.sum().backward()
    assert torch.equal(out, first)
