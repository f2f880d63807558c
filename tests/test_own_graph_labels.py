"""From files to predictions: the rules for labels, tasks and splits (docs/own-graphs.md)."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from own_graph import Files, fit, from_files, predicted, right, two_groups, unchanged

from beltrami.data.graph_reader import read_graph


@pytest.mark.slow
def test_missing_labels_are_the_nodes_to_predict(tmp_path: Path) -> None:
    """NA, null, ? and an empty field are missing labels, and no classes."""
    files = two_groups()
    files.add("class", lambda k: files.truth[f"n{k}"] if k < 24 else ("NA", "null", "?", "")[k % 4])
    rows = from_files(tmp_path, files)
    assert {row["prediction"] for row in rows.values()} == {"cat", "dog"}
    assert right(rows, files) >= 0.95


@pytest.mark.slow
@pytest.mark.parametrize("labels", [1, 2])
def test_a_class_of_one_or_two_labels_is_learned(tmp_path: Path, labels: int) -> None:
    """Node 39 and its neighbour are fish, far from the others in both columns; one or both are labelled."""
    files = two_groups()
    for k in (37, 39):
        files.nodes[k] |= {"f0": "9", "f1": "-9"}
        files.truth[f"n{k}"] = "fish"
    files.label(lambda k: k < 24 or k == 37 or (k == 39 and labels == 2))
    rows = from_files(tmp_path, files)
    assert rows["n37"]["prediction"] == rows["n39"]["prediction"] == "fish"


@pytest.mark.slow
def test_few_labels_are_cross_validated(tmp_path: Path) -> None:
    files = two_groups()
    files.label(lambda k: k < 6)
    predictor = fit(files.write(tmp_path))
    assert len(predictor.splits) == 5
    rows = predicted(predictor, tmp_path)
    assert right(rows, files) >= 0.9


@pytest.mark.slow
def test_few_validation_labels_that_are_all_right_give_no_certainty(tmp_path: Path) -> None:
    predictor = fit(two_groups().write(tmp_path))
    assert predictor.record["validation"] == 1
    assert all(float(row["probability"]) < 0.9999 for row in predicted(predictor, tmp_path).values())


@pytest.mark.slow
def test_two_labels_a_class_suffice(tmp_path: Path) -> None:
    files = two_groups()
    files.label(lambda k: k < 4)
    assert right(from_files(tmp_path, files), files) >= 0.9


def test_a_single_label_in_every_class_is_refused(tmp_path: Path) -> None:
    files = two_groups()
    files.label(lambda k: k < 2)
    with pytest.raises(ValueError, match="every class has a single label: give at least one class two"):
        fit(files.write(tmp_path))


@pytest.mark.slow
def test_a_class_of_15_nodes_is_predicted(tmp_path: Path) -> None:
    files = two_groups(60, labelled=50)
    for k in range(30):
        files.truth[f"n{2 * k + 1}"] = "dog" if k < 15 else "owl"
        if k >= 15:
            files.nodes[2 * k + 1] |= {"f0": "-3", "f1": "5"}
    files.label(lambda k: k < 50)
    rows = from_files(tmp_path, files)
    assert 12 <= sum(row["prediction"] == "owl" for row in rows.values()) <= 18
    assert right(rows, files) >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("names", [("1", "70"), ("-5", "-1"), ("007", "7")])
def test_class_names_are_the_words_of_the_file(tmp_path: Path, names: tuple[str, str]) -> None:
    """Classes may be counted from 1, have gaps, be negative or be words."""
    files = two_groups()
    files.truth = {node: names[group == "dog"] for node, group in files.truth.items()}
    files.label(lambda k: k < 24)
    rows = from_files(tmp_path, files)
    named = {"cat": names[0], "dog": names[1]}
    assert [row["prediction"] for row in rows.values()] == [named[row["prediction"]] for row in unchanged().values()]
    assert {f"p_{name}" for name in names} <= {*rows["n0"]}


@pytest.mark.slow
def test_integer_labels_of_arrays_are_unknown_where_they_are_minus_one(tmp_path: Path) -> None:
    files = two_groups()
    graph = read_graph(files.write(tmp_path))
    assert graph.edge_index is not None
    group = np.arange(40) % 2 + 3  # classes 3 and 4
    x = np.array([[float(row["f0"]), float(row["f1"])] for row in files.nodes])
    y = np.where(np.arange(40) < 24, group, -1)
    np.savez(tmp_path / "graph.npz", x=x, edge_index=graph.edge_index.numpy(), y=y)
    rows = predicted(fit(tmp_path / "graph.npz"), tmp_path)
    assert {row["prediction"] for row in rows.values()} == {"3", "4"}
    assert np.mean([int(rows[str(k)]["prediction"]) == group[k] for k in range(40)]) >= 0.95


def test_one_class_is_refused(tmp_path: Path) -> None:
    files = two_groups()
    files.label(lambda k: k % 2 == 0)
    with pytest.raises(ValueError, match=r"^all labels are 'cat': at least two classes are needed\.$"):
        fit(files.write(tmp_path))
    files.label(lambda k: False)
    with pytest.raises(ValueError, match=r"^no node has a label: at least two classes are needed\.$"):
        fit(files.write(tmp_path))


@pytest.mark.slow
def test_too_few_labels_for_the_coverage_are_refused_in_one_sentence(tmp_path: Path) -> None:
    files = two_groups(150, labelled=100)
    predictor = fit(files.write(tmp_path))
    rows = predicted(predictor, tmp_path, coverage=0.9)
    assert all(row["set"] for row in rows.values())
    with pytest.raises(ValueError) as refused:
        predicted(predictor, tmp_path, coverage=0.99)
    assert str(refused.value) == (
        "a coverage of 0.99 needs at least 99 calibration labels; there are 20, which allow at most 0.9523: give more "
        "labels, or ask for a lower coverage."
    )


@pytest.mark.slow
def test_few_labels_give_predictions_without_sets_and_say_so(tmp_path: Path) -> None:
    predictor = fit(two_groups().write(tmp_path))
    rows = predicted(predictor, tmp_path, coverage=0.9)
    assert "set" not in rows["n0"]
    assert "No labels were set aside for calibration" in (tmp_path / "predictions.json").read_text()


@pytest.mark.slow
def test_several_labels_in_a_field_are_joined_by_semicolons(tmp_path: Path) -> None:
    files = two_groups()
    for k in range(40):
        files.nodes[k]["f1"] = "3" if k % 4 < 2 else "-3"
    truth = {f"n{k}": [name for name, has in (("dog", k % 2 == 1), ("big", k % 4 < 2)) if has] for k in range(40)}
    files.add("class", lambda k: ";".join(truth[f"n{k}"]) if k < 30 else "")
    files.nodes[2]["class"] = ";"  # none of the labels
    rows = from_files(tmp_path, files)
    found = [{*filter(None, rows[node]["prediction"].split(";"))} == {*names} for node, names in truth.items()]
    assert np.mean(found) >= 0.7
    assert {"p_dog", "p_big"} <= {*rows["n0"]}
    assert "probability" not in rows["n0"]


@pytest.mark.slow
def test_a_label_of_two_nodes_is_learned_and_one_of_none_is_refused_by_name(tmp_path: Path) -> None:
    files = two_groups(60, labelled=50)
    files.add("dog", lambda k: k % 2 if k < 50 else "")
    files.add("rare", lambda k: int(k in (5, 7)) if k < 50 else "")
    files.add("none", lambda k: 0 if k < 50 else "")
    rows = predicted(fit(files.write(tmp_path), tables={"label": "dog,rare", "features": "f0,f1"}), tmp_path)
    assert float(rows["n5"]["p_rare"]) > float(rows["n50"]["p_rare"])
    with pytest.raises(ValueError, match="no training node has the label 'none'"):
        fit(tmp_path, tables={"label": "dog,none"})


@pytest.mark.slow
def test_several_columns_of_zero_and_one_are_labels(tmp_path: Path) -> None:
    files = two_groups()
    files.add("dog", lambda k: k % 2 if k < 30 else "")
    files.add("cat", lambda k: "yes" if k % 2 == 0 else "no")
    for k in range(30, 40):
        files.nodes[k]["cat"] = ""
    rows = predicted(fit(files.write(tmp_path), tables={"label": "cat,dog"}), tmp_path)
    assert right(rows, files) >= 0.95


def test_numbers_as_labels_are_regressed(tmp_path: Path) -> None:
    files = two_groups(150)
    value = {f"n{k}": 1000 + 50 * float(row["f0"]) for k, row in enumerate(files.nodes)}
    files.add("class", lambda k: f"{value[f'n{k}']:.2f}" if k < 100 else "")
    files.edges = [row for row in files.edges if row["source"] == "n0"]
    rows = predicted(fit(files.write(tmp_path)), tmp_path, coverage=0.9, from_features=True)
    error = [float(rows[node]["prediction"]) - truth for node, truth in value.items()]
    assert np.std(error) < 0.3 * np.std(list(value.values()))
    inside = [float(rows[node]["lower"]) <= truth <= float(rows[node]["upper"]) for node, truth in value.items()]
    assert np.mean(inside) >= 0.7


@pytest.mark.slow
def test_whole_numbers_can_be_told_to_be_numbers(tmp_path: Path) -> None:
    files = two_groups()
    files.add("class", lambda k: k % 2 if k < 24 else "")
    assert from_files(tmp_path / "classes", files)["n1"]["prediction"] == "1"
    rows = from_files(tmp_path / "numbers", files, task="numbers")
    assert 0.4 < float(rows["n1"]["prediction"]) < 1.6
    assert "p_1" not in rows["n1"]


def _split(files: Files, words: dict[range, str]) -> None:
    for nodes, word in words.items():
        for k in nodes:
            files.nodes[k]["set"] = word


def test_a_split_column_names_the_sets(tmp_path: Path) -> None:
    files = two_groups(80, labelled=60)
    _split(files, {range(80): "", range(20): "train", range(20, 30): "validation", range(30, 50): "calibration"})
    _split(files, {range(50, 60): "test"})
    predictor = fit(files.write(tmp_path), tables={"split": "set"})
    assert predictor.record["nodes"] == {"train": 20, "val": 10, "test": 10, "calibration": 20}
    assert predictor.record["test"] >= 0.9
    assert right(predicted(predictor, tmp_path, coverage=0.9), files) >= 0.95


def test_a_split_column_without_test_nodes_has_no_test_metric(tmp_path: Path) -> None:
    files = two_groups()
    _split(files, {range(40): "", range(16): "train", range(16, 24): "val"})
    predictor = fit(files.write(tmp_path), tables={"split": "set"})
    assert predictor.record["nodes"] == {"train": 16, "val": 8, "test": 0, "calibration": 0}
    assert predictor.record["test"] is None
    assert right(predicted(predictor, tmp_path), files) >= 0.95


@pytest.mark.slow
def test_labels_of_test_nodes_train_nothing(tmp_path: Path) -> None:
    files = two_groups()
    _split(files, {range(24): "train", range(24, 40): "test"})
    honest: dict[str, Any] = predicted(fit(files.write(tmp_path / "a"), tables={"split": "set"}), tmp_path / "a")
    files.add("class", lambda k: files.truth[f"n{k}"] if k < 24 else "cat")
    assert predicted(fit(files.write(tmp_path / "b"), tables={"split": "set"}), tmp_path / "b") == honest


def test_a_class_without_training_nodes_is_refused_by_name(tmp_path: Path) -> None:
    files = two_groups()
    files.truth["n39"] = "fish"
    files.label(lambda k: k < 24 or k == 39)
    _split(files, {range(24): "train", range(24, 40): "test"})
    with pytest.raises(ValueError, match="no training node has the label 'fish'"):
        fit(files.write(tmp_path), tables={"split": "set"})


@pytest.mark.slow
@pytest.mark.parametrize("balanced", [False, True])
def test_balanced_classes_count_the_same(tmp_path: Path, balanced: bool) -> None:
    """With columns and edges that say little, the class with few labels is predicted only if it counts as much."""
    files = two_groups(60, labelled=60)
    files.add("f0", lambda k: k % 2 + (k * 7 % 11) / 2)
    files.add("f1", lambda k: (k * 5 % 13) / 2)
    files.edges = files.edges[:1]
    files.label(lambda k: k % 2 == 0 or k < 12)
    rows = from_files(tmp_path, files, balanced=balanced, from_features=True)
    dogs = sum(row["prediction"] == "dog" for row in rows.values())
    assert dogs > 10 if balanced else dogs <= 10
