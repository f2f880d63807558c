"""Checkpoints of a training in progress: when they are written, with which settings, and how to stop a training."""

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from beltrami.arguments import AnyPath, Count, NotNegative, checked
from beltrami.errors import DataError, Interrupted
from beltrami.train.callback import Epoch
from beltrami.train.loop import Loop, TrainingWarning
from beltrami.train.state import TrainingState

if TYPE_CHECKING:
    from beltrami.train.fitting import Fitting

ABOUT = "about"  # the key of the settings in a checkpoint
SECONDS = 30.0  # between two checkpoints


@checked
@dataclass
class Checkpoints:
    """The file in which a training keeps its state, every ``seconds`` or, if given, every ``epochs``.

    ``about``: the settings of the training as plain values; a checkpoint with other settings is refused. Once ``stop``
    is true, the training writes a checkpoint after the current epoch and raises :class:`Interrupted`. If the file
    cannot be written, a warning says so and the training goes on.
    """

    path: AnyPath
    about: Mapping[str, Any] = field(default_factory=dict)
    seconds: NotNegative = SECONDS
    epochs: Count | None = None
    stop: bool = False
    _last: float = field(default_factory=time.monotonic)
    _failed: bool = False

    def read(self) -> TrainingState | None:
        """Return the state to go on from; None if there is no file. A file of other settings is refused."""
        path = Path(self.path)
        if not path.exists():
            return None
        state = TrainingState.read(path)
        if state.values.get(ABOUT) != self.about:
            found = state.values.get(ABOUT)
            names = _differences(found if isinstance(found, Mapping) else {}, self.about)
            raise DataError(
                f"the unfinished run in {path.parent} has other settings ({', '.join(names)}): give the same, "
                "choose another folder with `--out`, or begin anew with `--force`."
            )
        return state

    def after(self, epoch: Epoch, fitting: "Fitting | Loop") -> None:
        """Write a checkpoint if it is time, or if the training has to stop."""
        now = time.monotonic()
        due = now - self._last >= self.seconds if self.epochs is None else epoch.number % self.epochs == 0
        if not due and not self.stop:
            return
        state = fitting.checkpoint()
        state.values[ABOUT] = dict(self.about)
        try:
            state.write(Path(self.path))
        except OSError as error:
            if self.stop:
                raise
            if not self._failed:
                text = f"no checkpoint can be written ({error}): the training goes on without."
                warnings.warn(text, TrainingWarning, stacklevel=2)
            self._failed = True
        self._last = time.monotonic()
        if self.stop:
            best = f"{100 * epoch.best[0].metric:.1f}%"
            raise Interrupted(f"stopped after epoch {epoch.number}, with a validation accuracy of {best} at best.")


def _differences(found: Mapping[str, Any], asked: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Return the dotted names under which two trees of settings differ."""
    names = []
    for name in dict.fromkeys((*found, *asked)):
        here, there = found.get(name), asked.get(name)
        if isinstance(here, Mapping) and isinstance(there, Mapping):
            names += _differences(here, there, f"{prefix}{name}.")
        elif here != there:
            names.append(f"{prefix}{name}")
    return names
