"""BLEND by parts of the nodes: the model that several processes train, with the numbers of one."""

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from beltrami.arguments import checked
from beltrami.distributed.communication import PartedIndex, replicate
from beltrami.distributed.parted_flow import check_finite, row_norm, solve_by_columns, solve_by_parts
from beltrami.distributed.parted_graph import PartedGraph
from beltrami.distributed.partition import check_partition
from beltrami.distributed.workers import Workers
from beltrami.flow import BeltramiFlow, LinearFlow
from beltrami.graph import Both, Columns, Rows, SparseMatrix
from beltrami.graph.edges import Compressed
from beltrami.model import BLEND, Classifier, Inputs
from beltrami.model.classifier import Output
from beltrami.model.coder import Dropout, Matrix
from beltrami.scheme import PID, Checkpointed, ConstantSteps, Direct, Exponential, Scheme, Stats


@checked
class PartedModel(Classifier):
    """A BLEND network, computed part by part by the processes of ``workers``, which own consecutive parts.

    It has the parameters of ``model`` themselves, under the same names: training one trains the other. Encoders,
    attention, decoder and gradients of the parameters are computed with the shapes of the parts, and all sums over
    parts in their order. So losses, gradients and weights do not depend on the number of processes, to the bit if all
    have the same threads and libraries. Dropout masks are those of ``model`` on the whole graph.

    A frozen flow by ``Exponential`` is solved by blocks of columns, one for each part, on the whole graph; other flows
    by parts, with an exchange at every evaluation of the field.

    Args:
        model: with a frozen or live flow on a fixed graph.
        inputs: of the whole graph, prepared by ``model``; the same in every process.
        part: the part of each node, (n,), from 0.
        workers: the processes; at most as many as parts.
    """

    def __init__(self, model: Classifier, inputs: Inputs, part: Tensor, workers: Workers) -> None:
        super().__init__()
        network = check_model(model)
        check_partition(part, num_nodes=inputs.edges.num_nodes)
        parts = int(part.max()) + 1
        if workers.size > parts:
            raise ValueError(f"{workers.size} workers need at least as many parts; got {parts}: choose fewer workers.")
        self._whole, self._inputs, self._part, self._workers = (network,), inputs, part, workers
        self.psi, self.phi, self.evolution, self.xi = network.psi, network.phi, network.evolution, network.xi
        self.node_dropout, self.norm = network.node_dropout, network.norm
        self.features, self.positions, self.num_classes = network.features, network.positions, network.num_classes
        self.time = network.time
        senders = not isinstance(_flow_of(network).diffusivity.normalise, Rows)
        mesh = network.evolution.mesh(next(network.parameters()).new_zeros(1, 1), inputs.edges)
        self._graph = PartedGraph(mesh, part.to(mesh.device), workers, senders=senders)
        nodes = self._graph.nodes
        self._own = [_PartNetwork(network, inputs, rows) for rows in self._graph.split(nodes.order[nodes.own])]
        self._norm = row_norm(self._graph.nodes)

    def __deepcopy__(self, memo: dict[int, object]) -> "PartedModel":
        return PartedModel(copy.deepcopy(self._whole[0], memo), self._inputs, self._part, self._workers)

    @property
    def synchronises(self) -> bool:
        return True

    def run(self, inputs: Inputs) -> Output:
        nodes = self._graph.nodes
        states, stats = self._states(inputs, (0.0, self.time), nodes, nodes.order)
        own = zip(self._own, self._graph.split(states[-1]), strict=True)
        logits = torch.cat([part.network.xi(z) for part, z in own])
        self._own[0].write_buffers(self._whole[0])
        return Output(nodes.collect(logits), logits.new_zeros(()), (stats,))

    def logits_along(self, inputs: Inputs, ts: Sequence[float], *, nodes: Tensor | None = None) -> Tensor:
        index, chosen = self._graph.nodes, self._graph.nodes.order
        if nodes is not None:
            index = PartedIndex.of(self._workers, self._part.to(nodes.device)[nodes], len(index.sizes))
            chosen = nodes[index.order]
        states, _ = self._states(inputs, tuple(ts), index, chosen)
        own = zip(self._own, states.split(index.own_sizes, dim=1), strict=True)
        logits = torch.cat([part.network.xi(z).movedim(1, 0) for part, z in own])
        return index.collect(logits).movedim(0, 1)

    def attention_spread(self, inputs: Inputs) -> float:
        return self._whole[0].attention_spread(inputs)

    def _states(
        self, inputs: Inputs, ts: tuple[float, ...], index: PartedIndex, chosen: Tensor
    ) -> tuple[Tensor, Stats]:  # fmt: skip
        """Return the states of some nodes of the own parts, (times, rows, d). ``chosen`` are the nodes of all parts,
        part by part as in ``index``."""
        if inputs is not self._inputs:
            raise ValueError("a PartedModel computes on the inputs that it was made for: make another for others.")
        tensors = self._assign_weights()
        z = torch.cat(self._normalise([part.network.encode(part.inputs) for part in self._own]))
        check_finite(z, self._norm)
        flows, scheme, nodes = [_flow_of(part.network) for part in self._own], self.evolution.scheme, self._graph.nodes
        if isinstance(scheme, Exponential):
            solutions = solve_by_columns(flows, self._graph, z, ts, scheme)
            columns = torch.cat([solution.ys[:, chosen] for solution in solutions], dim=2)
            return index.to_rows(columns)[..., : z.shape[1]], solutions[0].stats
        solution = solve_by_parts(flows, self._graph, z, ts, scheme, tensors)
        return solution.ys[:, nodes.place[chosen[index.own]] - nodes.own.start], solution.stats

    def _assign_weights(self) -> list[Tensor]:
        """Give each own part its copy of the weights and buffers; return the copied weights of the flow."""
        weights = dict(self._whole[0].named_parameters())
        flat = torch.cat([weight.flatten() for weight in weights.values()])
        tensors = []
        for part, copied in zip(self._own, replicate(self._workers, flat, len(self._graph.nodes.sizes)), strict=True):
            values = copied.split([weight.numel() for weight in weights.values()])
            for name, value, (module, attribute) in zip(weights, values, part.slots, strict=True):
                setattr(module, attribute, value.view(weights[name].shape).clone())  # aligned as any tensor
                if name.startswith("evolution."):
                    tensors.append(getattr(module, attribute))
            part.read_buffers(self._whole[0])
            part.train(self.training)
        return tensors

    def _normalise(self, parts: list[Tensor]) -> list[Tensor]:
        """Return the states of the own parts after the batch norm, if there is one, with statistics of all nodes."""
        norms = [part.norm for part in self._own if part.norm is not None]
        if not norms:
            return parts
        if not self.training:
            return [norm(z) for norm, z in zip(norms, parts, strict=True)]
        n, eps = self._part.numel(), norms[0].eps
        mean = self._sum([z.sum(0) for z in parts]) / n
        centred = [z - each for z, each in zip(parts, mean, strict=True)]
        variance = self._sum([z.square().sum(0) for z in centred]) / n
        for norm in norms:
            _average(norm, mean[0].detach(), variance[0].detach() * (n / max(n - 1, 1)))
        scaled = [z * torch.rsqrt(each + eps) for z, each in zip(centred, variance, strict=True)]
        return [z * norm.weight + norm.bias for z, norm in zip(scaled, norms, strict=True)]

    def _sum(self, each_part: list[Tensor]) -> Tensor:
        """Return the sum over all parts for each own part, (own parts, ...), from the values of the own parts."""
        units = len(self._graph.nodes.sizes)
        each = PartedIndex.of(self._workers, torch.arange(units, device=each_part[0].device), units)
        return replicate(self._workers, each.collect(torch.stack(each_part)).sum(0), units)


