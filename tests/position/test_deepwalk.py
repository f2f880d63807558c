"""DeepWalk: its gradient against autograd, its noise and learning rate, and link prediction on Cora."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from checks import bare, crooked, ragged, undirected
from torch import Tensor
from torch.nn import functional as F
from toy import two_cliques

from beltrami.data import Dataset
from beltrami.graph import Edges
from beltrami.position import DeepWalk, deepwalk
from beltrami.position.deepwalk import NOISE_NODES, SkipGram, held_out, link_auc
from beltrami.position.walk import Walker


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def cliques() -> Edges:
    """Two cliques of ten joined by one edge."""
    return Edges.build(two_cliques().edge_index, num_nodes=20)


def loss_by_loops(u: Tensor, walk: list[int], noise: list[int], *, context: int, negatives: int) -> Tensor:
    """Return the objective of one walk, pair by pair, with the mean over its noise nodes as the expectation."""
    total = u.new_zeros(())
    for s, a in enumerate(walk):
        for t, b in enumerate(walk):
            if 0 < abs(s - t) < context:
                apart = torch.stack([F.logsigmoid(-u[a] @ u[v]) for v in noise]).mean()
                total = total - F.logsigmoid(u[a] @ u[b]) - negatives * apart
    return total


@pytest.mark.parametrize("negatives", [1, 3])
def test_an_update_descends_the_objective(monkeypatch: pytest.MonkeyPatch, negatives: int) -> None:
    """The first step of Adagrad is the gradient with each row scaled to length rate * sqrt(d)."""
    skipgram = SkipGram(torch.ones(7), torch.empty(7, 5), context=3, negatives=negatives, generator=generator())
    walks = torch.tensor([[0, 1, 2, 1, 3], [4, 3, 3, 0, 1]])
    noise = torch.randint(6, (2, NOISE_NODES), generator=generator(1))
    monkeypatch.setattr(skipgram, "_draw", lambda shape, generator: noise)
    u = skipgram.u.double().requires_grad_()
    losses = [
        loss_by_loops(u, walk, drawn, context=3, negatives=negatives)
        for walk, drawn in zip(walks.tolist(), noise.tolist(), strict=True)
    ]
    (gradient,) = torch.autograd.grad(sum(losses, torch.zeros(())), u)
    before = skipgram.u.clone()
    skipgram.update(walks, rate=0.01, generator=generator())
    step = (before - skipgram.u).double()
    torch.testing.assert_close(step, 0.01 * math.sqrt(5) * F.normalize(gradient), atol=1e-6, rtol=1e-4)
    assert not step[6].any()  # node 6 is on no walk and is no noise node


def test_noise_is_drawn_in_proportion() -> None:
    skipgram = SkipGram(
        torch.tensor([0.0, 1.0, 3.0, 0.0]), torch.empty(4, 2), context=2, negatives=1, generator=generator()
    )
    counts = torch.bincount(skipgram._draw((100, 400), generator()).flatten(), minlength=4)
    assert counts[[0, 3]].tolist() == [0, 0]
    assert float(counts[2]) / 40_000 == pytest.approx(0.75, abs=0.01)


def test_noise_is_drawn_by_the_degree_to_the_power_of_three_quarters(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Tensor] = []

    def recording(noise: Tensor, u: Tensor, **options: Any) -> SkipGram:
        drawn.append(noise)
        return SkipGram(noise, u, **options)

    monkeypatch.setattr(deepwalk, "SkipGram", recording)
    star = undirected([(0, leaf) for leaf in range(1, 17)], num_nodes=18)  # the hub has degree 16, node 17 none
    DeepWalk(2, walk_length=4, context=2, walks_per_node=1)(star, generator())
    ratio = drawn[0] / drawn[0][1]
    torch.testing.assert_close(ratio, torch.tensor([8.0, *[1.0] * 16, 0.0]))  # 16 ** 0.75 = 8


def test_the_learning_rate_falls_linearly_to_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rate of an update is 0.1, or the argument, times the share of all walks that is still to come."""
    monkeypatch.setattr(deepwalk, "BATCH", 24)
    rates: list[float] = []
    update = SkipGram.update

    def recording(self: SkipGram, walks: Tensor, *, rate: float, generator: torch.Generator) -> None:
        rates.append(rate)
        update(self, walks, rate=rate, generator=generator)

    monkeypatch.setattr(SkipGram, "update", recording)
    DeepWalk(2, walk_length=4, context=2)(crooked(), generator())  # 16 walks from each of six nodes
    assert rates == pytest.approx([0.1, 0.075, 0.05, 0.025], abs=1e-15)
    rates.clear()
    DeepWalk(2, walk_length=4, context=2, epochs=2, rate=0.8)(crooked(), generator())
    assert rates == pytest.approx([0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1], abs=1e-15)


