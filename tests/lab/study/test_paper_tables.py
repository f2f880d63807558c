"""The paper's figures are consistent: its ratios are quotients of its seconds, and its tables share numbers."""

import pytest

from beltrami.lab.bench.suite import PAPER_INFER, PAPER_TRAIN
from beltrami.lab.study.paper_tables import (
    ATTENTION,
    INFERENCE,
    PARAMETERS,
    PLANETOID,
    RANDOM,
    SIX,
    TRAINING,
    PaperTable,
    PrintedNumber,
)


@pytest.mark.parametrize(
    ("table", "ratios"), [(TRAINING, PAPER_TRAIN), (INFERENCE, PAPER_INFER)], ids=["train", "infer"]
)
def test_ratios_in_print_are_quotients_of_the_seconds(table: PaperTable, ratios: dict[str, float]) -> None:
    for dataset in SIX:
        blend, gat = table.figure("blend", dataset), table.figure("gat", dataset)
        assert blend is not None
        assert gat is not None
        assert blend.value / gat.value == pytest.approx(ratios[dataset], rel=0.02)  # the paper rounded its seconds


def test_scaled_dot_is_blend_of_table_3() -> None:
    for dataset in SIX:
        assert ATTENTION.figure("scaled-dot", dataset) == RANDOM.figure("blend", dataset)


def test_figures_are_found_by_row_and_dataset() -> None:
    assert PLANETOID.figure("gde", "citeseer") == PrintedNumber(72.5, 0.5)
    assert RANDOM.figure("cgnn", "ogbn-arxiv") == PrintedNumber(58.70, 2.50)
    assert RANDOM.figure("sage-maxpool", "computers") is None
    assert RANDOM.figure("uniform", "cora") is None
    assert PLANETOID.figure("blend", "photo") is None


def test_figures_print_as_in_print() -> None:
    assert str(PrintedNumber(79.0, 0.5)) == "79.0 ± 0.5"
    assert str(PARAMETERS.figure("gat", "ogbn-arxiv")) == "1,630,000"
    assert str(TRAINING.figure("gat", "cora")) == "1.68"
