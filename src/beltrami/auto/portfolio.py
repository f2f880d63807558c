"""The portfolio of `--recipe auto`: a few configurations, far apart, of which validation chooses one for a graph."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from beltrami.config.parser import override
from beltrami.config.spec import ExponentialSpec, RunConfig

BASE = RunConfig(dataset="", recipe="auto", scheme=ExponentialSpec(time=1.0, rtol=1e-3, atol=1e-3))
UNIFORM = ("diffusivity.kind=uniform", "diffusivity.over=both")
DOT = (
    *("diffusivity.kind=scaled-dot", "diffusivity.link=squareplus", "diffusivity.width=64", "diffusivity.heads=4"),
    *("train.epochs=200", "train.attention_decay=0.0001", "train.validate_every=2"),
)
SHORT = (
    *(*DOT, "model.dropout=0.465", "model.input_dropout=0.429", "model.batch_norm=true"),
    *("scheme.time=3.582", "train.lr=0.005561", "train.weight_decay=0.004708"),
)
COSINE = (
    *("diffusivity.kind=scalar-cosine", "diffusivity.heads=1", "diffusivity.link=squareplus"),
    *("diffusivity.over=columns", "flow.source=true", "train.optimiser=adamax", "train.attention_decay=0.0005"),
)
COUPLED = "coupled"
CONSISTENT = ("train.consistency.kind=squared", "train.consistency.passes=2")


@dataclass(frozen=True)
class Member:
    """One configuration of the portfolio.

    ``exclusive``: settings for tasks with one class per node, which the other tasks do not have.
    """

    says: str
    settings: tuple[str, ...]
    exclusive: tuple[str, ...] = ()

    def config(self, dataset: str, *, exclusive: bool, seed: int, by_features: bool = False) -> RunConfig:
        """Return the configuration for a dataset's name.

        On a graph ``by_features`` weights are normalised at receivers: new rows, which only receive, then change
        nothing at the rows of the training.
        """
        settings = (*self.settings, *(self.exclusive if exclusive else ()))
        settings += ("diffusivity.over=rows",) if by_features else ()
        return replace(override(BASE, settings), dataset=dataset, seed=seed)


MEMBERS: Mapping[str, Member] = {
    "network": Member(
        "a network of two layers on the features, without the graph",
        (
            *("stencil.kind=isolated", *UNIFORM[:1], "model.hidden=64", "model.dropout=0.5", "scheme.time=1"),
            *("train.epochs=200", "train.weight_decay=0.01", "train.time_grid.kind=terminal"),
        ),
    ),
    COUPLED: Member(
        "attention with four heads, neighbours may attract or repel",
        (*SHORT, "flow.coupling=true", "flow.source=true"),
        (*CONSISTENT, "train.consistency.weight=1"),
    ),
    "uniform": Member(
        "equal weights on all edges, a long time",
        (
            *(*UNIFORM, "model.dropout=0.5", "flow.source=true", "scheme.time=12", "train.epochs=200"),
            "train.weight_decay=0.02",
        ),
    ),
    "cosine": Member(
        "weights by the cosine of the states, a long time",
        (
            *(*COSINE, "model.dropout=0.65", "model.input_dropout=0.6", "scheme.time=13", "train.lr=0.02"),
            *("train.weight_decay=0.025", "train.validate_every=2"),
        ),
        (*CONSISTENT, "train.consistency.weight=1.5"),
    ),
    "attention": Member(
        "attention with four heads, a short time",
        SHORT,
        (*CONSISTENT, "train.consistency.weight=1"),
    ),
    "similarity-weights": Member(
        "edges weighted by the similarity of the features",
        (
            *(*UNIFORM, "model.dropout=0.65", "model.input_dropout=0.55", "flow.source=true"),
            *("stencil.reweight.kind=similarity", "stencil.reweight.sharpness=0.3", "scheme.time=6"),
            *("train.epochs=250", "train.lr=0.008", "train.weight_decay=0.06", "train.patience=40", "train.ema=0.9"),
        ),
        (
            *(*CONSISTENT, "train.consistency.weight=1.1", "train.consistency.temperature=0.4"),
            "train.self_training=100",
        ),
    ),
    "similarity-edges": Member(
        "edges added between nodes of similar features, attention with four heads",
        (
            *(*DOT, "stencil.add.kind=neighbours", "stencil.add.k=5", "stencil.add.weight=0.5", "stencil.loops=1.714"),
            *("model.dropout=0.087", "model.input_dropout=0.597", "scheme.time=3.249", "train.lr=0.00353"),
            "train.weight_decay=0.007675",
        ),
        (*CONSISTENT, "train.consistency.weight=1"),
    ),
    "far": Member(
        "weights by the cosine of the states, a very long time",
        (
            *(*COSINE, "model.dropout=0.072", "scheme.time=40", "train.epochs=250", "train.lr=0.01467"),
            *("train.weight_decay=0.001824", "train.validate_every=4", "train.time_grid.multiple=2"),
        ),
        ("train.self_training=500",),
    ),
}
"""The members in the order in which they are trained; a linear model comes before them. ``COUPLED`` is for graphs whose
neighbours tend to differ."""
