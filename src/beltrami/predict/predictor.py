"""A trained predictor for a user's graph: models, preprocessing, calibration; its files and its predictions."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

from beltrami import file_limits as limits
from beltrami.arguments import AnyPath, checked
from beltrami.config.spec import SCHEMA
from beltrami.data.dataset import Split
from beltrami.data.file import write_atomically
from beltrami.data.graph_table import GraphTable
from beltrami.data.labelled_graph import LabelledGraph
from beltrami.data.preprocess import Preprocessing
from beltrami.data.target import Targets
from beltrami.errors import DataError
from beltrami.predict.conformal import Conformal
from beltrami.predict.ensemble_file import ensemble_facts, load_ensemble, save_ensemble
from beltrami.predict.graph_file import load_graph, save_graph
from beltrami.predict.predictions import ClassPredictions, NumberPredictions, Predictions, label_reaches
from beltrami.predict.predictor_file import PredictorFacts
from beltrami.predict.shares import Explanation
from beltrami.predict.trained_models import AveragedEnsemble, Ensemble, task_of
from beltrami.run_folder import begin_to_save, check_digests, digests
from beltrami.train import Task

NEW_GRAPH = (
    "The graph is not the one that the model was trained on: its coverage is not guaranteed, and no sets are given."
)
NO_CALIBRATION = "No labels were set aside for calibration, as they are few: no sets are given."


@dataclass(frozen=True)
class Calibration:
    """From outputs to probabilities, numbers and sets.

    ``temperature`` divides the outputs; for numbers, output times ``scale`` plus ``centre`` is the prediction.
    ``conformal`` is None if no nodes were set aside.
    """

    temperature: float = 1.0
    centre: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()
    conformal: Conformal | None = None


@dataclass(frozen=True, eq=False)
class Predictor:
    """A trained model of a user's graph.

    ``graph`` and ``splits`` are those it was trained on; ``record`` says how it was found: attempts, baselines, times.
    """

    ensemble: Ensemble | AveragedEnsemble
    graph: LabelledGraph
    splits: tuple[Split, ...]
    preprocessing: Preprocessing
    calibration: Calibration
    record: Mapping[str, Any]

    @property
    def targets(self) -> Targets:
        assert self.graph.targets is not None
        return self.graph.targets

    @property
    def trained_on(self) -> Tensor:
        """The mask (n,) of the nodes whose labels the models saw, in training or in validation."""
        return torch.stack([split.train | split.val for split in self.splits]).any(0)

    @property
    def exclusive(self) -> bool:
        return self.targets.kind == "classes"

    def predict(
        self,
        table: GraphTable | None = None,
        *,
        coverage: float | None = 0.9,
        smoothing: float = 0.0,
        from_features: bool = False,
        device: str = "cpu",
    ) -> Predictions:
        """Return predictions at all nodes of the training graph, or of another graph with the same columns.

        Args:
            table: another graph; see :meth:`~beltrami.data.labelled_graph.LabelledGraph.followed_by` for a table
                without edges. It gets no sets, as nothing guarantees them.
            coverage: of the sets or intervals; None for none.
            smoothing: share of the neighbours' scores in the scores behind the sets of classes.
            from_features: predict also at nodes in whose connected component there is no label, by their features.
        """
        graph = self.graph if table is None else self.graph.followed_by(table, self.preprocessing)
        shown = slice(None if table is None else table.num_nodes)
        ensemble = self.ensemble.accurate() if table is not None and graph.by_features else self.ensemble
        outputs = ensemble.outputs(graph, device=device).mean(0)[shown]
        shared: dict[str, Any] = {"ids": graph.ids[shown]}
        shared["reached"] = self._reached(graph, from_features)
        conformal = self.calibration.conformal if table is None and coverage is not None else None
        notes = [] if table is None else [NEW_GRAPH]
        if coverage is not None and table is None and conformal is None:
            notes.append(NO_CALIBRATION)
        if self.targets.kind == "numbers":
            return self._numbers(outputs, conformal, coverage, shared | {"notes": notes})
        probabilities, sets = self._task().probabilities(outputs / self.calibration.temperature), None
        if conformal is not None and coverage is not None:
            conformal = self._smoothed(conformal, probabilities, smoothing)
            sets = conformal.sets(probabilities, coverage=coverage, edges=graph.edges)
            shared["guarantee"] = conformal.guarantee(coverage)
        return ClassPredictions(
            **shared,
            notes=notes,
            names=self.targets.names,
            probabilities=probabilities,
            exclusive=self.exclusive,
            sets=sets,
            temperature=self.calibration.temperature,
        )

    def explain(self, node: str) -> Explanation:
        """Return from which nodes and along which edges the prediction at a node, named by its id, came. For averaged
        models, it is the prediction of those with the largest weight."""
        if node not in self.graph.ids:
            raise ValueError(f"the graph has no node {node!r}: its first ids are {', '.join(self.graph.ids[:3])}.")
        return self.ensemble.explain(self.graph, list(self.graph.ids).index(node), exclusive=self.exclusive)

    @checked
    def save(self, folder: AnyPath) -> None:
        """Write the predictor into a folder; ``predictor.json``, with the digests of the others, comes last."""
        folder = Path(folder)
        begin_to_save(folder)
        save_graph(folder / "graph.safetensors", self.graph, self.splits)
        names = ["graph.safetensors", *save_ensemble(folder, self.ensemble)]
        facts = {**self._facts(), "files": digests(folder, names)}
        write_atomically(folder / "predictor.json", json.dumps(facts, indent=2).encode())

    @staticmethod
    @checked
    def load(folder: AnyPath) -> "Predictor":
        """Return the predictor in a folder."""
        folder = Path(folder)
        path = folder / "predictor.json"
        if not path.exists():
            found = "predictions.npy there has all classes" if (folder / "predictions.npy").exists() else "train first"
            raise DataError(f"{folder} has no predictor.json, which `beltrami train` on own tables writes: {found}.")
        try:
            facts = json.loads(limits.read_json(path))
            return Predictor._of_facts(folder, facts)
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise DataError(f"{path} cannot be read ({type(error).__name__}: {error}): train again.") from None

    def __reduce__(self) -> Any:
        """Pickle as the content of the files of :meth:`save`: weights and settings, and no code."""
        with TemporaryDirectory() as folder:
            self.save(folder)
            return _of_files, ({path.name: path.read_bytes() for path in Path(folder).iterdir()},)

    @staticmethod
    def _of_facts(folder: Path, values: Mapping[str, Any]) -> "Predictor":
        if values.get("schema") != SCHEMA:
            found = f"{folder} has a predictor of schema {values.get('schema')}"
            raise DataError(f"{found}, and this version reads {SCHEMA}: train again.")
        facts = PredictorFacts.parse(values)
        check_digests(folder, facts.files)
        graph, splits = load_graph(folder / "graph.safetensors", names=tuple(facts.names), kind=facts.kind)
        if graph.x.shape[1] != facts.preprocessing.num_features:
            raise ValueError(f"the graph has {graph.x.shape[1]} features, not {facts.preprocessing.num_features}")
        ensemble = load_ensemble(folder, facts, graph)
        stated = facts.calibration
        conformal = None if stated.conformal is None else stated.conformal.build()
        calibration = Calibration(stated.temperature, tuple(stated.centre), tuple(stated.scale), conformal)
        return Predictor(ensemble, graph, splits, facts.preprocessing, calibration, facts.record)

    def _facts(self) -> dict[str, Any]:
        calibration, conformal = self.calibration, self.calibration.conformal
        return {
            "schema": SCHEMA,
            "kind": self.targets.kind,
            "names": self.targets.names,
            **ensemble_facts(self.ensemble),
            "preprocessing": self.preprocessing.to_json(),
            "calibration": {
                "temperature": calibration.temperature,
                "centre": calibration.centre,
                "scale": calibration.scale,
                "conformal": conformal
                and {"kind": conformal.kind, "scores": conformal.scores.tolist(), "smoothing": conformal.smoothing},
            },
            "record": dict(self.record),
        }

    def _numbers(
        self, outputs: Tensor, conformal: Conformal | None, coverage: float | None, shared: dict[str, Any]
    ) -> NumberPredictions:
        values = (outputs * torch.tensor(self.calibration.scale) + torch.tensor(self.calibration.centre))[:, 0]
        if conformal is None or coverage is None:
            return NumberPredictions(**shared, values=values)
        interval, guarantee = conformal.interval(values, coverage=coverage), conformal.guarantee(coverage)
        return NumberPredictions(**shared, values=values, interval=interval, guarantee=guarantee)

    def _smoothed(self, conformal: Conformal, probabilities: Tensor, smoothing: float) -> Conformal:
        """Return the scores of the calibration nodes again, smoothed along the edges."""
        aside = self.splits[0].calibration
        if smoothing == 0 or aside is None:
            return conformal
        y, edges = self.targets.y, self.graph.edges
        return Conformal.fit(probabilities, y, calibration=aside, kind=conformal.kind, smoothing=smoothing, edges=edges)

    def _reached(self, graph: LabelledGraph, from_features: bool) -> Tensor | None:
        """Return the nodes in whose connected component of the given edges there is a label; None where that does not
        matter: edges made of features, a new graph with features, or predictions from features on demand."""
        new, has_features = graph is not self.graph, not self.preprocessing.nodes
        if has_features and (from_features or new or graph.by_features):
            return None
        has = self.trained_on
        if new:
            known = {self.graph.ids[node] for node in has.nonzero()[:, 0].tolist()}
            has = torch.tensor([name in known for name in graph.ids])
        return label_reaches(graph.edges, has)

    def _task(self) -> Task:
        return task_of(self.targets)


def _of_files(files: Mapping[str, bytes]) -> Predictor:
    """Return the predictor in the files of :meth:`Predictor.save`, by their names."""
    with TemporaryDirectory() as folder:
        for name, content in files.items():
            (Path(folder) / Path(name).name).write_bytes(content)
        return Predictor.load(folder)
