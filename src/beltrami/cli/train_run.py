"""The training of one recipe by the command line: its folder, its checkpoints, and how it stops and goes on."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from typer import Option

from beltrami.cli.graph_options import read_duration
from beltrami.cli.resumable import Following, finished_run, log_writers

if TYPE_CHECKING:
    from beltrami.config import RunConfig
    from beltrami.model import Classifier
    from beltrami.result import RunResult
    from beltrami.train import Checkpoints

Resume = Annotated[bool, Option("--resume", help="Go on with the run of the same settings that was interrupted.")]
Force = Annotated[bool, Option("--force", help="Replace the run in the folder.")]
Every = Annotated[
    str | None, Option(help="How often to write a checkpoint: a time such as 30s, the default, or epochs such as 50.")
]
Quiet = Annotated[bool, Option("--quiet", help="Print errors alone.")]
Json = Annotated[bool, Option("--json", help="Print the result as JSON.")]


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


class Trainer(Protocol):
    """Trains a configuration: in this process, or on several workers."""

    def open(self, config: "RunConfig", progress: Callable[..., None]) -> None:
        """Read the data, and report to ``progress``."""

    def run(
        self, config: "RunConfig", callbacks: Sequence[Any], checkpoints: "Checkpoints"
    ) -> "tuple[RunResult, Classifier]":
        """Train, and return the result and the model."""


class DatasetTrainer:
    """Trains on a dataset in memory."""

    def __init__(self, device: str) -> None:
        self.device = device

    def open(self, config: "RunConfig", progress: Callable[..., None]) -> None:
        from beltrami.run import load_problem

        self.problem = load_problem(config, device=self.device, progress=progress)

    def run(
        self, config: "RunConfig", callbacks: Sequence[Any], checkpoints: "Checkpoints"
    ) -> "tuple[RunResult, Classifier]":
        from beltrami.run import run_config

        return run_config(config, problem=self.problem, callbacks=callbacks, checkpoints=checkpoints)


def train_recipe(
    config: "RunConfig",
    running: Running,
    *,
    logs: Sequence[Path],
    compare: int | None,
) -> None:
    """Train a configuration in its folder, or go on with it, and print the result."""
    from beltrami.config.parser import read_config
    from beltrami.precompute import resolve_files
    from beltrami.report.progress import display
    from beltrami.report.terminal import print_run
    from beltrami.run import save_run

    config, trainer = resolve_files(config), DatasetTrainer(running.device)
    following = followed(config, logs)

    def train(folder: Path, checkpoints: "Checkpoints") -> None:
        fitted = fit_recipe(config, running, folder, checkpoints, following=following, trainer=trainer)
        save_run(folder, config, *fitted)

    with finished_run(name_of(config), config.to_json(), running, train, read=read_config) as (folder, result):
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


def name_of(config: "RunConfig") -> str:
    """Return the name of the folder of a run."""
    return f"{config.dataset}-{config.recipe}-{config.seed}"


def followed(config: "RunConfig", logs: Sequence[Path]) -> Following:
    """Return what follows the training of a configuration."""
    from beltrami.config.build import build_training

    epochs = build_training(config.train).most_epochs
    return Following(f"{config.dataset} / {config.recipe}", epochs, log_writers(logs))


def fit_recipe(
    config: "RunConfig",
    running: Running,
    folder: Path,
    checkpoints: "Checkpoints",
    *,
    following: Following,
    trainer: Trainer,
) -> "tuple[RunResult, Classifier]":
    """Train a configuration in the folder of a run, and return the result and the model."""
    from beltrami.report.progress import display

    with display(quiet=running.quiet) as shown:
        trainer.open(config, shown.update)
    with following(folder, checkpoints, running) as callbacks:
        return trainer.run(config, callbacks, checkpoints)


def check_recipe(config: "RunConfig", running: Running) -> None:
    """Print what a run would do and need; it trains nothing."""
    from beltrami.report.progress import display
    from beltrami.report.terminal import print_check
    from beltrami.run import check_run

    with display(quiet=running.quiet) as shown:
        config, dataset, split, cost = check_run(config, device=running.device, progress=shown.update)
    with running.printing():
        print_check(config, dataset, split, cost, device=running.device)
