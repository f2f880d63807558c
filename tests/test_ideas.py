"""The experiments of `benchmarks/ideas.py`: each equation against an independent statement."""

import json
import math

import pytest
import torch
from ideas import PAGE, RESULTS, LabelInputs, LossOfOthers, PowerSeries, by_curvature, table
from marks import filled
from torch import Tensor

from beltrami import BLEND, Loops, Source
from beltrami.graph import Edges
from beltrami.model.coder import Decoder, Encoder

EDGES = [(0, 1), (1, 0), (1, 2), (2, 1), (2, 0), (0, 2), (2, 3), (3, 2)]


def some_edges() -> Edges:
    return Edges.build(torch.tensor(EDGES).t(), num_nodes=4)


def in_dense_algebra(a: Tensor, z: Tensor, *, rates: Tensor, shares: Tensor, beta: float, t: float) -> Tensor:
    """The flow of each channel as the exponential of a block matrix, whose second block is the source."""
    n, found = len(z), torch.zeros_like(z)
    for channel in range(z.shape[1]):
        for share, rate in zip(shares, rates[:, channel], strict=True):
            block = torch.zeros(2 * n, 2 * n)
            block[:n, :n], block[:n, n:] = rate * (a - torch.eye(n)), beta * torch.eye(n)
            start = torch.cat((z[:, channel], z[:, channel]))
            found[:, channel] += share * (torch.linalg.matrix_exp(t * block) @ start)[:n]
    return found


def test_the_power_series_is_the_exponential_with_a_source() -> None:
    torch.manual_seed(0)
    model = BLEND(3, 2, 2, time=4.0, source=Source(0.3), stencil=Loops(1.0))
    logits, z, edges = torch.randn(3, 2), torch.randn(4, 2), some_edges()
    series = PowerSeries(model.evolution, logits)
    with torch.no_grad():
        series.share.copy_(torch.tensor([0.5, 0.0, -1.0]))
        matrix = series.matrix(z, edges)
        a = torch.stack([matrix @ column[:, None] for column in torch.eye(4)], 1)[..., 0]
        states = series.trajectory(z, edges, [0.0, 1.5, 4.0]).ys
    shares = torch.softmax(series.share.detach(), 0)
    for t, state in zip([0.0, 1.5, 4.0], states, strict=True):
        wanted = in_dense_algebra(a, z, rates=torch.sigmoid(logits), shares=shares, beta=0.3, t=t)
        torch.testing.assert_close(state, wanted, rtol=1e-4, atol=1e-5)


def test_the_curvature_of_an_edge_counts_degrees_and_triangles() -> None:
    near = {i: {j for j, k in EDGES if k == i} for i in range(4)}
    curvature = torch.tensor(
        [4.0 - len(near[i]) - len(near[j]) + 3 * sum(k in near[i] and k in near[j] for k in range(4)) for j, i in EDGES]
    )
    edges = by_curvature(some_edges(), 0.5)
    assert edges.weight is not None
    assert edges.weight.mean() == pytest.approx(1.0)
    pairs = dict(zip(zip(edges.j.tolist(), edges.i.tolist(), strict=True), edges.weight.tolist(), strict=True))
    scores = ((curvature - curvature.mean()) / curvature.std()).tolist()
    first = EDGES[0]
    for edge, score in zip(EDGES, scores, strict=True):
        assert pairs[edge] / pairs[first] == pytest.approx(math.exp(0.5 * (score - scores[0])), rel=1e-5)


def test_labels_that_are_inputs_have_no_loss_and_the_others_twice() -> None:
    torch.manual_seed(1)
    nodes = torch.tensor([True, True, True, False])
    psi = LabelInputs(Encoder(3, 2), torch.tensor([0, 1, 1, 0]), nodes, channels=2)
    xi = LossOfOthers(Decoder(2, 2), psi)
    torch.nn.init.ones_(psi.embedding.weight)
    x, z = torch.randn(4, 3), torch.randn(4, 2).abs().requires_grad_()
    psi(x)
    assert not (psi.given & ~nodes).any()
    psi.given = torch.tensor([True, False, False, False])
    weights = torch.ones(2) @ xi.xi.linear.weight.detach()
    xi(z).sum().backward()
    torch.testing.assert_close(z.grad, torch.stack((0 * weights, 2 * weights, 2 * weights, weights)))
    psi.eval()
    torch.testing.assert_close(psi(x), psi.psi(x) + nodes[:, None])


def test_the_table_of_the_page_equals_that_of_the_results() -> None:
    rows = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    text = PAGE.read_text()
    assert "| learned times |" in text
    assert filled(text, {"ideas": table(rows)}, page=PAGE.name) == text
