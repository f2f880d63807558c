"""The graph of a run on rows: a graph folder, or a dataset that is written as one, with classes and roles."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from beltrami.config.graph_source import open_recorded
from beltrami.config.spec_rows import DatasetSpec, GraphFolderSpec
from beltrami.data import Dataset, Progress, make_split
from beltrami.data.array_file import Array
from beltrami.data.file import cache_folder, tensor_digest
from beltrami.data.graph_folder import CHUNK, TRAIN, VAL, GraphFolder, is_graph_folder, roles_of, write_graph_folder
from beltrami.errors import DataError
from beltrami.node_predictions import KnownNodes, check_training_classes
from beltrami.precompute import read_dataset
from beltrami.scale.diffused_rows import graph_digest
from beltrami.train.row_program import LabelledNodes


@dataclass(frozen=True, eq=False)
class RowProblem:
    """A graph with features in files, the classes (n,) and roles (n,) of its nodes, and facts about the split."""

    name: str
    graph: GraphFolder
    y: Array
    role: Array
    split: dict[str, Any]

    def nodes(self, role: int) -> LabelledNodes:
        """Return the nodes of a role with their classes; the roles are read in chunks."""
        starts = range(0, self.graph.num_nodes, CHUNK)
        found = np.concatenate([at + np.flatnonzero(self.role[at : at + CHUNK] == role) for at in starts])
        return LabelledNodes(found, torch.from_numpy(np.take(self.y, found).astype(np.int64)))

    def labelled(self) -> tuple[LabelledNodes, LabelledNodes, int]:
        """Return the training and the validation nodes and the number of classes; other classes are not read."""
        train, val = self.nodes(TRAIN), self.nodes(VAL)
        for name, role, known in (("training", TRAIN, train), ("validation", VAL, val)):
            if not len(known):
                raise DataError(f"{self.name} has no {name} nodes: give some nodes the role {role}.")
            if int(known.y.min()) < 0:
                node = int(known.nodes[int(known.y.argmin())])
                raise DataError(f"node {node} of {self.name} is a {name} node without a class: give it the role 0.")
        classes = max(2, 1 + max(int(train.y.max()), int(val.y.max())))
        check_training_classes(train.y, num_classes=classes, name=self.name)
        return train, val, classes

    def known(self, num_classes: int) -> KnownNodes:
        """Return the classes and roles for the evaluation of predictions."""
        return KnownNodes(self.y, self.role, num_classes)


def load_row_problem(
    spec: DatasetSpec | GraphFolderSpec, *, graph: GraphFolder | None = None, progress: Progress | None = None
) -> RowProblem:
    """Return a graph in files; a folder without classes or roles, or that has changed, is refused. ``graph``: the
    folder, if it is open."""
    if isinstance(spec, DatasetSpec):
        dataset = read_dataset(spec.name, component=spec.component, progress=progress)
        split = make_split(dataset, protocol=spec.protocol, seed=spec.split_seed)
        return RowProblem(spec.name, dataset_folder(dataset), dataset.y.numpy(), roles_of(split).numpy(), split.facts)
    graph = open_recorded(spec, graph=graph)
    graph.verify()
    if graph.y is None or graph.role is None:
        missing = "y.npy, the class" if graph.y is None else "role.npy, the role (1 training, 2 validation, 3 test)"
        raise DataError(f"{graph.path} has no {missing} of each node: add this file.")
    if graph.pos is not None:
        warnings.warn(f"{graph.path} holds positions, pos, which the recipe precomputed does not use.", stacklevel=2)
    about = {"protocol": "folder", "seed": 0, "hash": graph_digest(graph, ("y", "role"))[:16]}
    return RowProblem(graph.path.name, graph, graph.y, graph.role, about)


def dataset_folder(dataset: Dataset) -> GraphFolder:
    """Return a dataset as a graph folder without roles in the cache, where it is written if it is not there."""
    tensors = {"x": dataset.x, "edge_index": dataset.edge_index, "y": dataset.y}
    place = cache_folder() / "graphs" / f"{dataset.name}-{tensor_digest(tensors, name='graph folder')[:16]}"
    if not is_graph_folder(place):
        try:
            write_graph_folder(place, dataset)
        except (OSError, DataError):
            if not is_graph_folder(place):  # another process has not written it meanwhile
                raise
    return GraphFolder.open(place)
