"""The pixel graph: its edges, and graph flows on it."""

import math

import pytest
import torch
from torch import Tensor

from beltrami.diffusivity import Gaussian
from beltrami.flow import BeltramiFlow, LinearFlow
from beltrami.graph.edges import check_undirected
from beltrami.image import PixelGraph
from beltrami.image.surface import DOWN, FALLING, RIGHT, RISING
from beltrami.scheme import PID, ConstantSteps, Dopri5, Euler, Exponential, Scheme, solve

FOUR, EIGHT = (DOWN, RIGHT), (DOWN, RIGHT, FALLING, RISING)


def noise(*shape: int) -> Tensor:
    return torch.rand(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def dense(z: Tensor, length: float, reach: float) -> Tensor:
    """Return A - I for Gaussian weights between pixels at most ``reach`` apart, by a double loop."""
    n = len(z)
    a = torch.zeros(n, n, dtype=torch.float64)
    for i in range(n):
        for j in range(n):
            if i != j and float((z[i, :2] - z[j, :2]).norm()) <= reach:
                a[i, j] = math.exp(-float((z[i] - z[j]).square().sum()) / (2 * length**2))
    return a / a.sum(1, keepdim=True) - torch.eye(n, dtype=torch.float64)


@pytest.mark.parametrize(("offsets", "reach"), [(FOUR, 1.1), (EIGHT, 1.5)], ids=["four", "eight"])
def test_frozen_flow_is_the_matrix_exponential(offsets: tuple[tuple[int, int], ...], reach: float) -> None:
    x = noise(3, 4, 4)
    pixels = PixelGraph.build(x, alpha=2.0, offsets=offsets)
    z = pixels.nodes(x)
    expected = pixels.image(torch.linalg.matrix_exp(1.5 * dense(z, 0.8, reach)) @ z)
    field = LinearFlow(Gaussian(pixels.joint, length=0.8).double()).bind(z, pixels.edges)
    with torch.no_grad():
        for scheme in (Scheme(Dopri5(), PID(1e-10, 1e-12)), Exponential(1e-12, 1e-12)):
            found = pixels.image(solve(field, z, [0.0, 1.5], scheme).ys[-1])
            torch.testing.assert_close(found, expected, atol=1e-8, rtol=0)


def test_beltrami_flow_recomputes_the_weights_at_every_step() -> None:
    x = noise(1, 4, 5)
    pixels = PixelGraph.build(x, alpha=3.0)
    z = start = pixels.nodes(x)
    for _ in range(3):
        z = z + 0.5 * dense_on(z, pixels) @ z
    with torch.no_grad():
        field = BeltramiFlow(Gaussian(pixels.joint).double()).bind(start, pixels.edges)
        found = solve(field, start, [0.0, 1.5], Scheme(Euler(), ConstantSteps(0.5))).ys[-1]
    torch.testing.assert_close(found, z)


def dense_on(z: Tensor, pixels: PixelGraph) -> Tensor:
    """Return A(z) - I on the edges of the graph."""
    a = torch.zeros(len(z), len(z), dtype=torch.float64)
    for j, i in pixels.edges.edge_index.t().tolist():
        a[i, j] = math.exp(-0.5 * float((z[i] - z[j]).square().sum()))
    return a / a.sum(1, keepdim=True) - torch.eye(len(z), dtype=torch.float64)


def test_nodes_and_image_are_inverse() -> None:
    x = noise(3, 4, 5)
    pixels = PixelGraph.build(x, alpha=7.0)
    z = pixels.nodes(x)
    assert z[7].tolist() == pytest.approx([1.0, 2.0, *(7.0 * x[:, 1, 2]).tolist()])
    torch.testing.assert_close(pixels.image(z), x)


def test_edges_join_neighbours_both_ways() -> None:
    for offsets, expected in ((FOUR, 2 * (3 * 5 + 4 * 4)), (EIGHT, 2 * (3 * 5 + 4 * 4 + 2 * 3 * 4))):
        pixels = PixelGraph.build(noise(1, 4, 5), alpha=1.0, offsets=offsets)
        check_undirected(pixels.edges, needed_by="the test")
        assert pixels.edges.num_edges == expected


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="positive `alpha`, to recover x"):
        PixelGraph.build(noise(1, 2, 2), alpha=0.0)
    with pytest.raises(ValueError, match=r"of images \(1, 2, 2\); got \(1, 2, 3\)"):
        PixelGraph.build(noise(1, 2, 2), alpha=1.0).nodes(noise(1, 2, 3))