class _PartNetwork:
    """A copy of a network for a part: its inputs, the places of its weights, and dropout masks of the whole graph."""

    def __init__(self, network: BLEND, inputs: Inputs, nodes: Tensor) -> None:
        self.network = copy.deepcopy(network)
        self.norm, self.slots = self.network.norm, []  # the modules and attributes of the weights
        for name, weight in list(self.network.named_parameters()):
            path, _, attribute = name.rpartition(".")
            module = self.network.get_submodule(path)
            del module._parameters[attribute]
            setattr(module, attribute, weight.detach())
            self.slots.append((module, attribute))
        self.buffers = dict(self.network.named_buffers())
        self.network.norm = None  # PartedModel applies it, with statistics of all parts
        x, entries = _rows_of(inputs.x, nodes)
        pos, pos_entries = (None, nodes) if inputs.pos is None else _rows_of(inputs.pos, nodes)
        self.inputs = Inputs(x, inputs.edges, pos)
        for module in self.network.modules():
            if isinstance(module, Dropout):
                module.number_rows(nodes)
        self.network.psi.dropout.number_rows(entries)
        if self.network.phi is not None:
            self.network.phi.dropout.number_rows(pos_entries)

    def read_buffers(self, network: BLEND) -> None:
        """Copy the buffers of a network."""
        for name, buffer in network.named_buffers():
            self.buffers[name].copy_(buffer)

    def write_buffers(self, network: BLEND) -> None:
        """Copy the buffers into a network."""
        for name, buffer in network.named_buffers():
            buffer.copy_(self.buffers[name])

    def train(self, mode: bool) -> None:
        """Set the mode of training or evaluation."""
        self.network.train(mode)
        if self.norm is not None:
            self.norm.train(mode)


