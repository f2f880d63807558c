"""Diffusivities from distances in the joint space: the exponential kernel, the Gaussian and a mixture of Gaussians."""

from dataclasses import replace

import torch
from torch import Tensor, nn

from beltrami.arguments import Count, checked
from beltrami.diffusivity.base import Diffusivity, Paired, Projection, Start, xavier
from beltrami.geometry import Euclidean, Metric
from beltrami.graph import Edges, Normaliser, PairScore, edge_dot, exponential, spread, squared_distance
from beltrami.joint import Joint


@checked
class ExpKernel(Paired):
    r"""Exponential kernel with separate scales and lengths for positions and features, eq. (17).

    .. math:: a(z_i, z_j) = \mathrm{softmax}_j\, (\sigma_u \sigma_x)^2
        e^{-\|W_K u_i - W_Q u_j\|^2 / 2 \ell_u^2} e^{-\|W_K x_i - W_Q x_j\|^2 / 2 \ell_x^2}

    Scores lie between 0 and :math:`(\sigma_u \sigma_x)^2`: near neighbours diffuse more, and how much more is learned.
    u and x have separate matrices W, of ``width`` each. Scales and lengths are learned through their logarithms, so
    they stay positive. Without positions only the second factor remains.
    """

    def __init__(
        self,
        joint: Joint,
        width: Count,
        *,
        heads: int = 1,
        normalise: Normaliser | None = None,
        start: Start = xavier,
        bias: bool = False,
    ) -> None:
        super().__init__(normalise)
        self.joint = joint
        parts = {name: channels for name, channels in (("u", joint.pos), ("x", joint.feat)) if channels}
        self.project = nn.ModuleDict(
            {name: Projection(channels, width, heads=heads, start=start, bias=bias) for name, channels in parts.items()}
        )
        self.log_sigma = nn.ParameterDict({name: nn.Parameter(torch.zeros(())) for name in self.project})
        self.log_length = nn.ParameterDict({name: nn.Parameter(torch.zeros(())) for name in self.project})

    def reset_parameters(self) -> None:
        for logarithm in (*self.log_sigma.values(), *self.log_length.values()):
            nn.init.zeros_(logarithm)

    def score(self, z: Tensor, edges: Edges) -> Tensor:
        exponent = z.new_zeros(())
        for name, (key, query) in self._projected(z).items():
            distance2 = edge_distance2(key, query, edges)
            exponent = exponent + 2 * self.log_sigma[name] - distance2 / (2 * torch.exp(2 * self.log_length[name]))
        return torch.exp(exponent)

    def pair(self, z: Tensor) -> PairScore:
        keys, queries = [], []
        for name, (key, query) in self._projected(z).items():
            inverse_length = torch.exp(-self.log_length[name])
            keys.append(inverse_length * key)
            queries.append(inverse_length * query)
        scale = 2 * sum(self.log_sigma.values())
        exponent = squared_distance(_concatenate(keys), _concatenate(queries), start=scale)
        return replace(exponent, activation=exponential)

    def _projected(self, z: Tensor) -> dict[str, tuple[Tensor, Tensor]]:
        coordinates = dict(zip("ux", self.joint.split(z), strict=True))
        return {name: project(coordinates[name]) for name, project in self.project.items()}


