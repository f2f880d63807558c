"""The members of a selection that are trained, kept in a file, so that an interrupted selection can go on."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from beltrami.config.spec import RunConfig
from beltrami.data import Split
from beltrami.data.file import tensor_digest
from beltrami.data.labelled_graph import LabelledGraph
from beltrami.errors import DataError
from beltrami.predict.trained_models import Ensemble, new_model
from beltrami.train import TrainingState, ValidationScore
from beltrami.train.checkpoint import ABOUT
from beltrami.train.state import copies


@dataclass(frozen=True, eq=False)
class TrainedMember:
    """The models of a member, the mean of their scores, whether all trainings were done, and the seconds they took."""

    ensemble: Ensemble
    score: ValidationScore
    complete: bool
    seconds: float = 0.0


@dataclass(eq=False)
class KeptMembers:
    """Trained members in a file, which belongs to one problem: its graph, labels, splits and options."""

    path: Path
    about: dict[str, Any]
    _state: TrainingState = field(init=False)

    def __post_init__(self) -> None:
        self._state = TrainingState({}, {ABOUT: self.about, "members": {}})
        if self.path.exists():
            state = TrainingState.read(self.path)
            if state.values.get(ABOUT) != self.about:
                raise DataError(
                    f"the unfinished run in {self.path.parent} has another graph or other options: give the same, "
                    "choose another folder with `--out`, or begin anew with `--force`."
                )
            self._state = state

    def get(self, name: str, config: RunConfig, graph: LabelledGraph, outputs: int) -> TrainedMember | None:
        """Return a member that was trained before; None if it was not."""
        facts = self._state.values["members"].get(name)
        if facts is None:
            return None
        models = []
        for k in range(len(facts["times"])):
            model = new_model(config, graph, outputs=outputs)
            model.load_state_dict(self._state.part(f"{name}.{k}"))
            models.append(model)
        ensemble = Ensemble(config, tuple(models), tuple(facts["times"]))
        return TrainedMember(ensemble, ValidationScore(**facts["score"]), facts["complete"], facts["seconds"])

    def add(self, name: str, member: TrainedMember) -> None:
        """Keep a member."""
        facts = {"times": member.ensemble.times, "score": asdict(member.score), "complete": member.complete}
        self._state.values["members"][name] = {**facts, "seconds": member.seconds}
        for k, model in enumerate(member.ensemble.models):
            self._state.tensors.update(copies(f"{name}.{k}", model.state_dict()))
        self._state.write(self.path)


def about_problem(graph: LabelledGraph, y: Tensor, splits: Sequence[Split], **options: Any) -> dict[str, Any]:
    """Return a digest of a graph with its features, labels and splits, and the options, as plain values."""
    x = graph.x.coalesce() if graph.x.is_sparse else graph.x
    tensors = {"indices": x.indices(), "values": x.values()} if x.is_sparse else {"values": x}
    for k, split in enumerate(splits):
        tensors |= {f"{name}{k}": mask for name, mask in split.masks.items()}
    digest = tensor_digest({**tensors, "y": y}, name=str(graph.edges.fingerprint))
    return {"problem": digest, **options}