def _average(norm: nn.BatchNorm1d, mean: Tensor, variance: Tensor) -> None:
    """Move the running averages of a batch norm towards these statistics."""
    assert norm.running_mean is not None
    assert norm.running_var is not None
    assert norm.num_batches_tracked is not None
    norm.num_batches_tracked.add_(1)
    norm.running_mean.lerp_(mean, norm.momentum or 0.1)
    norm.running_var.lerp_(variance, norm.momentum or 0.1)


def check_model(model: Classifier) -> BLEND:
    """Return the network; one that cannot be computed by parts is refused."""
    evolution = model.evolution if isinstance(model, BLEND) else None
    scheme = None if evolution is None else evolution.scheme
    fault = ""
    if not isinstance(model, BLEND) or evolution is None or type(evolution.flow) not in (LinearFlow, BeltramiFlow):
        fault = "another model: set `model.kind=blend` and `flow.kind` to frozen or live"
    elif type(_flow_of(model).diffusivity.normalise) not in (Rows, Columns, Both):
        fault = "another normaliser: use Rows, Columns or Both"
    elif evolution.stencil.synchronises or evolution.remesh is not None or model.edge_dim:
        fault = "a graph that changes with the state, or has edge features: choose a fixed `stencil.kind`"
    elif evolution.costs:
        fault = "running costs: set `flow.kinetic=0` and `flow.jacobian=0`"
    elif isinstance(scheme, Scheme):
        if scheme.solver.synchronises or not isinstance(scheme.controller, ConstantSteps | PID):
            fault = "implicit or energy-decreasing steps: set an explicit `scheme.solver`"
        elif not isinstance(scheme.adjoint, Direct | Checkpointed):
            fault = "the continuous adjoint: set `scheme.adjoint.kind` to direct or checkpointed"
    elif not isinstance(scheme, Exponential):
        fault = "another scheme: set `scheme.kind` to exponential, constant or adaptive"
    if fault:
        raise ValueError(f"several workers do not support {fault}, or train without `--workers` and `--parts`.")
    assert isinstance(model, BLEND)
    return model


def _flow_of(network: BLEND) -> LinearFlow | BeltramiFlow:
    flow = network.evolution.flow
    assert isinstance(flow, LinearFlow | BeltramiFlow)  # check_model has refused others
    return flow


def _rows_of(x: Matrix, nodes: Tensor) -> tuple[Matrix, Tensor]:
    """Return some rows of a matrix, in ascending order, and the numbers of its rows or, if sparse, of its entries."""
    if isinstance(x, Tensor):
        return x[nodes], nodes
    place = torch.full((x.shape[0],), -1, device=nodes.device)
    place[nodes] = torch.arange(len(nodes), device=nodes.device)
    row = place[x.rows.row.long()]
    entries = (row >= 0).nonzero()[:, 0]
    shape = (len(nodes), x.shape[1])
    patterns = Compressed.pair(row[entries], x.rows.index[entries].long(), shape)
    return SparseMatrix(*patterns, x.values[entries], shape), entries
