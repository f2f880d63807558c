"""The studies: every table and figure of the paper, and what else one would ask."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from beltrami.errors import UnknownName
from beltrami.experiment.study import paper
from beltrami.experiment.study.draw import Draw
from beltrami.experiment.study.pair import Pair, ratio
from beltrami.experiment.study.paper import SEVEN, SIX, THREE
from beltrami.experiment.study.quantity import EVALUATIONS, SECONDS, Quantity, accuracy
from beltrami.experiment.study.row import Row, recipes
from beltrami.experiment.study.study import Study
from beltrami.experiment.study.work import Count, Follow, Time

OURS = ("grand", "uniform", "blend", "blend-knn")
RIVALS = (Pair("blend", "uniform"), Pair("blend", "gat"), Pair("blend", "gcn"), Pair("blend-knn", "blend"))
ONCE = Draw("digl", 1, 1)
SOME = Draw("digl", 20, 1)
OGB = {"ogbn-arxiv": Draw("ogb", 1, 10)}

PLANETOID = Study(
    "planetoid",
    "Table 2: accuracy on the published splits, over initial weights.",
    recipes("gcn", "gat", "monet", "sage-maxpool", "lanczosnet", "adalanczosnet", "cgnn", "gde", "gode", *OURS),
    THREE,
    Draw("planetoid", 1, 20),
    (accuracy(*RIVALS, paper=paper.PLANETOID),),
)
RANDOM = replace(
    PLANETOID,
    name="random",
    title="Table 3: accuracy over random splits.",
    rows=recipes("gcn", "gat", "gat-ppr", "monet", "sage-mean", "sage-maxpool", "cgnn", "gde", *OURS),
    datasets=SEVEN,
    draw=Draw("digl", 100, 1),
    quantities=(accuracy(*RIVALS, paper=paper.RANDOM),),
    exceptions=OGB,
)

SCORES = ("scaled-dot", "cosine", "pearson", "exp-kernel")
LINK = "diffusivity.link=squareplus"  # the same for every score, and tamer than softmax
FEW = (
    Row("angle", "blend", ("diffusivity.score=angle", "diffusivity.heads=1", LINK)),
    Row("gaussian", "blend", ("diffusivity.score=gaussian", "diffusivity.heads=1")),
    Row("alike", "uniform", ("stencil.alike=0.5",)),
)
"""Diffusivities with one number to learn, with two, and with none: the likeness of the input features."""
LIVE = ("flow.frozen=false", "scheme.solver=rk4", "scheme.dt=1")
ATTENTION = Study(
    "attention",
    "The paper's four diffusivities, frozen and live, and three of few numbers, beside uniform weights.",
    (
        Row("uniform", "uniform"),
        *FEW,
        *(Row(score, "blend", (f"diffusivity.score={score}", LINK)) for score in SCORES),
        *(Row(f"{score}-live", "blend", (f"diffusivity.score={score}", LINK, *LIVE)) for score in SCORES),
    ),
    SIX,
    SOME,
    (
        accuracy(
            *(Pair(row.name, "uniform") for row in FEW),
            *(Pair(score, "uniform") for score in SCORES),
            *(Pair(f"{score}-live", score) for score in SCORES),
            paper=paper.ATTENTION,
        ),
        Quantity("attention_spread", "spread of the attention", 3),
    ),
    note="Rows have the settings that were chosen for `blend`; live ones take steps of rk4. On Citeseer these settings "
    "hold edges that count more between nodes that are alike, in every row but uniform and alike: a gain over uniform "
    "weights is there a gain by both.",
)

PPR = "position.encoding=ppr"
DEEPWALK = (16, 32, 64, 128, 256)
HYPERBOLIC = (2, 4, 8, 16)
POSITIONS = Study(
    "positions",
    "What positions are worth: with and without, GAT with them, PageRank rows, DeepWalk and hyperbolic over d'.",
    (
        Row("without", "blend", ("position.encoding=none",)),
        Row("ppr", "blend", (PPR,)),
        Row("gat", "gat"),
        Row("gat-with-positions", "gat", (PPR,)),
        *(
            Row(f"deepwalk-{d}", "blend", ("position.encoding=deepwalk", f"position.channels={d}"), "DeepWalk", d)
            for d in DEEPWALK
        ),
        *(
            Row(f"hyperbolic-{d}", "blend", ("position.encoding=hyperbolic", f"position.channels={d}"), "hyperbolic", d)
            for d in HYPERBOLIC
        ),
    ),
    SIX,
    SOME,
    (
        accuracy(
            Pair("ppr", "without"),
            Pair("gat-with-positions", "gat"),
            Pair("ppr", "gat-with-positions"),
            Pair("ppr", "hyperbolic-16"),
            Pair("deepwalk-64", "without"),
            Pair("hyperbolic-16", "without"),
        ),
    ),
    curve="width d' of the positions",
    note="The paper prints averages over its datasets: 85.48 with PageRank rows, 85.28 with hyperbolic positions of "
    "the best width from 2 to 16.",
)

STEPS = Study(
    "steps",
    "Explicit Euler over its step size, against the adaptive Dopri5.",
    (
        Row("dopri5", "blend", ("scheme.solver=dopri5", "scheme.dt=none")),
        *(
            Row(f"euler-{dt:g}", "blend", ("scheme.solver=euler", f"scheme.dt={dt}"), "Euler", dt)
            for dt in (0.25, 0.5, 1.0, 1.5, 2.0, 3.0)
        ),
    ),
    SIX,
    SOME,
    (accuracy(Pair("dopri5", "euler-1")),),
    curve="step size",
    note="The paper finds Dopri5 the steadiest, and the best on three of six datasets; its figure has no numbers.",
)

STEADY = ("euler", "midpoint", "heun", "rk4", "adams-bashforth", "adams-moulton", "implicit-euler", "crank-nicolson")
ADAPTIVE = ("bosh3", "dopri5", "exponential")
SOLVERS = Study(
    "solvers",
    "Every solver on the same flow: accuracy, training time and evaluations.",
    (
        *(Row(name, "blend", (f"scheme.solver={name}", "scheme.dt=0.5")) for name in STEADY),
        *(Row(name, "blend", (f"scheme.solver={name}", "scheme.dt=none")) for name in ADAPTIVE),
    ),
    SIX,
    Draw("digl", 5, 1),
    (
        accuracy(Pair("exponential", "dopri5"), Pair("rk4", "dopri5"), Pair("euler", "dopri5")),
        SECONDS,
        EVALUATIONS,
    ),
)

CLOCKED = (
    *("train.epochs=100", "train.patience=100", "train.look_every=100", "train.time_multiple=1"),
    "train.adopt=0",
)
BESIDE_GAT = (Pair("blend", "gat", ratio), Pair("blend-knn", "gat", ratio))
RUNTIME = Study(
    "runtime",
    "The two tables of running times: 100 epochs of training, and one inference, beside GAT.",
    tuple(Row(name, name, CLOCKED) for name in ("gat", "blend", "blend-knn")),
    SIX,
    Draw("digl", 1, 3),
    (
        Quantity("train_seconds", "training time for 100 epochs (s)", 2, paper.TRAINING, BESIDE_GAT, timed=True),
        Quantity("inference_seconds", "inference time (s)", 4, paper.INFERENCE, BESIDE_GAT, timed=True),
    ),
    note="Whole trainings by our loop, GAT's as well: recording the steps as CUDA graphs and validating them is part "
    "of the time, and so are the positions and the passes of our recipes. Single steps beside PyG's own GAT are "
    "measured by `beltrami bench`.",
    work=Time(),
)

REWIRING = Study(
    "rewiring",
    "The graph that the flow is on: the input's, DIGL's, nearest neighbours in u or x, or none.",
    (
        Row("input", "blend"),
        Row("digl", "blend-knn"),
        Row("digl-threshold", "blend", ("stencil.kind=threshold", "stencil.loops=0")),
        Row("knn-u", "blend", (PPR, "stencil.kind=knn", "stencil.on=u", "stencil.k=16")),
        Row("knn-x", "blend", ("stencil.kind=knn", "stencil.on=x", "stencil.k=16")),
        Row("none", "blend", ("stencil.kind=isolated",)),
    ),
    SIX,
    SOME,
    (accuracy(*(Pair(row, "input") for row in ("digl", "digl-threshold", "knn-u", "knn-x", "none"))),),
)

PARAMETERS = Study(
    "parameters",
    "How many parameters the models have.",
    recipes("gcn", "gat", "monet", "sage-mean", "sage-maxpool", "lanczosnet", "adalanczosnet", "cgnn", "gde", "gode")
    + recipes(*OURS),
    SEVEN,
    ONCE,
    (Quantity("parameters", "parameters", 0, paper.PARAMETERS),),
    exceptions={"ogbn-arxiv": Draw("ogb", 1, 1)},
    work=Count(),
)

TIME = Study(
    "time",
    "Validation accuracy along the flow, up to three times the terminal time of training.",
    recipes("uniform", "blend", "blend-knn"),
    SIX,
    Draw("digl", 5, 1),
    (Quantity("best_time", "time of the best validation accuracy", 2), accuracy()),
    work=Follow(),
)

STUDIES: Mapping[str, Study] = MappingProxyType(
    {study.name: study for study in (PLANETOID, RANDOM, ATTENTION, POSITIONS, STEPS, SOLVERS, RUNTIME, REWIRING)}
    | {study.name: study for study in (PARAMETERS, TIME)}
)
"""Every study by its name."""


def study_named(name: str) -> Study:
    """The study of this name; an unknown one is refused with the nearest that there is."""
    if name not in STUDIES:
        raise UnknownName("study", name, STUDIES)
    return STUDIES[name]
