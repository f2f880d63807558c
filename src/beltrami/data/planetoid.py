"""Planetoid: read Cora, CiteSeer and PubMed from their published ``ind.*`` files."""

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

from beltrami.data.dataset import Dataset, Split, mask, undirected
from beltrami.data.file import corrupt_file
from beltrami.errors import DataError

PARTS = ("y", "tx", "ty", "allx", "ally", "graph", "test.index")
VALIDATION = 500

FILE_DIGESTS: Mapping[str, str] = {
    "ind.citeseer.allx": "2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668",
    "ind.citeseer.ally": "f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95",
    "ind.citeseer.graph": "d79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7",
    "ind.citeseer.test.index": "2af990671580b6b2df5d158d1038f8292e30c9cd821b5453f399659b25b723d4",
    "ind.citeseer.tx": "539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21",
    "ind.citeseer.ty": "55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce",
    "ind.citeseer.y": "8ba87e515d8e3ee3cf52f6d2c5b86aa73f11ecad825a808455209ec26cd54924",
    "ind.cora.allx": "9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543",
    "ind.cora.ally": "2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71",
    "ind.cora.graph": "58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d",
    "ind.cora.test.index": "297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875",
    "ind.cora.tx": "b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a",
    "ind.cora.ty": "41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad",
    "ind.cora.y": "94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1",
    "ind.pubmed.allx": "508e538e2abdccdd54c4d3e9f49d638b4af7107d85845f66ddea5a5152658b7e",
    "ind.pubmed.ally": "0c37bbe3b5014ec365e9d393cf4791925e5ed94fb194305d74f064a8d7b50f0e",
    "ind.pubmed.graph": "5b89f0036ca22909471f1e6558eb42fa06e0c730a577bde5b058b40638f81dc9",
    "ind.pubmed.test.index": "b101d421688bbaecbd82e8a18f1e282378d6830f3a37666f28ebc47f844341b5",
    "ind.pubmed.tx": "4eb5f5d0f30f26497eb0ac6ac9719d09c67e284f1ed0385c93f3ef27a671da3d",
    "ind.pubmed.ty": "ee2e0d4819d9fbcc403689c3bf2e49face401b605932f093bc58ab6461130fdd",
    "ind.pubmed.y": "e6c807633307a07ed659249006536a147c7999c797f11a2560752990181b41b3",
}
"""The SHA-256 of each file, by file name."""


def read_planetoid(folder: Path, *, name: str, digests: Mapping[str, str]) -> Dataset:
    """Read ``ind.<name>.<part>`` from ``folder``: features as in the files, citations in both directions.

    Nodes are in the published order: those of ``allx``, of which the first of each class train and the next 500
    validate, then the test nodes at the indices in ``test.index``. Indices missing there (CiteSeer has 15) are isolated
    nodes with zero features and class 0. The parts are pickles, each checked against ``digests`` (SHA-256 by file name)
    before it is opened by an unpickler that accepts arrays, lists and dictionaries only.
    """
    raw = {part: _verified(folder / f"ind.{name}.{part}", digests=digests) for part in PARTS}
    try:
        return _assemble(name, {part: _parse(part, data) for part, data in raw.items()})
    except (pickle.UnpicklingError, EOFError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise corrupt_file(folder / f"ind.{name}.*", str(error)) from error


def _assemble(name: str, part: Mapping[str, Any]) -> Dataset:
    test_nodes = part["test.index"]
    known, n = part["allx"].shape[0], int(test_nodes.max()) + 1
    x = np.zeros((n, part["allx"].shape[1]), dtype=np.float32)
    x[:known], x[test_nodes] = part["allx"], part["tx"]
    y = np.zeros(n, dtype=np.int64)
    y[:known], y[test_nodes] = part["ally"].argmax(1), part["ty"].argmax(1)

    cited = [(j, i) for j, neighbours in part["graph"].items() for i in neighbours]
    edge_index = torch.tensor(cited, dtype=torch.int64).reshape(-1, 2).T
    labelled = part["y"].shape[0]
    nodes = torch.arange(n)
    val = (nodes >= labelled) & (nodes < min(labelled + VALIDATION, known))
    test = mask(torch.from_numpy(test_nodes), num_nodes=n)
    split = Split(nodes < labelled, val, test, protocol="planetoid", seed=0)
    return Dataset(name, torch.from_numpy(x), undirected(edge_index, num_nodes=n), torch.from_numpy(y), split)


def _verified(path: Path, *, digests: Mapping[str, str]) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}): check the folder in BELTRAMI_DATA.") from error
    if hashlib.sha256(data).hexdigest() != digests[path.name]:
        raise corrupt_file(path, f"its SHA-256 differs, {len(data)} bytes")
    return data


def _parse(part: str, data: bytes) -> Any:
    if part == "test.index":
        return np.array([int(line) for line in data.split()], dtype=np.int64)
    value = RestrictedUnpickler(io.BytesIO(data), encoding="latin1").load()
    return value.dense() if isinstance(value, SparseRows) else value


class SparseRows:
    """The attributes of a pickled ``scipy.sparse.csr_matrix`` of any version; no code of scipy runs."""

    data: NDArray[np.float32]
    indices: NDArray[np.int32]
    indptr: NDArray[np.int32]
    _shape: tuple[int, int]

    def dense(self) -> NDArray[np.float32]:
        from scipy.sparse import csr_array

        rows = csr_array((self.data, self.indices, self.indptr), shape=self._shape)
        return np.asarray(rows.toarray(), dtype=np.float32)


class RestrictedUnpickler(pickle.Unpickler):
    """An unpickler of arrays, sparse matrices, lists and dictionaries; any other class is refused, never called."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ALLOWED:
            raise pickle.UnpicklingError(f"it needs {module}.{name}, which is not allowed")
        return ALLOWED[module, name]


def _dtype(name: str, align: int, copy: int) -> np.dtype[Any]:
    # Old pickles hold 0 and 1, which numpy deprecates for booleans.
    return np.dtype(name, align=bool(align), copy=bool(copy))


# Taken from an array, since its module differs between versions of numpy.
_RECONSTRUCT: Callable[..., Any] = np.empty(0).__reduce__()[0]  # type: ignore[assignment]

ALLOWED: Mapping[tuple[str, str], Any] = {
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
