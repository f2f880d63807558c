"""A model in blocks gives the scores, gradients and training of the whole model, for blocks of every size."""

import copy
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from streamed_toys import FEATURES, NODES, hub_graph, plan_of, random_features, write_folder
from torch import Tensor, nn
from torch.nn import functional as F

from beltrami import (
    BLEND,
    PID,
    Additive,
    BeltramiFlow,
    Columns,
    Cosine,
    Decoder,
    Diffusivity,
    Dopri5,
    Encoder,
    Evolution,
    Exponential,
    Keep,
    LinearFlow,
    Loops,
    RandomWalk,
    Rate,
    Rows,
    ScalarCosine,
    ScaledDot,
    Scheme,
    Source,
    Symmetric,
    squareplus_link,
)
from beltrami.data import Split, undirected
from beltrami.errors import DataError
from beltrami.graph import Edges
from beltrami.model import Inputs
from beltrami.scale.streamed_blend import StreamedBlend
from beltrami.scale.streamed_inputs import StreamedInputs
from beltrami.scale.streamed_model import open_streamed
from beltrami.train import TimeGrid, Training, fit, predict, seeded

CHANNELS, POSITIONS, CLASSES = 5, 3, 3
LABELLED = torch.tensor([3, 11, 0, 17, 6])
Y = torch.arange(NODES) % CLASSES
WEIGHTS: dict[str, Callable[[int], Diffusivity]] = {
    "uniform": lambda d: RandomWalk(),
    "scaled-dot": lambda d: ScaledDot(d, 4, heads=2),
    "squareplus": lambda d: ScaledDot(d, 4, heads=2, normalise=Rows(squareplus_link)),
    "scalar-cosine": lambda d: ScalarCosine(heads=2),
    "additive": lambda d: Additive(d, 4, heads=2),
}
BLOCKS = [(5, 100, 1.0), (1, 1, 0.0), (3, 7, 0.5)]  # columns, rows, share on the device


def blend(name: str, dtype: torch.dtype, *, loops: float = 1.5, positions: bool = False, dropout: float = 0.3) -> BLEND:
    d = CHANNELS + 2 * positions
    with seeded(1):
        flow = LinearFlow(WEIGHTS[name](d), rate=Rate(0.7), source=Source(0.2))
        scheme = Exponential(rtol=1e-12 if dtype == torch.float64 else 1e-7, atol=0.0)
        stencil = Loops(loops) if loops else Keep()
        return BLEND.from_parts(
            Encoder(FEATURES, CHANNELS, dropout=dropout, hidden=4),
            Evolution(flow, scheme=scheme, time=3.0, stencil=stencil),
            Decoder(d, CLASSES, dropout=dropout),
            phi=Encoder(POSITIONS, 2, dropout=dropout) if positions else None,
            node_dropout=dropout / 2,
        ).to(dtype)


def positions() -> Tensor:
    return torch.randn(NODES, POSITIONS, generator=torch.Generator().manual_seed(3))


def in_blocks(
    model: BLEND, path: Path, *, columns: int, rows: int, resident: float, row_limit: int = 7, device: str = "cpu"
) -> tuple[StreamedBlend, StreamedInputs]:
    """Return the model on the folder of the graph with hub, with blocks of the given sizes."""
    edges = hub_graph()
    extra = {"pos": positions()} if model.positions else {}
    folder = write_folder(path, edges, x=random_features(), **extra)
    inputs = StreamedInputs(
        folder,
        plan_of(edges, columns=columns, rows=rows, resident=resident),
        columns=model.xi.linear.in_features,
        inputs=FEATURES,
        states_on_device=resident > 0.4,
        dtype=next(model.parameters()).dtype,
        device=device,
    )
    object.__setattr__(inputs, "row_limit", row_limit)
    return StreamedBlend(model), inputs


def whole(model: BLEND) -> Inputs:
    inputs: Inputs = model.prepare(random_features(), hub_graph(), pos=positions() if model.positions else None)
    return inputs


def gradients(model: nn.Module, logits: Tensor) -> dict[str, Tensor]:
    F.cross_entropy(logits, Y[LABELLED].to(logits.device)).backward()
    return {name: weight.grad.cpu() for name, weight in model.named_parameters() if weight.grad is not None}


