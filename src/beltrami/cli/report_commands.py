"""The commands that show runs: ``report``, ``watch``, ``compare`` and ``explain``."""

import webbrowser
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
COMPARED = "compare"  # in the current folder
FIGURE_FORMATS = ("png", "svg", "pdf")
FORMATS = ("html", *FIGURE_FORMATS, "gif", "mp4")
Run = Annotated[Path, Argument(help="The folder that `beltrami train` wrote.", metavar="RUN")]
Runs = Annotated[list[Path], Argument(help="The folders that `beltrami train` wrote, two or more.", metavar="RUN...")]


def report(
    folder: Run,
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
    if format in FIGURE_FORMATS:
        target = out or folder / FIGURES
        check_folder(target)
    else:
        target = out or folder / (PAGE if format == "html" else f"{FILM}.{format}")
        if format != "html" and target.suffix != f".{format}":
            raise ValueError(f"`--out {target}` needs the ending .{format}, that of `--format`.")
        check_file(target)
    (data,) = _read([folder], where)
    _print_files(_write(data, target, format), start)


def watch(
    folder: Run,
    port: Annotated[
        int, Option(help="The port of the page on this machine; 0 for any that is free.", min=0, max=65535)
    ] = 0,
    open: Annotated[bool, Option("--open/--no-open", help="Open the page in the browser.")] = True,
    device: Device = "cpu",
) -> None:
    """Show the flow of a run in the browser: nodes move from z(0) to z(T), and a click explains a prediction.

    The page is served on this machine alone until Ctrl-C. `beltrami report` writes the same picture to a file, with the
    explanations of a few nodes.

    Example: `beltrami watch runs/my`
    """
    where = check_device(device)
    _check_run(folder)

    from beltrami.report.collect import LoadedRun
    from beltrami.report.progress import display
    from beltrami.report.watch import page_server

    with display(f"reading {folder}") as shown:
        run = LoadedRun.load(folder, device=where, progress=shown.update)
        data = run.with_flow(progress=shown.update)
    if data.flow is None:
        raise ValueError(f"{folder} has no flow to watch: `beltrami report {folder}` shows the rest of the run.")
    with page_server(run, data, port=port) as server:
        typer.echo(f"{server.address} (Ctrl-C ends)")
        if open:
            webbrowser.open(server.address)
        server.serve_until_interrupted()


def compare(
    folders: Runs,
    out: Annotated[
        Path | None,
        Option(help="The file to write, for png, svg and pdf the folder; by default compare.html or compare."),
    ] = None,
    format: Annotated[str, Option(help="html: a page; png, svg or pdf: a file for each figure.")] = "html",
    device: Device = "cpu",
) -> None:
    """Write a page that shows runs side by side: scores, curves, settings that differ, and where predictions differ.

    Differences are those from the first run.

    Examples:
    - `beltrami compare runs/cora-blend-0 runs/cora-gcn-0 --out compare.html`
    - `beltrami compare runs/cora-blend-0 runs/cora-gcn-0 --format pdf` writes the figures to `compare`.
    """
    if format not in ("html", *FIGURE_FORMATS):
        raise UnknownName("format", format, ("html", *FIGURE_FORMATS))
    start, where = perf_counter(), check_device(device)
    if len(folders) < 2:
        raise ValueError(f"`beltrami compare` needs the folders of at least two runs; got {len(folders)}.")
    for folder in folders:
        _check_run(folder)
    target = out or Path(COMPARED if format in FIGURE_FORMATS else f"{COMPARED}.html")
    (check_folder if format in FIGURE_FORMATS else check_file)(target)
    runs = _read(folders, where, explained=False)

    from beltrami.data.file import write_atomically
    from beltrami.report.compare import compare_figures, compare_page
    from beltrami.report.plot import save_figures

    if format in FIGURE_FORMATS:
        _print_files(save_figures(compare_figures(runs), target, format), start)
        return
    write_atomically(target, compare_page(runs).encode())
    _print_files([target], start)


def explain(
    folder: Run,
    node: Annotated[str, Argument(help="The id of the node.", metavar="NODE")],
    top: Annotated[int, Option(help="How many nodes and edges to list.")] = 10,
) -> None:
    """Print from which nodes, and along which edges, the prediction at a node came.

    The shares of all nodes, a constant and a remainder sum to the margin of the predicted class over the next one.

    Example: `beltrami explain runs/my NODE --top 5`
    """
    from beltrami.predict.predictor import Predictor
    from beltrami.report.explanation import print_explanation
    from beltrami.report.progress import display
    from beltrami.run_folder import RESULTS

    if top < 1:
        raise ValueError(f"`--top` must be at least 1; got {top}.")
    if (folder / RESULTS[0]).exists():
        _explain_dataset(folder, node, top)
        return
    predictor = Predictor.load(folder)
    targets = predictor.targets
    y = {"classes": targets.y, "labels": targets.y > 0, "numbers": targets.y.reshape(len(targets.y), -1)[:, 0]}
    shown = {"y": y[targets.kind], "labelled": predictor.trained_on}
    with display("explaining"):
        found = predictor.explain(node)
    print_explanation(found, predictor.graph.ids, targets.names, **shown, count=top)
    if weights := predictor.record.get("weights"):
        name, share = next(iter(weights.items()))
        typer.echo(f"explained is {name}, {100 * share:.0f}% of the average that predicts")
    if targets.kind == "numbers":
        typer.echo(f"in standard deviations of the labels, from their mean, {predictor.calibration.centre[0]:.4g}")


def _explain_dataset(folder: Path, node: str, top: int) -> None:
    """Print the explanation of a node of a named dataset, by its number."""
    from beltrami.report.collect import LoadedRun
    from beltrami.report.explanation import print_explanation
    from beltrami.report.progress import display

    with display(f"reading {folder}"):
        run = LoadedRun.load(folder)
    ids = run.base.nodes.ids
    if node not in ids:
        raise ValueError(f"{folder} has no node {node}: its nodes are numbers from 0 to {len(ids) - 1}.")
    with display("explaining"):
        found = run.explanation(int(node))
    print_explanation(found, ids, run.base.names, y=run.shown.y, labelled=run.shown.masks["train"], count=top)


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
    """Return the data of runs; with explanations and baselines, or without both."""
    from beltrami.report.collect import LoadedRun
    from beltrami.report.progress import display

    found = []
    for folder in folders:
        with display(f"reading {folder}") as shown:
            run = LoadedRun.load(folder, device=device, progress=shown.update)
            found.append((run.data if explained else run.with_flow)(progress=shown.update))
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
        if format in FIGURE_FORMATS:
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
