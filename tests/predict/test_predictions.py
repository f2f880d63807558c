"""The table of predictions: every rule of its columns, and files that read back as what was written."""

import csv
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from beltrami.errors import DataError
from beltrami.graph import Edges
from beltrami.predict import predictions as module
from beltrami.predict.conformal import Conformal, Guarantee
from beltrami.predict.predictions import (
    NO_LABEL,
    ClassPredictions,
    NumberPredictions,
    Predictions,
    join_names,
    label_reaches,
    split_names,
)
from beltrami.predict.table_file import check_table_path

IDS = ["z9", "007", 'a "quoted", id', "tab\there, \rand\nlines"]
NAMES = ["b;c", "cat", 'the "third"']
P = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.05, 0.15, 0.8], [1 / 3, 1 / 3, 1 / 3]])
SETS = torch.tensor([[1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]]).bool()
GUARANTEE = Guarantee(0.9, 20, (0.78, 0.99), 0.95, "threshold", 0.0)


def classes(**changes: Any) -> ClassPredictions:
    parts: dict[str, Any] = {"ids": IDS, "names": NAMES, "probabilities": P, "sets": SETS}
    return ClassPredictions(**parts | changes)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t" if path.suffix == ".tsv" else ","))


@pytest.mark.parametrize("extension", ["csv", "tsv", "CSV"])
def test_text_file_reads_back_in_the_order_of_the_ids(tmp_path: Path, extension: str) -> None:
    path = tmp_path / f"predictions.{extension}"
    classes().write(path)
    read = rows(path)
    assert list(read[0]) == ["id", "prediction", "probability", *(f"p_{name}" for name in NAMES), "set", "set_size"]
    assert [row["id"] for row in read] == IDS
    assert [row["prediction"] for row in read] == ["b;c", "cat", 'the "third"', "b;c"]
    again = torch.tensor([[float(row[f"p_{name}"]) for name in NAMES] for row in read])
    assert torch.equal(again, P)
    assert [float(row["probability"]) for row in read] == pytest.approx(P.amax(1).tolist())
    chosen = [[name for name, inside in zip(NAMES, mask, strict=True) if inside] for mask in SETS.tolist()]
    assert [split_names(row["set"]) for row in read] == chosen
    assert [int(row["set_size"]) for row in read] == [2, 1, 1, 3]


def test_text_file_of_plain_names_is_as_expected(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    sets, reached = SETS[:3], torch.tensor([True, True, False])
    classes(ids=["a", "b", "c"], names=["x", "y", "z"], probabilities=P[:3], sets=sets, reached=reached).write(path)
    assert path.read_text() == (
        "id,prediction,probability,p_x,p_y,p_z,set,set_size,reached\n"
        "a,x,0.7,0.7,0.2,0.1,x;y,2,true\n"
        "b,y,0.8,0.1,0.8,0.1,y,1,true\n"
        "c,no label reaches this node,,,,,,0,false\n"
    )


def test_labels_are_those_more_likely_present_than_absent(tmp_path: Path) -> None:
    p = torch.tensor([[0.6, 0.7, 0.1], [0.5, 0.2, 0.3]])
    path = tmp_path / "p.csv"
    ClassPredictions(ids=["a", "b"], names=["x", "y", "z"], probabilities=p, exclusive=False).write(path)
    assert path.read_text() == "id,prediction,p_x,p_y,p_z\na,x;y,0.6,0.7,0.1\nb,,0.5,0.2,0.3\n"
    assert json.loads(path.with_suffix(".json").read_text())["task"] == "multi-label"


def test_numbers_have_the_ends_of_their_intervals(tmp_path: Path) -> None:
    values = torch.tensor([1.5, -2.0, 0.1])
    interval = Conformal("residual", torch.full((9,), 0.5, dtype=torch.float64)).interval(values, coverage=0.9)
    path = tmp_path / "p.csv"
    reached = torch.tensor([True, False, True])
    NumberPredictions(ids=["a", "b", "c"], values=values, interval=interval, reached=reached).write(path)
    read = rows(path)
    assert list(read[0].values()) == ["a", "1.5", "1.0", "2.0", "true"]
    assert list(read[1].values()) == ["b", "", "", "", "false"]
    assert read[2]["prediction"] == "0.1"
    assert float(read[2]["lower"]) == float(interval[0][2])
    assert json.loads(path.with_suffix(".json").read_text())["task"] == "regression"


def test_columns_without_sets_or_reached_are_absent() -> None:
    assert list(classes(sets=None).columns()) == ["id", "prediction", "probability", *(f"p_{name}" for name in NAMES)]
    assert list(NumberPredictions(ids=["a"], values=torch.zeros(1)).columns()) == ["id", "prediction"]


def test_parquet_file_reads_back(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "p.parquet"
    predictions = classes(reached=torch.tensor([True, True, True, False]))
    predictions.write(path)
    read = parquet.read_table(path).to_pydict()
    assert list(read) == list(predictions.columns())
    assert read["id"] == IDS
    assert read["prediction"] == ["b;c", "cat", 'the "third"', NO_LABEL]
    assert read["p_cat"] == [*P[:3, 1].tolist(), None]
    assert read["set"] == ['"b;c";cat', "cat", '"the ""third"""', ""]
    assert read["set_size"] == [2, 1, 1, 0]
    assert read["reached"] == [True, True, True, False]


@pytest.mark.parametrize("extension", ["csv", "parquet"])
def test_rows_are_written_in_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extension: str) -> None:
    if extension == "parquet":
        pytest.importorskip("pyarrow")
    whole, parts = (tmp_path / f"{name}.{extension}" for name in ("whole", "parts"))
    classes().write(whole)
    monkeypatch.setattr(module, "CHUNK", 3)
    classes().write(parts)
    if extension == "csv":
        assert parts.read_bytes() == whole.read_bytes()
    else:
        parquet = pytest.importorskip("pyarrow.parquet")
        assert parquet.read_table(parts) == parquet.read_table(whole)


@pytest.mark.parametrize("extension", ["csv", "parquet"])
def test_no_nodes_give_a_header_alone(tmp_path: Path, extension: str) -> None:
    path = tmp_path / f"p.{extension}"
    predictions = classes(ids=[], probabilities=P[:0], sets=SETS[:0])
    if extension == "parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
        predictions.write(path)
        assert parquet.read_table(path).num_rows == 0
    else:
        predictions.write(path)
        assert len(path.read_text().splitlines()) == 1


def test_json_file_says_what_the_sets_promise(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    note = "new nodes: the coverage does not hold for them."
    classes(guarantee=GUARANTEE, temperature=1.25, notes=(note,), reached=SETS[:, 1]).write(path)
    assert json.loads((tmp_path / "mine.json").read_text()) == {
        "rows": 4,
        "task": "classification",
        "classes": NAMES,
        "temperature": 1.25,
        "not_reached": 1,
        "coverage": {
            "coverage": 0.9,
            "calibration_labels": 20,
            "true_coverage": [0.78, 0.99],
            "level": 0.95,
            "scores": "threshold",
            "smoothing": 0.0,
        },
        "notes": [note],
    }


@pytest.mark.parametrize("stage", ["table", "replace"])
def test_a_failed_write_leaves_both_files_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    path = tmp_path / "p.csv"
    classes(temperature=1.0).write(path)
    before = {each.name: each.read_bytes() for each in tmp_path.iterdir()}

    def fail(*arguments: object) -> None:
        raise OSError("no space left")

    if stage == "table":
        monkeypatch.setattr(ClassPredictions, "columns", fail)
    else:
        monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="no space"):
        classes(temperature=2.0).write(path)
    monkeypatch.undo()
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == before


@pytest.mark.parametrize("name", ["p.xlsx", "p", "p.json", "p.csv.gz"])
def test_an_unknown_extension_is_refused_and_nothing_is_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=r"must be \.csv, \.tsv, \.parquet"):
        classes().write(tmp_path / "new" / name)
    assert list(tmp_path.iterdir()) == []


