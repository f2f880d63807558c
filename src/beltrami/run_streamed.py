"""Train BLEND on a graph folder within a limit of memory, in blocks; save the run and evaluate it again."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from beltrami import train
from beltrami.arguments import AnyPath, DeviceName, as_name, checked
from beltrami.config.build import build_classifier, build_training, check_settings
from beltrami.config.graph_source import WITH_POSITIONS, folder_spec, open_recorded
from beltrami.config.parser import override, read
from beltrami.config.recipe.blend import EXPONENTIAL
from beltrami.config.spec import RunConfig
from beltrami.config.spec_rows import BlockConfig
from beltrami.data import Split
from beltrami.data.array_file import Array
from beltrami.data.graph_folder import TEST, TRAIN, VAL, GraphFolder, roles_of
from beltrami.errors import DataError, UnknownName
from beltrami.model import BLEND
from beltrami.node_predictions import PREDICTIONS, PROBABILITY, KnownNodes, check_training_classes
from beltrami.result import RunResult, result_of_fit
from beltrami.run import CONFIG, WEIGHTS, read_result, save_run
from beltrami.run_folder import begin_to_save
from beltrami.scale.streamed_blend import StreamedBlend
from beltrami.scale.streamed_inputs import StreamedInputs
from beltrami.scale.streamed_model import open_streamed
from beltrami.train.callback import AnyCallback

COMMON = (
    *("data.component=all", "data.protocol=roles", "model.feat=64", "model.input_dropout=0", "flow.source=true"),
    *("scheme.time=4", "train.epochs=100", "train.weight_decay=0.0005", "train.patience=30"),
    "train.time_grid.kind=terminal",
)
RECIPES = {
    "blend": ("diffusivity.kind=scaled-dot", "diffusivity.width=32", "diffusivity.heads=2"),
    "uniform": ("diffusivity.kind=uniform",),
}
"""The recipes for graph folders: attention frozen at z(0), and equal weights on all edges. They were not tuned."""


@checked
def streamed_config(folder: Path, *, recipe: str = "blend", seed: int = 0, settings: Sequence[str] = ()) -> RunConfig:
    """Return the configuration of a training on a graph folder; ``settings`` are changes such as ``scheme.time=2``."""
    if recipe not in RECIPES:
        raise UnknownName("recipe for a graph folder", recipe, (*RECIPES, "precomputed"))
    name = as_name(folder.resolve().name) or "graph"
    config = replace(EXPONENTIAL, dataset=name, recipe=recipe, seed=seed)
    config = override(config, [*COMMON, *RECIPES[recipe], *settings])
    train = config.train
    if train.consistency.kind != "none" or train.self_training or train.distillation.kind != "none":
        settings = "`train.consistency`, `train.self_training` and `train.distillation`"
        raise ValueError(f"training in blocks has none of {settings}: leave them out.")
    if config.position.kind != "none":
        raise ValueError("the positions of a graph folder are in its pos.npy: leave `position.kind` out.")
    check_settings(config)
    return config


def block_config(graph: GraphFolder, settings: RunConfig) -> BlockConfig:
    """Return the configuration of a run, with the path and digest of its graph folder, whose files are read once."""
    return BlockConfig(graph=folder_spec(graph, arrays=WITH_POSITIONS), run=settings)


@dataclass(frozen=True, eq=False)
class StreamedProblem:
    """A model in blocks with its inputs, targets and split, on a device."""

    model: StreamedBlend
    inputs: StreamedInputs
    y: Tensor
    split: Split

    @property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits for the graph."""
        return f"{self.inputs.graph % 2**64:016x}"

    @property
    def known(self) -> KnownNodes:
        """The classes and roles for the evaluation of predictions."""
        return KnownNodes(self.y.cpu().numpy(), roles_of(self.split).cpu().numpy(), self.model.num_classes)

    @torch.no_grad()
    def outputs_at(self, time: float) -> Iterator[tuple[slice, Tensor]]:
        """Yield all nodes in blocks, with the outputs of the model at a time of the flow."""
        model, inputs = self.model.eval(), self.inputs
        states = model.states_at(inputs, torch.arange(inputs.num_nodes, device=inputs.device), (time,))[0]
        for rows in inputs.row_ranges():
            yield rows, model.xi(states[rows].to(inputs.device))


