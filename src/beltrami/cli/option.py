"""Options that several commands share, and their checks."""

import os
import re
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, CallbackParam, Option
from typer.core import TyperGroup

Device = Annotated[str, Option(help="Where to compute: cpu, cuda or cuda:N.")]
Dataset = Annotated[str, Argument(help="A dataset's name; `beltrami datasets` lists them.")]
Settings = Annotated[
    list[str] | None,
    Option("--set", help="Change a setting, such as `--set train.epochs=50`; may be repeated.", metavar="NAME=VALUE"),
]


def check_seed(parameter: CallbackParam, value: int | None) -> int | None:
    """Refuse a seed that torch or numpy would refuse."""
    if value is not None and not 0 <= value < 2**32:
        raise ValueError(f"`{parameter.opts[0]}` must be from 0 to 2**32 - 1; got {value}.")
    return value


class Commands(TyperGroup):
    """The commands, which take no empty arguments: an empty path would be the current folder."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        for before, argument in zip(["", *args], args, strict=False):
            if re.fullmatch(r"--[^=]*=\s*", argument):
                before, argument = argument.partition("=")[0], ""
            if not argument.strip():
                what = f"`{before}`" if before.startswith("--") else "an argument"
                raise ValueError(f"{what} is empty: give a value, or leave it out.")
        return super().parse_args(ctx, args)


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
