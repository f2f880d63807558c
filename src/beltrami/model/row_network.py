"""A network on rows of diffused features, and the same network with its flow on the whole graph."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from beltrami.arguments import Count, Share, checked
from beltrami.graph import SparseMatrix
from beltrami.model.classifier import Classifier, Output
from beltrami.model.coder import Decoder, Encoder, Matrix
from beltrami.model.inputs import Inputs
from beltrami.model.linear_diffusion import ACCURATE, random_walk_evolution
from beltrami.scheme import TimeStepping


@checked
class RowNetwork(Classifier):
    r"""A linear encoder, a mixture of flows of fixed weights, and a decoder.

    .. math:: y = \xi\Big(\sum_k w_k e^{t_k (P - I)} (\hat X W + 1 b^\top)\Big)
        = \xi\Big(\sum_k w_k (e^{t_k (P - I)} \hat X) W + 1 b^\top\Big), \qquad w = \mathrm{softmax}(v)

    P is that of :class:`~beltrami.model.linear_diffusion.LinearDiffusion`, and :math:`\hat X = (X - m) / s`. P fixes
    constants and w sums to one, so that both sides are equal: the left one is computed by :meth:`run` on a graph, the
    right one by :meth:`from_rows` on rows of :math:`e^{t_k (P - I)} X`, which are computed once and need no graph in
    training. With dropout of the inputs the two differ in training, not in evaluation: the entries are dropped before
    the flow on the left, and after it on the right.

    A mixture, not a concatenation: the number of weights does not grow with the times, and constants stay fixed.

    Args:
        features: columns of X.
        num_classes: outputs.
        times: the times t_k, increasing from 0 or later.
        feat: columns of W.
        hidden: width of a further layer of the decoder; None for none.
        dropout: share of the entries of each layer of the decoder dropped in training.
        input_dropout: share of the entries of the mixed rows dropped in training.
        mean: m (features,); None for 0.
        scale: s (features,); None for 1.
        scheme: the time stepping of :meth:`run`.

    Shapes: as for :class:`Classifier`.
    """

    positions = 0
    time = 0.0  # no terminal time is chosen
    mean: Tensor
    scale: Tensor

    def __init__(
        self,
        features: Count,
        num_classes: Count,
        *,
        times: Sequence[float],
        feat: Count = 64,
        hidden: Count | None = None,
        dropout: Share = 0.0,
        input_dropout: Share = 0.0,
        mean: Tensor | None = None,
        scale: Tensor | None = None,
        scheme: TimeStepping = ACCURATE,
    ) -> None:
        super().__init__()
        if not times or list(times) != sorted(set(times)) or not 0 <= times[0] <= times[-1] < float("inf"):
            raise ValueError(f"`times` must be increasing, finite and at least 0; got {', '.join(map(str, times))}.")
        self.features, self.num_classes, self.times = features, num_classes, tuple(map(float, times))
        self.mixture = nn.Parameter(torch.zeros(len(times)))  # v
        self.encoder = Encoder(features, feat, dropout=input_dropout)
        self.hidden = None if hidden is None else Decoder(feat, hidden, dropout=dropout)
        self.decoder = Decoder(feat if hidden is None else hidden, num_classes, dropout=dropout)
        self.evolution = random_walk_evolution(time=self.times[-1] or 1.0, scheme=scheme)
        self.standardises = mean is not None or scale is not None
        for name, given, default in (("mean", mean, torch.zeros), ("scale", scale, torch.ones)):
            self.register_buffer(name, default(features) if given is None else given.to(torch.get_default_dtype()))

    @property
    def synchronises(self) -> bool:
        return self.evolution.synchronises

    @property
    def shares(self) -> Tensor:
        """The weights w of the times, (len(times),)."""
        return self.mixture.softmax(0)

    @property
    def mean_time(self) -> float:
        """The mean of the times by their shares."""
        return float(self.shares.detach().double().cpu() @ torch.tensor(self.times, dtype=torch.float64))

    def from_rows(self, rows: Tensor) -> Tensor:
        """Return the class scores of nodes from their diffused rows, (len(times), k, features) -> (k, classes)."""
        return self.decode(self.encoder((torch.tensordot(self.shares, rows, dims=1) - self.mean) / self.scale))

    def run(self, inputs: Inputs) -> Output:
        z = self.encoder(self._standardised(inputs.x))
        later = [t for t in self.times if t > 0]
        found = self.evolution.trajectory(z, inputs.edges, (0.0, *later)) if later else None
        states = z[None] if found is None else found.ys[len(later) - len(self.times) + 1 :]
        mixed = torch.tensordot(self.shares, states, dims=1)
        return Output(self.decode(mixed), z.new_zeros(()), () if found is None else found.solves)

    def decode(self, z: Tensor) -> Tensor:
        """Return class scores from mixed states, (k, feat) -> (k, classes)."""
        logits: Tensor = self.decoder(z if self.hidden is None else self.hidden(z))
        return logits

    def logits_along(self, inputs: Inputs, ts: Sequence[float], *, nodes: Tensor | None = None) -> Tensor:
        logits = self.run(inputs).logits
        logits = logits if nodes is None else logits[nodes]
        return logits.expand(len(ts), *logits.shape)

    def _standardised(self, x: Matrix) -> Matrix:
        if not self.standardises:
            return x
        if isinstance(x, SparseMatrix):
            x = x @ torch.eye(self.features, dtype=x.values.dtype, device=x.values.device)
        return (x - self.mean) / self.scale
