"""BLEND with a frozen flow on a graph larger than the device: the same numbers, computed in blocks."""

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from beltrami.arguments import checked
from beltrami.diffusivity import Paired, RandomWalk
from beltrami.flow import LinearFlow
from beltrami.model import BLEND, Classifier, Inputs
from beltrami.model.classifier import Output
from beltrami.model.coder import Dropout
from beltrami.scale.block_attention import BlockAttention
from beltrami.scale.block_matrix import BlockMatrix
from beltrami.scale.frozen_flow import FlowGradient, FrozenFlow
from beltrami.scale.streamable import check_streamable
from beltrami.scale.streamed_inputs import ROW_SHARE, StreamedInputs
from beltrami.scheme import Exponential, Stats
from beltrami.scheme.base import refuse_second_derivative
from beltrami.stencil import Loops


@checked
class StreamedBlend(Classifier):
    """BLEND whose passes read features and edges in blocks (:class:`StreamedInputs`). It shares the parts, and so the
    names and values of all weights, with the model that it is made of.

    Encoder: rows in blocks, computed again in the backward pass. Attention: rows of the graph in blocks. Flow: columns
    in blocks. Decoder: at the given nodes. Positions are optional. Dropout has the masks of the model in memory.

    Args:
        model: BLEND with a frozen flow by ``Exponential`` on the input graph, with fixed weights or attention that is
            normalised over rows. Others are refused.
    """

    def __init__(self, model: BLEND) -> None:
        super().__init__()
        check_streamable(model)
        self.psi, self.phi, self.evolution, self.xi = model.psi, model.phi, model.evolution, model.xi
        self.node_dropout = model.node_dropout
        self.features, self.positions, self.num_classes = model.features, model.positions, model.num_classes
        self.time = model.time
        scheme = model.evolution.scheme
        assert isinstance(scheme, Exponential)
        self.solver = FrozenFlow(rtol=scheme.rtol, atol=scheme.atol)

    @property
    def synchronises(self) -> bool:
        return True

    @property
    def loops(self) -> float:
        """The weight of the self-loops."""
        return self.evolution.stencil.weight if isinstance(self.evolution.stencil, Loops) else 0.0

    @property
    def learned(self) -> bool:
        """Whether the weights of the edges are learned."""
        return not isinstance(self.evolution.flow.diffusivity, RandomWalk)

    @property
    def rates(self) -> tuple[float, float]:
        """The values of alpha and beta."""
        flow = self.evolution.flow
        assert isinstance(flow, LinearFlow)
        alpha = 1.0 if flow.rate is None else float(flow.rate().detach())
        return alpha, 0.0 if flow.source is None else float(flow.source.beta.detach())

    def run(self, inputs: Inputs) -> Output:
        return self.run_at(inputs, torch.arange(_streamed(inputs).num_nodes, device=_streamed(inputs).device))

    def run_at(self, inputs: Inputs, nodes: Tensor) -> Output:
        stats = Stats(accepted=1)
        trained = [p for part in (self.psi, self.phi, self.evolution) if part is not None for p in part.parameters()]
        z: Tensor = _StatesAt.apply(self, _streamed(inputs), nodes, stats, *trained)  # type: ignore[no-untyped-call]
        self.xi.dropout.count_call()
        with self.xi.dropout.at_rows(nodes):
            logits = self.xi(z)
        return Output(logits, logits.new_zeros(()), (stats,))

    @torch.no_grad()
    def logits_along(self, inputs: Inputs, ts: Sequence[float], *, nodes: Tensor | None = None) -> Tensor:
        given = _streamed(inputs)
        nodes = torch.arange(given.num_nodes, device=given.device) if nodes is None else nodes
        states = self.states_at(given, nodes, ts[1:])
        first = torch.cat([y0[nodes] for _, _, y0 in given.z0.load()], dim=1)
        return torch.stack([self.xi(each.to(given.device)) for each in (first, *states)])

    @torch.no_grad()
    def states_at(self, inputs: StreamedInputs, nodes: Tensor, times: Sequence[float]) -> Tensor:
        """Return the states at some nodes and at positive times, (times, nodes, d); many of them in host memory."""
        matrix, _ = self._bind(inputs)
        most = inputs.plan.limit // ROW_SHARE
        return self.solver.states(matrix, inputs.z0, nodes, times, *self.rates, most_bytes=most)

    @torch.no_grad()
    def attention_spread(self, inputs: Inputs) -> float:
        given = _streamed(inputs)
        if not self.learned or not given.blocks.num_edges:
            return 0.0
        matrix, _ = self._bind(given)
        uniform = given.walk_matrix(self.loops).scale
        assert matrix.a is not None
        assert uniform is not None
        own = (matrix.diagonal / (self.loops * uniform)).double() if self.loops else matrix.diagonal.new_empty(0)
        count, sums = len(own), torch.stack([own.sum(), own.square().sum()]).double()
        for _, block, (a,) in given.blocks.walk(matrix.a):
            relative = (a / uniform[block.receivers]).double()
            if self.loops:
                relative = relative[block.index != block.receivers]
            count, sums = count + len(relative), sums + torch.stack([relative.sum(), relative.square().sum()])
        mean, square = (sums / count).tolist()
        return math.sqrt(max(0.0, square - mean**2))

    def _bind(self, inputs: StreamedInputs) -> tuple[BlockMatrix, Tensor | None]:
        """Encode z(0) and return the matrix of the flow, and log Z of learned weights."""
        dropouts = [part for part in self.modules() if isinstance(part, Dropout) and part is not self.xi.dropout]
        for dropout in dropouts:
            dropout.count_call()
        for rows, x, pos in inputs.row_chunks():
            inputs.z0.set_rows(rows, self._encode(rows, x, pos))
        if not self.learned:
            return inputs.walk_matrix(self.loops), None
        attention = self._attention(inputs)
        diagonal, log_total = attention.write_weights(*self._projections(inputs))
        return BlockMatrix(inputs.blocks, diagonal, a=attention.a, transposed=attention.transposed), log_total

    def _encode(self, rows: slice, x: Tensor, pos: Tensor | None) -> Tensor:
        """Return z(0) at some rows, positions first."""
        with self._dropout_at(rows, x.device):
            z = self.node_dropout(self.psi(x))
            return z if self.phi is None else torch.cat((self.phi(pos), z), dim=-1)

    @contextmanager
    def _dropout_at(self, rows: slice, device: torch.device) -> Iterator[None]:
        with ExitStack() as stack:
            numbers = torch.arange(rows.start, rows.stop, device=device)
            for part in self.modules():
                if isinstance(part, Dropout):
                    stack.enter_context(part.at_rows(numbers))
            yield

    def _projections(self, inputs: StreamedInputs) -> tuple[Tensor, Tensor]:
        """Return p and q of the attention at all nodes, (n, h, k)."""
        pairs: list[Tensor] = []
        for rows in inputs.row_ranges():
            pair = self._paired.pair(inputs.z0.rows(rows))
            assert pair is not None
            if not pairs:
                pairs = [each.new_empty(inputs.num_nodes, *each.shape[1:]) for each in (pair.p, pair.q)]
            for whole, part in zip(pairs, (pair.p, pair.q), strict=True):
                whole[rows] = part
        return pairs[0], pairs[1]

    @property
    def _paired(self) -> Paired:
        diffusivity = self.evolution.flow.diffusivity
        assert isinstance(diffusivity, Paired)
        return diffusivity

    def _attention(self, inputs: StreamedInputs) -> BlockAttention:
        weight = next(self.psi.parameters())
        pair = self._paired.pair(weight.new_zeros(1, self.xi.linear.in_features))
        assert pair is not None
        link, activation = self._paired.normalise.link, pair.activation
        arrays = inputs.values("a"), inputs.values("transposed")
        return BlockAttention(inputs.blocks, lambda dots: link(activation(dots)), self.loops, *arrays)

    def pull(
        self, inputs: StreamedInputs, nodes: Tensor, grad: Tensor, matrix: BlockMatrix, log_total: Tensor | None
    ) -> dict[Tensor, Tensor]:
        """Return the derivatives by the weights of encoders and flow, from that by the states at the nodes at T."""
        edges = inputs.edge_gradient() if self.learned else None
        rates = self.solver.pull(
            matrix, inputs.z0, nodes, grad, self.time, *self.rates, by_z0=inputs.by_z0, by_edges=edges
        )  # fmt: skip
        by_pair: tuple[Tensor, ...] = ()
        if edges is not None and log_total is not None:
            p, q = self._projections(inputs)
            by_pair = self._attention(inputs).pull(p, q, log_total, edges.a, edges.transposed, edges.diagonal)
            del p, q
        return self._pull_rows(inputs, by_pair) | self._pull_rates(rates)

    def _pull_rows(self, inputs: StreamedInputs, by_pair: tuple[Tensor, ...]) -> dict[Tensor, Tensor]:
        """Return the derivatives by the weights of encoders and attention, summed over blocks of rows in order."""
        parts = (self.psi, self.phi, self.evolution.flow.diffusivity)
        weights = [p for part in parts if part is not None for p in part.parameters() if p.requires_grad]
        total: dict[Tensor, Tensor] = {weight: torch.zeros_like(weight) for weight in weights}
        for rows, x, pos in inputs.row_chunks():
            with torch.enable_grad():
                z = self._encode(rows, x, pos)
                pair = self._paired.pair(z) if by_pair else None
            values = [z] if pair is None else [z, pair.p, pair.q]
            grads = [inputs.by_z0.rows(rows), *(each[rows] for each in by_pair)]
            found = torch.autograd.grad(values, weights, grads, allow_unused=True)
            for weight, each in zip(weights, found, strict=True):
                if each is not None:
                    total[weight] += each
        return total

    def _pull_rates(self, grad: FlowGradient) -> dict[Tensor, Tensor]:
        flow = self.evolution.flow
        found: dict[Tensor, Tensor] = {}
        assert isinstance(flow, LinearFlow)
        if flow.rate is not None:
            with torch.enable_grad():
                alpha = flow.rate()
            found[flow.rate.logit] = torch.autograd.grad(alpha, flow.rate.logit, torch.full_like(alpha, grad.alpha))[0]
        if flow.source is not None:
            found[flow.source.beta] = torch.full_like(flow.source.beta, grad.beta)
        return found


