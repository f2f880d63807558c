"""Training steps as CUDA graphs."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import torch
from torch import Tensor
from torch.optim import SGD, Optimizer

from beltrami.model import Classifier
from beltrami.model.captured_graph import CapturedGraph
from beltrami.train.state import set_optimiser_state
from beltrami.train.weights import ExponentialMovingAverage


def should_capture(model: Classifier, wanted: bool | None) -> bool:
    """Return ``wanted``, or for None whether the model can be captured; refuse to capture a model that cannot be."""
    possible = next(model.parameters()).device.type == "cuda" and not model.synchronises
    if wanted and not possible:
        raise ValueError(
            "`cuda_graph` needs a model on a GPU with constant steps or Exponential, a graph that stays the same and "
            "no running costs: leave it None, and it is used where possible."
        )
    return possible if wanted is None else wanted


class OptimiserStep:
    """Gradients, a step of the optimiser, a step of the moving average; with ``capture`` as one CUDA graph, unless the
    optimiser cannot be captured (it has no ``capturable`` groups and is not plain SGD).

    ``compute_gradients`` leaves gradients at the parameters of ``optimiser`` and ``ema`` and returns the loss or
    losses; where it is captured, at the first call, it may not synchronise. ``buffers``: tensors besides the gradients
    that it writes to.
    """

    def __init__(
        self,
        compute_gradients: Callable[[], Tensor],
        optimiser: Optimizer,
        ema: ExponentialMovingAverage | None = None,
        *,
        buffers: Iterable[Tensor] = (),
        capture: bool = False,
    ) -> None:
        self.compute_gradients, self.optimiser, self.ema = compute_gradients, optimiser, ema
        self.buffers, self.capture = list(buffers), capture and _is_capturable(optimiser)
        self._graph: CapturedGraph[Tensor] | None = None
        if self.capture:
            for group in optimiser.param_groups:
                if "capturable" in group:
                    group["capturable"] = True

    def __call__(self, step: int) -> Tensor:
        """Return the loss before the step, which is counted from 1."""
        if self.ema is not None:
            self.ema.begin(step)
        if not self.capture:
            return self._work()
        if self._graph is None:
            self._graph = self._captured()
        return self._graph()

    def load(self, state: Mapping[str, Tensor], rates: Sequence[float]) -> None:
        """Give the optimiser a saved state and the learning rates of its groups; the next step captures anew."""
        set_optimiser_state(self.optimiser, state)
        for group, rate in zip(self.optimiser.param_groups, rates, strict=True):
            group["lr"] = rate
        self._graph = None

    def _work(self) -> Tensor:
        loss = self.compute_gradients()
        self.optimiser.step()
        if self.ema is not None:
            self.ema()
        return loss

    def _captured(self) -> CapturedGraph[Tensor]:
        parameters: list[Tensor] = [p for group in self.optimiser.param_groups for p in group["params"]]
        averages = [] if self.ema is None else [average for average, _ in self.ema.pairs]
        known = {id(tensor): tensor for tensor in (*self.buffers, *parameters, *self._state(), *averages)}
        with torch.enable_grad():
            graph = CapturedGraph(self._work, known.values(), parameters[0].device)
        for tensor in self._state():
            if id(tensor) not in known:  # made in the warm-up: the state of torch's optimisers begins at zero
                tensor.zero_()
        return graph

    def _state(self) -> list[Tensor]:
        states = self.optimiser.state.values()
        return [value for state in states for value in state.values() if isinstance(value, Tensor)]


def _is_capturable(optimiser: Optimizer) -> bool:
    groups = optimiser.param_groups
    if isinstance(optimiser, SGD):
        return not any(group["momentum"] for group in groups)  # with momentum its first step differs from the others
    return all("capturable" in group for group in groups)
