"""The interfaces of edge weights, their projections and initialisation, and the random walk's fixed weights."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from beltrami.arguments import Count, Finite, checked
from beltrami.graph import Edges, Normaliser, PairScore, Rows
from beltrami.graph.ops.dispatch import has_kernel
from beltrami.graph.ops.edge_weights import fused_weights

Start = Callable[[Tensor], Tensor]
"""A function that initialises a weight matrix in place and returns it, such as :func:`xavier` and :func:`constant`."""


def xavier(weight: Tensor) -> Tensor:
    """Glorot and Bengio's uniform initialisation: scores differ between edges from the first step on."""
    return nn.init.xavier_uniform_(weight)


@checked
def constant(value: Finite = 1e-5) -> Start:
    """The paper's initialisation, all weights equal: attention starts nearly uniform and, with weight decay, stays so.

    Unsuitable for :class:`Cosine` and :class:`Pearson` without ``bias``: their scores are then 1, -1 or undefined.
    """
    return partial(nn.init.constant_, val=value)  # unlike a lambda, it can be pickled with the model


class PrintedModule(nn.Module):
    """A module whose ``print`` shows its settings: its public attributes that are not modules, parameters or None."""

    def extra_repr(self) -> str:
        public = {name: value for name, value in vars(self).items() if not name.startswith("_") and name != "training"}
        shown = {name: getattr(value, "__name__", repr(value)) for name, value in public.items() if value is not None}
        return ", ".join(f"{name}={value}" for name, value in shown.items())


class EdgeWeights(PrintedModule, ABC):
    r"""Weights :math:`a(z_i, z_j)` on the edges as a function of the state; ``z`` (n, d), m edges -> (m,)."""

    @abstractmethod
    def forward(self, z: Tensor, edges: Edges) -> Tensor:
        """Return the weights at the state ``z``, (m,)."""

    @abstractmethod
    def uniform(self, z: Tensor, edges: Edges) -> Tensor:
        """Return the weights of a state that is equal at all nodes, (m,), in the dtype of ``z``."""

    @torch.no_grad()
    def spread(self, z: Tensor, edges: Edges) -> float:
        r"""Return the standard deviation over edges of :math:`a_{ij} / \bar a_{ij}`: the distance from uniform weights.

        :math:`\bar a` is :meth:`uniform`: for ``Rows`` on an unweighted graph, one over the receiver's degree.
        """
        return float((self(z, edges) / self.uniform(z, edges)).std(correction=0)) if edges.num_edges else 0.0


class Variational(EdgeWeights):
    r"""Weights whose flow is the gradient flow of an energy.

    .. math:: \sum_j a_{ij}(Z) (z_j - z_i) = - \frac{\partial E(Z)}{\partial z_i}

    They are symmetric and not normalised: the flow of normalised weights would not be a gradient flow.
    """

    @abstractmethod
    def energy(self, z: Tensor, edges: Edges) -> Tensor:
        """Return E at the state ``z`` (n, d), a scalar, differentiable by ``z`` and all parameters."""


@checked
class Diffusivity(EdgeWeights):
    r"""The weights :math:`a(z_i, z_j)` of eq. (7): scores on the edges, normalised, averaged over heads.

    The default normaliser is that of eq. (13), ``Rows(softmax_link)``.
    """

    def __init__(self, normalise: Normaliser | None = None) -> None:
        super().__init__()
        self.normalise = Rows() if normalise is None else normalise

    @abstractmethod
    def score(self, z: Tensor, edges: Edges) -> Tensor:
        """Return the scores before normalisation, (m, h)."""

    def forward(self, z: Tensor, edges: Edges) -> Tensor:
        pair = self.pair(z) if isinstance(self, Paired) and has_kernel(z) else None
        fused = None if pair is None else fused_weights(pair, edges, normalise=self.normalise)
        if fused is not None:
            return fused
        heads: Tensor = self.normalise(self.score(z, edges), edges)
        return heads.mean(-1)

    def uniform(self, z: Tensor, edges: Edges) -> Tensor:
        return self.normalise(z.new_zeros(edges.num_edges, 1), edges)[:, 0]


