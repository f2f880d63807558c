"""Options that several commands share, and their checks."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from typer import Argument, CallbackParam, Option

Device = Annotated[str, Option(help="Where to compute: cpu, cuda or cuda:N.")]
Dataset = Annotated[str, Argument(help="A dataset's name; `beltrami datasets` lists them.")]
Settings = Annotated[
    list[str] | None,
    Option("--set", help="Change a setting, such as `--set train.epochs=50`; may be repeated.", metavar="NAME=VALUE"),
]
Aids = Annotated[
    str | None,
    Option(
        help="Training aids: none, same for those of `blend` on the dataset, or names separated by commas; by default "
        "the recipe's own.",
        metavar="none|same",
    ),
]
Address = Annotated[str | None, Option(help="A Ray cluster, such as auto; `local` is this machine.")]


def check_seed(parameter: CallbackParam, value: int | None) -> int | None:
    """Refuse a seed that torch or numpy would refuse."""
    if value is not None and not 0 <= value < 2**32:
        raise ValueError(f"`{parameter.opts[0]}` must be from 0 to 2**32 - 1; got {value}.")
    return value


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


@contextmanager
def needs_ray(command: str) -> Iterator[None]:
    """Refuse a command in whose block Ray cannot be imported."""
    try:
        yield
    except ImportError as error:
        raise ValueError(f"`{command}` needs Ray ({error}): `pip install 'beltrami[tune]'`.") from None


def check_folder(folder: Path) -> None:
    """Make the folder of the results and refuse one that cannot be written, before training begins."""
    from beltrami.data.file import make_folder

    make_folder(folder)


def check_file(path: Path) -> None:
    """Make the folder of a file and refuse a file that cannot be written."""
    if path.is_dir():
        raise OSError(f"{path} is a folder: name a file in it with `--out`.")
    check_folder(path.parent)
