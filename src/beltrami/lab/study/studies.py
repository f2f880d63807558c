"""All studies: the paper's tables and figures, and further questions."""

from collections.abc import Mapping
from operator import truediv
from types import MappingProxyType

from beltrami.lab.study import paper_tables as paper
from beltrami.lab.study import work
from beltrami.lab.study.accuracy_studies import (
    AIDS,
    COMPONENT,
    OURS,
    PLAIN,
    PLANETOID,
    RANDOM,
    SOME,
    accuracy,
    recipes,
)
from beltrami.lab.study.paper_tables import SEVEN, SIX
from beltrami.lab.study.planning import Comparison, Method, Quantity, Sampling, Study

SCORES = ("scaled-dot", "cosine", "pearson", "exp-kernel")
LINK = "diffusivity.link=squareplus"  # the same for every score, and tamer than softmax
FEW = (
    Method("angle", "blend", ("diffusivity.kind=scalar-cosine", "diffusivity.heads=1", LINK)),
    Method("gaussian", "blend", ("diffusivity.kind=gaussian", "diffusivity.heads=1")),
    Method("alike", "uniform", ("stencil.reweight.kind=similarity", "stencil.reweight.sharpness=0.5")),
)
"""Diffusivities with one parameter, with two, and with none (the similarity of the input features)."""
LIVE = ("flow.kind=live", "scheme.kind=constant", "scheme.solver=rk4", "scheme.dt=1")
ATTENTION = Study(
    "attention",
    "The paper's four diffusivities, frozen and live, and three of few numbers, against uniform weights.",
    (
        Method("uniform", "uniform"),
        *FEW,
        *(Method(score, "blend", (f"diffusivity.kind={score}", LINK)) for score in SCORES),
        *(Method(f"{score}-live", "blend", (f"diffusivity.kind={score}", LINK, *LIVE)) for score in SCORES),
    ),
    SIX,
    SOME,
    (
        accuracy(
            *((name, "uniform") for name in (*(method.name for method in FEW), *SCORES)),
            *((f"{score}-live", score) for score in SCORES),
            paper=paper.ATTENTION,
        ),
        Quantity("attention_spread", "spread of the attention", 3),
    ),
    note="Rows have the settings that were chosen for `blend`; live ones take steps of rk4. On Citeseer these settings "
    "hold edges that count more between nodes that are alike, in every row but uniform and alike: a gain over uniform "
    "weights is there a gain by both.",
)

PPR = "position.kind=ppr"
WIDTHS = {"deepwalk": (16, 32, 64, 128, 256), "hyperbolic": (2, 4, 8, 16)}
SERIES = {"deepwalk": "DeepWalk", "hyperbolic": "hyperbolic"}
POSITIONS = Study(
    "positions",
    "What positions are worth: with and without, GAT with them, PageRank rows, DeepWalk and hyperbolic over d'.",
    (
        Method("without", "blend", ("position.kind=none",)),
        Method("ppr", "blend", (PPR,)),
        Method("gat", "gat"),
        Method("gat-with-positions", "gat", (PPR,)),
        *(
            Method(f"{kind}-{d}", "blend", (f"position.kind={kind}", f"position.channels={d}"), SERIES[kind], d)
            for kind, widths in WIDTHS.items()
            for d in widths
        ),
    ),
    SIX,
    SOME,
    (
        accuracy(
            *(("ppr", "without"), ("gat-with-positions", "gat"), ("ppr", "gat-with-positions")),
            *(("ppr", "hyperbolic-16"), ("deepwalk-64", "without"), ("hyperbolic-16", "without")),
        ),
    ),
    curve="width d' of the positions",
    note="The paper prints averages over its datasets: 85.48 with PageRank rows, 85.28 with hyperbolic positions of "
    "the best width from 2 to 16.",
)

EULER = ("scheme.kind=constant", "scheme.solver=euler")
STEPS = Study(
    "steps",
    "Explicit Euler over its step size, against the adaptive Dopri5.",
    (
        Method("dopri5", "blend", ("scheme.kind=adaptive", "scheme.solver=dopri5")),
        *(
            Method(f"euler-{dt:g}", "blend", (*EULER, f"scheme.dt={dt}"), "Euler", dt)
            for dt in (0.25, 0.5, 1.0, 1.5, 2.0, 3.0)
        ),
    ),
    SIX,
    SOME,
    (accuracy(("dopri5", "euler-1")),),
    curve="step size",
    note="The paper finds Dopri5 the steadiest, and the best on three of six datasets; its figure has no numbers.",
)