class Paired(Diffusivity):
    r"""A diffusivity whose score is a function of a dot product, :math:`s_{ij} = f(\langle p_i, q_j \rangle)`.

    A flow can then compute scores, weights and their sums in one pass (:func:`~beltrami.graph.attend`).
    """

    @abstractmethod
    def pair(self, z: Tensor) -> PairScore | None:
        """Return p, q and f at the state ``z`` (n, d), equivalent to :meth:`score`; None if there is no such form."""


class RandomWalk(Diffusivity):
    r"""Fixed weights: all edges have the same score, so that only the graph's edge weights w count.

    .. math:: a_{ij} = \frac{w_{ij}}{\sum_k w_{ik}}

    With ``Rows`` this is the transition matrix of the random walk, with ``Both`` the symmetrically normalised adjacency
    matrix.
    """

    def score(self, z: Tensor, edges: Edges) -> Tensor:
        return z.new_zeros(edges.num_edges, 1)


@checked
class WithEdgeFeatures(Diffusivity):
    r"""A diffusivity with a learned linear term of the features :math:`e_{ij}` of each edge in its score.

    .. math:: s_{ij\eta} = s_\eta(z_i, z_j) + \langle w_\eta, e_{ij} \rangle

    The features are those of the edges (``Edges.features``), (m, edge_dim); ``heads`` are those of ``diffusivity``, or
    any number where it has one head. Computed by plain operations: the fused kernels have no such term.
    """

    def __init__(self, diffusivity: Diffusivity, edge_dim: Count, *, heads: Count = 1) -> None:
        super().__init__(diffusivity.normalise)
        self.diffusivity, self.edge_dim, self.heads = diffusivity, edge_dim, heads
        self.term = nn.Linear(edge_dim, heads, bias=False)

    def score(self, z: Tensor, edges: Edges) -> Tensor:
        if edges.features is None or edges.features.shape[1] != self.edge_dim:
            found = "none" if edges.features is None else f"{edges.features.shape[1]} columns"
            raise ValueError(f"the attention needs edge features of {self.edge_dim} columns, `edge_attr`; got {found}.")
        term: Tensor = self.term(edges.features.to(self.term.weight.dtype))
        return self.diffusivity.score(z, edges) + term


class Projection(PrintedModule):
    r"""Keys :math:`W_K z` of receivers and queries :math:`W_Q z` of senders, each (n, heads, width // heads); with
    ``bias``, :math:`W_K z + b_K` and :math:`W_Q z + b_Q`, the biases uniform in :math:`\pm 1 / \sqrt{d}` at first."""

    def __init__(
        self, channels: int, width: int, *, heads: int, start: Start, least_width: int = 1, bias: bool = False
    ) -> None:
        super().__init__()
        check_heads(width, heads, least=least_width)
        self.heads, self._start = heads, start
        self.key = nn.Linear(channels, width, bias=bias)
        self.query = nn.Linear(channels, width, bias=bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for linear in (self.key, self.query):
            self._start(linear.weight)
            if linear.bias is not None:
                nn.init.uniform_(linear.bias, -(linear.in_features**-0.5), linear.in_features**-0.5)

    def forward(self, z: Tensor) -> tuple[Tensor, Tensor]:
        return self.key(z).unflatten(-1, (self.heads, -1)), self.query(z).unflatten(-1, (self.heads, -1))


def check_heads(width: int, heads: int, *, least: int = 1) -> None:
    if heads < 1 or width < least * heads or width % heads:
        needed = f"at least {least} x `heads` and a multiple of `heads`"
        raise ValueError(f"the attention `width` must be {needed}; got width={width}, heads={heads}.")
