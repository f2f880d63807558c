"""CGNN, continuous graph neural networks (Xhonneux et al. 2020)."""

import torch
from torch import Tensor, nn

from beltrami.graph import Edges, aggregate
from beltrami.model.baseline.frame import Frame
from beltrami.model.baseline.ode import Bound, Field, GraphODE, Pointwise
from beltrami.model.baseline.weight import symmetric
from beltrami.model.coder import Decoder, Encoder
from beltrami.scheme import TimeStepping

ALPHA = 0.95  # where alpha and the scales m start


class Propagation(Field):
    r"""Diffusion towards neighbours, a mixing of channels, and a source.

    .. math:: \frac{dH}{dt} = (A - I) H + H (W - I) + H(0), \qquad
        A = \tfrac12 (I + D^{-1/2} \bar A D^{-1/2})\, \alpha, \quad W = U \operatorname{diag}(m)\, U^\top

    :math:`\alpha \in (0, 1)` and :math:`m \in (0, 1)` are learned, and so is the orthogonal :math:`U = e^{S - S^\top}`;
    :math:`\bar A` is the adjacency matrix of the edges. All eigenvalues are below zero, so that H(t) settles.

    Args:
        width: channels of H.
        mixing: whether channels are mixed; without, W = I and each evolves by itself.
    """

    def __init__(self, width: int, *, mixing: bool = True) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.logit(torch.tensor(ALPHA)))
        self.skew = nn.Parameter(0.1 * torch.randn(width, width)) if mixing else None
        self.scale = nn.Parameter(torch.logit(torch.full((width,), ALPHA))) if mixing else None

    @property
    def synchronises(self) -> bool:
        return self.skew is not None  # the exponential looks at the size of its matrix

    def bind(self, h0: Tensor, edges: Edges) -> Bound:
        half = 0.5 * torch.sigmoid(self.alpha)
        a, w = symmetric(edges, h0.dtype), self.mixed()

        def dh_dt(h: Tensor) -> Tensor:
            dh = half * (h + aggregate(a, h, edges)) - h + h0
            return dh if w is None else dh + h @ w - h

        return Bound(dh_dt, (half, h0) if w is None else (half, h0, w))

    def mixed(self) -> Tensor | None:
        """W, (width, width); None for the identity."""
        if self.skew is None or self.scale is None:
            return None
        u = torch.linalg.matrix_exp(self.skew - self.skew.t())
        w: Tensor = (u * torch.sigmoid(self.scale)) @ u.t()
        return w


def cgnn(frame: Frame, *, scheme: TimeStepping, time: float, mixing: bool = True) -> GraphODE:
    """Encoder, propagation, decoder; ``mixing`` for the version with weights."""
    first = Pointwise(Encoder(frame.channels, frame.width, dropout=frame.input_dropout))
    last = Pointwise(Decoder(frame.width, frame.num_classes, dropout=frame.dropout))
    return GraphODE(frame, first, Propagation(frame.width, mixing=mixing), last, scheme=scheme, time=time)
