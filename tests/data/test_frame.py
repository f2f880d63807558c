"""Data frames become tables; the types of their columns are kept."""

import sys
from typing import Any

import numpy as np
import pytest
from graph_files import listed

from beltrami.data.frame import column_of, frame_header, table_from_frame
from beltrami.data.table import Numbers
from beltrami.errors import DataError

pd: Any = pytest.importorskip("pandas")
pa: Any = pytest.importorskip("pyarrow")
pytest.importorskip("narwhals")


def test_columns_of_a_pandas_frame_keep_their_kinds() -> None:
    frame = pd.DataFrame(
        {
            "integer": pd.array([1, None], dtype="Int64"),
            "number": [1.5, None],
            "text": ["007", None],
            "truth": [True, False],
            "category": pd.Categorical(["u", None]),
            "mixed": pd.Series(["a", 1], dtype=object),
            "time": pd.to_datetime(["2020-01-01", None]),
        }
    )
    columns = table_from_frame(frame).columns
    for name, values in (("integer", [1, np.nan]), ("number", [1.5, np.nan])):
        column = columns[name]
        assert isinstance(column, Numbers)
        np.testing.assert_array_equal(column.values, values)
    assert listed(columns["text"]) == ["007", None]
    assert listed(columns["truth"]) == ["true", "false"]
    assert listed(columns["category"]) == ["u", None]
    assert listed(columns["mixed"]) == ["a", "1"]
    assert listed(columns["time"]) == ["2020-01-01 00:00:00", None]


def test_integers_asked_as_words_are_exact_and_fractions_stay_numbers() -> None:
    frame = pa.table({"id": [2**60 + 1, 3], "label": [1.0, None], "value": [0.5, 1.0]})
    columns = table_from_frame(frame, ids=["id"], words=["label", "value"]).columns
    assert listed(columns["id"]) == [str(2**60 + 1), "3"]
    assert listed(columns["label"]) == ["1", None]
    assert isinstance(columns["value"], Numbers)


def test_an_index_of_names_is_the_first_column() -> None:
    frame = pd.DataFrame({"a": [1, 2]}, index=["p", "q"])
    assert frame_header(frame, source="nodes") == ["column 1", "a"]
    assert listed(table_from_frame(frame).columns["column 1"]) == ["p", "q"]
    assert frame_header(pd.DataFrame({"a": [1, 2]}), source="nodes") == ["a"]
    assert frame_header(frame.rename_axis("who"), source="nodes") == ["who", "a"]


def test_lists_and_other_objects_are_refused() -> None:
    with pytest.raises(DataError, match="the column 'v' holds List"):
        table_from_frame(pa.table({"v": [[1.0], [2.0]]}))
    with pytest.raises(ValueError, match=r"pandas, polars or pyarrow frame; got set for nodes"):
        table_from_frame({1, 2}, source="nodes")


def test_frames_without_narwhals_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "narwhals", None)
    with pytest.raises(DataError, match=r"needs narwhals: `pip install 'beltrami\[table\]'`"):
        table_from_frame(pd.DataFrame({"a": [1]}))


def test_python_values_are_numbers_if_all_present_ones_are() -> None:
    numbers = column_of([1, None, np.float32(2.5)])
    assert isinstance(numbers, Numbers)
    np.testing.assert_array_equal(numbers.values, [1, np.nan, 2.5])
    assert listed(column_of([True, None, 2, float("nan"), "NA", "x"])) == ["true", None, "2", None, None, "x"]
