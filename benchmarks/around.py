"""Lists for benchmarks/search.py: random settings around a recipe.

python benchmarks/around.py cora digl --trials 60 --runs 10 --seed 1 >> results/search/random-draws.txt
python benchmarks/around.py cora digl --recipe gcn --aids same --trials 93 --runs 3 >> results/search/equal-budget.txt

With ``--recipe`` the settings are drawn from the space of `beltrami tune`, and the recipe's own are the first line.
"""

import argparse
from collections.abc import Mapping
from typing import Any

from beltrami.config import RunConfig, load_recipe, override
from beltrami.config.recipe.aids import read_aids
from beltrami.lab.tune.search_space import ABSENT, Choice, LogUniform, Space, Uniform, draw, space_of, value_of

ENCODED = Choice("none", "ppr", "deepwalk")
AROUND: Mapping[str, tuple[str, Space]] = {
    "cora": (
        "blend",
        {
            "position.kind": ENCODED,
            "position.channels": Choice(64, 128),
            "diffusivity.kind": Choice("scalar-cosine", "scalar-cosine", "uniform", "cosine", "gaussian"),
            "diffusivity.heads": Choice(1, 2, 8),
            "diffusivity.over": Choice("both", "both", "columns"),
            "model.feat": Choice(64, 80, 128),
            "model.dropout": Uniform(0.5, 0.85),
            "model.input_dropout": Uniform(0.4, 0.75),
            "scheme.time": Uniform(9.0, 25.0),
            "stencil.loops": Choice(0.5, 1.0, 1.0, 2.0),
            "train.lr": LogUniform(0.01, 0.04),
            "train.weight_decay": LogUniform(0.008, 0.05),
            "train.consistency.weight": Uniform(0.4, 2.0),
            "train.consistency.temperature": Uniform(0.25, 0.6),
        },
    ),
    "citeseer": (
        "blend",
        {
            "position.kind": ENCODED,
            "position.channels": Choice(64, 128),
            "diffusivity.kind": Choice("scalar-cosine", "uniform"),
            "diffusivity.heads": Choice(1, 2),
            "diffusivity.over": Choice("both", "both", "columns"),
            "data.features": Choice("raw", "raw", "rows"),
            "model.feat": Choice(64, 128),
            "model.dropout": Uniform(0.4, 0.8),
            "model.input_dropout": Uniform(0.5, 0.8),
            "scheme.time": Uniform(4.0, 12.0),
            "stencil.reweight.kind": Choice("none", "similarity", "similarity"),
            "stencil.reweight.sharpness": Choice(0.3, 0.6),
            "train.lr": LogUniform(0.004, 0.015),
            "train.weight_decay": LogUniform(0.03, 0.2),
            "train.ema": Choice(0.0, 0.9),
            "train.consistency.weight": Uniform(0.3, 1.5),
            "train.consistency.temperature": Uniform(0.2, 0.5),
        },
    ),
    "pubmed": (
        "blend",
        {
            "position.kind": Choice("none", "ppr"),
            "data.features": Choice("raw", "raw", "rows"),
            "diffusivity.kind": Choice("uniform", "scalar-cosine", "exp-kernel"),
            "diffusivity.over": Choice("both", "columns", "rows"),
            "model.feat": Choice(32, 64, 128),
            "model.dropout": Uniform(0.0, 0.6),
            "model.input_dropout": Uniform(0.2, 0.7),
            "scheme.time": Uniform(15.0, 60.0),
            "stencil.loops": Choice(0.5, 1.0, 2.0),
            "train.lr": LogUniform(0.005, 0.03),
            "train.weight_decay": LogUniform(3e-4, 0.01),
            "train.ema": Choice(0.0, 0.9),
            "train.self_training": Choice(30, 100, 500),
        },
    ),
    "pubmed-agree": (
        "blend",
        {
            "position.kind": Choice("none", "ppr"),
            "diffusivity.kind": Choice("uniform", "scalar-cosine"),
            "diffusivity.over": Choice("both", "columns"),
            "model.feat": Choice(32, 64),
            "model.batch_norm": Choice(False, False, True),
            "model.dropout": Uniform(0.0, 0.7),
            "model.input_dropout": Uniform(0.3, 0.7),
            "model.node_dropout": Choice(0.0, 0.5),
            "scheme.time": Uniform(6.0, 45.0),
            "stencil.loops": Choice(1.0, 2.0),
            "train.lr": LogUniform(0.005, 0.05),
            "train.weight_decay": LogUniform(3e-4, 0.005),
            "train.consistency.weight": Uniform(0.3, 1.5),
            "train.consistency.kind": Choice("squared", "squared"),
            "train.consistency.passes": Choice(2, 2, 4),
            "train.consistency.temperature": Uniform(0.1, 0.5),
            "train.consistency.ramp": Choice(0, 50, 100),
            "train.self_training": Choice(0, 100, 500),
        },
    ),
    "pubmed-knn": (
        "blend-knn",
        {
            "position.kind": Choice("none", "none", "deepwalk"),
            "position.channels": Choice(64, 128),
            "data.features": Choice("raw", "rows"),
            "diffusivity.kind": Choice("uniform", "uniform", "scalar-cosine"),
            "diffusivity.heads": Choice(1, 2),
            "model.feat": Choice(32, 64, 128),
            "model.dropout": Uniform(0.2, 0.7),
            "model.input_dropout": Uniform(0.2, 0.6),
            "scheme.time": LogUniform(10.0, 60.0),
            "stencil.k": Choice(32, 64),
            "stencil.restart": LogUniform(0.04, 0.2),
            "train.lr": LogUniform(0.005, 0.03),
            "train.weight_decay": LogUniform(0.001, 0.02),
        },
    ),
}


def settings_of(config: RunConfig, drawn: Mapping[str, Any]) -> list[str]:
    """Return the drawn settings that apply to the drawn kinds, as ``--set`` takes them."""
    texts = {name: f"{name}={value}" for name, value in drawn.items()}
    config = override(config, list(texts.values()), skip_inapplicable=True)
    return [text for name, text in texts.items() if value_of(config, name) is not ABSENT]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", help=f"with --recipe any dataset, else one of {', '.join(sorted(AROUND))}")
    parser.add_argument("protocol")
    parser.add_argument("--recipe", help="draw from the space of `beltrami tune` for this recipe")
    parser.add_argument("--aids", help="training aids, such as same; only with --recipe")
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    if args.recipe is not None:
        aids = None if args.aids is None else read_aids(args.aids)
        config = load_recipe(args.recipe, args.dataset, protocol=args.protocol, aids=aids)
        line = (args.dataset, args.recipe, args.protocol, args.runs, *(() if aids is None else ("--aids", args.aids)))
        print(*line)
        for number in range(1, args.trials):
            print(*line, *settings_of(config, draw(space_of(config), number, seed=args.seed)))
        return
    name, spans = AROUND[args.dataset]
    dataset = args.dataset.partition("-")[0]
    config = load_recipe(name, dataset)
    for number in range(args.trials):
        print(dataset, name, args.protocol, args.runs, *settings_of(config, draw(spans, number, seed=args.seed)))


if __name__ == "__main__":
    main()
