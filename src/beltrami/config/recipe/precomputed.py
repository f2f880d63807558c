"""The recipe precomputed: features are diffused once, and a network is trained on their rows."""

from collections.abc import Mapping, Sequence

from beltrami.config.parser import override
from beltrami.config.recipe.recipes import load_recipe
from beltrami.config.spec_rows import DatasetSpec, GraphFolderSpec, RowConfig

WORDS = ("model.standardise=false",)  # a column of few ones has no useful deviation
FEW_LABELS = (
    *WORDS,
    *("model.dropout=0.9", "model.input_dropout=0.8", "train.weight_decay=0.005", "train.epochs=300"),
)
SETTINGS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("cora", "citeseer", "pubmed"), FEW_LABELS),
    **dict.fromkeys(("coauthor-cs", "computers", "photo"), WORDS),
}
"""Settings by dataset. The published validation nodes of Cora preferred those of the citation graphs; others were not
compared."""

TRIED = {"cora": 45}
"""Configurations compared on validation, as listed in ``results/precomputed.jsonl``."""


def precomputed(data: DatasetSpec | GraphFolderSpec, *, seed: int = 0, settings: Sequence[str] = ()) -> RowConfig:
    """Return the configuration for a dataset or a graph folder, with further settings."""
    known = SETTINGS.get(data.name, ()) if data.kind == "dataset" else ()
    return override(RowConfig(data=data, seed=seed), [*known, *settings])


def dataset_spec(name: str, *, protocol: str | None, split_seed: int | None, seed: int) -> DatasetSpec:
    """Return the component and the split of a dataset that the recipe blend has."""
    found = load_recipe("blend", name, protocol=protocol, seed=seed, split_seed=split_seed).data
    return DatasetSpec(name=name, component=found.component, protocol=found.protocol, split_seed=found.split_seed)
