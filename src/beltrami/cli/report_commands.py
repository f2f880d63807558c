"""The commands that show runs: ``report`` and ``compare``."""

from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from beltrami.cli.option import Device, check_device, check_file, check_folder
from beltrami.errors import DataError, UnknownName

if TYPE_CHECKING:
    from beltrami.report.run_data import RunData

PAGE, FIGURES, FILM = "report.html", "figures", "flow"  # in the folder of the run
FORMATS = ("html", "png", "svg", "pdf", "gif", "mp4")
Runs = Annotated[list[Path], Argument(help="The folders that `beltrami train` wrote, two or more.", metavar="RUN...")]


def report(
    folder: Annotated[Path, Argument(help="The folder that `beltrami train` wrote.", metavar="RUN")],
    out: Annotated[
        Path | None,
        Option(help="The file to write, for png, svg and pdf the folder; by default in the folder of the run."),
    ] = None,
    format: Annotated[
        str, Option(help="html: a page; png, svg or pdf: a file for each figure; gif or mp4: the flow over time.")
    ] = "html",
    device: Device = "cpu",
) -> None:
    """Write a page that shows a run: scores, curves, the flow over time, predictions, and nodes to look at.

    The page is one file that needs no network. The numbers of each figure are in it as CSV.

    Examples:
    - `beltrami report runs/my` writes `runs/my/report.html`.
    - `beltrami report runs/my --format pdf` writes the figures to `runs/my/figures`.
    - `beltrami report runs/my --format mp4 --out flow.mp4`
    """
    if format not in FORMATS:
        raise UnknownName("format", format, FORMATS)
    start, where = perf_counter(), check_device(device)
    _check_run(folder)
    if format in ("png", "svg", "pdf"):
        target = out or folder / FIGURES
        check_folder(target)
    else:
        target = out or folder / (PAGE if format == "html" else f"{FILM}.{format}")
        if format != "html" and target.suffix != f".{format}":
            raise ValueError(f"`--out {target}` needs the ending .{format}, that of `--format`.")
        check_file(target)
    (data,) = _read([folder], where)
    _print_files(_write(data, target, format), start)


def compare(
    folders: Runs,
    out: Annotated[Path, Option(help="The page to write.")] = Path("compare.html"),
    device: Device = "cpu",
) -> None:
    """Write a page that shows runs side by side: scores, curves, settings that differ, and where predictions differ.

    Differences are those from the first run.

    Example: `beltrami compare runs/cora-blend-0 runs/cora-gcn-0 --out compare.html`
    """
    start, where = perf_counter(), check_device(device)
    if len(folders) < 2:
        raise ValueError(f"`beltrami compare` needs the folders of at least two runs; got {len(folders)}.")
    for folder in folders:
        _check_run(folder)
    check_file(out)
    runs = _read(folders, where, explained=False)

    from beltrami.data.file import write_atomically
    from beltrami.report.compare import compare_page

    write_atomically(out, compare_page(runs).encode())
    _print_files([out], start)


def _check_run(folder: Path) -> None:
    """Refuse a folder that holds no finished run."""
    from beltrami.run_folder import CHECKPOINT, is_finished

    if not folder.is_dir():
        kind = "a file" if folder.exists() else "missing"
        raise DataError(f"{folder} is {kind}: name the folder of a run, as `beltrami train` wrote it.")
    if (folder / CHECKPOINT).exists():
        raise DataError(f"the run in {folder} is not finished: go on with `beltrami train --resume --out {folder}`.")
    if not is_finished(folder):
        raise DataError(f"{folder} holds no run: name a folder that `beltrami train` wrote.")


def _read(folders: Sequence[Path], device: str, *, explained: bool = True) -> "list[RunData]":
    """Return the data of runs, with explanations of predictions or without."""
    from beltrami.report.collect import LoadedRun
    from beltrami.report.progress import display

    found = []
    for folder in folders:
        with display(f"reading {folder}") as shown:
            run = LoadedRun.load(folder, device=device, progress=shown.update)
            found.append(run.data(progress=shown.update) if explained else run.data(seconds=0, progress=shown.update))
    return found


def _write(data: "RunData", target: Path, format: str) -> list[Path]:
    """Write the page, the figures or the film of a run and return the files."""
    from beltrami.report.progress import display

    with display(f"writing {target}") as shown:
        if format == "html":
            from beltrami.data.file import write_atomically
            from beltrami.report.page import report_page

            write_atomically(target, report_page(data).encode())
            return [target]
        if format in ("png", "svg", "pdf"):
            from beltrami.report.plot import save_figures
            from beltrami.report.run_figures import run_figures

            return save_figures(run_figures(data), target, format)
        from beltrami.report.film import save_film

        save_film(data, target, progress=shown.update)
        return [target]


def _print_files(paths: Sequence[Path], start: float) -> None:
    """Print the files with their sizes, and the seconds that they took."""
    for path in paths:
        size = path.stat().st_size
        typer.echo(f"{path}  {size / 1e6:.1f} MB" if size >= 1e6 else f"{path}  {max(size / 1e3, 0.1):.1f} kB")
    typer.echo(f"in {perf_counter() - start:.1f} s")
