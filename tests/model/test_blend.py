"""BLEND: all forms of input give the same scores, and bad inputs are refused."""

import warnings
from typing import Any

import pytest
import torch
from torch import Tensor
from toy import CLASSES, FEATURES, small_blend, two_cliques

from beltrami.config.build import build_model
from beltrami.config.recipe.recipes import load_recipe
from beltrami.diffusivity import ExpKernel, RandomWalk
from beltrami.graph import Edges, SparseMatrix
from beltrami.joint import Joint
from beltrami.model import BLEND, Fitted
from beltrami.train import seeded

TOY = two_cliques()
N = len(TOY.y)


def test_forward_returns_a_score_for_every_node_and_class() -> None:
    assert small_blend()(TOY.x, TOY.edge_index).shape == (N, CLASSES)
    assert small_blend(positions=True)(TOY.x, TOY.edge_index, pos=TOY.pos).shape == (N, CLASSES)


def test_print_shows_every_part_of_the_model() -> None:
    text = str(small_blend(positions=True, loops=True, batch_norm=True))
    evolution = small_blend(positions=True, loops=True).evolution
    for part in ("(psi): Encoder", "(phi): Encoder", "(xi): Decoder", "(flow): LinearFlow", "(diffusivity): ScaledDot"):
        assert part in text
    assert "(norm): BatchNorm1d" in text
    assert "(node_dropout): Dropout(p=0.0, rows=True)" in text
    assert f"scheme={evolution.scheme!r}" in text
    assert "time=2.0\n" in text
    assert "stencil=" in text


def test_a_model_of_widths_has_defaults_for_everything_else() -> None:
    model = BLEND(FEATURES, 8, CLASSES)
    assert model(TOY.x, TOY.edge_index).shape == (N, CLASSES)
    assert model.evolution.summary == (
        "flow=LinearFlow(ScaledDot), stencil=Keep(), scheme=Exponential(rtol=0.0001, atol=0.0001), time=4.0"
    )
    with_positions = BLEND(FEATURES, 8, CLASSES, pos_channels=3, frozen=False, heads=2, time=2.0)
    assert with_positions(TOY.x, TOY.edge_index, pos=TOY.pos).shape == (N, CLASSES)
    assert with_positions.xi.linear.in_features == 24
    assert {name.partition(".")[0] for name, _ in with_positions.named_parameters()} == {
        "psi",
        "phi",
        "evolution",
        "xi",
    }


def test_a_model_of_a_recipe_is_the_one_that_is_trained() -> None:
    config = load_recipe("blend", "cora", protocol="planetoid")
    with seeded(5):
        expected = build_model(config, features=FEATURES, positions=3, num_classes=CLASSES).eval()
    with seeded(5):
        model = BLEND.from_recipe("cora", FEATURES, CLASSES, pos_channels=3, protocol="planetoid").eval()
    assert repr(model) == repr(expected)
    inputs = {"pos": TOY.pos}
    assert torch.equal(model(TOY.x, TOY.edge_index, **inputs), expected(TOY.x, TOY.edge_index, **inputs))
    assert BLEND.from_recipe("cora", FEATURES, CLASSES).phi is None
    assert "TopK(k=64" in repr(BLEND.from_recipe("cora", FEATURES, CLASSES, recipe="blend-knn"))
    with pytest.raises(ValueError, match="unknown recipe of BLEND 'gat'"):
        BLEND.from_recipe("cora", FEATURES, CLASSES, recipe="gat")
    with pytest.raises(ValueError, match="unknown dataset 'coral': did you mean 'cora'"):
        BLEND.from_recipe("coral", FEATURES, CLASSES)