@checked
class Gaussian(Paired):
    r"""Gaussian of the joint distance, the graph's version of the bilateral kernel, eq. (6).

    .. math:: a(z_i, z_j) = \mathrm{softmax}_j \Big( -\frac{d_C(u_i, u_j)^2}{2 \ell_u^2}
        - \frac{\|x_i - x_j\|^2}{2 \ell_x^2} \Big)

    Symmetric scores with two learned lengths per head. The only diffusivity that measures positions in their metric
    :math:`d_C`; for another ``metric`` than the Euclidean one, u holds the logarithm of each point at the origin, so
    that any value of u is valid. ``length`` is that of the first head at the start; it doubles from head to head.
    """

    def __init__(
        self,
        joint: Joint,
        *,
        metric: Metric | None = None,
        heads: Count = 1,
        length: float = 1.0,
        normalise: Normaliser | None = None,
    ) -> None:
        super().__init__(normalise)
        if not 0 < length < float("inf"):
            raise ValueError(f"Gaussian needs a positive, finite `length`; got {length}.")
        self.joint, self.heads, self.length = joint, heads, length
        self.metric = Euclidean() if metric is None else metric
        self.log_length_u = nn.Parameter(torch.empty(heads)) if joint.pos else None
        self.log_length_x = nn.Parameter(torch.empty(heads)) if joint.feat else None
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        start = torch.tensor(float(self.length)).log() + torch.arange(self.heads) * torch.log(torch.tensor(2.0))
        for lengths in (self.log_length_u, self.log_length_x):
            if lengths is not None:
                lengths.copy_(start)

    def score(self, z: Tensor, edges: Edges) -> Tensor:
        u, x = self.joint.split(z)
        score = z.new_zeros(edges.num_edges, 1)
        if self.log_length_u is not None:
            p = self.metric.exp(torch.zeros_like(u), u)
            distance = self.metric.distance(spread(p, edges), spread(p, edges, senders=True))
            score = score - 0.5 * distance[:, None].square() * torch.exp(-2 * self.log_length_u)
        if self.log_length_x is not None:
            distance2 = edge_distance2(x[:, None], x[:, None], edges)  # (m, 1)
            score = score - 0.5 * distance2 * torch.exp(-2 * self.log_length_x)
        return score

    def pair(self, z: Tensor) -> PairScore | None:
        """For one head in Euclidean space; with more heads it is cheaper to compute the shared distances once."""
        lengths = [log for log in (self.log_length_u, self.log_length_x) if log is not None]
        if not isinstance(self.metric, Euclidean) or len(lengths[0]) > 1:
            return None
        widths = [width for width in (self.joint.pos, self.joint.feat) if width]
        scale = torch.cat([torch.exp(-log).expand(width) for log, width in zip(lengths, widths, strict=True)])
        scaled = (scale * z)[:, None]
        return squared_distance(scaled, scaled)


@checked
class Mixture(Diffusivity):
    r"""A mixture of Gaussians of the sender's position relative to the receiver: the weights of MoNet.

    .. math:: a(u_i, u_j) = \frac{w(u_j - u_i)}{\sum_l w(u_l - u_i)}, \qquad
        w(e) = \sum_k \exp\Big(-\frac12 \sum_c \frac{(e_c - \mu_{kc})^2}{\sigma_{kc}^2}\Big)

    Each kernel has a centre, so unlike those of :class:`Gaussian` these weights can depend on the direction and need
    not decrease with the distance.
    """

    def __init__(self, joint: Joint, *, kernels: Count, normalise: Normaliser | None = None) -> None:
        super().__init__(normalise)
        if joint.pos == 0:
            raise ValueError("Mixture needs positions, and `joint` has none: use `RandomWalk`.")
        self.joint, self.kernels = joint, kernels
        self.mu = nn.Parameter(nn.init.xavier_uniform_(torch.empty(kernels, joint.pos)))
        self.log_sigma = nn.Parameter(torch.zeros(kernels, joint.pos))

    def reset_parameters(self) -> None:
        nn.init.xavier_uniform_(self.mu)
        nn.init.zeros_(self.log_sigma)

    def score(self, z: Tensor, edges: Edges) -> Tensor:
        u = z[:, None, self.joint.u]  # (n, 1, d')
        inverse_sigma = torch.exp(-self.log_sigma)
        exponent = -0.5 * edge_distance2(inverse_sigma * (u + self.mu), inverse_sigma * u, edges)  # (m, kernels)
        return torch.logsumexp(exponent, dim=-1, keepdim=True)


def edge_distance2(p: Tensor, q: Tensor, edges: Edges) -> Tensor:
    r"""Return the squared distance :math:`\|p_i - q_j\|^2` of the ends of each edge; (n, h, k) -> (m, h)."""
    p2, q2 = p.square().sum(-1), q.square().sum(-1)
    squared = spread(p2, edges) + spread(q2, edges, senders=True) - 2 * edge_dot(p, q, edges)
    return squared.clamp(min=0)


def _concatenate(parts: list[Tensor]) -> Tensor:
    return torch.cat(parts, dim=-1) if len(parts) > 1 else parts[0]  # avoids the copy that cat makes of one part