class _StatesAt(Function):
    """z(T) at some nodes, (nodes, d), as a function of the weights of encoders and flow."""

    @staticmethod
    def forward(ctx: Any, *given: Any) -> Tensor:
        model, inputs, nodes, stats, *weights = given
        matrix, log_total = model._bind(inputs)
        before = matrix.products
        states = model.solver.states(matrix, inputs.z0, nodes, (model.time,), *model.rates)[0]
        stats.evaluations += (matrix.products - before) // len(inputs.z0.ranges)
        ctx.known, ctx.weights = (model, inputs, nodes, stats, matrix, log_total), weights
        ctx.number = inputs.begin_pass()
        found: Tensor = states
        return found

    @staticmethod
    def backward(ctx: Any, *grad: Tensor) -> tuple[Tensor | None, ...]:
        refuse_second_derivative("a model in blocks")
        model, inputs, nodes, stats, matrix, log_total = ctx.known
        if ctx.number != inputs.number:
            raise RuntimeError("a model in blocks keeps one pass: call `backward` before the next forward pass.")
        before = matrix.products
        found = model.pull(inputs, nodes, grad[0].contiguous(), matrix, log_total)
        stats.backward_evaluations += (matrix.products - before) // len(inputs.z0.ranges)
        return None, None, None, None, *(found.get(weight) for weight in ctx.weights)


def _streamed(inputs: Inputs) -> StreamedInputs:
    if not isinstance(inputs, StreamedInputs):
        raise ValueError("a model in blocks needs inputs in blocks: make them with `open_streamed`.")
    return inputs
