"""BLEND at the public door: one answer for every form of input, and a sentence for whatever it cannot take."""

import warnings

import pytest
import torch
from torch import Tensor
from toy import CLASSES, FEATURES, small_blend, two_cliques

from beltrami.diffusivity import ExpKernel, RandomWalk
from beltrami.graph import Edges, SparseMatrix
from beltrami.joint import Joint
from beltrami.model import BLEND
from beltrami.train import seeded

TOY = two_cliques()
N = len(TOY.y)


def test_forward_gives_a_score_for_every_node_and_class() -> None:
    assert small_blend()(TOY.x, TOY.edge_index).shape == (N, CLASSES)
    assert small_blend(positions=True)(TOY.x, TOY.edge_index, TOY.pos).shape == (N, CLASSES)


def test_forward_takes_what_pyg_holds() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch_geometric.data import Data
    data = Data(x=TOY.x, edge_index=TOY.edge_index, pos=TOY.pos)
    model = small_blend(positions=True).eval()
    out = model(data.x, data.edge_index, data.pos)
    assert torch.equal(out, model(TOY.x, TOY.edge_index, pos=TOY.pos))


def sparsened(x: Tensor) -> Tensor:
    """The same with half of its entries at zero."""
    return x * (torch.arange(x.numel()).reshape(x.shape) % 2)


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("form", ["coo", "uncoalesced", "csr", "SparseMatrix"])
def test_sparse_inputs_of_every_form_give_what_dense_ones_do(form: str) -> None:
    x, pos = sparsened(TOY.x).double(), sparsened(TOY.pos).double()
    model = small_blend(positions=True).double().eval()
    turn = {
        "coo": lambda m: m.to_sparse_coo(),
        "uncoalesced": lambda m: torch.sparse_coo_tensor(*doubled(m), m.shape, check_invariants=True),
        "csr": lambda m: m.to_sparse_csr(),
        "Sparse": SparseMatrix.of,
    }[form]
    assert torch.allclose(model(turn(x), TOY.edge_index, turn(pos)), model(x, TOY.edge_index, pos), atol=1e-12)


