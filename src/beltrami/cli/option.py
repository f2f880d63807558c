"""Options that several commands share, and their checks."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

Device = Annotated[str, Option(help="Where to compute: cpu, cuda or cuda:N.")]
Dataset = Annotated[str, Argument(help="A dataset's name; `beltrami datasets` lists them.")]
Settings = Annotated[
    list[str] | None,
    Option("--set", help="Change a setting, such as `--set train.epochs=50`; may be repeated.", metavar="NAME=VALUE"),
]


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


def check_folder(folder: Path) -> None:
    """Make the folder of the results and refuse one that cannot be written, before training begins."""
    from beltrami.data.file import make_folder

    make_folder(folder)


def check_file(path: Path) -> None:
    """Make the folder of a file and refuse a file that cannot be written."""
    if path.is_dir():
        raise OSError(f"{path} is a folder: name a file in it with `--out`.")
    check_folder(path.parent)
