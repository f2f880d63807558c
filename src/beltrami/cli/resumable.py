"""A run on the command line that can stop and go on: its folder, its checkpoints, its logs."""

import json
import shlex
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import typer

from beltrami.errors import Interrupted

if TYPE_CHECKING:
    from beltrami.cli.train_run import Running
    from beltrami.result import RunResult
    from beltrami.train import Callback, Checkpoints

LOG = "epochs.jsonl"  # a line for each epoch, in the folder of a run


@contextmanager
def finished_run(
    name: str,
    settings: str,
    running: "Running",
    train: Callable[[Path, "Checkpoints"], None],
    *,
    read: Callable[[Path], Any],
) -> Iterator[tuple[Path, "RunResult"]]:
    """Yield the folder of a run and its result, which ``train`` writes unless the run is finished; then print it as
    JSON, if asked. ``settings``: the configuration as JSON; ``read``: reads a configuration from a file."""
    from beltrami.result import RunResult
    from beltrami.run_folder import CHECKPOINT, is_finished
    from beltrami.train import Checkpoints

    about = json.loads(settings)
    with open_folder(name, about, running, read) as folder, running.printing():
        if running.resume and is_finished(folder):
            result = read_finished(folder, about, read)
        else:
            train(folder, Checkpoints(folder / CHECKPOINT, about, **running.every))
            result = RunResult.read(folder / "result.json")
        yield folder, result
    if running.json:
        typer.echo(result.to_json())


def open_folder(name: str, about: Any, running: "Running", read: Callable[[Path], Any]) -> AbstractContextManager[Path]:
    """Return the folder of a run of the settings ``about``, as a context that keeps other writers out."""
    from beltrami.run_folder import run_folder

    resumes = (lambda folder: _settings_of(folder, read) == about) if running.resume else None
    return run_folder(running.out, name, force=running.force, resumes=resumes)


@dataclass(frozen=True)
class Following:
    """What follows a training: the progress display, the log in the folder of the run and further logs."""

    title: str
    epochs: int
    writers: Sequence["Callback"]

    @contextmanager
    def __call__(self, folder: Path, checkpoints: "Checkpoints", running: "Running") -> Iterator[list[Any]]:
        """Yield the callbacks for a block that trains, which a signal ends with a checkpoint."""
        from beltrami.report.progress import display, epoch_callback
        from beltrami.train import JSONLines

        with display(quiet=running.quiet) as shown, stopping(checkpoints, folder):
            yield [epoch_callback(shown, self.epochs, title=self.title), JSONLines(folder / LOG), *self.writers]


def log_writers(logs: Sequence[Path]) -> list["Callback"]:
    """Return the callbacks that write logs: JSON lines for ``*.jsonl``, else a folder of TensorBoard events."""
    from beltrami.train import JSONLines, TensorBoard

    return [JSONLines(path) if path.suffix == ".jsonl" else TensorBoard(path) for path in logs]


@contextmanager
def stopping(checkpoints: "Checkpoints", folder: Path) -> Iterator[None]:
    """Let the first SIGINT or SIGTERM of a block end the training after the current epoch, with a checkpoint; a second
    one ends it at once. The error says how to go on."""
    received: list[int] = []
    found = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    before = {number: handler for number, handler in found.items() if handler is not signal.SIG_IGN}

    def stop(number: int, frame: FrameType | None) -> None:
        checkpoints.stop = True
        received.append(number)
        typer.echo("beltrami: stopping after this epoch; once more to stop at once.", err=True)
        restore()

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    for number in before:
        signal.signal(number, stop)
    try:
        yield
    except Interrupted as error:
        code = 128 + received[0] if received else error.code
        raise Interrupted(f"{error} Go on with `{resume_command(folder)}`.", code=code) from None
    finally:
        restore()


def resume_command(folder: Path) -> str:
    """Return the command that goes on with the run that this process trains."""
    words = [word for word in sys.argv[1:] if word not in ("--force", "--resume")]
    named = any(word == "--out" or word.startswith("--out=") for word in words)
    return shlex.join(["beltrami", *words, *([] if named else ["--out", str(folder)]), "--resume"])


def _settings_of(folder: Path, read: Callable[[Path], Any]) -> Any:
    """Return the settings of the run in a folder, finished or not; None if they cannot be read."""
    from beltrami.errors import DataError
    from beltrami.run import CONFIG
    from beltrami.run_folder import CHECKPOINT
    from beltrami.train import TrainingState
    from beltrami.train.checkpoint import ABOUT

    try:
        if (folder / CHECKPOINT).exists():
            return TrainingState.read(folder / CHECKPOINT).values.get(ABOUT)
        return json.loads(read(folder / CONFIG).to_json())
    except DataError:
        return None


def read_finished(folder: Path, about: Any, read: Callable[[Path], Any]) -> "RunResult":
    """Return the result of the finished run in a folder; one of other settings is refused."""
    from beltrami.result import RunResult

    if _settings_of(folder, read) != about:
        raise ValueError(
            f"{folder} holds a finished run of other settings: choose another folder with `--out`, or replace it with "
            "`--force`."
        )
    return RunResult.read(folder / "result.json")
