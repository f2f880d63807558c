"""Properties of all baselines: inputs, refusals, relabelling, and stacked training equal to single training."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from checks import crooked, normal, relabelled
from toy import two_cliques

from beltrami.data import Split
from beltrami.graph import Edges, SparseMatrix
from beltrami.model import Classifier
from beltrami.model.baseline import (
    Architecture,
    Baseline,
    adalanczosnet,
    cgnn,
    gat,
    gcn,
    gde,
    gode,
    lanczosnet,
    monet,
    sage_maxpool,
    sage_mean,
)
from beltrami.model.baseline.base import concatenate
from beltrami.scheme import RK4, ConstantSteps, Scheme
from beltrami.stencil import KNN, Keep, Loops
from beltrami.train import Fit, TimeGrid, Training, fit, fit_many, predict, seeded

TOY = two_cliques()
STEPS = Scheme(RK4(), ConstantSteps(0.5))
ARCHITECTURE = Architecture(6, 2, width=8, stencil=Loops(), dropout=0.4, input_dropout=0.3)
DISCRETE: dict[str, Callable[[Architecture], Baseline]] = {
    "gcn": gcn,
    "gat": lambda architecture: gat(architecture, heads=4, attention_dropout=0.3),
    "monet": monet,
    "sage mean": sage_mean,
    "sage maxpool": sage_maxpool,
    "lanczosnet": lambda architecture: lanczosnet(architecture, steps=4),
    "adalanczosnet": lambda architecture: adalanczosnet(architecture, steps=3),
}
BASELINES: dict[str, Callable[[Architecture], Baseline]] = {
    **DISCRETE,
    "cgnn": lambda architecture: cgnn(architecture, scheme=STEPS, time=2.0, mixing=False),
    "cgnn mixing": lambda architecture: cgnn(architecture, scheme=STEPS, time=2.0, mixing=True),
    "gde": lambda architecture: gde(architecture, scheme=STEPS, time=1.0),
    "gode": lambda architecture: gode(architecture, scheme=STEPS, time=1.0),
}
TRAINING = Training(
    4, lambda groups: torch.optim.Adam(groups, lr=0.03), 1e-3, time_grid=TimeGrid(1.0), validate_every=1
)
every_baseline = pytest.mark.parametrize("name", BASELINES)


def made(name: str, architecture: Architecture = ARCHITECTURE, *, seed: int = 0) -> Baseline:
    with seeded(seed):
        return BASELINES[name](architecture).double()


@pytest.mark.parametrize("name", [name for name in BASELINES if "lanczos" not in name])
def test_relabelling_the_nodes_commutes_with_the_model(name: str) -> None:
    """Except for LanczosNet, whose Krylov space starts from a fixed random vector."""
    model = made(name).eval()
    edges, x, names = crooked(), normal(6, 6), torch.tensor([3, 5, 0, 1, 4, 2])
    moved = torch.empty_like(x).index_copy(0, names, x)
    torch.testing.assert_close(model(moved, relabelled(edges, names))[names], model(x, edges))


@every_baseline
def test_positions_are_concatenated_to_the_features(name: str) -> None:
    model = made(name, replace(ARCHITECTURE, features=4, positions=2)).eval()
    other = made(name).eval()
    x, edges = normal(6, 6), crooked()
    torch.testing.assert_close(model(x[:, :4], edges, pos=x[:, 4:]), other(x, edges))


@pytest.mark.parametrize("sparse", [(True, True), (True, False), (False, True)])
def test_sparse_features_and_positions_are_concatenated(sparse: tuple[bool, bool]) -> None:
    x, pos = normal(4, 3) * torch.tensor([1.0, 0, 1]), normal(4, 2, seed=1) * torch.tensor([[1.0], [0], [1], [1]])
    joined = concatenate(SparseMatrix.of(x) if sparse[0] else x, SparseMatrix.of(pos) if sparse[1] else pos)
    assert isinstance(joined, SparseMatrix)
    torch.testing.assert_close(joined @ torch.eye(5).double(), torch.cat((x, pos), dim=1))
    assert len(joined.values) == int(torch.count_nonzero(x) + torch.count_nonzero(pos))


@every_baseline
def test_dropout_acts_in_training_only(name: str) -> None:
    model = made(name)
    inputs = model.prepare(TOY.x.double(), TOY.edge_index)
    assert not torch.equal(model.train().run(inputs).logits, model.run(inputs).logits)
    assert torch.equal(model.eval().run(inputs).logits, model.run(inputs).logits)


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_baseline_has_the_same_scores_at_all_times(name: str) -> None:
    model = made(name).eval()
    inputs = model.prepare(TOY.x.double(), TOY.edge_index)
    along = model.logits_along(inputs, (0.0, 1.0, 5.0), nodes=TOY.split.val)
    assert model.time == 0
    assert not model.synchronises
    expected = model.run(inputs).logits[TOY.split.val]
    assert all(torch.equal(logits, expected) for logits in along)
    assert along.shape == (3, 6, 2)


def splits(count: int) -> list[Split]:
    own = TOY.split
    return [Split(own.train.roll(k), own.val.roll(k), own.test.roll(k), "toy", k) for k in range(count)]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gat", "monet", "sage maxpool", "lanczosnet", "adalanczosnet", "cgnn mixing", "gode"])
def test_stacked_training_equals_single_training(name: str) -> None:
    x = (TOY.x + 2 * torch.randn(TOY.x.shape, generator=torch.Generator().manual_seed(1))).double()
    alone: list[tuple[Fit, Classifier]] = []
    for seed, split in enumerate(splits(2)):
        model = made(name, seed=seed)
        alone.append((fit(model, model.prepare(x, TOY.edge_index), TOY.y, split, TRAINING), model))
    models = [made(name, seed=seed) for seed in range(2)]
    found = fit_many(models, models[0].prepare(x, TOY.edge_index), TOY.y, splits(2), TRAINING)
    for (one, single), other, stacked in zip(alone, found, models, strict=True):
        assert isinstance(other, Fit)
        assert (other.best_epoch, other.epochs, other.best.time) == (one.best_epoch, one.epochs, one.best.time)
        assert other.best.minus_loss == pytest.approx(one.best.minus_loss, abs=1e-8)
        for key, tensor in single.state_dict().items():
            torch.testing.assert_close(stacked.state_dict()[key], tensor, rtol=1e-6, atol=1e-8)
    assert len({one.best.minus_loss for one, _ in alone}) == 2  # the runs differ


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gcn", "gat", "monet", "sage maxpool", "adalanczosnet", "cgnn mixing", "gode"])
def test_baseline_learns_the_toy(name: str) -> None:
    model, losses = made(name, replace(ARCHITECTURE, input_dropout=0.0, dropout=0.0)), list[float]()
    inputs = model.prepare(TOY.x.double(), TOY.edge_index)
    training = replace(TRAINING, epochs=40)
    found = fit(model, inputs, TOY.y, TOY.split, training, callbacks=[lambda epoch: losses.append(epoch.losses[0])])
    assert losses[-1] < 0.2 * losses[0]
    assert found.best.accuracy == 1
    right = predict(model, inputs, time=found.best.time).argmax(-1) == TOY.y
    assert bool(right[TOY.split.val].all())


@pytest.mark.parametrize("depth", [1, 3])
def test_depth_is_the_number_of_layers(depth: int) -> None:
    architecture = replace(ARCHITECTURE, depth=depth)
    assert [(a, b) for a, b, _ in architecture.layers] == {1: [(6, 2)], 3: [(6, 8), (8, 8), (8, 2)]}[depth]
    assert [share for *_, share in architecture.layers] == {1: [0.3], 3: [0.3, 0.4, 0.4]}[depth]
    assert gcn(architecture).double()(normal(6, 6), crooked()).shape == (6, 2)


def test_graph_is_made_by_the_stencil() -> None:
    x, edges = normal(6, 6), crooked()
    bare, looped = (made("gcn", replace(ARCHITECTURE, stencil=stencil)).eval() for stencil in (Keep(), Loops()))
    torch.testing.assert_close(looped(x, edges), bare(x, edges.with_loops(1.0)))
    assert not torch.allclose(looped(x, edges), bare(x, edges))


@every_baseline
def test_nodes_without_edges_have_finite_scores(name: str) -> None:
    model = made(name, replace(ARCHITECTURE, stencil=Keep())).eval()
    logits = model(normal(4, 6), Edges.build(torch.zeros(2, 0, dtype=torch.long), num_nodes=4))
    assert bool(torch.isfinite(logits).all())


def test_stencils_that_depend_on_the_state_are_refused() -> None:
    with pytest.raises(ValueError, match=r"fixed graph, and KNN depends on the state of a flow"):
        Architecture(6, 2, stencil=KNN(2))


def test_bad_inputs_are_refused() -> None:
    model, x, edges = made("gcn"), normal(6, 6), crooked()
    with pytest.raises(ValueError, match=r"takes no positions: leave `pos` out"):
        model(x, edges, pos=normal(6, 2))
    with pytest.raises(ValueError, match=r"takes 2 positions: pass `pos`"):
        made("gcn", replace(ARCHITECTURE, features=4, positions=2))(x[:, :4], edges)
    with pytest.raises(ValueError, match=r"`x` has 5 rows where the graph has 6 nodes"):
        model(x[:5], edges)
    with pytest.raises(ValueError, match=r"`x`.*6"):
        model(x[:, :3], edges)
    with pytest.raises(ValueError, match=r"`width` at least 1 and below .*; got 0"):
        Architecture(6, 2, width=0)
