"""Blend: the settings of BLEND that validation preferred for each dataset."""

from collections.abc import Callable

from beltrami.config.spec import (
    DataConfig,
    DiffusivityConfig,
    FlowConfig,
    ModelConfig,
    PositionConfig,
    RunConfig,
    SchemeConfig,
    StencilConfig,
    TrainConfig,
)

PPR_ROWS = PositionConfig(encoding="ppr", restart=0.05, top=64)


def digits() -> RunConfig:
    """Handwritten digits on the graph of their nearest neighbours."""
    return RunConfig(
        "digits",
        "blend",
        data=DataConfig(component="all", protocol="shchur"),
        model=ModelConfig(feat=64, dropout=0.2, input_dropout=0.1),
        diffusivity=DiffusivityConfig("scaled-dot", 32, 2, link="squareplus", over="rows"),
        flow=FlowConfig(source=True),
        scheme=SchemeConfig("exponential", 8.0),
        train=TrainConfig(100, "adam", 0.01, 5e-3, 1e-3),
    )


def cora() -> RunConfig:
    return RunConfig(
        "cora",
        "blend",
        position=PPR_ROWS,
        model=ModelConfig(pos=16, feat=64, dropout=0.65, input_dropout=0.6),
        diffusivity=DiffusivityConfig("angle", heads=1, link="squareplus", over="columns"),
        flow=FlowConfig(source=True),
        scheme=SchemeConfig("exponential", 13.0),
        train=TrainConfig(100, "adamax", 0.02, 0.025, 5e-4, look_every=2, consistency=1.5, passes=2, temperature=0.5),
    )


def citeseer() -> RunConfig:
    return RunConfig(
        "citeseer",
        "blend",
        position=PPR_ROWS,
        model=ModelConfig(feat=64, dropout=0.65, input_dropout=0.55),
        diffusivity=DiffusivityConfig("uniform", over="both"),
        flow=FlowConfig(source=True),
        stencil=StencilConfig(alike=0.3),
        scheme=SchemeConfig("exponential", 6.0),
        train=TrainConfig(
            250,
            "adam",
            0.008,
            0.06,
            patience=40,
            average=0.9,
            consistency=1.1,
            passes=2,
            temperature=0.4,
            adopt=100,
        ),
    )


def pubmed() -> RunConfig:
    return RunConfig(
        "pubmed",
        "blend",
        position=PPR_ROWS,
        model=ModelConfig(pos=16, feat=64, dropout=0.072, input_dropout=0.5),
        diffusivity=DiffusivityConfig("angle", heads=1, link="squareplus", over="columns"),
        flow=FlowConfig(source=True),
        scheme=SchemeConfig("exponential", 40.0),
        train=TrainConfig(250, "adamax", 0.01467, 0.001824, 1e-4, look_every=4, time_multiple=2.0, adopt=500),
    )


def coauthor_cs() -> RunConfig:
    return RunConfig(
        "coauthor-cs",
        "blend",
        model=ModelConfig(pos=32, feat=128, dropout=0.686, input_dropout=0.528),
        diffusivity=DiffusivityConfig("angle", heads=1, link="squareplus", over="columns"),
        stencil=StencilConfig(loops=0.0, near=5, near_weight=0.5),
        scheme=SchemeConfig("exponential", 3.126),
        train=TrainConfig(250, "rmsprop", 0.000934, 0.004738, 1e-4, look_every=2, consistency=0.5, passes=2),
    )


def computers() -> RunConfig:
    return RunConfig(
        "computers",
        "blend",
        model=ModelConfig(feat=64, dropout=0.087, input_dropout=0.597),
        diffusivity=DiffusivityConfig("scaled-dot", 64, 4, link="squareplus", over="rows"),
        stencil=StencilConfig(loops=1.714, near=5, near_weight=0.5),
        scheme=SchemeConfig("exponential", 3.249),
        train=TrainConfig(200, "adam", 0.00353, 0.007675, 1e-4, look_every=2, consistency=1.0, passes=2),
    )


def photo() -> RunConfig:
    return RunConfig(
        "photo",
        "blend",
        model=ModelConfig(feat=64, dropout=0.465, input_dropout=0.429, batch_norm=True),
        diffusivity=DiffusivityConfig("scaled-dot", 64, 4, link="squareplus", over="rows"),
        stencil=StencilConfig(loops=1.0),
        scheme=SchemeConfig("exponential", 3.582),
        train=TrainConfig(200, "adam", 0.005561, 0.004708, 1e-4, look_every=1, consistency=1.0, passes=2),
    )


def ogbn_arxiv() -> RunConfig:
    """The published settings on the whole graph, with its published split; not tuned by us."""
    return RunConfig(
        "ogbn-arxiv",
        "blend",
        data=DataConfig(component="all", protocol="ogb"),
        position=PositionConfig("deepwalk", channels=64),
        model=ModelConfig(pos=98, feat=64, dropout=0.116, input_dropout=0.0, batch_norm=True),
        diffusivity=DiffusivityConfig("scaled-dot", 32, 2, link="softmax", over="rows"),
        stencil=StencilConfig(loops=1.0),
        scheme=SchemeConfig("exponential", 3.676),
        train=TrainConfig(100, "rmsprop", 0.005451, 0.0, 0.0),
    )


DATASETS: dict[str, Callable[[], RunConfig]] = {
    "digits": digits,
    "cora": cora,
    "citeseer": citeseer,
    "pubmed": pubmed,
    "coauthor-cs": coauthor_cs,
    "computers": computers,
    "photo": photo,
    "ogbn-arxiv": ogbn_arxiv,
}

PUBLISHED: dict[str, tuple[str, ...]] = {
    "cora": (
        *("diffusivity.score=cosine", "diffusivity.width=128", "diffusivity.over=both", "model.feat=128"),
        *("model.dropout=0.64", "model.input_dropout=0.73", "scheme.time=16.8", "train.weight_decay=0.042"),
        "train.temperature=0.58",
    ),
    "citeseer": (
        *("diffusivity.score=angle", "diffusivity.heads=2", "diffusivity.over=columns", "stencil.alike=0"),
        *("model.feat=128", "model.dropout=0.42", "model.input_dropout=0.74", "scheme.time=8", "train.lr=0.0065"),
        *("train.weight_decay=0.04", "train.average=0", "train.consistency=1.3", "train.temperature=0.38"),
        "train.adopt=0",
    ),
    "pubmed": ("train.adopt=100",),
}
"""What the validation nodes of the published splits, ``planetoid``, preferred: settings by dataset, as ``--set`` takes
them."""
