"""Recipes of the paper: the published architecture and settings, without training aids. ``docs/fairness.md`` lists
where the paper's text and the code that was released with it differ, and which one is followed here."""

from collections.abc import Mapping
from dataclasses import replace

from beltrami.config.parser import override
from beltrami.config.recipe.blend import EXPONENTIAL, PPR
from beltrami.config.spec import RunConfig
from beltrami.data import CATALOGUE
from beltrami.errors import UnknownName

ATOL, RTOL = 1e-7, 1e-9  # the tolerances at scale 1
SQUAREPLUS, COLUMNS, SOURCE = "diffusivity.link=squareplus", "diffusivity.over=columns", "flow.source=true"


def _dopri5(time: float, scale: float) -> tuple[str, ...]:
    """Return adaptive steps of Dormand and Prince up to ``time``, with tolerances of this scale."""
    kind = ("scheme.kind=adaptive", "scheme.solver=dopri5", f"scheme.time={time}")
    return (*kind, f"scheme.atol={scale * ATOL:.6g}", f"scheme.rtol={scale * RTOL:.6g}")


def _adjoint(solver: str, scale: float) -> tuple[str, ...]:
    """Return the continuous adjoint by an adaptive solver, with tolerances of this scale."""
    kind = ("scheme.adjoint.kind=continuous-adaptive", f"scheme.adjoint.solver={solver}")
    return (*kind, f"scheme.adjoint.atol={scale * ATOL:.6g}", f"scheme.adjoint.rtol={scale * RTOL:.6g}")


RK4_ADJOINT = ("scheme.adjoint.kind=continuous-constant", "scheme.adjoint.solver=rk4", "scheme.adjoint.dt=1")


def _attention(score: str, width: int, heads: int) -> tuple[str, ...]:
    """Return a score of projections with biases that begin constant, 1e-5. A dot product is divided by the root of a
    head's width."""
    start = ("diffusivity.start.kind=constant", "diffusivity.start.value=1e-5", "diffusivity.bias=true")
    root = (f"diffusivity.d_k={(width / heads) ** 0.5:.6g}",) if score == "scaled-dot" else ()
    return (f"diffusivity.kind={score}", f"diffusivity.width={width}", f"diffusivity.heads={heads}", *start, *root)


def _widths(pos: int, feat: int, dropout: float, input_dropout: float) -> tuple[str, ...]:
    """Return the channels d' and d of the flow, and the dropouts."""
    channels = (f"model.pos={pos}", f"model.feat={feat}")
    return (*channels, f"model.dropout={dropout}", f"model.input_dropout={input_dropout}")


def _optimiser(name: str, lr: float, decay: float, epochs: int, *, multiple: int = 3) -> tuple[str, ...]:
    """Return the optimiser, whose weight decay is that of all parameters, for a number of epochs without early
    stopping; validation looks along the trajectory up to ``multiple`` times T after each of them."""
    decays = (f"train.weight_decay={decay}", f"train.attention_decay={decay}")
    epoch = (f"train.epochs={epochs}", f"train.patience={epochs}", "train.validate_every=1")
    times = (f"train.time_grid.multiple={multiple}", "train.time_grid.patience=100")
    return (f"train.optimiser={name}", f"train.lr={lr}", *decays, *epoch, *times)


def _deepwalk(channels: int) -> tuple[str, ...]:
    return ("position.kind=deepwalk", f"position.channels={channels}")


PAPER: Mapping[str, tuple[str, ...]] = {
    "cora": (
        *(*PPR, *_widths(16, 64, 0.047, 0.5), *_attention("scaled-dot", 128, 8), SQUAREPLUS, COLUMNS, SOURCE),
        *(*_dopri5(18.29, 822), *_optimiser("adamax", 0.02292, 0.005077, 100)),
    ),
    "citeseer": (
        *(*_deepwalk(64), *_widths(16, 64, 0.749, 0.68), *_attention("exp-kernel", 32, 8), SQUAREPLUS, COLUMNS, SOURCE),
        *(*_dopri5(7.874, 2.9), *_optimiser("adam", 0.008636, 0.1, 250)),
    ),
    "pubmed": (
        *(*PPR, *_widths(16, 64, 0.072, 0.5), *_attention("cosine", 16, 1), SQUAREPLUS, SOURCE),
        *(*_dopri5(12.94, 1991), *_adjoint("heun", 16320)),
        *_optimiser("adamax", 0.01467, 0.001824, 600, multiple=5),
    ),
    "coauthor-cs": (
        *(*PPR, *_widths(32, 128, 0.686, 0.528), *_attention("scaled-dot", 8, 4), SQUAREPLUS, COLUMNS),
        *("stencil.loops=0", *_dopri5(3.126, 9349), *_adjoint("dopri5", 6599)),
        *_optimiser("rmsprop", 0.000934, 0.004738, 250),
    ),
    "computers": (
        *(*_deepwalk(128), *_widths(32, 64, 0.087, 0.597), *_attention("scaled-dot", 64, 4)),
        *("stencil.loops=1.714", "stencil.strongest=0.573", *_dopri5(3.249, 127), *_adjoint("dopri5", 444)),
        *_optimiser("adam", 0.00353, 0.007675, 100),
    ),
    "photo": (
        *(*_deepwalk(128), *_widths(16, 64, 0.465, 0.429), *_attention("pearson", 64, 4), "model.batch_norm=true"),
        *("stencil.loops=0.058", "stencil.strongest=0.928", *_dopri5(3.582, 2087), *RK4_ADJOINT),
        *_optimiser("adam", 0.005561, 0.004708, 100),
    ),
    "ogbn-arxiv": (
        *("data.component=all", "data.protocol=ogb", *_deepwalk(64), *_widths(98, 64, 0.116, 0)),
        *(*_attention("scaled-dot", 32, 2), "model.batch_norm=true", "stencil.strongest=0.811"),
        *(*_dopri5(3.676, 11350), *RK4_ADJOINT, *_optimiser("rmsprop", 0.005451, 0, 100)),
    ),
}
"""The published settings by dataset, as ``--set`` takes them."""
KNN_DATASETS = tuple(name for name in PAPER if name != "ogbn-arxiv")  # the datasets of BLEND-kNN


def paper(dataset: str) -> RunConfig:
    """Return BLEND as published, on the input graph."""
    return _published("paper", dataset, PAPER)


def paper_knn(dataset: str) -> RunConfig:
    """Return BLEND-kNN as published: the same on the graph of the largest entries of personalised PageRank. The
    published attention does not look at the values of these entries."""
    config = _published("paper-knn", dataset, {name: PAPER[name] for name in KNN_DATASETS})
    graph = ("stencil.kind=digl", f"stencil.k={128 if dataset == 'citeseer' else 64}", "stencil.restart=0.05")
    return override(config, [*graph, "stencil.weighted=false", "stencil.loops=0"])


def _published(name: str, dataset: str, settings: Mapping[str, tuple[str, ...]]) -> RunConfig:
    if dataset not in CATALOGUE:
        raise UnknownName("dataset", dataset, CATALOGUE)
    if dataset not in settings:
        raise UnknownName(f"dataset for recipe {name!r}", dataset, settings)
    return replace(override(EXPONENTIAL, settings[dataset]), dataset=dataset, recipe=name)
