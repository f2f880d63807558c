"""The command ``tune``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from beltrami.cli.option import Dataset, Device, Resume, Settings, check_folder, ray_executor, resumable
from beltrami.errors import DataError

if TYPE_CHECKING:
    from beltrami.lab.executor import Executor
    from beltrami.lab.study import RecordLog
    from beltrami.lab.tune import Search


def tune(
    dataset: Dataset,
    trials: Annotated[int, Option(help="Configurations to try, the recipe's own among them.")],
    recipe: Annotated[str, Option(help="The recipe to begin with, or a recipe file.")] = "blend",
    protocol: Annotated[str | None, Option(help="Split protocol; the recipe's own by default.")] = None,
    splits: Annotated[int, Option(help="Splits of a trial; initial weights where the protocol has one split.")] = 3,
    seed: Annotated[int, Option(help="Seed of the random configurations.")] = 0,
    settings: Settings = None,
    device: Device = "cpu",
    gpus_per_trial: Annotated[float | None, Option(help="GPUs of a trial, such as 0.25; 1 on cuda.")] = None,
    cpus_per_trial: Annotated[float, Option(help="Cores of a trial.")] = 1.0,
    address: Annotated[str, Option(help="An existing Ray cluster, such as auto; `local` is this machine.")] = "local",
    resume: Resume = False,
    out: Annotated[Path | None, Option(help="Folder of trials.jsonl and best.json.")] = None,
) -> None:
    """Search the settings of a recipe by validation accuracy, at random and with hyperband's early stopping.

    As in the paper: random configurations, with a grace period and a half-life of ten epochs. No test label is read.
    Every trial leaves one line in `trials.jsonl` as soon as it ends, so that a search that was stopped, even killed,
    continues with `--resume`; a trial that fails leaves its error, and is repeated then. The best configuration is
    `best.json`, a recipe file that also says how many were tried.

    Trials run on Ray: `pip install 'beltrami[tune]'`. By default the folder of `--out` is `runs/tune-DATASET-RECIPE`.

    Examples:

    - `beltrami tune cora --trials 100`

    - `beltrami tune photo --trials 1000 --device cuda --gpus-per-trial 0.25`

    - `beltrami train cora --recipe runs/tune-cora-blend/best.json`
    """
    from beltrami.lab.study import RecordLog, latest
    from beltrami.lab.tune import TrialWorker, search_for
    from beltrami.report.study_terminal import print_search
    from beltrami.train import write_atomically

    if trials < 1:
        raise ValueError(f"`--trials` needs at least 1; got {trials}.")
    search = search_for(dataset, recipe, protocol=protocol, splits=splits, settings=settings or [], seed=seed)
    folder = out or Path("runs") / f"tune-{dataset}-{search.base.recipe}"
    worker, cpus, gpus = TrialWorker(search, device), cpus_per_trial, gpus_per_trial
    executor = ray_executor("beltrami tune", worker, "trial", device=device, cpus=cpus, gpus=gpus, address=address)
    check_folder(folder)
    with RecordLog(folder / "trials.jsonl", resume=resume) as log:
        todo = search.pending(trials, log.records)
        if todo:
            _run(executor, search, todo, log)
        best = search.best(log.records)
        if best is None:
            failed, last = len(latest(log.records)), log.records[-1].error
            raise DataError(f"none of the {failed} trials has a result; the last failed: {last}")
        path = folder / "best.json"
        write_atomically(path, best.to_json().encode())
        print_search(search, log.records, best, path=path)


def _run(executor: "Executor", search: "Search", todo: list[int], log: "RecordLog") -> None:
    """Run the trials that are not done."""
    from beltrami.lab.tune import run_search
    from beltrami.report.progress import counting, display
    from beltrami.report.study_terminal import describe_trial
    from beltrami.run import load_problem

    with display() as shown:
        load_problem(search.base, progress=shown.update)  # missing files are an error now, and positions are cached
    title = f"{search.base.dataset} / {search.base.recipe}"

    def done() -> str:
        log.reread()
        return f"{len(log.done())} trials in {log.path}"

    with resumable(done), executor, counting(len(todo), title=title, describe=describe_trial) as watch:
        run_search(executor, search, todo, log, watch=watch)
