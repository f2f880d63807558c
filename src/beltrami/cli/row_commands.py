"""The recipe precomputed in ``train``, and ``predict`` for runs whose predictions are saved."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from beltrami.cli.graph_options import PRECOMPUTED, refuse_given
from beltrami.cli.option import check_file
from beltrami.cli.resumable import Following, finished_run, log_writers
from beltrami.cli.train_run import Running

if TYPE_CHECKING:
    from beltrami.config.spec_rows import DatasetSpec
    from beltrami.data.graph_folder import GraphFolder
    from beltrami.train import Checkpoints

BLOCK = 1 << 18  # nodes that are written at once


def train_precomputed(
    source: "DatasetSpec | GraphFolder",
    running: Running,
    *,
    seed: int,
    settings: Sequence[str],
    logs: Sequence[Path],
    memory: int | None = None,
) -> None:
    """Diffuse the features of a dataset or graph folder once, train on their rows in the folder of the run, and print
    the result."""
    from beltrami.arguments import as_name
    from beltrami.config.build_rows import check_row_settings
    from beltrami.config.graph_source import folder_spec
    from beltrami.config.recipe.precomputed import precomputed
    from beltrami.config.spec_rows import DatasetSpec, GraphFolderSpec
    from beltrami.report.progress import display
    from beltrami.report.terminal import print_run
    from beltrami.rows.row_problem import load_row_problem
    from beltrami.rows.row_run import read_row_config, run_rows
    from beltrami.scale.diffused_rows import diffuse_rows

    graph = None if isinstance(source, DatasetSpec) else source
    spec = source if isinstance(source, DatasetSpec) else GraphFolderSpec(path="", digest="")
    name = source.name if isinstance(source, DatasetSpec) else as_name(source.path.resolve().name)
    config = precomputed(spec, seed=seed, settings=settings)
    check_row_settings(config)
    following = Following(f"{name} / {PRECOMPUTED}", config.train.epochs, log_writers(logs))
    if graph is not None:
        with display(f"reading {graph.path}", quiet=running.quiet):
            config = replace(config, data=folder_spec(graph))

    def train(folder: Path, checkpoints: "Checkpoints") -> None:
        with display(quiet=running.quiet) as shown:
            problem = load_row_problem(config.data, graph=graph, progress=shown.update)
            problem.labelled()  # refuses before anything is computed
            shown.status(f"diffusing {problem.graph.num_features:,} features to t = {config.times[-1]:g}")
            rows = diffuse_rows(
                problem.graph, times=config.times, rtol=config.rtol, memory=memory, device=running.device
            )
        with following(folder, checkpoints, running) as callbacks:
            run_rows(
                config,
                folder,
                problem=problem,
                rows=rows,
                device=running.device,
                callbacks=callbacks,
                checkpoints=checkpoints,
            )

    run = f"{name}-{PRECOMPUTED}-{config.seed}"
    with finished_run(run, config.to_json(), running, train, read=read_row_config) as (folder, result):
        print_run(result, folder=folder)


def write_saved_predictions(run: Path, out: Path, given: dict[str, object]) -> None:
    """Write the class of every node of a run on a graph folder or on rows, and its probability, to a table, in blocks;
    ``given`` are options that such a run does not have."""
    import numpy as np

    from beltrami.config.run_kind import NAMES, run_kind
    from beltrami.data.array_file import open_array
    from beltrami.node_predictions import PREDICTIONS, PROBABILITY
    from beltrami.predict.table_file import check_table_path, write_table
    from beltrami.report.progress import display
    from beltrami.report.terminal import print_written
    from beltrami.run import CONFIG, read_result

    refuse_given(given, f"is not for {NAMES[run_kind(run / CONFIG)]}")
    check_table_path(out)
    check_file(out)
    read_result(run)  # refuses files that do not belong together
    predictions, probability = open_array(run / PREDICTIONS), open_array(run / PROBABILITY)
    starts = range(0, len(predictions), BLOCK)
    parts = ((np.arange(at, min(at + BLOCK, len(predictions))), slice(at, at + BLOCK)) for at in starts)
    with display("writing"):
        write_table(
            out,
            (
                {"id": nodes, "prediction": predictions[block], "probability": probability[block]}
                for nodes, block in parts
            ),
        )
    print_written(out, rows=len(predictions))