def test_two_cliques_are_separated() -> None:
    u = F.normalize(DeepWalk(16, context=5)(cliques(), generator()))
    same = torch.arange(20)[:, None] // 10 == torch.arange(20) // 10
    similarity = u @ u.T
    assert float(similarity[same].min()) > float(similarity[~same].max())


def test_positions_depend_on_the_seed_alone() -> None:
    encoding = DeepWalk(8, walk_length=20, context=5)
    first, again, other = (encoding(cliques(), generator(seed)) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_a_node_without_edges_lies_at_the_origin() -> None:
    u = DeepWalk(4, walk_length=10, context=3)(ragged(weighted=True), generator())
    assert u.shape == (6, 4)
    assert not u[5].any()
    assert bool(u[:5].any(1).all())
    assert not DeepWalk(4)(bare(), generator()).any()


def test_progress_receives_the_number_of_walks() -> None:
    seen: list[tuple[str, int, int | None]] = []
    DeepWalk(4, walk_length=5, context=2, epochs=2, progress=lambda *report: seen.append(report))(
        crooked(), generator()
    )
    assert seen == [("DeepWalk", 96, 192), ("DeepWalk", 192, 192)]


def test_tuning_chooses_the_length_with_the_best_link_prediction(monkeypatch: pytest.MonkeyPatch) -> None:
    qualities = iter([0.5, 0.6, 0.9, 0.7, 0.8])
    monkeypatch.setattr("beltrami.position.deepwalk.link_auc", lambda score, positive, negative: next(qualities))
    lengths: list[tuple[int, int]] = []

    def recording(edges: Edges) -> Callable[..., Tensor]:
        def walk(starts: Tensor, *, length: int, generator: torch.Generator) -> Tensor:
            lengths.append((edges.num_edges, length))
            return Walker(edges)(starts, length=length, generator=generator)

        return walk

    monkeypatch.setattr("beltrami.position.deepwalk.Walker", recording)
    u = DeepWalk(4, walks_per_node=1, tuned=True)(cliques(), generator())
    assert u.shape == (20, 4)
    # 91 edges, nine of them held out in the comparison; then the whole graph.
    assert lengths == [(164, 40), (164, 60), (164, 80), (164, 100), (164, 120), (182, 80)]


def test_tuning_is_repeatable() -> None:
    encoding = DeepWalk(4, walks_per_node=1, tuned=True)
    assert torch.equal(encoding(cliques(), generator()), encoding(cliques(), generator()))


def test_a_missing_generator_is_refused() -> None:
    with pytest.raises(ValueError, match="DeepWalk is random: pass a `generator`"):
        DeepWalk(4)(cliques())


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"channels": 0}, "DeepWalk needs `channels` at least 1; got 0"),
        ({"walks_per_node": 0}, "`walks_per_node` at least 1; got 0"),
        ({"negatives": 0}, "`negatives` at least 1; got 0"),
        ({"epochs": 0}, "`epochs` at least 1; got 0"),
        ({"context": 1}, "`context` from 2 to the walk length, 80; got 1"),
        ({"context": 81}, "`context` from 2 to the walk length, 80; got 81"),
        ({"context": 41, "tuned": True}, "`context` from 2 to the walk length, 40; got 41"),
        ({"rate": 0.0}, "positive, finite `rate`; got 0.0"),
        ({"rate": math.nan}, "positive, finite `rate`; got nan"),
    ],
)
def test_invalid_options_are_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        DeepWalk(**{"channels": 4, **options})


@pytest.mark.slow
@pytest.mark.data
def test_held_out_edges_of_cora_are_predicted(real: Callable[[str], Dataset]) -> None:
    data = real("cora").largest_component()
    edges = Edges.build(data.edge_index, num_nodes=data.num_nodes)
    random = generator()
    training, positive, negative = held_out(edges, share=0.1, generator=random)
    u = DeepWalk(128)(training, random)
    assert link_auc(lambda i, j: (u[i] * u[j]).sum(-1), positive, negative) > 0.87


@pytest.mark.gpu
def test_positions_on_the_gpu_depend_on_the_seed_alone() -> None:
    encoding, edges = DeepWalk(8, walk_length=20, context=5, tuned=False), cliques().to("cuda")
    first, again = (encoding(edges, generator()) for _ in range(2))
    assert first.is_cuda
    assert torch.equal(first, again)
    u = F.normalize(first.cpu())
    same = torch.arange(20)[:, None] // 10 == torch.arange(20) // 10
    assert float((u @ u.T)[same].mean()) > float((u @ u.T)[~same].mean()) + 0.5
