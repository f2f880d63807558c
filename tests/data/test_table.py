"""Columns hold numbers or words, and convert without loss."""

import numpy as np
import pytest

from beltrami.data.table import (
    DataTable,
    Numbers,
    WordCodes,
    Words,
    as_numbers,
    as_words,
    column_name,
    floats,
    sort_names,
)


def words(*values: str) -> Words:
    encoder = WordCodes()
    return Words(encoder.encode(values), encoder.names)


@pytest.mark.parametrize("missing", ["", " ", "NA", "n/a", "NaN", "null", "None", "?"])
def test_missing_values_are_known_in_any_case(missing: str) -> None:
    assert words("a", missing, "b").codes.tolist() == [0, -1, 1]
    values = floats(["1", missing])
    assert values is not None
    assert values[0] == 1
    assert np.isnan(values[1])


def test_words_are_stripped_and_counted_once() -> None:
    column = words(" a", "b", "a ", "a")
    assert column.codes.tolist() == [0, 1, 0, 0]
    assert column.names == ["a", "b"]


def test_ids_may_be_called_like_missing_values() -> None:
    encoder = WordCodes({""})
    assert encoder.encode(["NA", "", "none"]).tolist() == [0, -1, 1]


@pytest.mark.parametrize("text", ["1_000", "abc", "1,5", "0x10", "true"])
def test_other_words_are_no_numbers(text: str) -> None:
    assert floats(["1", text]) is None


def test_words_become_numbers_only_if_all_are() -> None:
    numbers = as_numbers(words("2.5", "", "007", "2.5"))
    assert numbers is not None
    np.testing.assert_array_equal(numbers.values, [2.5, np.nan, 7, 2.5])
    assert as_numbers(words("1", "b")) is None


def test_names_without_rows_do_not_decide_whether_words_are_numbers() -> None:
    assert as_numbers(words("1", "b").take(np.array([0]))) is not None


def test_integers_become_words_and_fractions_stay_numbers() -> None:
    column = as_words(Numbers(np.array([2.0, np.nan, -1.0, 2.0])))
    assert isinstance(column, Words)
    assert column.names == ["-1", "2"]
    assert column.codes.tolist() == [1, -1, 0, 1]
    for values in ([0.5, 1.0], [np.inf, 1.0]):
        assert isinstance(as_words(Numbers(np.array(values))), Numbers)


def test_names_are_sorted_by_value_or_by_letters() -> None:
    column = sort_names(words("10", "", "9", "-1", "10"))
    assert column.names == ["-1", "9", "10"]
    assert column.codes.tolist() == [2, -1, 1, 0, 2]
    assert sort_names(words("10", "b", "9")).names == ["10", "9", "b"]
    assert sort_names(words("7", "007")).names == ["007", "7"]
    assert sort_names(words("c", "b").take(np.array([0]))).names == ["c"]


def test_a_restricted_table_keeps_the_lines_of_its_rows() -> None:
    table = DataTable({"a": words("x", "y", "z")}, "t.csv", np.array([2, 4, 5]), "line").take(
        np.array([False, True, True])
    )
    assert table.where(0) == "t.csv, line 4"
    assert len(table) == len(table.columns["a"]) == 2


def test_columns_without_a_name_are_numbered() -> None:
    assert column_name(" a ", 4) == "a"
    assert column_name("", 2) == "column 3"
    assert column_name("Unnamed: 0", 5) == column_name("", 0) == "column 1"
