"""Nodes are drawn on fixed axes, and both ends of a flow can be seen."""

import pytest
import torch
from toy import small_blend, two_cliques

from beltrami.report.model_flow import ModelFlow
from beltrami.report.projection import Components, OneComponent, choose_projection


def test_axes_are_orthonormal_with_defined_signs() -> None:
    first, last = torch.randn(2, 50, 6, generator=torch.Generator().manual_seed(0))
    matrix = Components(first, last).matrix
    torch.testing.assert_close(matrix.t() @ matrix, torch.eye(2, dtype=torch.double))
    assert (matrix.gather(0, matrix.abs().argmax(0, keepdim=True)) > 0).all()


@pytest.mark.parametrize("growth", [100, 0.01])
def test_both_ends_can_be_seen_where_states_grow_or_shrink(growth: float) -> None:
    z = torch.randn(100, 4, generator=torch.Generator().manual_seed(0))
    project = Components(z, growth * z)
    small, large = sorted(float(project(each).std()) for each in (z, growth * z))
    assert large / small == pytest.approx(10, rel=0.3)  # the square root of the growth


def test_the_plane_shows_the_last_state_best() -> None:
    generator = torch.Generator().manual_seed(0)
    first = torch.randn(200, 5, generator=generator)
    last = torch.zeros(200, 5)
    last[:, 3:] = torch.randn(200, 2, generator=generator)
    assert Components(first, last).matrix[:3].abs().max() < 0.2


def test_a_state_of_one_component_moves_sideways() -> None:
    toy = two_cliques()
    model = small_blend().eval()
    flow = ModelFlow.of(model, model.prepare(toy.x, toy.edge_index), time=1.0)
    assert flow is not None
    line = torch.linspace(-1, 1, 20)[:, None] * torch.tensor([1.0, -1.0])
    one = ModelFlow(flow.evolution, line, flow.edges, flow.decoder, flow.time)
    project = choose_projection(one, 0.5 * line)
    assert isinstance(project, OneComponent)
    start, stop = project(line), project(0.5 * line)
    assert torch.equal(start[:, 1], stop[:, 1])
    assert (start[:, 0].diff().sign() == start[0, 0].sign() * -1).all()
    heights = start[:, 1].sort().values.diff()
    torch.testing.assert_close(heights, heights[:1].expand(19))
    within = (start[:10, 1].max() - start[:10, 1].min(), start[10:, 1].max() - start[10:, 1].min())
    assert max(within) < 0.6 * (start[:, 1].max() - start[:, 1].min())  # each clique is close together