@checked
def open_problem(
    config: BlockConfig, *, graph: GraphFolder | None = None, memory: int | None = None, device: DeviceName = "cpu"
) -> StreamedProblem:
    """Open the files of a graph folder and plan the memory; a folder that cannot be trained on, or that has changed, is
    refused. ``graph``: the folder, if it is open."""
    folder, settings = open_recorded(config.graph, graph=graph, arrays=WITH_POSITIONS), config.run
    y, split = _targets(folder)
    if not folder.num_features:
        raise DataError(f"{folder.path} has no features: write them as x.npy, (nodes, features).")
    widths = {"features": folder.num_features, "positions": 0 if folder.pos is None else folder.pos.shape[1]}
    with train.seeded(settings.seed):
        model = build_classifier(settings, **widths, num_classes=int(y.max()) + 1).to(device)
    if not isinstance(model, BLEND):
        raise ValueError(f"`model.kind={settings.model.kind}` cannot be computed in blocks: use blend.")
    labelled = max(int(split.train.sum()), int(split.val.sum()))
    times = len(build_training(settings.train).time_grid.times(model.time))
    streamed, inputs = open_streamed(
        model, folder, memory=memory, device=device, val_times=times, labelled_nodes=labelled
    )
    return StreamedProblem(streamed, inputs, y.to(inputs.device), split.to(inputs.device))


@checked
def run_streamed(
    config: BlockConfig,
    folder: AnyPath,
    *,
    problem: StreamedProblem | None = None,
    memory: int | None = None,
    device: DeviceName = "cpu",
    callbacks: Sequence[AnyCallback] = (),
    checkpoints: train.Checkpoints | None = None,
) -> RunResult:
    """Train a configuration and write its files to ``folder``: the settings, the weights, the predicted class of every
    node and its probability, and last the result. Every choice is made by validation, and test labels are read once.

    ``problem`` is that of the configuration, if it is open already; else it is opened on ``device`` within ``memory``.
    """
    folder, settings = Path(folder), config.run
    problem = open_problem(config, memory=memory, device=device) if problem is None else problem
    model, inputs, split = problem.model, problem.inputs, problem.split
    with train.seeded(settings.seed):
        training = build_training(settings.train)
        found = train.fit(model, inputs, problem.y, split, training, callbacks=callbacks, checkpoints=checkpoints)
    folder.mkdir(parents=True, exist_ok=True)
    begin_to_save(folder)
    accuracies = problem.known.write(folder, problem.outputs_at(found.best.time))
    result = result_of_fit(
        settings, model, found, accuracies, dataset=settings.dataset, split=split.facts, device=inputs.device
    )
    result = replace(result, attention_spread=model.attention_spread(inputs), graph=problem.fingerprint)
    return save_run(folder, config, result, model, files=(PREDICTIONS, PROBABILITY))


def read_block_config(path: Path) -> BlockConfig:
    """Return the configuration of a run in blocks in a file."""
    return read(BlockConfig, path, what="configuration")


@checked
def evaluate_streamed(
    folder: AnyPath, *, memory: int | None = None, device: DeviceName = "cpu"
) -> tuple[RunResult, float, float]:
    """Return the saved result of a run in blocks, and the validation and test accuracy of its weights as of now."""
    folder = Path(folder)
    result, config = read_result(folder), read_block_config(folder / CONFIG)
    problem = open_problem(config, memory=memory, device=device)
    train.load_weights(problem.model, folder / WEIGHTS, device=device)
    accuracies = problem.known.accuracies_of(problem.outputs_at(result.best_time))
    return result, accuracies.val, accuracies.test


def _targets(folder: GraphFolder) -> tuple[Tensor, Split]:
    """Return the classes and the split of a folder, in memory."""
    y, role = _read(folder, "y", folder.y).long(), _read(folder, "role", folder.role)
    folder.verify_labels()
    split = Split(role == TRAIN, role == VAL, role == TEST, "roles", 0)
    for name, number, chosen in (("training", TRAIN, split.train), ("validation", VAL, split.val)):
        if not bool(chosen.any()):
            raise DataError(f"{folder.path} has no {name} nodes: give some nodes the role {number}.")
    unlabelled = ((role > 0) & (y < 0)).nonzero()
    if len(unlabelled):
        raise DataError(f"node {int(unlabelled[0])} of {folder.path} has a role and no class: give it the role 0.")
    check_training_classes(y[split.train], num_classes=int(y.max()) + 1, name=str(folder.path))
    return y.clamp(min=0), split


def _read(folder: GraphFolder, name: str, array: Array | None) -> Tensor:
    if array is None:
        raise DataError(f"{folder.path} has no {name}.npy, which training needs: add this file.")
    return torch.from_numpy(np.array(array))