def compare(
    name: str, blocks: tuple[int, int, float], dtype: torch.dtype, path: Path, *, device: str = "cpu", **options: Any
) -> None:
    """Compare scores and all gradients of a training step with those of the whole model, on the CPU."""
    reference = blend(name, dtype, **options).train()
    model = copy.deepcopy(reference).to(device)
    expected = reference.run(whole(reference)).logits[LABELLED]
    columns, rows, resident = blocks
    streamed, inputs = in_blocks(model, path, columns=columns, rows=rows, resident=resident, device=device)
    found = streamed.train().run_at(inputs, LABELLED.to(device))
    close = {torch.float64: 1e-10, torch.float32: 1e-5}[dtype]
    torch.testing.assert_close(found.logits.cpu(), expected, atol=close, rtol=close)
    wanted, grads = gradients(reference, expected), gradients(streamed, found.logits)
    assert wanted.keys() == grads.keys()
    for key, value in wanted.items():
        error = float((grads[key] - value).abs().max()) / float(value.abs().max())
        assert error < close, (key, error)
    assert found.stats.backward_evaluations > found.stats.evaluations > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "blocks"),
    [*((name, blocks) for name in WEIGHTS for blocks in (BLOCKS[0], BLOCKS[2])), ("scaled-dot", BLOCKS[1])],
)
def test_gradients_are_those_of_the_whole_model(name: str, blocks: tuple[int, int, float], tmp_path: Path) -> None:
    compare(name, blocks, torch.float64, tmp_path / "graph")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "blocks"), [("uniform", BLOCKS[1]), ("scaled-dot", BLOCKS[2])])
def test_gradients_without_loops_and_with_positions(name: str, blocks: tuple[int, int, float], tmp_path: Path) -> None:
    compare(name, blocks, torch.float64, tmp_path / "graph", loops=0.0, positions=True)


@pytest.mark.parametrize("name", ["uniform", "scaled-dot", "scalar-cosine"])
def test_single_precision(name: str, tmp_path: Path) -> None:
    compare(name, (2, 9, 0.5), torch.float32, tmp_path / "graph")


@pytest.mark.gpu
@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("name", ["uniform", "scaled-dot"])
def test_copies_to_a_gpu_give_the_gradients_of_the_whole_model(
    name: str, blocks: tuple[int, int, float], tmp_path: Path
) -> None:
    compare(name, blocks, torch.float64, tmp_path / "graph", device="cuda")


@pytest.mark.parametrize("name", ["uniform", "squareplus"])
def test_scores_along_the_flow_and_the_spread_of_attention(name: str, tmp_path: Path) -> None:
    model = blend(name, torch.float64).eval()
    streamed, inputs = in_blocks(model, tmp_path / "graph", columns=2, rows=9, resident=0.5)
    ts = (0.0, 0.7, 3.0, 4.5)
    torch.testing.assert_close(
        streamed.logits_along(inputs, ts), model.logits_along(whole(model), ts), atol=1e-10, rtol=1e-10
    )
    assert streamed.attention_spread(inputs) == pytest.approx(model.attention_spread(whole(model)), abs=1e-10)
    torch.testing.assert_close(
        predict(streamed, inputs, time=2.0), predict(model, whole(model), time=2.0), atol=1e-10, rtol=1e-10
    )
    assert inputs.graph == whole(model).graph
    assert set(streamed.state_dict()) == set(model.state_dict())


def test_terms_are_added_where_the_error_bound_is_not_met(tmp_path: Path) -> None:
    model = blend("scaled-dot", torch.float64).eval()
    flow = model.evolution.flow
    assert isinstance(flow, LinearFlow)
    assert flow.source is not None
    flow.source.beta.data.fill_(1e5)  # a slope far above the expected one
    model.evolution.scheme = Exponential(rtol=1e-5, atol=0.0)
    streamed, inputs = in_blocks(model, tmp_path / "graph", columns=2, rows=9, resident=0.5)
    states = streamed.states_at(inputs, torch.arange(NODES), (3.0,))[0]
    assert streamed.solver.extra > 0
    exact = copy.deepcopy(model)
    exact.evolution.scheme = Exponential(rtol=1e-13, atol=0.0)
    z0 = exact.encode(whole(exact)).detach()
    error = (states - exact.evolution.evolve(z0, hub_graph()).z.detach()).abs().max()
    assert float(error) <= 1e-5 * float(z0.abs().max())


def test_equal_blocks_give_equal_bits(tmp_path: Path) -> None:
    model = blend("scaled-dot", torch.float32)
    found = []
    for k in range(2):
        streamed, inputs = in_blocks(copy.deepcopy(model), tmp_path / str(k), columns=2, rows=9, resident=float(k))
        found.append(gradients(streamed, streamed.train().run_at(inputs, LABELLED).logits))
    assert all(torch.equal(found[0][key], found[1][key]) for key in found[0])


