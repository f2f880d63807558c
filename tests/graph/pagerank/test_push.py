"""Push against the dense inverse, and its estimate against its equations."""

from collections.abc import Iterator

import pytest
import torch
from checks import dense, kite, ragged
from torch import Tensor

from beltrami.data.synthetic import power_law
from beltrami.graph import Edges
from beltrami.graph.edges import check_undirected
from beltrami.graph.pagerank import push
from beltrami.graph.pagerank.push import Estimate, Walk, entries_above, largest_entries

push_numba = pytest.importorskip("beltrami.graph.pagerank.push_numba")

RESTART = 0.05


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def patchwork(seed: int, *, weighted: bool) -> Edges:
    """A random graph on 0 to 29, a hub 30 with leaves to 49, a path 50 to 56, a pair, and two nodes by themselves."""
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randint(0, 30, (70, 2), generator=generator).tolist()
    pairs = {(min(a, b), max(a, b)) for a, b in drawn if a != b}
    pairs |= {(30, leaf) for leaf in range(31, 50)} | {(a, a + 1) for a in range(50, 56)} | {(57, 58)}
    edge_index = torch.tensor(sorted(pairs)).T
    weight = 0.1 + 3 * torch.rand(len(pairs), generator=generator)
    both = torch.cat((edge_index, edge_index.flip(0)), dim=1)
    return Edges.build(both, num_nodes=61, weight=weight.repeat(2) if weighted else None)


GRAPHS = {
    "plain": patchwork(0, weighted=False),
    "weighted": patchwork(1, weighted=True),
    "looped": patchwork(2, weighted=True).with_loops(0.7),
}
ON_GRAPHS = pytest.mark.parametrize("edges", GRAPHS.values(), ids=GRAPHS.keys())


def normalised(edges: Edges) -> Tensor:
    """S, dense and in double precision; zero in the rows of nodes without edges."""
    weight = torch.ones(edges.num_edges) if edges.weight is None else edges.weight
    a = torch.zeros(edges.num_nodes, edges.num_nodes, dtype=torch.float64)
    a.index_put_((edges.i, edges.j), weight.double(), accumulate=True)
    root = torch.where(a.sum(1) > 0, a.sum(1).rsqrt(), 0.0)
    return root[:, None] * a * root


def exact(edges: Edges, restart: float = RESTART) -> Tensor:
    eye = torch.eye(edges.num_nodes, dtype=torch.float64)
    kernel: Tensor = restart * torch.linalg.inv(eye - (1 - restart) * normalised(edges))
    return kernel


def share_found(found: Tensor, kernel: Tensor, top: int) -> float:
    """Of the largest entries of each row, those found; ties count either way."""
    shares = []
    for mine, row in zip(found, kernel, strict=True):
        wanted = min(top, int((row > 1e-12).sum()))
        least = float(row.topk(wanted).values[-1])
        assert int((mine > 0).sum()) == wanted
        shares.append(int((row[mine > 0] >= least - 1e-12).sum()) / wanted)
    return sum(shares) / len(shares)


@ON_GRAPHS
@pytest.mark.parametrize("restart", [0.05, 0.3])
def test_all_entries_are_the_dense_inverse(edges: Edges, restart: float) -> None:
    found = largest_entries(edges, restart=restart, top=edges.num_nodes, tolerance=1e-6)
    torch.testing.assert_close(found.to_dense().double(), exact(edges, restart), atol=5e-6, rtol=0)  # single precision


@ON_GRAPHS
@pytest.mark.parametrize("top", [1, 20])
def test_the_largest_entries_of_every_row_are_found(edges: Edges, top: int) -> None:
    found, kernel = largest_entries(edges, restart=RESTART, top=top).to_dense().double(), exact(edges)
    assert share_found(found, kernel, top) >= 0.99
    assert float((found - kernel)[found > 0].abs().max()) < 1e-4


def test_the_largest_entries_are_found_on_a_graph_with_hubs() -> None:
    data = power_law(300, 1200, seed=0)
    edges = Edges.build(data.edge_index, num_nodes=300).with_loops(1.0)
    found = largest_entries(edges, restart=RESTART, top=32).to_dense().double()
    kernel = exact(edges)
    assert share_found(found, kernel, 32) >= 0.99
    assert float((found - kernel)[found > 0].abs().max()) < 1e-4


@ON_GRAPHS
def test_entries_above_a_value_are_those_of_the_dense_inverse(edges: Edges) -> None:
    kernel, least = exact(edges), 0.02
    assert float((kernel - least).abs().min()) > 1e-6, "a value too near to the threshold says nothing"
    found = entries_above(edges, restart=RESTART, least=least).to_dense()
    assert torch.equal(found > 0, kernel >= least)
    torch.testing.assert_close(found.double(), kernel * (kernel >= least), atol=1e-5, rtol=0)


