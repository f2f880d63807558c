"""The training of one recipe by the command line: its folder, its checkpoints, and how it stops and goes on."""

import json
import shlex
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from beltrami.cli.graph_options import read_duration
from beltrami.errors import Interrupted

if TYPE_CHECKING:
    from beltrami.config import RunConfig
    from beltrami.result import RunResult
    from beltrami.train import Checkpoints

Resume = Annotated[bool, Option("--resume", help="Go on with the run of the same settings that was interrupted.")]
Force = Annotated[bool, Option("--force", help="Replace the run in the folder.")]
Every = Annotated[
    str | None, Option(help="How often to write a checkpoint: a time such as 30s, the default, or epochs such as 50.")
]
Quiet = Annotated[bool, Option("--quiet", help="Print errors alone.")]
Json = Annotated[bool, Option("--json", help="Print the result as JSON.")]
LOG = "epochs.jsonl"  # a line for each epoch, in the folder of a run


@dataclass(frozen=True)
class Running:
    """Options of a run: its folder, its device, its checkpoints, and what it prints."""

    out: Path | None
    device: str
    resume: bool = False
    force: bool = False
    checkpoint: str | None = None
    quiet: bool = False
    json: bool = False

    def __post_init__(self) -> None:
        if self.resume and self.force:
            raise ValueError("`--resume` goes on with a run and `--force` replaces it: give one of them.")
        if self.quiet and self.json:
            raise ValueError("`--quiet` prints nothing and `--json` the result: give one of them.")
        _ = self.every  # refuses a value that is neither a time nor a number of epochs

    @property
    def training_only(self) -> dict[str, object]:
        """The options that make no sense where nothing is trained, by their flags."""
        given = {"--out": self.out, "--resume": self.resume, "--force": self.force, "--json": self.json}
        return {**given, "--checkpoint": self.checkpoint}

    @property
    def every(self) -> dict[str, Any]:
        """How often a checkpoint is written, as ``Checkpoints`` takes it."""
        text = self.checkpoint
        if text is not None and text.isdigit():
            if int(text) < 1:
                raise ValueError("`--checkpoint` takes at least one epoch, or a time such as 30s.")
            return {"epochs": int(text)}
        return {} if text is None else {"seconds": read_duration(text, option="--checkpoint")}

    @contextmanager
    def printing(self) -> Iterator[None]:
        """Keep the standard output empty in a block if nothing, or only JSON, is to be printed."""
        if self.quiet or self.json:
            with redirect_stdout(StringIO()):
                yield
        else:
            yield


def train_recipe(config: "RunConfig", running: Running, *, logs: Sequence[Path], compare: int | None) -> None:
    """Train a configuration in its folder, or go on with it, and print the result."""
    from beltrami.config.build import build_training
    from beltrami.precompute import resolve_files
    from beltrami.report.progress import display, epoch_callback
    from beltrami.report.terminal import print_run
    from beltrami.result import RunResult
    from beltrami.run import load_problem, run_config, save_run
    from beltrami.run_folder import CHECKPOINT, is_finished, run_folder
    from beltrami.train import Callback, Checkpoints, JSONLines, TensorBoard

    config = resolve_files(config)
    about, name = json.loads(config.to_json()), f"{config.dataset}-{config.recipe}-{config.seed}"
    resumes = (lambda folder: _settings_of(folder) == about) if running.resume else None
    writers: list[Callback] = [JSONLines(path) if path.suffix == ".jsonl" else TensorBoard(path) for path in logs]
    with run_folder(running.out, name, force=running.force, resumes=resumes) as folder, running.printing():
        if running.resume and is_finished(folder):
            result = _finished(folder, about)
        else:
            with display(quiet=running.quiet) as shown:
                problem = load_problem(config, device=running.device, progress=shown.update)
            checkpoints = Checkpoints(folder / CHECKPOINT, about, **running.every)
            epochs, title = build_training(config.train).most_epochs, f"{config.dataset} / {config.recipe}"
            with display(quiet=running.quiet) as shown, stopping(checkpoints, folder):
                show = epoch_callback(shown, epochs, title=title)
                following: list[Any] = [show, JSONLines(folder / LOG), *writers]
                found, model = run_config(config, problem=problem, callbacks=following, checkpoints=checkpoints)
            save_run(folder, config, found, model)
            result = RunResult.read(folder / "result.json")
        comparison = None
        if compare:
            from beltrami.lab.label_spreading import compare_splits

            with display(quiet=running.quiet) as shown:
                comparison = compare_splits(
                    config,
                    result.test_accuracy,
                    splits=compare,
                    device=running.device,
                    report=lambda done: shown.update("splits", done, compare),
                )
        print_run(result, folder=folder, comparison=comparison)
    if running.json:
        typer.echo(result.to_json())


def check_recipe(config: "RunConfig", running: Running) -> None:
    """Print what a run would do and need; it trains nothing."""
    from beltrami.report.progress import display
    from beltrami.report.terminal import print_check
    from beltrami.run import check_run

    with display(quiet=running.quiet) as shown:
        config, dataset, split, cost = check_run(config, device=running.device, progress=shown.update)
    with running.printing():
        print_check(config, dataset, split, cost, device=running.device)


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


def _settings_of(folder: Path) -> Any:
    """Return the settings of the run in a folder, finished or not; None if they cannot be read."""
    from beltrami.config.parser import read_config
    from beltrami.errors import DataError
    from beltrami.run import CONFIG
    from beltrami.run_folder import CHECKPOINT
    from beltrami.train import TrainingState
    from beltrami.train.checkpoint import ABOUT

    try:
        if (folder / CHECKPOINT).exists():
            return TrainingState.read(folder / CHECKPOINT).values.get(ABOUT)
        return json.loads(read_config(folder / CONFIG).to_json())
    except DataError:
        return None


def _finished(folder: Path, about: Any) -> "RunResult":
    """Return the result of the finished run in a folder; one of other settings is refused."""
    from beltrami.result import RunResult

    if _settings_of(folder) != about:
        raise ValueError(
            f"{folder} holds a finished run of other settings: choose another folder with `--out`, or replace it with "
            "`--force`."
        )
    return RunResult.read(folder / "result.json")