def doubled(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Every non-zero as two entries of half its size."""
    coo = matrix.to_sparse_coo().coalesce()
    return torch.cat((coo.indices(), coo.indices()), dim=1), torch.cat((coo.values(), coo.values())) / 2


def test_prepared_inputs_give_what_the_door_does() -> None:
    model = small_blend(positions=True).eval()
    through_the_door = model(TOY.x, TOY.edge_index, TOY.pos)
    edges = Edges.build(TOY.edge_index, num_nodes=N)
    inputs = model.prepare(TOY.x, edges, TOY.pos)
    assert inputs.edges is edges
    assert torch.equal(model.run(inputs).logits, through_the_door)
    assert torch.equal(model(TOY.x, edges, TOY.pos), through_the_door)


@pytest.mark.parametrize("frozen", [True, False], ids=["frozen", "live"])
@pytest.mark.parametrize("batch_norm", [False, True], ids=["plain", "batch norm"])
def test_relabelling_the_nodes_commutes_with_the_model(frozen: bool, batch_norm: bool) -> None:
    model = small_blend(positions=True, frozen=frozen, batch_norm=batch_norm, dropout=0.5, loops=True).double().eval()
    order = torch.randperm(N, generator=torch.Generator().manual_seed(3))
    renamed = order.argsort()[TOY.edge_index]  # old node order[k] is called k
    x, pos = TOY.x.double(), TOY.pos.double()
    expected = model(x, TOY.edge_index, pos)[order]
    assert torch.allclose(model(x[order], renamed, pos[order]), expected, atol=1e-10)
    assert not torch.allclose(expected, model(x, TOY.edge_index, pos))


def test_order_of_the_edges_does_not_matter() -> None:
    model = small_blend().eval()
    backwards = TOY.edge_index.flip(1)
    assert torch.equal(model(TOY.x, backwards), model(TOY.x, TOY.edge_index))


def test_positions_come_first_in_the_state_and_take_part() -> None:
    with seeded(0):
        model = small_blend(positions=True, diffusivity=ExpKernel(Joint(4, 8), 8)).eval()
    inputs = model.prepare(TOY.x, TOY.edge_index, TOY.pos)
    assert model.phi is not None
    assert torch.equal(model.encode(inputs), torch.cat((model.phi(TOY.pos), model.psi(TOY.x)), dim=1))
    assert not torch.allclose(model(TOY.x, TOY.edge_index, TOY.pos), model(TOY.x, TOY.edge_index, -TOY.pos))


def test_batch_norm_gives_channels_mean_zero_and_unit_variance_while_training() -> None:
    model = small_blend(batch_norm=True).train()
    z = model.encode(model.prepare(TOY.x, TOY.edge_index))
    assert torch.allclose(z.mean(0), torch.zeros(8), atol=1e-6)
    assert torch.allclose(z.var(0, correction=0), torch.ones(8), atol=1e-3)


def test_batch_norm_evaluates_with_what_it_saw_in_training() -> None:
    model = small_blend(batch_norm=True)
    untrained = model.eval()(TOY.x, TOY.edge_index)
    model.train()(TOY.x, TOY.edge_index)
    assert not torch.allclose(model.eval()(TOY.x, TOY.edge_index), untrained)
    assert "norm.running_mean" in model.state_dict()


def test_dropout_acts_while_training_alone() -> None:
    model = small_blend(dropout=0.5)
    with seeded(0):
        assert not torch.equal(model.train()(TOY.x, TOY.edge_index), model(TOY.x, TOY.edge_index))
    assert torch.equal(model.eval()(TOY.x, TOY.edge_index), model(TOY.x, TOY.edge_index))


def test_scores_along_time_begin_at_the_start_and_end_at_forward() -> None:
    model = small_blend().eval()
    inputs = model.prepare(TOY.x, TOY.edge_index)
    along = model.logits_along(inputs, (0.0, 1.0, model.evolution.time))
    assert along.shape == (3, N, CLASSES)
    assert torch.allclose(along[0], model.xi(model.psi(TOY.x)), atol=1e-6)
    assert torch.allclose(along[-1], model(TOY.x, TOY.edge_index), atol=1e-6)


def test_scores_along_time_of_some_nodes_are_those_of_all() -> None:
    model = small_blend().eval()
    inputs = model.prepare(TOY.x, TOY.edge_index)
    some = model.logits_along(inputs, (0.0, 2.0), nodes=TOY.split.val)
    assert torch.allclose(some, model.logits_along(inputs, (0.0, 2.0))[:, TOY.split.val], atol=1e-6)


def test_attention_spread_is_zero_for_fixed_weights_alone() -> None:
    fixed, learned = small_blend(diffusivity=RandomWalk()), small_blend()
    assert fixed.attention_spread(fixed.prepare(TOY.x, TOY.edge_index)) == 0
    assert learned.attention_spread(learned.prepare(TOY.x, TOY.edge_index)) > 1e-3


def test_run_reports_what_the_solve_took() -> None:
    model = small_blend()
    output = model.run(model.prepare(TOY.x, TOY.edge_index))
    assert (output.stats.accepted, output.stats.evaluations) == (4, 16)  # four RK4 steps of 0.5 to time 2


def test_graph_without_edges_leaves_every_node_to_itself() -> None:
    model = small_blend().eval()
    no_edges = torch.zeros(2, 0, dtype=torch.int64)
    alone = torch.cat([model(TOY.x[k : k + 1], no_edges) for k in range(3)])
    assert torch.allclose(model(TOY.x[:3], no_edges), alone, atol=1e-6)


def with_nan(x: Tensor, row: int = 1) -> Tensor:
    x = x.clone()
    x[row, 0] = torch.nan
    return x


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (with_nan(TOY.x), r"`x` holds 1 values that are NaN or infinite"),
        (with_nan(TOY.x).to_sparse_coo(), r"`x` holds 1 values that are NaN or infinite"),
        (SparseMatrix.of(with_nan(TOY.x)), r"`x` holds values that are NaN or infinite"),
        (TOY.x / 0, r"`x` holds \d+ values that are NaN or infinite"),
        (TOY.x[:, :4], rf"`x` has 4 columns where {FEATURES} are expected"),
        (SparseMatrix.of(TOY.x[:, :4]), rf"`x` has shape \(20, 4\) where \(20, {FEATURES}\) is expected"),
        (TOY.x[:, 0], r"`x` must be a matrix \(nodes, channels\); got shape \(20,\)"),
        (torch.tensor(1.0), r"`x` must be a matrix \(nodes, channels\); got shape \(\)"),
        (TOY.x.long(), r"`x` must be floating point; got torch.int64. Try `x.float\(\)`"),
        (TOY.x[:5], r"`edge_index` names node 19, but the graph has 5 nodes"),
        (TOY.x[:0], r"the graph is empty: it has 0 nodes"),
    ],
    ids=lambda value: "" if isinstance(value, str) else None,
)
def test_features_that_do_not_fit_are_refused(x: Tensor | SparseMatrix, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        small_blend()(x, TOY.edge_index)


def test_features_for_another_graph_are_refused() -> None:
    edges = Edges.build(TOY.edge_index, num_nodes=N)
    with pytest.raises(ValueError, match=r"`x` has 19 rows where the graph has 20 nodes"):
        small_blend()(TOY.x[:19], edges)


@pytest.mark.parametrize(
    ("edge_index", "message"),
    [
        (torch.tensor([[0, 1], [1, 20]]), r"`edge_index` names node 20, but the graph has 20 nodes: .* from 0 to 19"),
        (torch.tensor([[0, -1], [1, 0]]), r"`edge_index` names node -1"),
        (torch.tensor([0, 1]), r"`edge_index` must have shape \(2, m\); got \(2,\)"),
        (torch.tensor([[0, 1], [1, 0], [0, 0]]), r"`edge_index` must have shape \(2, m\); got \(3, 2\)"),
        (torch.tensor([[0.0, 1.0], [1.0, 0.0]]), r"`edge_index` must hold integers"),
    ],
    ids=["beyond", "negative", "flat", "three rows", "float"],
)
def test_edges_that_do_not_fit_are_refused(edge_index: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        small_blend()(TOY.x, edge_index)


@pytest.mark.parametrize(
    ("pos", "message"),
    [
        (None, r"has a position encoder phi: pass `pos`"),
        (TOY.pos[:, :2], r"`pos` has 2 columns where 3 are expected"),
        (TOY.pos[:7], r"`pos` has 7 rows where the graph has 20 nodes"),
        (SparseMatrix.of(TOY.pos[:7]), r"`pos` has shape \(7, 3\) where \(20, 3\) is expected"),
        (with_nan(TOY.pos), r"`pos` holds 1 values that are NaN"),
    ],
    ids=["missing", "columns", "rows", "sparse rows", "NaN"],
)
def test_positions_that_do_not_fit_are_refused(pos: Tensor | SparseMatrix | None, message: str) -> None:
    model: BLEND = small_blend(positions=True)
    with pytest.raises(ValueError, match=message):
        model(TOY.x, TOY.edge_index, pos)


def test_positions_for_a_model_without_any_are_refused() -> None:
    with pytest.raises(ValueError, match=r"no position encoder phi: leave `pos` out"):
        small_blend()(TOY.x, TOY.edge_index, TOY.pos)