def test_reset_parameters_begins_anew() -> None:
    model = BLEND(FEATURES, 8, CLASSES, pos_channels=3, batch_norm=True)
    losses = []
    for _ in range(2):
        with seeded(2):
            model.reset_parameters()
        assert model.norm is not None
        assert model.norm.num_batches_tracked == 0
        optimiser = torch.optim.SGD(model.train().parameters(), lr=0.1)
        for _ in range(3):
            optimiser.zero_grad()
            loss = model(TOY.x, TOY.edge_index, pos=TOY.pos).square().mean()
            loss.backward()
            optimiser.step()
        losses.append(loss.item())
        model.fitted = Fitted(1.0, 0)
    assert losses[0] == losses[1]
    model.reset_parameters()
    assert model.fitted is None


def pyg_data(**more: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch_geometric.data import Data
    return Data(x=TOY.x, edge_index=TOY.edge_index, pos=TOY.pos, **more)


def test_forward_takes_a_pyg_data_object_or_its_tensors() -> None:
    model, data = small_blend(positions=True).eval(), pyg_data()
    expected = model(TOY.x, TOY.edge_index, pos=TOY.pos)
    assert torch.equal(model(data), expected)
    assert torch.equal(model(data.x, data.edge_index, pos=data.pos), expected)
    assert torch.equal(small_blend().eval()(data), small_blend().eval()(TOY.x, TOY.edge_index))  # it takes no positions


def test_forward_takes_the_weights_and_features_of_a_data_object() -> None:
    m = TOY.edge_index.shape[1]
    weight, features = torch.rand(m) + 0.1, torch.randn(m, 2)
    model = small_blend().eval()
    expected = model(TOY.x, TOY.edge_index, weight)
    assert torch.equal(model(TOY.x, Edges.build(TOY.edge_index, num_nodes=N, weight=weight)), expected)
    assert torch.equal(model(pyg_data(edge_weight=weight, edge_attr=features)), expected)
    assert torch.equal(model(pyg_data(edge_attr=weight)), expected)
    assert not torch.allclose(model(pyg_data(edge_attr=features)), expected)
    with_features = BLEND(FEATURES, 8, CLASSES, edge_dim=2).eval()
    expected = with_features(TOY.x, TOY.edge_index, weight, edge_attr=features)
    assert torch.equal(with_features(pyg_data(edge_weight=weight, edge_attr=features)), expected)
    assert not torch.allclose(expected, with_features(TOY.x, TOY.edge_index, weight, edge_attr=-features))
    assert with_features.attention_spread(with_features.prepare(TOY.x, TOY.edge_index, edge_attr=features)) > 0
    with pytest.raises(ValueError, match="takes 2 edge features: pass `edge_attr`"):
        with_features(TOY.x, TOY.edge_index)
    with pytest.raises(ValueError, match="takes no edge features"):
        model(TOY.x, TOY.edge_index, edge_attr=features)


def test_an_adj_t_is_taken_where_there_is_no_edge_index() -> None:
    from torch_geometric.transforms import ToSparseTensor

    with warnings.catch_warnings(action="ignore"):
        data = ToSparseTensor(layout=torch.sparse_csr)(pyg_data())
    model = small_blend().eval()
    assert data.edge_index is None
    assert torch.equal(model(data), model(TOY.x, TOY.edge_index))


def test_positions_in_the_place_of_weights_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"`edge_weight` must have one value per edge, .*positions are passed as `pos="
    ):
        small_blend(positions=True)(TOY.x, TOY.edge_index, TOY.pos)
    with pytest.raises(ValueError, match="pass `x` and `edge_index`, or one `Data` object of PyG; got Tensor alone"):
        small_blend()(TOY.x)


def sparsened(x: Tensor) -> Tensor:
    """Return x with half of its entries set to zero."""
    return x * (torch.arange(x.numel()).reshape(x.shape) % 2)


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("form", ["coo", "uncoalesced", "csr", "SparseMatrix"])
def test_sparse_inputs_give_the_same_scores_as_dense_ones(form: str) -> None:
    x, pos = sparsened(TOY.x).double(), sparsened(TOY.pos).double()
    model = small_blend(positions=True).double().eval()
    convert = {
        "coo": lambda m: m.to_sparse_coo(),
        "uncoalesced": lambda m: torch.sparse_coo_tensor(*doubled(m), m.shape, check_invariants=True),
        "csr": lambda m: m.to_sparse_csr(),
        "SparseMatrix": SparseMatrix.of,
    }[form]
    assert torch.allclose(
        model(convert(x), TOY.edge_index, pos=convert(pos)), model(x, TOY.edge_index, pos=pos), atol=1e-12
    )