STEP = "scheme.dt=0.5"
EXPLICIT = ("euler", "midpoint", "heun", "rk4", "adams-bashforth", "adams-moulton")
IMPLICIT, SOLVED = ("implicit-euler", "crank-nicolson"), ("scheme.rtol=1e-4", "scheme.atol=1e-4")
ADAPTIVE = ("bosh3", "dopri5")
SOLVERS = Study(
    "solvers",
    "Every solver on the same flow: accuracy, training time and evaluations.",
    (
        *(Method(name, "blend", ("scheme.kind=constant", f"scheme.solver={name}", STEP)) for name in EXPLICIT),
        *(Method(name, "blend", ("scheme.kind=implicit", f"scheme.solver={name}", STEP, *SOLVED)) for name in IMPLICIT),
        *(Method(name, "blend", ("scheme.kind=adaptive", f"scheme.solver={name}")) for name in ADAPTIVE),
        Method("exponential", "blend", ("scheme.kind=exponential",)),
    ),
    SIX,
    Sampling("digl", 5, 1),
    (
        accuracy(("exponential", "dopri5"), ("rk4", "dopri5"), ("euler", "dopri5")),
        Quantity("train_seconds", "training time (s)", 1, timed=True),
        Quantity("evaluations.forward", "evaluations of f while training", 0),
    ),
)

CLOCKED = (
    *("train.epochs=100", "train.patience=100", "train.validate_every=100", "train.time_grid.kind=terminal"),
    "train.self_training=0",
)
RATIO_TO_GAT = (Comparison("blend", "gat", truediv), Comparison("blend-knn", "gat", truediv))
RUNTIME = Study(
    "runtime",
    "The two tables of running times: 100 epochs of training, and one inference, against GAT.",
    tuple(Method(name, name, CLOCKED) for name in ("gat", "blend", "blend-knn")),
    SIX,
    Sampling("digl", 1, 3),
    (
        Quantity("train_seconds", "training time for 100 epochs (s)", 2, paper.TRAINING, RATIO_TO_GAT, timed=True),
        Quantity("inference_seconds", "inference time (s)", 4, paper.INFERENCE, RATIO_TO_GAT, timed=True),
    ),
    note="Whole trainings by our loop, GAT's as well: recording the steps as CUDA graphs and validating them is part "
    "of the time, and so are the positions and the passes of our recipes. Single steps are compared with PyG's own "
    "GAT by `beltrami bench`.",
    work=work.TIME,
)

REWIRING = Study(
    "rewiring",
    "The graph that the flow is on: the input's, DIGL's, nearest neighbours in u or x, or none.",
    (
        Method("input", "blend"),
        Method("digl", "blend-knn"),
        Method("digl-threshold", "blend", ("stencil.kind=threshold", "stencil.loops=0")),
        Method("knn-u", "blend", (PPR, "stencil.kind=knn", "stencil.on=u", "stencil.k=16")),
        Method("knn-x", "blend", ("stencil.kind=knn", "stencil.on=x", "stencil.k=16")),
        Method("none", "blend", ("stencil.kind=isolated",)),
    ),
    SIX,
    SOME,
    (accuracy(*((name, "input") for name in ("digl", "digl-threshold", "knn-u", "knn-x", "none"))),),
)

PARAMETERS = Study(
    "parameters",
    "How many parameters the models have.",
    recipes("gcn", "gat", "monet", "sage-mean", "sage-maxpool", "lanczosnet", "adalanczosnet", "cgnn", "gde", "gode")
    + recipes(*OURS, *PLAIN),
    SEVEN,
    Sampling("digl", 1, 1),
    (Quantity("parameters", "parameters", 0, paper.PARAMETERS),),
    exceptions={"ogbn-arxiv": Sampling("ogb", 1, 1)},
    work=work.COUNT,
)

TIME = Study(
    "time",
    "Validation accuracy along the flow, up to three times the terminal time of training.",
    recipes("uniform", "blend", "blend-knn"),
    SIX,
    Sampling("digl", 5, 1),
    (Quantity("best_time", "time of the best validation accuracy", 2), accuracy()),
    work=work.FOLLOW,
)

_ALL = (PLANETOID, COMPONENT, RANDOM, AIDS, ATTENTION, POSITIONS, STEPS, SOLVERS, RUNTIME, REWIRING, PARAMETERS, TIME)
STUDIES: Mapping[str, Study] = MappingProxyType({study.name: study for study in _ALL})
"""All studies by name."""
BY_IMPORTANCE = (
    PARAMETERS,
    RANDOM,
    PLANETOID,
    AIDS,
    COMPONENT,
    ATTENTION,
    REWIRING,
    POSITIONS,
    STEPS,
    SOLVERS,
    TIME,
    RUNTIME,
)
"""All studies, in the order in which ``beltrami study all`` runs them; the first takes seconds."""
FIRST_ROWS = ("blend-distilled", "paper", "blend-plain", "gcn+aids", "gat+aids", "paper-knn")
"""The rows that are run before the others of their study."""
