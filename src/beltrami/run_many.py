"""run_many: configurations that differ by their seeds alone, trained together."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from beltrami.config.build import build_training
from beltrami.config.spec import RunConfig
from beltrami.data import make_split
from beltrami.errors import SolverError
from beltrami.model import Classifier
from beltrami.run import evaluate_fit, load_problem
from beltrami.train import Epoch, RunResult, fit_many, seeded


def run_configs(
    configs: Sequence[RunConfig], *, device: str = "cpu", on_epoch: Callable[[int, int], None] | None = None
) -> list[tuple[RunResult, Classifier] | SolverError]:
    """As :func:`run` for each of the configurations, all at once; a run that fails gives its error.

    Args:
        configs: equal up to ``seed`` and ``data.split_seed``.
        device: where to compute. On a GPU memory grows with the number of runs.
        on_epoch: told the epoch's number and how many runs go on.
    """
    if not configs or any(_without_seeds(config) != _without_seeds(configs[0]) for config in configs):
        raise ValueError("run_many needs configurations that differ by `seed` and `data.split_seed` alone.")
    first = load_problem(configs[0], device=device)
    dataset = first.dataset.to("cpu")
    problems, models = [], []
    for config in configs:
        split = make_split(dataset, protocol=config.data.protocol, seed=config.data.split_seed)
        problems.append(replace(first, split=split.to(device)))
        with seeded(config.seed):
            models.append(first.model(config))
    inputs = models[0].prepare(first.x, first.edges, first.pos)
    splits = [problem.split for problem in problems]
    training = build_training(configs[0].train)

    def tell(epoch: Epoch) -> None:
        if on_epoch is not None:
            on_epoch(epoch.number, epoch.going)

    found = fit_many(models, inputs, first.dataset.y, splits, training, callbacks=[tell])
    return [
        fit if isinstance(fit, SolverError) else (evaluate_fit(config, problem, model, fit), model)
        for config, problem, model, fit in zip(configs, problems, models, found, strict=True)
    ]


def _without_seeds(config: RunConfig) -> RunConfig:
    return replace(config, seed=0, data=replace(config.data, split_seed=0))
