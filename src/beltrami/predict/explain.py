r"""Why a node is predicted as it is: the shares of all nodes, and of the edges, in the margin of its prediction.

The margin m is the logit of the predicted class minus the logit of another class. A flow carries initial states to
:math:`z_i(T)`, and the decoder maps this to m. The decoder's part is :math:`g = \int_0^1 \nabla m(s z_i(T))\, ds`, by
integrated gradients, so that :math:`m = m(0) + \langle g, z_i(T) \rangle`.

- ``exact``: with frozen weights :math:`z_i(T) = \sum_j S_{ij} z_j(0)`. The share of node j is
  :math:`\langle g, S_{ij} z_j(0) \rangle`: the amount by which :math:`\langle g, z_i(T) \rangle` falls when the initial
  state of j is set to zero, weights and g held. Shares and the constant m(0) sum to the margin.
- ``linearised``: the weights of a live flow depend on the state. The share of node j is
  :math:`\langle g, \frac{\partial z_i(T)}{\partial z_j(0)} z_j(0) \rangle`, the dependence of the weights included.
  The remainder is the part of the margin that the shares do not sum to.
- ``integrated gradients``: a model without a flow is a function of the inputs x. The share of node j is
  :math:`\langle \int_0^1 \frac{\partial m(s x)}{\partial x_j} ds, x_j \rangle`, with all inputs scaled together.
  Shares and m(0) sum to the margin up to the error of the quadrature, which is the remainder.

The share of an edge j -> i is :math:`a_{ij} \, \partial m / \partial a_{ij}` with g and all other normalised weights
held, over the whole time. For frozen weights the state is a sum over walks in the graph, and this is the sum of the
parts that arrive by walks along the edge, each counted as often as it uses the edge. The shares of edges therefore do
not sum to the margin.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from beltrami.graph import Edges
from beltrami.model import BLEND, Classifier, Evolution, Inputs
from beltrami.model.coder import Matrix
from beltrami.model.linear_diffusion import LinearDiffusion
from beltrami.predict.sensitivity import DifferentiablePath, integrated_gradients, is_linear
from beltrami.predict.shares import Explanation, Margin, Method, merge_edges

DECODER, NETWORK = 1e-5, 1e-3  # allowed errors of the quadrature, relative to the margin; a point costs a forward pass


def explain(
    model: Classifier,
    inputs: Inputs,
    node: int,
    *,
    time: float,
    predicted: int | None = None,
    other: int | None = None,
    exclusive: bool = True,
) -> Explanation:
    """Explain a trained model's prediction at a node; the model is put in evaluation mode.

    For the mean of several models, explain each with the ``predicted`` and ``other`` of ``Margin.of(mean logits)`` and
    take :meth:`Explanation.mean`. A model that is not a :class:`BLEND` is explained by integrated gradients, for which
    sparse inputs become dense.

    Args:
        inputs: as :meth:`Classifier.prepare` returns them.
        time: the time at which the flow stops, as for ``logits_along``; a model without a flow ignores it.
        predicted: the class to explain; by default the model's prediction.
        other: the class to compare with; by default the next most likely one.
        exclusive: whether a node has one class only; if not, the margin is the logit ``predicted`` alone.
    """
    n = inputs.edges.num_nodes
    if not 0 <= node < n:
        raise ValueError(f"`node` must be from 0 to {n - 1}; got {node}.")
    model.eval()
    choose = partial(Margin.of, predicted=predicted, other=other, exclusive=exclusive)
    if isinstance(model, LinearDiffusion) and time > 0:
        with torch.no_grad():
            start = model.encoder(inputs.x)
        return explain_flow(model.evolution, start, inputs.edges, lambda z: z, node, time=time, choose=choose)
    if not isinstance(model, BLEND):
        return _explain_inputs(model, inputs, node, time=time, choose=choose)
    with torch.no_grad():
        z0 = model.encode(inputs)
    return explain_flow(model.evolution, z0, inputs.edges, model.xi, node, time=time, choose=choose)


def explain_flow(
    evolution: Evolution,
    z0: Tensor,
    edges: Edges,
    decoder: Callable[[Tensor], Tensor],
    node: int,
    *,
    time: float,
    choose: Callable[[Tensor], Margin] = Margin.of,
) -> Explanation:
    """Explain the prediction ``decoder(z_node(time))`` of a flow that starts at ``z0`` (n, d).

    ``decoder`` maps (d,) to logits (classes,) and ``choose`` takes the margin from these. For diffused features X with
    a linear classifier W, b: ``z0 = X @ W.t()`` and ``decoder = lambda z: z + b``, as diffusion and W commute.
    """
    if not 0 <= time < float("inf"):
        raise ValueError(f"`time` must be at least 0 and finite; got {time}.")
    path = DifferentiablePath(evolution, z0, edges, time=time)
    z = path.z[node].detach()
    with torch.no_grad():
        margin = choose(decoder(z))
        value, constant = float(margin(decoder(z))), float(margin(decoder(torch.zeros_like(z))))
    (g,) = integrated_gradients(lambda z: margin(decoder(z)), z, rtol=DECODER)
    by_state, by_weight, meshes = path.pull(node, g)
    method: Method = "exact" if is_linear(evolution.flow) else "linearised"
    shares = (by_state * z0).sum(-1)
    return _explanation(node, margin, value, constant, method, shares, meshes, by_weight)


def _explain_inputs(
    model: Classifier, inputs: Inputs, node: int, *, time: float, choose: Callable[[Tensor], Margin]
) -> Explanation:
    """Explain by integrated gradients over features and positions together."""
    ts, at = (0.0, time) if time else (0.0,), torch.tensor([node], device=inputs.edges.device)
    xs = tuple(_dense(x) for x in (inputs.x, inputs.pos) if x is not None)

    def logits(*xs: Tensor) -> Tensor:
        scaled = replace(inputs, x=xs[0], pos=xs[1] if len(xs) > 1 else None)
        return model.logits_along(scaled, ts, nodes=at)[-1, 0]

    with torch.no_grad():
        here, zero = logits(*xs), logits(*map(torch.zeros_like, xs))
        margin = choose(here)
        value, constant = float(margin(here)), float(margin(zero))
    gradients = integrated_gradients(lambda *xs: margin(logits(*xs)), *xs, rtol=NETWORK)
    shares = torch.stack([(g * x).sum(-1) for g, x in zip(gradients, xs, strict=True)]).sum(0)
    return _explanation(node, margin, value, constant, "integrated gradients", shares, (inputs.edges,), None)


def _explanation(
    node: int,
    margin: Margin,
    value: float,
    constant: float,
    method: Method,
    shares: Tensor,
    meshes: Sequence[Edges],
    by_weight: Sequence[Tensor] | None,
) -> Explanation:
    node_shares = shares.detach().double().cpu()
    edge_index, edge_shares = merge_edges(
        [mesh.edge_index.cpu() for mesh in meshes],
        None if by_weight is None else [each.double().cpu() for each in by_weight],
        num_nodes=len(node_shares),
    )
    remainder = value - constant - float(node_shares.sum())
    return Explanation(
        node, margin.predicted, margin.other, value, constant, remainder, method, node_shares, edge_index, edge_shares
    )


def _dense(x: Matrix) -> Tensor:
    if isinstance(x, Tensor):
        return x
    place = torch.stack((x.rows.row, x.rows.index)).long()
    return torch.sparse_coo_tensor(place, x.values, x.shape).to_dense()
