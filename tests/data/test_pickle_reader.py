"""Pickles of arrays, sparse matrices, lists and dictionaries are read as pickle reads them; others are refused."""

import pickle
from collections import OrderedDict, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from beltrami import file_limits as limits
from beltrami.data.pickle_reader import read_pickle
from beltrami.data.pickled_array import SparseRows
from beltrami.errors import DataError

PROTOCOLS = (2, 3, 4, 5)
PYTHON_2 = (
    b"\x80\x02cnumpy.core.multiarray\n_reconstruct\nq\x01cnumpy\nndarray\nq\x02K\x00\x85U\x01b\x87Rq\x03(K\x01K\x02K\x02"
    b"\x86cnumpy\ndtype\nq\x04U\x02i4K\x00K\x01\x87Rq\x05(K\x03U\x01%bNNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89"
    b"T\x10\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x00\x04\x00\x00\x00tb."
)
"""A matrix as Python 2 wrote it, up to its byte order."""


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.int32).reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.array([1.5, np.nan], dtype=">f4"),
        np.array([True, False]),
        np.zeros((0, 3), dtype=np.uint8),
    ],
    ids=lambda array: f"{array.dtype}{array.shape}",
)
def test_arrays_are_as_pickle_reads_them(array: NDArray[Any], protocol: int) -> None:
    found = read_pickle(pickle.dumps(array, protocol=protocol))
    assert found.dtype == array.dtype
    assert found.shape == array.shape
    assert found.tobytes() == array.tobytes()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_sparse_matrices_are_as_pickle_reads_them(protocol: int) -> None:
    matrix = csr_matrix(np.array([[0, 1.5, 0], [2, 0, 0], [0, 0, 0], [0, 0, 3]], dtype=np.float32))
    found = read_pickle(pickle.dumps(matrix, protocol=protocol))
    assert isinstance(found, SparseRows)
    assert found.dense().dtype == np.float32
    assert np.array_equal(found.dense(), matrix.toarray())


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_dictionaries_of_lists_are_as_pickle_reads_them(protocol: int) -> None:
    random = np.random.RandomState(0)
    graph = defaultdict(list, {k: random.randint(-(2**31), 2**31, random.randint(5)).tolist() for k in range(2000)})
    graph[2**40] = [2**62, 300, 70_000]
    assert read_pickle(pickle.dumps(graph, protocol=protocol)) == graph


@pytest.mark.parametrize(("order", "kind"), [(b"<", "<i4"), (b">", ">i4")])
def test_arrays_of_python_2_are_read(order: bytes, kind: str) -> None:
    content = PYTHON_2.replace(b"%b", order)
    assert np.array_equal(read_pickle(content), np.frombuffer(content[-19:-3], kind).reshape(2, 2))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "value",
    [OrderedDict(a=1), Path("x"), print, np.float64(1.0), {1: eval}, np.array([{}], dtype=object), 1.5, b"x", {1, 2}],
    ids=lambda value: type(value).__name__,
)
def test_other_values_are_refused(value: object, protocol: int) -> None:
    with pytest.raises(DataError):
        read_pickle(pickle.dumps(value, protocol=protocol))


def test_a_call_is_refused_by_name_and_not_made(tmp_path: Path) -> None:
    for text in (b"cos\nsystem\n", b"c__builtin__\neval\n"):
        call = b"\x80\x02" + text + b"U\x04true\x85R."
        with pytest.raises(DataError, match=r"it needs (os\.system|__builtin__\.eval), which is not allowed"):
            read_pickle(call)


@pytest.mark.parametrize("damage", ["cut", "flip"])
def test_damaged_pickles_are_refused_or_read_without_another_error(damage: str) -> None:
    random = np.random.RandomState(0)
    whole = PYTHON_2.replace(b"%b", b"<")
    for at in range(1, len(whole) - 1):
        flipped = whole[:at] + bytes([whole[at] ^ 1 << random.randint(8)]) + whole[at + 1 :]
        try:
            read_pickle(whole[:at] if damage == "cut" else flipped)
        except DataError:
            continue
        assert damage == "flip"


def test_a_stated_size_is_checked_against_the_bytes() -> None:
    with pytest.raises(DataError, match="ends within a value of 4294967295 bytes"):
        read_pickle(b"\x80\x02T\xff\xff\xff\xff.")
    with pytest.raises(DataError, match="cannot reshape"):
        read_pickle(PYTHON_2.replace(b"%b", b"<").replace(b"K\x02K\x02\x86", b"J\xff\xff\xff\x7fK\x02\x86"))


def test_a_text_that_is_encoded_many_times_is_refused() -> None:
    encode = b"h\x00h\x01h\x02\x86R"  # six bytes for each copy of a text of a thousand
    text = b"X\xe8\x03\x00\x00" + b"a" * 1000
    content = b"\x80\x02c_codecs\nencode\nq\x00" + text + b"q\x01X\x06\x00\x00\x00latin1q\x02" + 10 * encode + b"."
    with pytest.raises(DataError, match="makes more bytes of texts than it has"):
        read_pickle(content)


def test_the_number_of_opcodes_and_bytes_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    content = pickle.dumps([*range(1000)], protocol=2)
    monkeypatch.setattr(limits, "PICKLE_OPCODES", 100)
    with pytest.raises(DataError, match="more than 100 opcodes"):
        read_pickle(content)
    monkeypatch.setattr(limits, "PICKLE_BYTES", 100)
    with pytest.raises(DataError, match="at most 100 are read"):
        read_pickle(content)
