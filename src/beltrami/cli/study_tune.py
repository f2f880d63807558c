"""The commands ``study`` and ``tune``, which leave a record of every run and can be resumed."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from beltrami.cli.option import Address, Aids, Dataset, Device, Settings, check_folder, check_seed
from beltrami.cli.study_run import Execution, ray_executor, resumable, run_all, run_one
from beltrami.errors import DataError, UnknownName

ALL = "all"
NAMES = (
    "planetoid, component, random, aids, attention, positions, steps, solvers, runtime, rewiring, parameters or time"
)
Resume = Annotated[bool, Option("--resume", help="Continue a results file: runs with a result are not repeated.")]


def study(
    name: Annotated[
        str | None, Argument(help=f"Which study: {NAMES}; or all. Without a name, they are listed.")
    ] = None,
    datasets: Annotated[list[str] | None, Option(help="Datasets, separated by commas; else the study's.")] = None,
    methods: Annotated[list[str] | None, Option(help="Methods or recipe files, separated by commas.")] = None,
    splits: Annotated[int | None, Option(help="Random splits of each dataset.")] = None,
    inits: Annotated[int | None, Option(help="Runs from other seeds on each split.")] = None,
    settings: Settings = None,
    aids: Aids = None,
    device: Device = "cpu",
    hours: Annotated[float | None, Option(help="Start no batch that cannot end in so many hours.")] = None,
    together: Annotated[int | None, Option(help="Runs in one program; by default 25 on a GPU, 1 on the CPU.")] = None,
    processes: Annotated[
        int | None, Option(help="Batches at once, in a process each; by default one on a GPU.")
    ] = None,
    address: Address = None,
    cpus_per_batch: Annotated[float | None, Option(help="Cores of a batch, with Ray; 1 by default.")] = None,
    gpus_per_batch: Annotated[float | None, Option(help="GPUs of a batch, with Ray; 1 with `--device cuda`.")] = None,
    resume: Resume = False,
    show: Annotated[bool, Option("--show", help="Print the tables of a results file and run nothing.")] = False,
    out: Annotated[Path, Option(help="Folder of the results file, NAME.jsonl.")] = Path("results/study"),
) -> None:
    """Measure a table or figure of the paper again, with intervals and the paper's figures next to ours.

    Every run leaves one line in the results file as soon as it ends, so that a study that was stopped, even killed,
    continues with `--resume`. A run that fails leaves its error, and is repeated then. A run that another study in the
    folder has made already is copied from there.

    - `all`: the missing runs of every study, with `--hours` as many as the time allows; `--resume` goes on.
    - `aids`: the training aids, taken from ours and given to GCN and GAT, one at a time.
    - `planetoid`: Table 2. `component`: Table 2 on the largest component of the graphs. `random`: Table 3.
    - `parameters`: how many there are. `runtime`: the two tables of times.
    - `attention`: the four diffusivities, frozen and live, against uniform weights.
    - `positions`: with and without, and over their width. `rewiring`: the graph that the flow is on.
    - `steps`: Euler's step size. `solvers`: all of them. `time`: accuracy along the flow.

    A GPU that one batch does not keep busy takes several: `--processes 4`, best with NVIDIA's MPS. Times are then those
    of a shared machine, and so they are with Ray.

    With `--address`, `--cpus-per-batch` or `--gpus-per-batch`, Ray (`beltrami[tune]`) runs as many batches of
    `--together` runs at once as there is room for. The table is the same.

    Examples:
    - `beltrami study random --device cuda`
    - `beltrami study all --device cuda --hours 0.4 --resume`
    - `beltrami study random --device cuda --address auto --gpus-per-batch 0.5`
    - `beltrami study planetoid --datasets cora --methods blend,uniform --inits 5 --resume`
    """
    from beltrami.config.recipe.aids import read_aids
    from beltrami.lab.study.planning import missing_cells, plan
    from beltrami.lab.study.record import read_records
    from beltrami.lab.study.studies import STUDIES
    from beltrami.lab.study.summary import tabulate
    from beltrami.report.study_terminal import print_studies, print_tables

    if name is None:
        print_studies(STUDIES)
        return
    if name not in STUDIES and name != ALL:
        raise UnknownName("study", name, (*STUDIES, ALL))
    only, rows = (list(filter(None, map(str.strip, ",".join(given or ()).split(",")))) for given in (datasets, methods))
    for option, given, named in (("--datasets", datasets, only), ("--methods", methods, rows)):
        if given and not named:
            raise ValueError(f"`{option} {','.join(given)}` names nothing: give names, or leave it out for all.")
    options = Execution(out, resume, device, together, address, cpus_per_batch, gpus_per_batch, hours, processes)
    if name == ALL:
        own = {"--methods": rows, "--splits": splits, "--inits": inits, "--set": settings, "--aids": aids}
        for option in [option for option, value in {**own, "--show": show}.items() if value]:
            raise ValueError(f"`beltrami study all` makes every study as it is: leave out `{option}`, or name a study.")
        run_all(only, options)
        return
    chosen, path = STUDIES[name], out / f"{name}.jsonl"
    if show:
        if not (records := read_records(path)):
            raise ValueError(f"there are no results at {path}: run `beltrami study {name}` first, or set `--out`.")
        print_tables(tabulate(chosen, records), path=path, missing=missing_cells(chosen, records))
        return
    executor, size = options.executor(chosen.work)
    given_aids = None if aids is None else read_aids(aids)
    changes = {"splits": splits, "inits": inits}
    runs = plan(chosen, datasets=only, methods=rows, settings=settings or [], aids=given_aids, **changes)
    run_one(chosen, runs, options, executor, size)


def tune(
    dataset: Dataset,
    trials: Annotated[int, Option(help="Configurations to try, the recipe's own among them.")],
    recipe: Annotated[str, Option(help="The recipe to begin with, or a recipe file.")] = "blend",
    protocol: Annotated[str | None, Option(help="Split protocol; the recipe's own by default.")] = None,
    splits: Annotated[int, Option(help="Splits of a trial; initial weights where the protocol has one split.")] = 3,
    seed: Annotated[int, Option(help="Seed of the random configurations.", callback=check_seed)] = 0,
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
    from beltrami.lab.study.record import RecordLog, latest
    from beltrami.lab.tune.scheduler import TrialWorker, run_search
    from beltrami.lab.tune.search import search_for
    from beltrami.report.progress import RunCounter, display
    from beltrami.report.study_terminal import describe_trial, print_search
    from beltrami.run import load_problem
    from beltrami.train import write_atomically

    if trials < 1:
        raise ValueError(f"`--trials` needs at least 1; got {trials}.")
    search = search_for(dataset, recipe, protocol=protocol, splits=splits, settings=settings or [], seed=seed)
    folder = out or Path("runs") / f"tune-{dataset}-{search.base.recipe}"
    worker, cpus, gpus = TrialWorker(search, device), cpus_per_trial, gpus_per_trial
    executor = ray_executor("beltrami tune", worker, "trial", device, cpus=cpus, gpus=gpus, address=address)
    check_folder(folder)
    with RecordLog(folder / "trials.jsonl", resume=resume) as log:
        if todo := search.pending(trials, log.records):
            with display() as shown:
                load_problem(search.base, progress=shown.update)  # missing files are an error now; caches positions
            with resumable(log, lambda: f"{len(log.done())} trials"), executor, display() as shown:
                watch = RunCounter(shown, len(todo), f"{dataset} / {search.base.recipe}", describe_trial)
                run_search(executor, search, todo, log, watch=watch)
        best = search.best(log.records)
        if best is None:
            failed, last = len(latest(log.records)), log.records[-1].error
            raise DataError(f"none of the {failed} trials has a result; the last failed: {last}")
        write_atomically(folder / "best.json", best.to_json().encode())
        print_search(search, log.records, best, path=folder / "best.json")
