"""Rows: recipes of the networks of Table 1 as flows, for each of the paper's datasets."""

from collections.abc import Callable
from dataclasses import replace

from beltrami.data import CATALOGUE
from beltrami.errors import UnknownName
from beltrami.experiment.competitor import DATASETS
from beltrami.experiment.config import (
    BaselineConfig,
    DataConfig,
    DiffusivityConfig,
    ModelConfig,
    PositionConfig,
    RunConfig,
    SchemeConfig,
    StencilConfig,
    TrainConfig,
)

PPR_ROWS = PositionConfig(encoding="ppr", restart=0.05, top=64)
TWO_LAYERS = SchemeConfig("euler", 2.0, dt=1.0)
TRAIN = TrainConfig(100, "adam", 0.01, 5e-3, 5e-3, time_multiple=1.0, look_every=1)


def _network(
    kind: str,
    *,
    position: PositionConfig | None = None,
    baseline: BaselineConfig | None = None,
    stencil: StencilConfig | None = None,
) -> RunConfig:
    return RunConfig(
        "",
        kind,
        position=position or PositionConfig(),
        model=ModelConfig(kind=kind, feat=64, dropout=0.5, input_dropout=0.5),
        baseline=baseline or BaselineConfig(),
        diffusivity=DiffusivityConfig("additive", 64, 8),
        stencil=stencil or StencilConfig(),
        scheme=TWO_LAYERS,
        train=TRAIN,
    )


NETWORKS: dict[str, RunConfig] = {
    "chebnet-flow": _network("chebnet-flow", baseline=BaselineConfig(steps=3)),
    "gat-flow": _network("gat-flow"),
    "monet-flow": _network("monet-flow", position=PPR_ROWS),
    "transformer-flow": _network("transformer-flow", position=PPR_ROWS),
    "deepset-flow": _network("deepset-flow"),
    "digl-flow": _network("digl-flow", stencil=StencilConfig(k=32)),
    "dgcnn-flow": _network("dgcnn-flow", stencil=StencilConfig(k=20)),
    "gcn-flow": _network("gcn-flow"),
}
"""Each network by its name in ``RECIPES``, with the settings that validation preferred on Cora."""


def row(name: str) -> Callable[[str], RunConfig]:
    """The recipe of a network."""

    def settings(dataset: str) -> RunConfig:
        if dataset not in CATALOGUE:
            raise UnknownName("dataset", dataset, CATALOGUE)
        if dataset not in DATASETS:
            raise UnknownName(f"dataset for recipe {name!r}", dataset, DATASETS)
        config = NETWORKS[name]
        data = DataConfig(component="all", protocol="shchur") if dataset == "digits" else config.data
        return replace(config, dataset=dataset, data=data)

    return settings


ROWS: dict[str, Callable[[str], RunConfig]] = {name: row(name) for name in NETWORKS}
