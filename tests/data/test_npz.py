"""npz archives are identified by their arrays, and pickles in them are not read."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array

from beltrami.data.archives import content_digest, npz_digest, read_npz
from beltrami.errors import DataError


@pytest.fixture
def arrays() -> dict[str, NDArray[Any]]:
    adjacency = csr_array(np.array([[1, 1, 0], [0, 0, 0], [0, 1, 0]], dtype=np.float32))
    words = csr_array(np.array([[0, 3], [0, 0], [1, 1]], dtype=np.float32))
    parts = {"adj": adjacency, "attr": words}
    found: dict[str, NDArray[Any]] = {"labels": np.array([0, 1, 1])}
    for name, matrix in parts.items():
        found[f"{name}_data"], found[f"{name}_indices"] = matrix.data, matrix.indices
        found[f"{name}_indptr"], found[f"{name}_shape"] = matrix.indptr, np.array(matrix.shape)
    return found


def test_npz_has_word_occurrences_and_both_directions_of_edges(arrays: dict[str, NDArray[Any]], tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, allow_pickle=False, **arrays)
    data = read_npz(path, name="photo", digest=content_digest(arrays))
    assert data.x.tolist() == [[0, 1], [0, 0], [1, 1]]
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert data.y.tolist() == [0, 1, 1]
    assert data.published is None


def test_digest_depends_on_the_arrays_and_not_on_compression(arrays: dict[str, NDArray[Any]], tmp_path: Path) -> None:
    names = np.array([{"a": 1}], dtype=object)  # the published archives hold pickled name lists too
    np.savez(tmp_path / "plain.npz", allow_pickle=True, **arrays, names=names)
    np.savez_compressed(tmp_path / "small.npz", allow_pickle=False, **arrays)
    narrow = {name: array.astype(np.int32) if array.dtype.kind == "i" else array for name, array in arrays.items()}
    assert npz_digest(tmp_path / "plain.npz") == npz_digest(tmp_path / "small.npz") == content_digest(arrays)
    assert content_digest(narrow) == content_digest(arrays)
    assert content_digest(arrays | {"labels": np.array([0, 1, 0])}) != content_digest(arrays)


def test_other_arrays_are_refused(arrays: dict[str, NDArray[Any]], tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", allow_pickle=False, **arrays)
    with pytest.raises(DataError, match=r"a\.npz.*its arrays are not the published ones.*delete it and try again"):
        read_npz(tmp_path / "a.npz", name="photo", digest="0" * 64)


def test_inconsistent_arrays_are_refused(arrays: dict[str, NDArray[Any]], tmp_path: Path) -> None:
    wrong = arrays | {"labels": np.array([0, 1])}
    np.savez(tmp_path / "a.npz", allow_pickle=False, **wrong)
    with pytest.raises(DataError, match="one class"):
        read_npz(tmp_path / "a.npz", name="photo", digest=content_digest(wrong))


def test_broken_archives_are_refused(arrays: dict[str, NDArray[Any]], tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez_compressed(path, allow_pickle=False, **arrays)
    whole = path.read_bytes()
    np.savez(tmp_path / "pickled.npz", allow_pickle=True, **(arrays | {"labels": np.array([{}], dtype=object)}))
    pickled = (tmp_path / "pickled.npz").read_bytes()
    np.save(tmp_path / "single.npy", arrays["labels"])
    single = (tmp_path / "single.npy").read_bytes()
    flipped = whole[:60] + bytes(255 - byte for byte in whole[60:200]) + whole[200:]
    for content in (whole[: len(whole) // 2], b"", b"<html>not found</html>", pickled, single, flipped):
        path.write_bytes(content)
        with pytest.raises(DataError, match="is corrupt or not the published file"):
            read_npz(path, name="photo", digest=content_digest(arrays))
