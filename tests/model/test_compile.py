"""torch.compile of networks around the flow: one graph, and the numbers of eager code, forward and backward."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import nullcontext

import pytest
import torch
from torch import Tensor, nn

from beltrami.diffusivity import ScaledDot
from beltrami.flow import BeltramiFlow, Flow, LinearFlow, Rate, Source
from beltrami.graph import Columns, Edges, SparseMatrix
from beltrami.model import BLEND, BeltramiConv
from beltrami.model.coder import Decoder, Encoder
from beltrami.model.evolution import Evolution
from beltrami.scheme import PID, RK4, ConstantSteps, Dopri5, Euler, Exponential, Scheme, TimeStepping
from beltrami.scheme.base import warmup
from beltrami.stencil import Chain, Loops, Stencil, TopK

pytestmark = [
    pytest.mark.slow,
    # Warnings that torch's compiler causes in torch.
    pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:TensorFloat32 tensor cores:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning"),
]
N = 12
Run = Callable[..., Tensor]


@pytest.fixture(autouse=True)
def forget_compiled_code() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def graph(seed: int, *, edges: int = 40, nodes: int = N) -> Tensor:
    """A directed graph with parallel edges and a node without any."""
    return torch.randint(0, nodes - 1, (2, edges), generator=torch.Generator().manual_seed(seed))


def features(nodes: int = N) -> Tensor:
    return torch.randn(nodes, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


class Network(nn.Module):
    """Layers of a user around the flow."""

    def __init__(self, flow: Flow, scheme: TimeStepping, *, stencil: Stencil | None = None) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = nn.Linear(6, 8), nn.Linear(8, 3)
        self.evolution = Evolution(flow, scheme=scheme, time=2.0, stencil=stencil)

    def forward(self, x: Tensor, edges: Tensor | Edges) -> Tensor:
        if not isinstance(edges, Edges):
            edges = Edges.cached(edges, num_nodes=len(x))
        z = torch.relu(nn.functional.dropout(self.first(x), 0.3, self.training))
        return self.last(torch.relu(self.evolution(z, edges)))  # type: ignore[no-any-return]


def attention() -> ScaledDot:
    torch.manual_seed(0)
    return ScaledDot(8, 8, heads=2)


def frozen() -> LinearFlow:
    return LinearFlow(attention(), rate=Rate(), source=Source(0.1))


def gradients(model: nn.Module, run: Run, *inputs: object) -> list[Tensor]:
    """Return the output and the gradients of all parameters; the random state before is always the same."""
    for part in model.modules():
        if isinstance(calls := getattr(part, "calls", None), Tensor):
            calls.zero_()
    torch.manual_seed(2)
    model.zero_grad()
    out = run(*inputs)
    out.square().sum().backward()
    return [out.detach(), *(p.grad.clone() for p in model.parameters() if p.grad is not None)]


def check_same(model: nn.Module, compiled: Run, *inputs: object, tolerance: float = 1e-12) -> None:
    eager, traced = gradients(model, model, *inputs), gradients(model, compiled, *inputs)
    assert len(eager) == len(traced) > 3
    for one, other in zip(eager, traced, strict=True):
        torch.testing.assert_close(other, one, rtol=tolerance, atol=tolerance * float(one.abs().max()))


def test_one_graph_of_the_frozen_flow_serves_other_graphs_too() -> None:
    model = Network(frozen(), Exponential(rtol=1e-4, atol=1e-4)).double()
    model.evolution.eval()
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    check_same(model, compiled, features(), graph(0))
    with torch.compiler.set_stance("fail_on_recompile"):
        check_same(model, compiled, features(), graph(1))
        check_same(model, compiled, features(), torch.cat((graph(2, edges=20), graph(2, edges=20).flip(0)), dim=1))
    check_same(model, compiled, features(9), graph(3, edges=17, nodes=9))


def test_steps_of_rk4_are_one_graph_of_edges_with_weights() -> None:
    model = Network(BeltramiFlow(attention()), Scheme(RK4(), ConstantSteps(2.0))).double()
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    weight = torch.rand(40, dtype=torch.float64) + 0.5
    check_same(model, compiled, features(), Edges.build(graph(0), num_nodes=N, weight=weight))


def test_a_graph_may_be_computed_in_the_network() -> None:
    model = Network(BeltramiFlow(attention()), Scheme(Euler(), ConstantSteps(2.0))).double()

    def both_ways(x: Tensor, edge_index: Tensor) -> Tensor:
        loops = torch.arange(len(x)).expand(2, -1)
        one, other = (model(x, torch.cat((way, loops), dim=1)) for way in (edge_index, edge_index.flip(0)))
        out: Tensor = one + other
        return out

    compiled = torch.compile(both_ways, backend="aot_eager", fullgraph=True)
    for seed in (0, 1):
        eager, traced = (gradients(model, run, features(), graph(seed)) for run in (both_ways, compiled))
        torch.testing.assert_close(traced, eager, rtol=1e-12, atol=1e-12)


def test_blend_with_a_rewired_graph_and_sparse_features_is_one_graph() -> None:
    flow = LinearFlow(ScaledDot(8, 8, heads=2, normalise=Columns()), rate=Rate())
    evolution = Evolution(flow, scheme=Exponential(rtol=1e-3, atol=1e-3), time=4.0, stencil=Chain(TopK(5), Loops()))
    model = BLEND.from_parts(Encoder(6, 8, dropout=0.4), evolution, Decoder(8, 3, dropout=0.2)).double()
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    x = SparseMatrix.of(features().relu())
    edge_index = torch.cat((graph(0), graph(0).flip(0)), dim=1)
    check_same(model, compiled, x, edge_index)
    model.eval()
    torch.testing.assert_close(compiled(x, edge_index), model(x, edge_index), rtol=1e-12, atol=1e-12)


class Layers(nn.Module):
    """A hand-written network of two layers."""

    def __init__(self, *, frozen: bool) -> None:
        super().__init__()
        self.start, self.end = nn.Linear(6, 8), nn.Linear(8, 3)
        self.one, self.two = (BeltramiConv(8, time=2.0, heads=2, edge_dim=2, frozen=frozen) for _ in range(2))

    def forward(self, x: Tensor, edge_index: Tensor, weight: Tensor, attr: Tensor) -> Tensor:
        x = torch.relu(self.one(self.start(x), edge_index, weight, attr))
        out: Tensor = self.end(self.two(x, edge_index, weight, attr))
        return out


def check_layers(device: str, *, backend: str, frozen: bool) -> None:
    torch.manual_seed(0)
    model = Layers(frozen=frozen).to(device, torch.float64)
    compiled = torch.compile(model, backend=backend, fullgraph=True)
    for seed in (0, 1):
        x, edge_index = features().to(device), graph(seed).to(device)
        values = torch.rand(edge_index.shape[1], 3, dtype=torch.float64, device=device) + 0.1
        args = (x, edge_index, values[:, 0].contiguous(), values[:, 1:].contiguous())
        with warmup() if device == "cuda" else nullcontext():  # as many terms as compiled code takes
            expected = model(*args)
        torch.testing.assert_close(compiled(*args), expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("frozen", [True, False], ids=["frozen", "live"])
def test_a_network_of_layers_is_one_graph(frozen: bool) -> None:
    check_layers("cpu", backend="aot_eager", frozen=frozen)


@pytest.mark.gpu
@pytest.mark.parametrize("frozen", [True, False], ids=["frozen", "live"])
def test_a_network_of_layers_is_one_graph_on_a_gpu(frozen: bool) -> None:
    check_layers("cuda", backend="inductor", frozen=frozen)


def test_adaptive_steps_are_left_out_of_the_graph_with_a_reason() -> None:
    model = Network(LinearFlow(attention()), Scheme(Dopri5(), PID(rtol=1e-5, atol=1e-5))).double()
    with pytest.raises(torch._dynamo.exc.Unsupported, match="the steps of this scheme depend on the solution"):
        torch.compile(model, backend="aot_eager", fullgraph=True)(features(), graph(0))
    torch._dynamo.reset()
    check_same(model, torch.compile(model, backend="aot_eager"), features(), graph(0))


@pytest.mark.gpu  # on the CPU too, where g++ takes half a minute at the first time
@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-11), (torch.float32, 1e-4)], ids=str)
@pytest.mark.parametrize("live", [False, True], ids=["frozen", "live"])
def test_generated_code_gives_the_same_numbers(live: bool, dtype: torch.dtype, tolerance: float, device: str) -> None:
    if device == "cpu" and shutil.which("g++") is None:
        pytest.skip("torch's compiler for the CPU needs g++")
    flow: Flow = BeltramiFlow(attention()) if live else frozen()
    scheme: TimeStepping = Scheme(RK4(), ConstantSteps(1.0)) if live else Exponential(rtol=1e-6, atol=1e-6)
    model = Network(flow, scheme).eval().to(device, dtype)
    compiled = torch.compile(model, fullgraph=True)
    for seed in (0, 1):
        x, edge_index = features().to(device, dtype), graph(seed).to(device)
        # On a GPU compiled code takes as many terms as a CUDA graph, and so does eager code in a warm-up.
        with warmup() if device == "cuda" else nullcontext():
            eager = gradients(model, model, x, edge_index)
        for one, other in zip(eager, gradients(model, compiled, x, edge_index), strict=True):
            torch.testing.assert_close(other, one, rtol=tolerance, atol=tolerance * float(one.abs().max()))


@pytest.mark.gpu
def test_dropout_of_compiled_code_drops_the_same_entries_on_a_gpu() -> None:
    evolution = Evolution(frozen(), scheme=Exponential(rtol=1e-3, atol=1e-3), time=4.0, stencil=Loops())
    model = BLEND.from_parts(Encoder(6, 8, dropout=0.4), evolution, Decoder(8, 3, dropout=0.2)).cuda()
    x, edge_index = features().float().cuda(), torch.cat((graph(0), graph(0).flip(0)), dim=1).cuda()
    compiled = torch.compile(model, fullgraph=True)
    with warmup():
        eager = gradients(model, model, x, edge_index)
    for one, other in zip(eager, gradients(model, compiled, x, edge_index), strict=True):
        torch.testing.assert_close(other, one, rtol=1e-4, atol=1e-4 * float(one.abs().max()))
