"""Update: one step of training, from the gradients to the running average."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor
from torch.optim import SGD, Optimizer

from beltrami.train.cuda_graph import CapturedGraph
from beltrami.train.ema import ExponentialMovingAverage


class Update:
    """Gradients, a step of the optimiser and of the running average; all of it a CUDA graph where it is recorded.

    An optimiser that cannot be recorded (it has no ``capturable`` groups and is not plain SGD) steps beside the graph.

    Args:
        descend: leaves gradients at the parameters and returns the loss or losses; it may not wait for the device
            where it is recorded.
        optimiser: of these parameters.
        average: that follows them, or None.
        buffers: what ``descend`` writes to besides gradients.
        record: whether to record; the first call does.
    """

    def __init__(
        self,
        descend: Callable[[], Tensor],
        optimiser: Optimizer,
        average: ExponentialMovingAverage | None = None,
        *,
        buffers: Iterable[Tensor] = (),
        record: bool = False,
    ) -> None:
        self.descend, self.optimiser, self.average = descend, optimiser, average
        self.buffers, self.record = list(buffers), record
        self.whole = _can_be_recorded(optimiser)
        self._graph: CapturedGraph[Tensor] | None = None
        if record and self.whole:
            for group in optimiser.param_groups:
                if "capturable" in group:
                    group["capturable"] = True

    def __call__(self, step: int) -> Tensor:
        """The loss before the step, which is counted from 1."""
        if self.average is not None:
            self.average.begin(step)
        if not self.record:
            return self._all()
        if self._graph is None:
            self._graph = self._recorded()
        loss = self._graph()
        if not self.whole:
            self._move()
        return loss

    def _all(self) -> Tensor:
        loss = self.descend()
        self._move()
        return loss

    def _move(self) -> None:
        self.optimiser.step()
        if self.average is not None:
            self.average()

    def _recorded(self) -> CapturedGraph[Tensor]:
        parameters: list[Tensor] = [p for group in self.optimiser.param_groups for p in group["params"]]
        written = [*self.buffers]
        if self.whole:
            written += [*parameters, *self._state(), *(self.average.tensors if self.average is not None else ())]
        known = {id(tensor) for tensor in written}
        with torch.enable_grad():
            graph = CapturedGraph(self._all if self.whole else self.descend, _once(written), parameters[0].device)
        for tensor in self._state():
            if id(tensor) not in known:  # made while warming up: every optimiser of torch begins at zero
                tensor.zero_()
        return graph

    def _state(self) -> list[Tensor]:
        states = self.optimiser.state.values()
        return [value for state in states for value in state.values() if isinstance(value, Tensor)]


def _can_be_recorded(optimiser: Optimizer) -> bool:
    groups = optimiser.param_groups
    if isinstance(optimiser, SGD):
        return not any(group["momentum"] for group in groups)  # its first step is another than those that follow
    return all("capturable" in group for group in groups)


def _once(tensors: list[Tensor]) -> list[Tensor]:
    return list({id(tensor): tensor for tensor in tensors}.values())