def test_training_in_blocks_has_the_losses_of_training_in_memory(tmp_path: Path) -> None:
    split = Split(Y == 0, Y == 1, Y == 2, "toy", 0)  # every class is in each part
    y = (torch.arange(NODES) // 3) % CLASSES
    training = Training(
        epochs=4, optimiser=partial(torch.optim.Adam, lr=0.05), time_grid=TimeGrid(2.0, 2), validate_every=2, ema=0.5
    )
    losses: list[list[float]] = []
    fits = []
    for streams in (False, True):
        model = blend("scaled-dot", torch.float64)
        used, inputs = (
            in_blocks(model, tmp_path / "g", columns=3, rows=9, resident=0.5) if streams else (model, whole(model))
        )
        losses.append([])
        fits.append(fit(used, inputs, y, split, training, callbacks=[lambda e: losses[-1].append(e.losses[0])]))
    assert losses[1] == pytest.approx(losses[0], rel=1e-9)
    assert fits[1].best.metric == fits[0].best.metric
    assert fits[1].best.time == fits[0].best.time


def test_one_pass_at_a_time(tmp_path: Path) -> None:
    streamed, inputs = in_blocks(blend("uniform", torch.float64), tmp_path / "g", columns=5, rows=50, resident=1.0)
    first = streamed.run_at(inputs, LABELLED).logits.sum()
    streamed.run_at(inputs, LABELLED)
    with pytest.raises(RuntimeError, match="call `backward` before the next forward pass"):
        first.backward()
    with pytest.raises(ValueError, match="needs inputs in blocks"):
        streamed.run(whole(blend("uniform", torch.float64)))


@pytest.mark.slow
@pytest.mark.parametrize("memory", [3_000_000, 6_000_000, 60_000_000])
@pytest.mark.parametrize("name", ["uniform", "scaled-dot"])
def test_tensors_stay_within_the_planned_memory(name: str, memory: int, tmp_path: Path) -> None:
    generator, n = torch.Generator().manual_seed(0), 2000
    graph = Edges.build(undirected(torch.randint(0, n, (2, 20_000), generator=generator), num_nodes=n), num_nodes=n)
    folder = write_folder(tmp_path / "graph", graph, x=torch.randn(n, FEATURES, generator=generator))
    model = blend(name, torch.float32)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        streamed, inputs = open_streamed(model, folder, memory=memory, labelled_nodes=len(LABELLED))
        gradients(streamed, streamed.train().run_at(inputs, LABELLED).logits)
    assert profile.profiler is not None
    events = [each for each in profile.profiler.kineto_results.events() if each.name() == "[memory]"]
    held = torch.tensor([each.nbytes() for each in sorted(events, key=lambda each: each.start_ns())]).cumsum(0)
    assert inputs.plan.bytes / 4 < int(held.max()) <= inputs.plan.bytes <= memory


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"flow": BeltramiFlow(ScaledDot(CHANNELS, 4))}, "flow.kind=frozen"),
        ({"scheme": Scheme(Dopri5(), PID(1e-4, 1e-6))}, "scheme.kind=exponential"),
        ({"stencil": Symmetric()}, "stencil.kind=keep"),
        ({"remesh": 1.0}, "stencil.kind=keep"),
        ({"flow": LinearFlow(Cosine(CHANNELS, 4, normalise=Columns()))}, "diffusivity.over=rows"),
    ],
)
def test_other_models_are_refused(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    parts = {"flow": LinearFlow(RandomWalk()), "scheme": Exponential(rtol=1e-3, atol=1e-3), "time": 1.0, **change}
    model = BLEND.from_parts(
        Encoder(FEATURES, CHANNELS), Evolution(parts.pop("flow"), **parts), Decoder(CHANNELS, CLASSES)
    )
    folder = write_folder(tmp_path / "graph", hub_graph(), x=random_features())
    with pytest.raises(ValueError, match=message):
        open_streamed(model, folder)


def test_graphs_that_cannot_be_trained_on_are_refused(tmp_path: Path) -> None:
    model, edges, x = blend("uniform", torch.float32), hub_graph(), random_features()
    one_way = Edges.build(edges.edge_index[:, 1:], num_nodes=NODES)
    cases = {
        "is directed, and training in blocks needs both": write_folder(tmp_path / "a", one_way, x=x),
        "edge weights": write_folder(tmp_path / "b", edges, x=x, weight=torch.ones(edges.num_edges)),
        "x of .* has 0 columns where the model takes 7": write_folder(tmp_path / "c", edges),
        "x of .* has 2 columns where the model takes 7": write_folder(tmp_path / "d", edges, x=x[:, :2]),
    }
    for message, folder in cases.items():
        with pytest.raises(DataError, match=message):
            open_streamed(model, folder)
