"""What a person sees in a terminal: progress while training, and the tables after it."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from beltrami.data import Availability, Facts
from beltrami.result import RunResult
from beltrami.train import Epoch


@contextmanager
def training(epochs: int, *, title: str) -> Iterator[Callable[[Epoch], None]]:
    """A live bar with the loss, the validation accuracy and the evaluations of f; silent where nobody watches."""
    columns = (
        SpinnerColumn(),
        TextColumn("[bold]{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.completed:>4.0f}/{task.total:.0f}"),
        TextColumn("{task.fields[state]}"),
        TimeElapsedColumn(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(title, total=epochs, state="")

        def show(epoch: Epoch) -> None:
            (loss,), (score,), (best,) = epoch.losses, epoch.scores, epoch.best
            state = (
                f"loss {loss:.3f}  val {100 * score.accuracy:.1f}  best {100 * best.accuracy:.1f} "
                f"at t = {best.time:.2f}  f {epoch.evaluations}"
            )
            bar.update(task, completed=epoch.number, state=state)

        yield show


@contextmanager
def downloading() -> Iterator[Callable[[str, int, int | None], None]]:
    """A bar for each file that has to be fetched; nothing when none has, and silent where nobody watches."""
    columns = (TextColumn("[bold]{task.description}"), BarColumn(bar_width=24), DownloadColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        tasks: dict[str, object] = {}

        def show(name: str, done: int, total: int | None) -> None:
            if name not in tasks:
                tasks[name] = bar.add_task(name, total=total)
            bar.update(tasks[name], completed=done, total=total)  # type: ignore[arg-type]

        yield show


def summary(result: RunResult, *, folder: Path, label_spreading: Mapping[str, float] | None = None) -> None:
    """The outcome of a run, the accuracy first, and how many configurations were tried for it where that is known."""
    console = Console(highlight=False)
    console.print(f"[bold]test accuracy {result.test_accuracy:.2f}%[/]  (validation {result.val_accuracy:.2f}%)")
    for kernel, accuracy in (label_spreading or {}).items():
        console.print(f"LabelSpreading {accuracy:.2f}%  (scikit-learn, {kernel} kernel, same split)")
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    effort = {} if result.tried is None else {"configurations tried": f"{result.tried:,}, on validation"}
    for name, value in (_facts(result) | effort).items():
        table.add_row(f"[dim]{name}[/]", value)
    console.print(table)
    console.print(f"[dim]saved in[/] {folder}")


def evaluation(result: RunResult, *, val_accuracy: float, test_accuracy: float) -> None:
    """Today's accuracy of a saved run, and whether it is the recorded one."""
    console = Console(highlight=False)
    console.print(f"[bold]test accuracy {test_accuracy:.2f}%[/]  (validation {val_accuracy:.2f}%)")
    same = (val_accuracy, test_accuracy) == (result.val_accuracy, result.test_accuracy)
    recorded = f"test {result.test_accuracy:.2f}%, validation {result.val_accuracy:.2f}%"
    console.print("as recorded" if same else f"[yellow]recorded: {recorded}, on {result.device}[/]")


def catalogue(facts: Mapping[str, Facts], places: Mapping[str, Availability]) -> None:
    """The datasets, one a row."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("dataset", "nodes", "edges", "features", "classes", "at hand"):
        table.add_column(name, justify="left" if name in ("dataset", "at hand") else "right")
    for name, fact in facts.items():
        numbers = (f"{value:,}" for value in (fact.nodes, fact.edges, fact.features, fact.classes))
        table.add_row(name, *numbers, places[name].value)
    console = Console(highlight=False)
    console.print(table)
    console.print("[dim]largest component, undirected edges; BELTRAMI_DATA names a folder that has the files[/]")


def _facts(result: RunResult) -> dict[str, str]:
    split = result.split
    chosen = f"{result.best_time:.3g}, by validation" if result.best_time else "none"
    return {
        "dataset": f"{result.dataset}, split {split['protocol']} {split['seed']} ({split['hash']})",
        "terminal time": f"{chosen}, at epoch {result.best_epoch} of {result.epochs}",
        "attention spread": f"{result.attention_spread:.3f}",
        "evaluations of f": f"{result.evaluations['forward']:,} forward, {result.evaluations['backward']:,} backward",
        "parameters": f"{result.parameters:,}",
        "training time": f"{result.train_seconds:.1f} s on {result.device}",
    }
