"""Planetoid: Cora, CiteSeer and PubMed from the raw ``ind.*`` files of their makers."""

import hashlib
import io
import pickle
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from beltrami.data.dataset import Dataset, undirected
from beltrami.data.split import Split, mask
from beltrami.errors import DataError

PARTS = ("y", "tx", "ty", "allx", "ally", "graph", "test.index")
VALIDATION = 500


def read_planetoid(folder: Path, *, name: str, digests: Mapping[str, str]) -> Dataset:
    """Read ``ind.<name>.<part>`` from ``folder``: features as they stand in the files, citations in both directions.

    Nodes come in the published order: those of ``allx``, of which the first of each class train and the next 500
    validate, then the tested ones at the places that ``test.index`` names. Places it leaves out (CiteSeer has 15) are
    isolated nodes with zero features and class 0.

    The parts are pickles. Each is checked against ``digests`` before it is opened, and opened by a reader that knows
    arrays, lists and dictionaries only.

    Args:
        folder: where the files are.
        name: ``cora``, ``citeseer`` or ``pubmed``.
        digests: the SHA-256 of every file, by file name.
    """
    raw = {part: _verified(folder / f"ind.{name}.{part}", digests=digests) for part in PARTS}
    try:
        return _assemble(name, {part: _parse(part, data) for part, data in raw.items()})
    except (pickle.UnpicklingError, EOFError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise DataError(
            f"the files ind.{name}.* in {folder} are not those of Planetoid ({error}): delete them and try again, or "
            "point BELTRAMI_DATA at a folder with the right ones."
        ) from error


def _assemble(name: str, part: Mapping[str, Any]) -> Dataset:
    tested = part["test.index"]
    known, n = part["allx"].shape[0], int(tested.max()) + 1
    x = np.zeros((n, part["allx"].shape[1]), dtype=np.float32)
    x[:known], x[tested] = part["allx"], part["tx"]
    y = np.zeros(n, dtype=np.int64)
    y[:known], y[tested] = part["ally"].argmax(1), part["ty"].argmax(1)

    cited = [(j, i) for j, neighbours in part["graph"].items() for i in neighbours]
    edge_index = torch.tensor(cited, dtype=torch.int64).reshape(-1, 2).T
    labelled = part["y"].shape[0]
    split = Split(
        train=mask(torch.arange(labelled), num_nodes=n),
        val=mask(torch.arange(labelled, min(labelled + VALIDATION, known)), num_nodes=n),
        test=mask(torch.from_numpy(tested), num_nodes=n),
        protocol="planetoid",
        seed=0,
    )
    return Dataset(name, torch.from_numpy(x), undirected(edge_index, num_nodes=n), torch.from_numpy(y), split)


def _verified(path: Path, *, digests: Mapping[str, str]) -> bytes:
    """The bytes of a file, once their digest is the known one: what is checked is what is read."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}): check the folder in BELTRAMI_DATA.") from error
    if hashlib.sha256(data).hexdigest() != digests[path.name]:
        raise DataError(
            f"{path} is corrupt or not the published file (its SHA-256 differs, {len(data)} bytes): delete it and try "
            "again, or point BELTRAMI_DATA at a folder with the right one."
        )
    return data


def _parse(part: str, data: bytes) -> Any:
    if part == "test.index":
        return np.array([int(line) for line in data.split()], dtype=np.int64)
    value = PlainUnpickler(io.BytesIO(data), encoding="latin1").load()
    return value.dense() if isinstance(value, SparseRows) else value


class SparseRows:
    """What a pickled ``scipy.sparse.csr_matrix`` of any age leaves behind: its attributes, and nothing run."""

    data: NDArray[np.float32]
    indices: NDArray[np.int32]
    indptr: NDArray[np.int32]
    _shape: tuple[int, int]

    def dense(self) -> NDArray[np.float32]:
        from scipy.sparse import csr_array

        rows = csr_array((self.data, self.indices, self.indptr), shape=self._shape)
        return np.asarray(rows.toarray(), dtype=np.float32)


class PlainUnpickler(pickle.Unpickler):
    """An unpickler of arrays, sparse matrices, lists and dictionaries; any other name is refused, never called."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ADMITTED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which a graph does not need")
        return ADMITTED[module, name]


def _dtype(name: str, align: int, copy: int) -> np.dtype[Any]:
    # Old pickles say 0 and 1, which numpy deprecates for booleans.
    return np.dtype(name, align=bool(align), copy=bool(copy))


# Asked of an array, since its module moves between versions of numpy.
_RECONSTRUCT: Callable[..., Any] = np.empty(0).__reduce__()[0]  # type: ignore[assignment]

ADMITTED: Mapping[tuple[str, str], Any] = {
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): _dtype,
    ("numpy.core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy._core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("scipy.sparse.csr", "csr_matrix"): SparseRows,
    ("scipy.sparse._csr", "csr_matrix"): SparseRows,
    ("collections", "defaultdict"): defaultdict,
    ("__builtin__", "list"): list,
    ("builtins", "list"): list,
}
