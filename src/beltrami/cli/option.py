"""Options that several commands share, and their checks."""

import os
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

if TYPE_CHECKING:
    from beltrami.lab.executor import Executor
    from beltrami.lab.worker import Worker

Device = Annotated[str, Option(help="Where to compute: cpu, cuda or cuda:N.")]
Dataset = Annotated[str, Argument(help="A dataset's name; `beltrami datasets` lists them.")]
Settings = Annotated[
    list[str] | None,
    Option("--set", help="Change a setting, such as `--set train.epochs=50`; may be repeated.", metavar="NAME=VALUE"),
]
Resume = Annotated[bool, Option("--resume", help="Continue a results file: runs with a result are not repeated.")]
Component = Annotated[str, Option(help="Of the graph: largest, or all. A run needs the same `data.component`.")]


def check_device(name: str) -> str:
    """Return the name of a device; one that this machine lacks is refused."""
    import torch

    if name == "cpu":
        return name
    if name != "cuda" and not (name.startswith("cuda:") and name[5:].isdigit()):
        raise ValueError(f"`--device` takes cpu, cuda or cuda:N; got {name!r}.")
    if not torch.cuda.is_available():
        raise ValueError(f"`--device {name}` needs a CUDA device and a CUDA build of torch: use cpu.")
    if name != "cuda" and int(name[5:]) >= torch.cuda.device_count():
        raise ValueError(f"`--device {name}`: there are {torch.cuda.device_count()} CUDA devices, counted from 0.")
    return name


def ray_executor(
    verb: str, worker: "Worker", unit: str, *, device: str, cpus: float | None, gpus: float | None, address: str
) -> "Executor":
    """Return an executor on a Ray cluster. ``unit``, a trial or a batch, is what the resources are for."""
    from beltrami.lab.ray_cluster import LOCAL, Ray, Resources

    resources = Resources.requested(unit, device=device, cpus=cpus, gpus=gpus)
    if address == LOCAL:
        check_device(device)
    try:
        return Ray(worker, resources, address=address)
    except ImportError as error:
        raise ValueError(f"`{verb}` needs Ray ({error}): `pip install 'beltrami[tune]'`.") from None


@contextmanager
def resumable(done: Callable[[], str]) -> Iterator[None]:
    """After an interrupt, print what is done and how to continue."""
    try:
        yield
    except KeyboardInterrupt:
        arguments = sys.argv[1:] if "--resume" in sys.argv else [*sys.argv[1:], "--resume"]
        command = shlex.join(["beltrami", *arguments])
        typer.echo(f"beltrami: interrupted with {done()}: go on with `{command}`.", err=True)
        raise typer.Exit(130) from None


def check_folder(folder: Path) -> None:
    """Make the folder of the results and refuse one that cannot be written, before training begins."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(f"cannot make {folder} ({error.strerror}): choose another folder with `--out`.") from error
    if not os.access(folder, os.W_OK):
        raise OSError(f"cannot write to {folder}: choose another folder with `--out`.")


def check_file(path: Path) -> None:
    """Make the folder of a file and refuse a file that cannot be written."""
    if path.is_dir():
        raise OSError(f"{path} is a folder: name a file in it with `--out`.")
    check_folder(path.parent)
