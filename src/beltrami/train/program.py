"""Programs of one model: the training loss, steps, validations and state."""

import copy
from collections.abc import Callable, Iterable
from functools import partial
from typing import Generic, TypeVar

import torch
from torch import Tensor

from beltrami.data import Split
from beltrami.model import Classifier, Inputs
from beltrami.model.nonfinite import first_nonfinite
from beltrami.scheme import Stats
from beltrami.train.base import Program
from beltrami.train.cuda_graph import OptimiserStep, should_capture
from beltrami.train.state import (
    TrainingState,
    copies,
    optimiser_state,
    random_state,
    set_random_state,
    write_into,
)
from beltrami.train.task import Task
from beltrami.train.training import Consistency, Training
from beltrami.train.validation import AT_END, TimeGrid, ValidationScore, make_validation
from beltrami.train.weights import ExponentialMovingAverage, tensors_of

M = TypeVar("M", bound=Classifier)


class LossStep:
    """Computes the training loss and leaves its gradients at the parameters, without a host synchronisation;
    ``y`` (n, ...): targets of all nodes, ``train`` (n,): mask of the training nodes, ``cost``: a further cost of the
    outputs (passes, n, classes), such as distillation."""

    def __init__(
        self,
        model: Classifier,
        inputs: Inputs,
        y: Tensor,
        train: Tensor,
        consistency: Consistency,
        task: Task,
        cost: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        self.model, self.inputs, self.consistency, self.task, self.cost = model, inputs, consistency, task, cost
        self.nodes = train.nonzero()[:, 0]  # once, because counting a mask synchronises
        self.y = y[self.nodes]
        self.stats = Stats()
        self.share = torch.ones((), device=y.device)  # a tensor, so that a CUDA graph reads its current value

    def begin(self, epoch: int) -> None:
        """Prepare the step of an epoch, counted from 1."""
        self.share.fill_(self.consistency.share(epoch))

    def __call__(self) -> Tensor:
        """Return the loss: the mean over passes of the task's loss and running costs, plus the share of consistency,
        plus the further cost."""
        self.model.train()
        self.model.zero_grad(set_to_none=True)
        if self.consistency.weight or self.cost is not None:
            outputs = [self.model.run(self.inputs) for _ in range(self.consistency.passes)]
            trained = [each.logits[self.nodes] for each in outputs]
        else:
            outputs = [self.model.run_at(self.inputs, self.nodes) for _ in range(self.consistency.passes)]
            trained = [each.logits for each in outputs]
        losses = [
            self.task.loss(logits, self.y, reduction="mean") + each.cost
            for logits, each in zip(trained, outputs, strict=True)
        ]
        loss = torch.stack(losses).mean() if len(losses) > 1 else losses[0]
        if self.consistency.weight or self.cost is not None:
            every = torch.stack([output.logits for output in outputs])
            if self.consistency.weight:
                loss = loss + self.share * self.consistency(self.task.probabilities(every))
            if self.cost is not None:
                loss = loss + self.cost(every)
        loss.backward()
        self.stats = Stats.total(output.stats for output in outputs)
        return loss.detach()


class ModelProgram(Program, Generic[M]):
    """The base of programs of one model, which they train in place: its optimiser, its best weights and its state.

    ``compute_gradients`` leaves gradients at the parameters of the model and returns the loss, on ``device``.
    """

    def __init__(
        self,
        model: M,
        compute_gradients: Callable[[], Tensor],
        training: Training,
        *,
        device: torch.device,
        capture: bool = False,
    ) -> None:
        self.runs, self.stats, self._device = [0], Stats(), device
        self.model, self.evaluated, ema = model, model, None  # the model whose weights validation scores and keeps
        if training.ema:
            self.evaluated = copy.deepcopy(model).requires_grad_(False)
            ema = ExponentialMovingAverage(tensors_of(self.evaluated), tensors_of(model), decay=training.ema)
        optimiser = training.make_optimiser(dict(model.named_parameters()))
        self._step = OptimiserStep(compute_gradients, optimiser, ema, buffers=model.buffers(), capture=capture)
        self.keep_best([0])

    @property
    def parameters(self) -> Iterable[Tensor]:
        return self.model.parameters()

    def keep_best(self, rows: list[int]) -> None:
        if rows:
            self._best = {name: tensor.detach().clone() for name, tensor in tensors_of(self.evaluated).items()}

    def drop_all_but(self, rows: list[int]) -> None:
        pass  # there is one row

    def state(self) -> TrainingState:
        optimiser, ema = self._step.optimiser, self.evaluated is not self.model
        tensors = {
            **copies("weights", tensors_of(self.model)),
            **(copies("average", tensors_of(self.evaluated)) if ema else {}),
            **copies("best", self._best),
            **optimiser_state(optimiser),
            **random_state(self._device),
        }
        return TrainingState(tensors, {"rates": [float(group["lr"]) for group in optimiser.param_groups]})

    def load_state(self, state: TrainingState) -> None:
        write_into(tensors_of(self.model), state.part("weights"))
        if self.evaluated is not self.model:
            write_into(tensors_of(self.evaluated), state.part("average"))
        write_into(self._best, state.part("best"))
        self._step.load(state.part("optimiser"), state.values["rates"])
        set_random_state(state.tensors, self._device)

    def restore_best(self) -> None:
        write_into(tensors_of(self.model), self._best)


class SingleProgram(ModelProgram[Classifier]):
    """The program of one model on a whole graph; arguments as for :func:`~beltrami.train.fit`, and soft targets of
    distillation (n, classes), if any."""

    def __init__(
        self,
        model: Classifier,
        inputs: Inputs,
        y: Tensor,
        split: Split,
        training: Training,
        task: Task,
        soft: Tensor | None = None,
    ) -> None:
        capture = should_capture(model, training.cuda_graph)
        cost = None if soft is None else partial(training.distillation, soft=soft)
        self._loss_step = LossStep(model, inputs, y, split.train, training.consistency, task, cost)
        super().__init__(model, self._loss_step, training, device=y.device, capture=capture)
        grids, known = (training.time_grid, AT_END), (inputs, y, split)
        self._validations = {grid: make_validation(self.evaluated, *known, grid, task, capture) for grid in grids}
        self._validate_best = make_validation(model, *known, training.time_grid, task)

    def step(self, epoch: int) -> list[float]:
        self._loss_step.begin(epoch)
        loss = float(self._step(epoch))
        self.stats = self._loss_step.stats
        return [loss]

    def validate(self, time_grid: TimeGrid) -> list[ValidationScore]:
        return [self._validations[time_grid]()]

    def first_nonfinite(self) -> str:
        return first_nonfinite(self.model.train(), self._loss_step.inputs)

    def validate_best(self) -> list[ValidationScore]:
        return [self._validate_best()]


def check_inputs(inputs: Inputs, y: Tensor, split: Split) -> None:
    """Refuse inputs of another graph, and targets or splits on another device."""
    nodes, where = inputs.num_nodes, inputs.device
    if nodes != split.num_nodes:
        raise ValueError(f"`inputs` have {nodes} nodes where the split has {split.num_nodes}: use those of one graph.")
    for name, device in {"y": y.device, "split": split.train.device}.items():
        if device != where:
            raise ValueError(f"`{name}` is on {device} and `inputs` on {where}: move one with `.to(...)`.")