@ON_GRAPHS
def test_the_estimate_and_its_refinement_satisfy_their_equations(edges: Edges) -> None:
    """No residual above its threshold, K = P + R K, and P + R P^T + ell ell^T at every candidate."""
    n, tolerance = edges.num_nodes, 3e-3
    walk = Walk.on(edges, restart=RESTART, tolerance=tolerance)
    count, index, value = push_numba.push(walk, 0, n)
    assert all(bool((row.diff() <= 0).all()) for row in value.split(count.tolist())), "from the largest down"
    p = torch.zeros(n, n, dtype=torch.float64)
    p[torch.repeat_interleave(torch.arange(n), count), index.long()] = value.double()
    r = torch.eye(n, dtype=torch.float64) - (p - (1 - RESTART) * p @ normalised(edges)) / RESTART
    assert bool((r > -1e-5).all())
    assert bool((r <= walk.threshold.double() + 1e-5).all())
    torch.testing.assert_close(p + r @ exact(edges), exact(edges), atol=1e-6, rtol=0)
    left = r @ walk.v.double()
    formula = p + r @ p.T + left[:, None] * left
    row, column, refined = push_numba.refine(
        walk, Estimate.of(walk, count, index, value), 0, n, candidates=n, least=1e-4
    )
    assert len(row) > n
    torch.testing.assert_close(refined.double(), formula[row, column], atol=1e-5, rtol=0)
    assert float((formula - exact(edges)).abs().max()) < 0.1 * float((p - exact(edges)).abs().max())


@pytest.mark.parametrize("blocks", [9, pytest.param(61, marks=pytest.mark.slow)])
def test_the_result_does_not_depend_on_the_blocks(blocks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    edges, found = patchwork(3, weighted=True), []
    for number in (1, blocks):
        monkeypatch.setattr(push, "BLOCKS", number)
        found.append(largest_entries(edges, restart=RESTART, top=6))
    whole, parts = found
    assert torch.equal(parts.indices(), whole.indices())
    assert torch.equal(parts.values(), whole.values())


def test_the_result_does_not_depend_on_the_threads(two_threads: None) -> None:
    edges = patchwork(3, weighted=True)
    two = largest_entries(edges, restart=RESTART, top=6)
    torch.set_num_threads(1)
    one = largest_entries(edges, restart=RESTART, top=6)
    assert torch.equal(one.indices(), two.indices())
    assert torch.equal(one.values(), two.values())


def test_push_without_numba_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(push, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match="push needs numba: pip install"):
        largest_entries(kite(), restart=RESTART, top=2)


def test_the_kernel_of_a_graph_without_edges_is_diagonal() -> None:
    none = Edges.build(torch.zeros(2, 0, dtype=torch.long), num_nodes=3)
    found = largest_entries(none, restart=0.2, top=2)
    torch.testing.assert_close(found.to_dense(), 0.2 * torch.eye(3))


def test_parallel_edges_are_added_up() -> None:
    edge_index = torch.tensor([[0, 0, 1, 1, 1, 2], [1, 1, 0, 0, 2, 1]])
    edges = Edges.build(edge_index, num_nodes=3)
    once = Edges.build(
        torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3, weight=torch.tensor([2.0, 2.0, 1.0, 1.0])
    )
    found = largest_entries(edges, restart=RESTART, top=3, tolerance=1e-7).to_dense()
    torch.testing.assert_close(found.double(), exact(once), atol=1e-6, rtol=0)


def test_parallel_edges_of_an_undirected_graph_may_be_weighted_in_any_order() -> None:
    """Twice 0 -> 1 of weights 1 and 2, twice back of weights 2 and 1: an undirected graph."""
    edge_index = torch.tensor([[0, 0, 1, 1], [1, 1, 0, 0]])
    check_undirected(Edges.build(edge_index, num_nodes=2, weight=torch.tensor([1.0, 2.0, 2.0, 1.0])), needed_by="it")
    with pytest.raises(ValueError, match="it needs an undirected graph"):
        check_undirected(
            Edges.build(edge_index, num_nodes=2, weight=torch.tensor([1.0, 2.0, 2.0, 2.0])), needed_by="it"
        )


@pytest.mark.parametrize("edges", [ragged(), Edges.build(torch.tensor([[0], [1]]), num_nodes=2)], ids=repr)
def test_a_directed_graph_is_refused(edges: Edges) -> None:
    assert not torch.equal(dense(torch.ones(edges.num_edges), edges), dense(torch.ones(edges.num_edges), edges).T)
    with pytest.raises(ValueError, match="push needs an undirected graph"):
        largest_entries(edges, restart=RESTART, top=2)


def test_numbers_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="`top` must be at least 1; got 0"):
        largest_entries(kite(), restart=RESTART, top=0)
    with pytest.raises(ValueError, match=r"`restart` must lie between 0 and 1; got 1\.0"):
        largest_entries(kite(), restart=1.0, top=2)
    with pytest.raises(ValueError, match=r"`tolerance` must be positive; got 0\.0"):
        largest_entries(kite(), restart=RESTART, top=2, tolerance=0.0)
    with pytest.raises(ValueError, match=r"`least` must lie between 0 and 1; got 1\.5"):
        entries_above(kite(), restart=RESTART, least=1.5)
