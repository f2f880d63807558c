"""Text tables and Parquet files are read with types, missing values and line numbers."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graph_files import listed

from beltrami.data import table_reader
from beltrami.data.table import Numbers
from beltrami.data.table_reader import read_header, read_table
from beltrami.errors import DataError


def write(folder: Path, name: str, text: str, encoding: str = "utf-8") -> Path:
    path = folder / name
    path.write_text(text, encoding=encoding)
    return path


def list_numbers(column: object) -> Any:
    assert isinstance(column, Numbers)
    return column.values.tolist()


@pytest.mark.parametrize(
    ("name", "separator"), [("a.csv", ","), ("a.csv", ";"), ("a.csv", "\t"), ("a.tsv", "\t"), ("a.txt", " ")]
)
def test_separators_are_found(name: str, separator: str, tmp_path: Path) -> None:
    rows = [["a", "b"], ["1", "x"], ["2.5", "y"]]
    path = write(tmp_path, name, "".join(separator.join(row) + "\n" for row in rows))
    table = read_table(path)
    assert list_numbers(table.columns["a"]) == [1, 2.5]
    assert listed(table.columns["b"]) == ["x", "y"]
    assert table.lines.tolist() == [2, 3]


def test_quotes_byte_order_marks_and_empty_lines_are_understood(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", '"id, of node",text\r\n1,"a ""b""\r\nc"\r\n\r\n2, "d,e"\r\n', encoding="utf-8-sig")
    table = read_table(path)
    assert read_header(path) == ["id, of node", "text"]
    assert listed(table.columns["text"]) == ['a "b"\r\nc', "d,e"]
    assert table.lines.tolist() == [2, 5]


def test_columns_are_numbers_if_every_present_value_is(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "n,b,m,c\n1e3,true,NA,1\n?,no,,x\n")
    columns = read_table(path).columns
    np.testing.assert_array_equal(list_numbers(columns["n"]), [1000, np.nan])
    np.testing.assert_array_equal(list_numbers(columns["m"]), [np.nan, np.nan])
    assert listed(columns["b"]) == ["true", "no"]
    assert listed(columns["c"]) == ["1", "x"]


def test_words_keep_their_digits_and_ids_may_be_called_na(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "id,to,label\n007,NA,01\nNA,,NA\n")
    columns = read_table(path, ids=["id", "to"], words=["label"]).columns
    assert listed(columns["id"]) == ["007", "NA"]
    assert listed(columns["to"]) == ["NA", None]
    assert listed(columns["label"]) == ["01", None]


def test_words_after_many_numbers_leave_the_numbers_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_reader, "CHUNK_FIELDS", 4)
    path = write(tmp_path, "a.csv", "a,b\n" + "007,1\n" * 9 + "x,2\n" + "1.50,3\n")
    table = read_table(path)
    assert listed(table.columns["a"]) == ["007"] * 9 + ["x", "1.50"]
    assert list_numbers(table.columns["b"]) == [1] * 9 + [2, 3]
    assert table.lines.tolist() == list(range(2, 13))


def test_only_the_columns_asked_for_are_read(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "a,b,c\n1,2,3\n")
    assert list(read_table(path, only=["c", "a"]).columns) == ["a", "c"]


def test_edge_lists_may_start_with_comments(tmp_path: Path) -> None:
    path = write(tmp_path, "a.edgelist", "# made today\n% twice\n0 1\n1  2\n")
    table = read_table(path, ids=["s", "t"], names=["s", "t"])
    assert listed(table.columns["t"]) == ["1", "2"]
    assert table.lines.tolist() == [3, 4]


def test_a_table_without_rows_has_columns(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, "a.csv", "a,b\n"), words=["b"])
    assert len(table) == len(table.columns["a"]) == len(table.columns["b"]) == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n1,2,3\n", r"a\.csv, line 3, has 3 fields where the header has 2"),
        ("a,b\n\n1\n", r"a\.csv, line 3, has 1 fields"),
        ("", r"a\.csv is empty"),
        ("a,b,a\n", "two columns called 'a'"),
        ('a,b\n1,"2\n', r"a\.csv, line 2, cannot be read .* quotes"),
    ],
)
def test_broken_text_is_refused_with_its_line(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        read_table(write(tmp_path, "a.csv", text))


def test_other_encodings_extensions_and_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not text in UTF-8"):
        read_table(write(tmp_path, "a.csv", "a,b\nü,1\n", encoding="latin-1"))
    with pytest.raises(DataError, match=r"'\.xlsx', which is no table: use \.csv"):
        read_table(write(tmp_path, "a.xlsx", ""))
    with pytest.raises(DataError, match="there is no file"):
        read_table(tmp_path / "b.csv")


def test_parquet_is_read_with_its_types(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    big = 2**60 + 1
    pq.write_table(pa.table({"id": [big, None], "n": [1.5, None], "b": [True, None], "s": ["007", "NA"]}), path)
    assert read_header(path) == ["id", "n", "b", "s"]
    table = read_table(path, ids=["id"])
    assert listed(table.columns["id"]) == [str(big), None]
    np.testing.assert_array_equal(list_numbers(table.columns["n"]), [1.5, np.nan])
    assert listed(table.columns["b"]) == ["true", None]
    assert listed(table.columns["s"]) == ["007", None]
    assert table.where(1) == "a.parquet, row 2"
    assert list(read_table(path, only=["s"]).columns) == ["s"]


def test_broken_parquet_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = write(tmp_path, "a.parquet", "no parquet")
    for read in (read_header, read_table):
        with pytest.raises(DataError, match="cannot be read as Parquet"):
            read(path)


def test_parquet_without_pyarrow_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    with pytest.raises(DataError, match=r"needs pyarrow: `pip install 'beltrami\[table\]'`"):
        read_table(write(tmp_path, "a.parquet", ""))
