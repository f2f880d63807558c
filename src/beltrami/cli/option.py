"""Options that several verbs share, and what is checked of them."""

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from beltrami.lab.ray_cluster import Resources

Device = Annotated[str, typer.Option("--device", help="Where to compute: cpu, cuda or cuda:N.", metavar="D")]
Component = Annotated[
    str,
    typer.Option(
        "--component", help="Of the graph: largest, or all. A run needs the same `data.component`.", metavar="NAME"
    ),
]


def check_device(name: str) -> str:
    """The device of this name, refused where it is not there."""
    import torch

    if name == "cpu":
        return name
    if name != "cuda" and not (name.startswith("cuda:") and name[5:].isdigit()):
        raise ValueError(f"`--device` takes cpu, cuda or cuda:N; got {name!r}.")
    if not torch.cuda.is_available():
        raise ValueError(f"`--device {name}` needs a CUDA device and a CUDA build of torch; neither is here: use cpu.")
    if name != "cuda" and int(name[5:]) >= torch.cuda.device_count():
        raise ValueError(f"`--device {name}`: there are {torch.cuda.device_count()} CUDA devices, counted from 0.")
    return name


def resources_for(unit: str, *, device: str, cpus: float | None, gpus: float | None, address: str) -> "Resources":
    """Return the resources of a trial or a batch on a cluster; check the device if the cluster is this machine."""
    from beltrami.lab.ray_cluster import LOCAL, Resources

    resources = Resources.requested(unit, device=device, cpus=cpus, gpus=gpus)
    if address == LOCAL:
        check_device(device)
    return resources


def needs_ray(verb: str, error: ImportError) -> ValueError:
    """Return the error for a missing Ray installation."""
    return ValueError(f"`{verb}` needs Ray ({error}): `pip install 'beltrami[tune]'`.")


def resume_command() -> str:
    """Return how to continue the command that was interrupted."""
    arguments = sys.argv[1:] if "--resume" in sys.argv else [*sys.argv[1:], "--resume"]
    return f"go on with `{shlex.join(['beltrami', *arguments])}`."


def check_folder(folder: Path) -> None:
    """Before an hour of training, not after it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(f"cannot make {folder} ({error.strerror}): choose another folder with `--out`.") from error
    if not os.access(folder, os.W_OK):
        raise OSError(f"cannot write to {folder}: choose another folder with `--out`.")


def check_file(path: Path) -> None:
    """The same for a file."""
    if path.is_dir():
        raise OSError(f"{path} is a folder: name a file in it with `--out`.")
    check_folder(path.parent)
