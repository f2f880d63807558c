"""Features from the columns of a node table: independence of units, constants and outliers; words; missing values."""

import json

import numpy as np
import pytest
import torch
from torch import Tensor

from beltrami.config.parser import parse
from beltrami.data.preprocess import Preprocessing
from beltrami.data.table import Column, Numbers, Words

RANDOM = np.random.default_rng(0)
BAG = torch.from_numpy((RANDOM.random((40, 30)) < 0.2).astype(np.float32))
TABLE: dict[str, Column] = {
    "height": Numbers(RANDOM.normal(170, 10, 12)),
    "income": Numbers(np.array([1e3, 2e3, np.nan, 3e3, 2e3, 1e9, 1e3, 4e3, 2e3, 2e3, 3e3, 1e3])),
    "planet": Numbers(np.full(12, 3.0)),
    "colour": Words(np.array([0, 1, 2, 0, 1, 2, -1, 0, 0, 1, 1, 2]), ["red", "blue", "green"]),
    "name": Words(np.arange(12), [f"person {i}" for i in range(12)]),
}


def features(x: Tensor) -> Tensor:
    return Preprocessing.learn({}, x)({}, x).to_dense()


def test_rows_of_counts_are_divided_by_their_norm_as_in_a_double_loop() -> None:
    size = np.sqrt(float((BAG != 0).sum()) / len(BAG))
    for i, row in enumerate(BAG.tolist()):
        norm = sum(v * v for v in row) ** 0.5
        expected = [float(size) * v / norm if norm else 0.0 for v in row]
        torch.testing.assert_close(features(BAG)[i], torch.tensor(expected, dtype=torch.float32))


@pytest.mark.parametrize("factor", [1e-3, 1e-2, 1e2, 1e6])
def test_units_of_counts_do_not_matter(factor: float) -> None:
    torch.testing.assert_close(features(factor * BAG), features(BAG))


def test_rows_that_are_normalised_already_give_the_same_features() -> None:
    sums = BAG.sum(1, keepdim=True).clamp(min=1)
    torch.testing.assert_close(features(BAG / sums), features(BAG))


def test_a_constant_column_is_left_out() -> None:
    wider = torch.cat((BAG, torch.full((40, 1), 1e4)), 1)
    rules = Preprocessing.learn({}, wider)
    assert rules.left_out == ("x[30]",)
    torch.testing.assert_close(rules({}, wider).to_dense(), features(BAG))


def test_a_column_of_large_counts_does_not_decide() -> None:
    large = torch.cat((BAG, 1e4 * BAG[:, :1]), 1)
    usual = torch.cat((BAG, BAG[:, :1]), 1)
    torch.testing.assert_close(features(large), features(usual))


def test_counts_stay_sparse_whether_given_dense_or_sparse() -> None:
    made = Preprocessing.learn({}, BAG.to_sparse())({}, BAG.to_sparse())
    assert made.layout == torch.sparse_coo
    torch.testing.assert_close(made.to_dense(), features(BAG))


def test_rows_of_zeros_stay_zero() -> None:
    x = BAG.clone()
    x[3] = 0
    assert not features(x)[3].any()
    assert torch.isfinite(features(x)).all()


def test_measurements_are_centred_scaled_and_cut_off() -> None:
    rules = Preprocessing.learn({"height": TABLE["height"], "income": TABLE["income"]})
    made = rules(TABLE)
    height = TABLE["height"].values  # type: ignore[union-attr]
    low, middle, high = np.percentile(height, (25, 50, 75))
    expected = torch.from_numpy(((height - middle) / ((high - low) / 1.349)).astype(np.float32))
    torch.testing.assert_close(made[:, 0], expected)
    assert float(made[5, 1]) == 5.0, "an income of a billion is cut off"


def test_a_missing_number_is_the_median_and_is_flagged() -> None:
    made = Preprocessing.learn({"income": TABLE["income"]})(TABLE)
    assert made[2].tolist() == [0.0, 1.0]
    assert made[:, 1].sum() == 1


@pytest.mark.parametrize("factor", [1e-3, 1.0, 1e6])
def test_units_of_measurements_do_not_matter(factor: float) -> None:
    x = torch.randn(30, 4, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(features(factor * x), features(x), atol=1e-4, rtol=1e-4)


def test_words_have_a_feature_each_and_names_are_left_out() -> None:
    rules = Preprocessing.learn(TABLE)
    assert rules.left_out == ("name", "planet")
    colours = rules(TABLE)[:, -3:]
    assert colours[:3].tolist() == torch.eye(3).tolist()
    assert not colours[6].any(), "a missing word"


def test_words_that_were_not_seen_have_no_feature() -> None:
    rules = Preprocessing.learn({"colour": TABLE["colour"]})
    assert rules({"colour": Words(np.array([0, 1]), ["mauve", "blue"])}).tolist() == [[0, 0, 0], [0, 1, 0]]


def test_rules_survive_a_file_and_serve_new_nodes() -> None:
    rules = Preprocessing.learn(TABLE)
    again = parse(Preprocessing, json.loads(json.dumps(rules.to_json())))
    assert again == rules
    first = {name: column.take(np.arange(3)) for name, column in TABLE.items()}
    torch.testing.assert_close(again(first), rules(TABLE)[:3])


def test_the_number_of_features_is_known() -> None:
    rules = Preprocessing.learn(TABLE)
    assert rules(TABLE).shape == (12, rules.num_features)


def test_nodes_without_a_column_or_with_words_for_numbers_are_refused() -> None:
    rules = Preprocessing.learn(TABLE)
    with pytest.raises(ValueError, match="no column 'height'"):
        rules({name: column for name, column in TABLE.items() if name != "height"})
    with pytest.raises(ValueError, match="'income' holds words"):
        rules({**TABLE, "income": TABLE["colour"]})
    with pytest.raises(ValueError, match="29 columns where the model has 30"):
        Preprocessing.learn({}, BAG)({}, BAG[:, 1:])


def test_a_table_without_columns_has_no_features() -> None:
    assert Preprocessing.learn({}).num_features == 0


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"kept": [7]}, "must be among the"),
        ({"scale": []}, "each kept column needs a centre and a scale"),
        ({"size": float("nan")}, "must be finite"),
        ({"names": "height"}, r"`numbers\.names` takes"),
    ],
)
def test_damaged_rules_are_refused(change: dict[str, object], match: str) -> None:
    values = json.loads(json.dumps(Preprocessing.learn({"height": TABLE["height"]}).to_json()))
    with pytest.raises(ValueError, match=match):
        parse(Preprocessing, {**values, "numbers": values["numbers"] | change})
