"""Planetoid: read Cora, CiteSeer and PubMed from their published ``ind.*`` files."""

import hashlib
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from beltrami import file_limits as limits
from beltrami.data.dataset import Dataset, Split, mask, undirected
from beltrami.data.file import corrupt_file
from beltrami.data.pickle_reader import read_pickle
from beltrami.data.pickled_array import SparseRows
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
    before it is read by :func:`~beltrami.data.pickle_reader.read_pickle`, which runs no code.
    """
    raw = {part: _verified(folder / f"ind.{name}.{part}", digests=digests) for part in PARTS}
    try:
        return _assemble(name, {part: _parse(part, data) for part, data in raw.items()})
    except (DataError, ValueError, TypeError, LookupError, ArithmeticError) as error:
        raise corrupt_file(folder / f"ind.{name}.*", str(error).rstrip(".")) from error


def _assemble(name: str, part: Mapping[str, Any]) -> Dataset:
    test_nodes = part["test.index"]
    known, n = part["allx"].shape[0], int(test_nodes.max()) + 1
    if n > 2 * (known + len(test_nodes)):
        raise ValueError(f"test.index names node {n - 1}, and there are {known + len(test_nodes)} nodes")
    x = np.zeros((n, part["allx"].shape[1]), dtype=np.float32)
    x[:known], x[test_nodes] = part["allx"], part["tx"]
    y = np.zeros(n, dtype=np.int64)
    y[:known], y[test_nodes] = part["ally"].argmax(1), part["ty"].argmax(1)

    edge_index = torch.from_numpy(part["graph"])
    labelled = part["y"].shape[0]
    nodes = torch.arange(n)
    val = (nodes >= labelled) & (nodes < min(labelled + VALIDATION, known))
    test = mask(torch.from_numpy(test_nodes), num_nodes=n)
    split = Split(nodes < labelled, val, test, protocol="planetoid", seed=0)
    return Dataset(name, torch.from_numpy(x), undirected(edge_index, num_nodes=n), torch.from_numpy(y), split)


def _verified(path: Path, *, digests: Mapping[str, str]) -> bytes:
    try:
        data = limits.read_limited(path, most=limits.PICKLE_BYTES)
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}): check the folder in BELTRAMI_DATA.") from error
    if hashlib.sha256(data).hexdigest() != digests[path.name]:
        raise corrupt_file(path, f"its SHA-256 differs, {len(data)} bytes")
    return data


def _parse(part: str, data: bytes) -> NDArray[Any]:
    """Return the content of a part as an array."""
    if part == "test.index":
        return np.array([int(line) for line in data.split()], dtype=np.int64)
    value = read_pickle(data)
    if part == "graph":
        return _citations(value, most=len(data))
    if isinstance(value, SparseRows) != part.endswith("x") or not isinstance(value, (SparseRows, np.ndarray)):
        raise ValueError(f"{part} is a {type(value).__name__}")
    return value.dense() if isinstance(value, SparseRows) else value


def _citations(graph: Any, *, most: int) -> NDArray[np.int64]:
    """Return the edges (2, m) of a dictionary of lists of integers; a list may be named several times, but the graph
    has no more edges than its file has bytes."""
    if type(graph) is not dict or {*map(type, graph)} - {int} or {*map(type, graph.values())} - {list}:
        raise ValueError("graph is no dictionary of lists")
    lengths = [len(neighbours) for neighbours in graph.values()]
    if sum(lengths) > most or {*map(type, chain.from_iterable(graph.values()))} - {int}:
        raise ValueError("graph has lists of something else than its nodes")
    cited = np.fromiter(chain.from_iterable(graph.values()), np.int64, sum(lengths))
    return np.stack((np.repeat(np.fromiter(graph, np.int64, len(graph)), lengths), cited))