def doubled(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Return indices and values with every non-zero as two entries of half its size."""
    coo = matrix.to_sparse_coo().coalesce()
    return torch.cat((coo.indices(), coo.indices()), dim=1), torch.cat((coo.values(), coo.values())) / 2


def test_prepared_inputs_give_the_same_scores_as_forward() -> None:
    model = small_blend(positions=True).eval()
    expected = model(TOY.x, TOY.edge_index, pos=TOY.pos)
    edges = Edges.build(TOY.edge_index, num_nodes=N)
    inputs = model.prepare(TOY.x, edges, pos=TOY.pos)
    assert inputs.edges is edges
    assert torch.equal(model.run(inputs).logits, expected)
    assert torch.equal(model(TOY.x, edges, pos=TOY.pos), expected)


@pytest.mark.parametrize("frozen", [True, False], ids=["linear", "nonlinear"])
@pytest.mark.parametrize("batch_norm", [False, True], ids=["plain", "batch norm"])
def test_relabelling_the_nodes_commutes_with_the_model(frozen: bool, batch_norm: bool) -> None:
    model = small_blend(positions=True, frozen=frozen, batch_norm=batch_norm, dropout=0.5, loops=True).double().eval()
    order = torch.randperm(N, generator=torch.Generator().manual_seed(3))
    renamed = order.argsort()[TOY.edge_index]  # old node order[k] is called k
    x, pos = TOY.x.double(), TOY.pos.double()
    expected = model(x, TOY.edge_index, pos=pos)[order]
    assert torch.allclose(model(x[order], renamed, pos=pos[order]), expected, atol=1e-10)
    assert not torch.allclose(expected, model(x, TOY.edge_index, pos=pos))


def test_scores_are_independent_of_the_order_of_edges() -> None:
    model = small_blend().eval()
    backwards = TOY.edge_index.flip(1)
    assert torch.equal(model(TOY.x, backwards), model(TOY.x, TOY.edge_index))


def test_positions_are_first_in_the_state_and_affect_the_scores() -> None:
    with seeded(0):
        model = small_blend(positions=True, diffusivity=ExpKernel(Joint(4, 8), 8)).eval()
    inputs = model.prepare(TOY.x, TOY.edge_index, pos=TOY.pos)
    assert model.phi is not None
    assert torch.equal(model.encode(inputs), torch.cat((model.phi(TOY.pos), model.psi(TOY.x)), dim=1))
    assert not torch.allclose(model(TOY.x, TOY.edge_index, pos=TOY.pos), model(TOY.x, TOY.edge_index, pos=-TOY.pos))


def test_batch_norm_in_training_gives_zero_mean_and_unit_variance() -> None:
    model = small_blend(batch_norm=True).train()
    z = model.encode(model.prepare(TOY.x, TOY.edge_index))
    assert torch.allclose(z.mean(0), torch.zeros(8), atol=1e-6)
    assert torch.allclose(z.var(0, correction=0), torch.ones(8), atol=1e-3)


def test_batch_norm_in_evaluation_uses_running_statistics() -> None:
    model = small_blend(batch_norm=True)
    untrained = model.eval()(TOY.x, TOY.edge_index)
    model.train()(TOY.x, TOY.edge_index)
    assert not torch.allclose(model.eval()(TOY.x, TOY.edge_index), untrained)
    assert "norm.running_mean" in model.state_dict()


def test_dropout_acts_in_training_only() -> None:
    model = small_blend(dropout=0.5)
    with seeded(0):
        assert not torch.equal(model.train()(TOY.x, TOY.edge_index), model(TOY.x, TOY.edge_index))
    assert torch.equal(model.eval()(TOY.x, TOY.edge_index), model(TOY.x, TOY.edge_index))


def test_scores_along_time_run_from_z0_to_forward() -> None:
    model = small_blend().eval()
    inputs = model.prepare(TOY.x, TOY.edge_index)
    along = model.logits_along(inputs, (0.0, 1.0, model.evolution.time))
    assert along.shape == (3, N, CLASSES)
    assert torch.allclose(along[0], model.xi(model.psi(TOY.x)), atol=1e-6)
    assert torch.allclose(along[-1], model(TOY.x, TOY.edge_index), atol=1e-6)


def test_scores_along_time_of_some_nodes_equal_those_of_all() -> None:
    model = small_blend().eval()
    inputs = model.prepare(TOY.x, TOY.edge_index)
    some = model.logits_along(inputs, (0.0, 2.0), nodes=TOY.split.val)
    assert torch.allclose(some, model.logits_along(inputs, (0.0, 2.0))[:, TOY.split.val], atol=1e-6)


def test_attention_spread_is_zero_for_fixed_weights_only() -> None:
    fixed, learned = small_blend(diffusivity=RandomWalk()), small_blend()
    assert fixed.attention_spread(fixed.prepare(TOY.x, TOY.edge_index)) == 0
    assert learned.attention_spread(learned.prepare(TOY.x, TOY.edge_index)) > 1e-3


def test_run_reports_the_statistics_of_the_solve() -> None:
    model = small_blend()
    output = model.run(model.prepare(TOY.x, TOY.edge_index))
    assert (output.stats.accepted, output.stats.evaluations) == (4, 16)  # four RK4 steps of 0.5 to time 2


def test_nodes_without_edges_are_independent() -> None:
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
def test_bad_features_are_refused(x: Tensor | SparseMatrix, message: str) -> None:
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
def test_bad_edges_are_refused(edge_index: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        small_blend()(TOY.x, edge_index)


@pytest.mark.parametrize(
    ("pos", "message"),
    [
        (None, r"takes 3 positions: pass `pos`"),
        (TOY.pos[:, :2], r"`pos` has 2 columns where 3 are expected"),
        (TOY.pos[:7], r"`pos` has 7 rows where the graph has 20 nodes"),
        (SparseMatrix.of(TOY.pos[:7]), r"`pos` has shape \(7, 3\) where \(20, 3\) is expected"),
        (with_nan(TOY.pos), r"`pos` holds 1 values that are NaN"),
    ],
    ids=["missing", "columns", "rows", "sparse rows", "NaN"],
)
def test_bad_positions_are_refused(pos: Tensor | SparseMatrix | None, message: str) -> None:
    model: BLEND = small_blend(positions=True)
    with pytest.raises(ValueError, match=message):
        model(TOY.x, TOY.edge_index, pos=pos)


def test_positions_without_a_position_encoder_are_refused() -> None:
    with pytest.raises(ValueError, match=r"takes no positions: leave `pos` out"):
        small_blend()(TOY.x, TOY.edge_index, pos=TOY.pos)


def test_wide_features_with_few_non_zeros_are_multiplied_as_a_sparse_matrix() -> None:
    toy, random = two_cliques(), torch.Generator().manual_seed(0)
    x = torch.rand(len(toy.x), 600, generator=random) * (torch.rand(len(toy.x), 600, generator=random) < 0.05)
    model = BLEND(600, 8, 2).eval()
    seen: list[type] = []
    model.psi.register_forward_pre_hook(lambda _, args: seen.append(type(args[0])))
    sparse = model(x, toy.edge_index)
    dense = model.run(model.prepare(x, toy.edge_index)).logits
    with_gradient = model(x.requires_grad_(), toy.edge_index)
    assert seen == [SparseMatrix, torch.Tensor, torch.Tensor]
    assert torch.allclose(sparse, dense, atol=1e-6)
    assert torch.equal(with_gradient, dense)
