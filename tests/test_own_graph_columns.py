"""From files to predictions: the rules for columns and their preprocessing (docs/own-graphs.md)."""

from pathlib import Path

import pytest
from own_graph import fit, from_files, predicted, right, two_groups, unchanged

from beltrami.data.graph_reader import read_graph


@pytest.mark.slow
@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_units_do_not_count(tmp_path: Path, factor: float) -> None:
    files = two_groups()
    files.add("f0", lambda k: factor * float(files.nodes[k]["f0"]))
    rows = from_files(tmp_path, files)
    for node, row in rows.items():
        assert row["prediction"] == unchanged()[node]["prediction"]
        assert float(row["p_cat"]) == pytest.approx(float(unchanged()[node]["p_cat"]), abs=1e-3)


@pytest.mark.slow
def test_a_constant_column_is_left_out(tmp_path: Path) -> None:
    files = two_groups()
    files.add("constant", lambda k: 10_000)
    assert from_files(tmp_path / "with", files) == unchanged()
    files.add("constant", lambda k: "always")
    assert from_files(tmp_path / "words", files) == unchanged()


@pytest.mark.slow
def test_a_huge_column_does_not_decide(tmp_path: Path) -> None:
    files = two_groups()
    files.add("huge", lambda k: 1e12 * (k * 7 % 11))
    assert right(from_files(tmp_path, files), files) >= 0.9


@pytest.mark.slow
def test_an_outlying_value_does_not_decide(tmp_path: Path) -> None:
    files = two_groups()
    files.nodes[5]["f0"] = "1e30"
    files.nodes[6]["f1"] = "-inf"
    assert right(from_files(tmp_path, files), files) >= 0.9


@pytest.mark.slow
def test_missing_numbers_become_the_median_and_have_a_feature(tmp_path: Path) -> None:
    files = two_groups()
    for k in range(0, 40, 5):
        files.nodes[k]["f0"] = ("", "NA", "nan", "?")[k // 5 % 4]
    predictor = fit(files.write(tmp_path))
    assert predictor.graph.x.shape == (40, 3)
    assert right(predicted(predictor, tmp_path), files) >= 0.9


@pytest.mark.slow
def test_missing_words_have_no_feature(tmp_path: Path) -> None:
    files = two_groups(columns=0)
    files.add("sound", lambda k: "" if k % 10 < 2 else ("meow", "woof")[k % 2])
    predictor = fit(files.write(tmp_path))
    assert predictor.graph.x.shape == (40, 2)
    assert predictor.graph.x[0].tolist() == [0, 0]
    assert right(predicted(predictor, tmp_path), files) >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("words", [("meow", "woof"), ("True", "False")])
def test_words_and_booleans_are_features_of_zero_and_one(tmp_path: Path, words: tuple[str, str]) -> None:
    files = two_groups(columns=0)
    files.add("word", lambda k: words[k % 2])
    files.edges = files.edges[:1]
    assert right(from_files(tmp_path, files, from_features=True), files) == 1


@pytest.mark.slow
def test_columns_of_names_and_texts_are_left_out(tmp_path: Path) -> None:
    files = two_groups()
    files.add("remark", lambda k: f'a text, with a comma and "quotes", number {k}')
    predictor = fit(files.write(tmp_path))
    assert predictor.preprocessing.left_out == ("remark",)
    assert predicted(predictor, tmp_path) == unchanged()


@pytest.mark.slow
def test_chosen_columns_alone_are_features(tmp_path: Path) -> None:
    files = two_groups()
    files.add("answer", lambda k: k % 2)
    predictor = fit(files.write(tmp_path / "with"), tables={"features": "f0,f1"})
    assert predicted(predictor, tmp_path / "with") == unchanged()


@pytest.mark.slow
def test_a_table_without_columns_is_predicted_from_the_graph(tmp_path: Path) -> None:
    files = two_groups(columns=0)
    rows = from_files(tmp_path, files)
    assert right(rows, files) == 1
    assert {row["reached"] for row in rows.values()} == {"true"}


@pytest.mark.slow
def test_rows_of_zeros_are_predicted(tmp_path: Path) -> None:
    """Bags of words, of which three are empty: their neighbours count."""
    files = two_groups(columns=0)
    for k, row in enumerate(files.nodes):
        used = [k not in (1, 2, 39) and c % 2 == k % 2 and (k + c) % 3 == 0 for c in range(20)]
        row |= {f"word{c}": str(int(has)) for c, has in enumerate(used)}
    predictor = fit(files.write(tmp_path))
    assert predictor.preprocessing.numbers.kind == "counts"
    assert right(predicted(predictor, tmp_path), files) >= 0.95


@pytest.mark.slow
def test_a_table_without_edges_gets_the_graph_of_nearest_rows(tmp_path: Path) -> None:
    files = two_groups()
    files.edges = []
    predictor = fit(files.write(tmp_path) / "nodes.csv")
    assert predictor.graph.edges.num_edges >= 40 * 10
    assert right(predicted(predictor, tmp_path), files) >= 0.9


def test_a_table_without_edges_and_columns_is_refused(tmp_path: Path) -> None:
    files = two_groups(columns=0)
    files.edges = []
    with pytest.raises(ValueError, match="has neither edges nor columns"):
        fit(files.write(tmp_path))


@pytest.mark.slow
def test_columns_that_do_not_match_are_refused_by_name(tmp_path: Path) -> None:
    files = two_groups()
    predictor = fit(files.write(tmp_path))
    files.add("f1", lambda k: "many")
    with pytest.raises(ValueError, match="the column 'f1' holds words where the model was trained on numbers"):
        predictor.predict(read_graph(files.write(tmp_path / "words")))
    for row in files.nodes:
        del row["f1"]
    with pytest.raises(ValueError, match="the nodes have no column 'f1', which the model was trained on"):
        predictor.predict(read_graph(files.write(tmp_path / "fewer")))
    files = two_groups()
    files.add("further", lambda k: k)
    again = predictor.predict(read_graph(files.write(tmp_path / "more")))
    assert [*again.columns()["prediction"]] == [*predictor.predict(coverage=None).columns()["prediction"]]
