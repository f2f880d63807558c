"""The command `train` on a graph folder: training in blocks within a limit of memory."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from beltrami.cli.graph_options import PRECOMPUTED, GraphOptions, refuse_given
from beltrami.cli.resumable import finished_run
from beltrami.cli.row_commands import train_precomputed
from beltrami.cli.train_run import Running, followed, name_of
from beltrami.memory import parse_bytes

if TYPE_CHECKING:
    from beltrami.train import Checkpoints

Memory = Annotated[
    str | None,
    Option(help="For a graph folder: memory on the device, such as 8GiB; most of the free memory by default."),
]


def refuse_for_folder(options: GraphOptions, others: Mapping[str, object]) -> None:
    """Refuse the options of tables and of datasets."""
    given = {f"--{name.replace('_', '-')}": value for name, value in vars(options).items()}
    refuse_given({**given, **others}, "does not apply to a graph folder")


def train_folder(
    source: str | None,
    running: Running,
    *,
    memory: str | None,
    recipe: str | None,
    seed: int | None,
    settings: Sequence[str] | None,
    logs: Sequence[Path] | None,
) -> None:
    """Train on a graph folder and print the result."""
    from beltrami.data.graph_folder import GraphFolder
    from beltrami.report.progress import display
    from beltrami.report.terminal import print_run
    from beltrami.run_streamed import block_config, open_problem, read_block_config, run_streamed, streamed_config

    path = Path(source or "").expanduser()
    limit = None if memory is None else parse_bytes(memory)
    if recipe == PRECOMPUTED:
        graph = GraphFolder.open(path)
        train_precomputed(graph, running, seed=seed or 0, settings=settings or [], logs=logs or [], memory=limit)
        return
    chosen = streamed_config(path, recipe=recipe or "blend", seed=seed or 0, settings=settings or [])
    graph, following = GraphFolder.open(path), followed(chosen, logs or [])
    with display(f"reading {path}", quiet=running.quiet):
        config = block_config(graph, chosen)

    def train(folder: Path, checkpoints: "Checkpoints") -> None:
        with display(f"reading {path}", quiet=running.quiet):
            problem = open_problem(config, graph=graph, memory=limit, device=running.device)
        with following(folder, checkpoints, running) as callbacks:
            run_streamed(config, folder, problem=problem, callbacks=callbacks, checkpoints=checkpoints)

    with finished_run(name_of(chosen), config.to_json(), running, train, read=read_block_config) as (folder, result):
        print_run(result, folder=folder)
