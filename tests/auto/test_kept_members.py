"""A selection that was interrupted goes on to the same result; trained members are not trained again."""

from pathlib import Path
from typing import Any

import pytest
import torch
from own_graph import two_groups

from beltrami.auto import selection
from beltrami.auto.baselines import run_baselines
from beltrami.auto.kept_members import KeptMembers, about_problem
from beltrami.auto.portfolio import MEMBERS, Member
from beltrami.auto.selection import Attempt, Selection, select
from beltrami.data.graph_reader import read_graph
from beltrami.data.labelled_graph import LabelledGraph
from beltrami.data.labelled_split import split_labels
from beltrami.data.preprocess import Preprocessing
from beltrami.data.target import read_targets
from beltrami.errors import DataError
from beltrami.graph.sparse_matrix import sparse_where_it_pays
from beltrami.train import Classification

SHORT = ("train.epochs=4", "train.patience=4")
THREE = {
    name: Member(MEMBERS[name].says, (*MEMBERS[name].settings, *SHORT)) for name in ("network", "uniform", "cosine")
}


class Problem:
    """A small graph with its labels and the linear model that a selection begins with."""

    def __init__(self, folder: Path, **options: Any) -> None:
        table = read_graph(two_groups(**options).write(folder))
        targets = read_targets(table.labels)
        preprocessing = Preprocessing.learn(table.columns, table.x, ids=table.ids)
        self.graph = LabelledGraph.of_table(table, preprocessing, targets)
        self.y, self.task = targets.y.clamp_min(0), Classification(2)
        self.splits = split_labels(targets.y, seed=0)
        x = sparse_where_it_pays(self.graph.x)
        _, self.linear = run_baselines(x, self.graph.edges, self.y, self.splits, task=self.task)

    def kept(self, path: Path) -> KeptMembers:
        return KeptMembers(path, about_problem(self.graph, self.y, self.splits, seed=0))

    def select(self, kept: KeptMembers | None) -> tuple[Selection, list[Attempt]]:
        told: list[Attempt] = []
        options: dict[str, Any] = {"task": self.task, "budget": 1000.0, "members": THREE, "report": told.append}
        return select(self.graph, self.y, self.splits, self.linear, **options, kept=kept), told


@pytest.mark.slow
def test_an_interrupted_selection_goes_on_to_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, path = Problem(tmp_path / "graph"), tmp_path / "checkpoint.safetensors"
    whole, told = problem.select(None)
    train, calls = selection.train_member, list[str]()

    def interrupted(config: Any, *arguments: Any, **named: Any) -> Any:
        calls.append(config.model.kind)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return train(config, *arguments, **named)

    monkeypatch.setattr(selection, "train_member", interrupted)
    with pytest.raises(KeyboardInterrupt):
        problem.select(problem.kept(path))
    found, again = problem.select(problem.kept(path))
    assert len(calls) == 4  # the third member alone is trained again
    assert [(each.name, each.metric, each.note) for each in again] == [
        (each.name, each.metric, each.note) for each in told
    ]
    assert (found.name, found.score) == (whole.name, whole.score)
    outputs = [each.ensemble.outputs(problem.graph) for each in (found, whole)]
    assert torch.equal(*outputs)


@pytest.mark.slow
def test_members_of_another_problem_are_refused(tmp_path: Path) -> None:
    problem, path = Problem(tmp_path / "graph"), tmp_path / "checkpoint.safetensors"
    problem.select(problem.kept(path))
    other = Problem(tmp_path / "other", labelled=20)
    with pytest.raises(DataError, match=r"has another graph or other options: .* begin anew with `--force`"):
        other.kept(path)
