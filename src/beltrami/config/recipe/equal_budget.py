"""Settings of baselines that validation chose among as many as were compared for our recipes on a dataset.

Made by ``python benchmarks/searched.py --write`` of results/search/equal-budget.jsonl.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Searched(NamedTuple):
    """How many configurations were compared, None if unknown, and the settings of the best, as ``--set`` takes them."""

    tried: int | None
    settings: tuple[str, ...]


EQUAL_BUDGET: Mapping[tuple[str, str, bool], Searched] = {
    ("blend-plain", "citeseer", False): Searched(
        235,
        (
            "model.dropout=0.6573",
            "model.input_dropout=0.2396",
            "train.optimiser=rmsprop",
            "train.lr=0.001745",
            "train.weight_decay=0.1478",
            "model.feat=64",
            "diffusivity.over=columns",
            "flow.source=True",
            "stencil.loops=1.586",
            "scheme.time=15.41",
            "diffusivity.width=32",
            "diffusivity.heads=8",
            "diffusivity.link=squareplus",
            "train.attention_decay=0.05356",
            "diffusivity.kind=exp-kernel",
            "model.pos=32",
        ),
    ),
    ("gat", "citeseer", False): Searched(
        235,
        (
            "model.dropout=0.5489",
            "model.input_dropout=0.09831",
            "train.optimiser=rmsprop",
            "train.lr=0.001161",
            "train.weight_decay=0.4245",
            "model.width=128",
            "model.heads=8",
            "model.attention_dropout=0.05315",
        ),
    ),
    ("gat", "citeseer", True): Searched(
        235,
        (
            "model.dropout=0.5068",
            "model.input_dropout=0.0303",
            "train.optimiser=adam",
            "train.lr=0.03232",
            "train.weight_decay=0.05665",
            "model.width=128",
            "model.heads=8",
            "model.attention_dropout=0.4015",
        ),
    ),
    ("gat", "coauthor-cs", False): Searched(
        19,
        (
            "model.dropout=0.3977",
            "model.input_dropout=0.734",
            "train.optimiser=adamax",
            "train.lr=0.008601",
            "train.weight_decay=0.002535",
            "model.width=32",
            "model.heads=4",
            "model.attention_dropout=0.7516",
        ),
    ),
    ("gat", "coauthor-cs", True): Searched(19, ()),
    ("gat", "computers", False): Searched(
        21,
        (
            "model.dropout=0.5387",
            "model.input_dropout=0.4002",
            "train.optimiser=adam",
            "train.lr=0.0191",
            "train.weight_decay=0.007882",
            "model.width=128",
            "model.heads=4",
            "model.attention_dropout=0.2316",
        ),
    ),
    ("gat", "computers", True): Searched(
        21,
        (
            "model.dropout=0.5387",
            "model.input_dropout=0.4002",
            "train.optimiser=adam",
            "train.lr=0.0191",
            "train.weight_decay=0.007882",
            "model.width=128",
            "model.heads=4",
            "model.attention_dropout=0.2316",
        ),
    ),
    ("gat", "cora", False): Searched(
        93,
        (
            "model.dropout=0.6561",
            "model.input_dropout=0.7296",
            "train.optimiser=adam",
            "train.lr=0.007707",
            "train.weight_decay=0.01267",
            "model.width=128",
            "model.heads=8",
            "model.attention_dropout=0.3397",
        ),
    ),
    ("gat", "cora", True): Searched(
        93,
        (
            "model.dropout=0.6561",
            "model.input_dropout=0.7296",
            "train.optimiser=adam",
            "train.lr=0.007707",
            "train.weight_decay=0.01267",
            "model.width=128",
            "model.heads=8",
            "model.attention_dropout=0.3397",
        ),
    ),
    ("gat", "photo", False): Searched(
        23,
        (
            "model.dropout=0.5387",
            "model.input_dropout=0.4002",
            "train.optimiser=adam",
            "train.lr=0.0191",
            "train.weight_decay=0.007882",
            "model.width=128",
            "model.heads=4",
            "model.attention_dropout=0.2316",
        ),
    ),
    ("gat", "photo", True): Searched(
        23,
        (
            "model.dropout=0.5387",
            "model.input_dropout=0.4002",
            "train.optimiser=adam",
            "train.lr=0.0191",
            "train.weight_decay=0.007882",
            "model.width=128",
            "model.heads=4",
            "model.attention_dropout=0.2316",
        ),
    ),
    ("gcn", "citeseer", False): Searched(
        235,
        (
            "model.dropout=0.1973",
            "model.input_dropout=0.542",
            "train.optimiser=rmsprop",
            "train.lr=0.004012",
            "train.weight_decay=0.07464",
            "model.width=64",
        ),
    ),
    ("gcn", "citeseer", True): Searched(
        235,
        (
            "model.dropout=0.03374",
            "model.input_dropout=0.288",
            "train.optimiser=adam",
            "train.lr=0.005775",
            "train.weight_decay=0.0576",
            "model.width=32",
        ),
    ),
    ("gcn", "coauthor-cs", False): Searched(
        19,
        (
            "model.dropout=0.3977",
            "model.input_dropout=0.734",
            "train.optimiser=adamax",
            "train.lr=0.008601",
            "train.weight_decay=0.002535",
            "model.width=32",
        ),
    ),
    ("gcn", "coauthor-cs", True): Searched(19, ()),
    ("gcn", "computers", False): Searched(
        21,
        (
            "model.dropout=0.01991",
            "model.input_dropout=0.08916",
            "train.optimiser=adamax",
            "train.lr=0.03225",
            "train.weight_decay=0.004529",
            "model.width=64",
        ),
    ),
    ("gcn", "computers", True): Searched(
        21,
        (
            "model.dropout=0.01991",
            "model.input_dropout=0.08916",
            "train.optimiser=adamax",
            "train.lr=0.03225",
            "train.weight_decay=0.004529",
            "model.width=64",
        ),
    ),
    ("gcn", "cora", False): Searched(
        93,
        (
            "model.dropout=0.6561",
            "model.input_dropout=0.7296",
            "train.optimiser=adam",
            "train.lr=0.007707",
            "train.weight_decay=0.01267",
            "model.width=128",
        ),
    ),
    ("gcn", "cora", True): Searched(
        93,
        (
            "model.dropout=0.000315",
            "model.input_dropout=0.5945",
            "train.optimiser=adam",
            "train.lr=0.03457",
            "train.weight_decay=0.01272",
            "model.width=64",
        ),
    ),
    ("gcn", "photo", False): Searched(
        23,
        (
            "model.dropout=0.5387",
            "model.input_dropout=0.4002",
            "train.optimiser=adam",
            "train.lr=0.0191",
            "train.weight_decay=0.007882",
            "model.width=128",
        ),
    ),
    ("gcn", "photo", True): Searched(23, ()),
}
"""By baseline, dataset and whether it has all training aids of ``blend``."""