def test_parquet_without_pyarrow_is_refused_before_predictions_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DataError, match=r"needs pyarrow: `pip install 'beltrami\[table\]'`"):
        check_table_path(Path("p.parquet"))
    check_table_path(Path("p.csv"))


@pytest.mark.parametrize(
    "names",
    [
        [],
        ["a"],
        ["a", "b"],
        ["a;b", "c"],
        ['say "x"', "b"],
        ["two\nlines", "b"],
        ["a\rb", "c"],
        [" a ", "b,c", "d\\;e"],
        [""],
    ],
)
def test_joined_names_split_again(names: list[str]) -> None:
    assert split_names(join_names(names)) == names


def test_plain_names_are_joined_without_quotation_marks() -> None:
    assert join_names(["Neural nets", "Theory, mostly"]) == "Neural nets;Theory, mostly"


def test_class_names_like_columns_have_columns_of_their_own() -> None:
    names = ["set", "id", "probability"]
    columns = classes(names=names).columns()
    assert list(columns) == ["id", "prediction", "probability", "p_set", "p_id", "p_probability", "set", "set_size"]


def test_label_reaches_the_nodes_of_its_component() -> None:
    edges = Edges.build(torch.tensor([[0, 1, 3], [1, 2, 4]]), num_nodes=6)
    labelled = torch.tensor([False, False, True, False, False, False])
    assert label_reaches(edges, labelled).tolist() == [True, True, True, False, False, False]
    assert not bool(label_reaches(edges, torch.zeros(6, dtype=torch.bool)).any())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"probabilities": P[:3]}, "probabilities"),
        ({"probabilities": P / 0}, "NaN or infinity"),
        ({"sets": SETS[:, :2]}, "sets"),
        ({"sets": P}, "must be a mask"),
        ({"reached": torch.ones(4)}, "reached"),
        ({"names": ["a", "b", "a"]}, "'a' is repeated"),
    ],
)
def test_parts_that_do_not_fit_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        classes(**changes)


def test_numbers_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="values"):
        NumberPredictions(ids=["a"], values=torch.zeros(2))
    with pytest.raises(ValueError, match="interval"):
        NumberPredictions(ids=["a"], values=torch.zeros(1), interval=(torch.zeros(1), torch.zeros(2)))


def test_predictions_are_abstract() -> None:
    with pytest.raises(TypeError, match="abstract"):
        Predictions(ids=["a"])  # type: ignore[abstract]


@pytest.mark.slow
def test_a_hundred_thousand_rows_keep_their_order(tmp_path: Path) -> None:
    n = 100_000
    ids = [f"n{i}" for i in reversed(range(n))]
    p = torch.rand(n, 3, generator=torch.Generator().manual_seed(0)).softmax(1)
    path = tmp_path / "p.csv"
    classes(ids=ids, probabilities=p, sets=p > 0.3).write(path)
    read = rows(path)
    assert [row["id"] for row in read] == ids
    assert torch.equal(torch.tensor([float(row["p_cat"]) for row in read]), p[:, 1])
