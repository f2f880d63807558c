"""Positions and rewired graphs are computed once, keyed by their inputs, and written atomically."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from checks import crooked, kite, ragged, undirected
from torch import Tensor

from beltrami.data.store import cached_positions, cached_stencil, position_key, positions_are_cached
from beltrami.graph import Edges
from beltrami.position import PPR, DeepWalk, Encoding, Heat, LaplacianEigenvectors, ReturnProbabilities
from beltrami.stencil import KNN, AddEdges, Stencil

DEEPWALK: dict[str, Any] = {
    "channels": 4,
    "walk_length": 10,
    "context": 3,
    "walks_per_node": 2,
    "negatives": 1,
    "epochs": 1,
    "rate": 0.1,
    "tuned": False,
}


class Counting(Encoding):
    """An encoding with random positions, dense or sparse, that counts its calls."""

    def __init__(self, *, sparse: bool = False) -> None:
        self.sparse = sparse
        self._calls = 0

    def __call__(self, edges: Edges, generator: torch.Generator | None = None) -> Tensor:
        self._calls += 1
        u = torch.rand(edges.num_nodes, 3, generator=generator)
        return (u * (u > 0.5)).to_sparse() if self.sparse else u

    @property
    def calls(self) -> int:
        return self._calls


class NewVersion(Counting):
    """The same encoding with another version."""

    version: ClassVar[int] = 2


@pytest.mark.parametrize("sparse", [False, True])
def test_second_call_reads_the_file(tmp_path: Path, sparse: bool) -> None:
    encoding = Counting(sparse=sparse)
    assert not positions_are_cached(encoding, kite(), seed=0, folder=tmp_path)
    first = cached_positions(encoding, kite(), seed=0, folder=tmp_path)
    assert positions_are_cached(encoding, kite(), seed=0, folder=tmp_path)
    again = cached_positions(encoding, kite(), seed=0, folder=tmp_path)
    assert encoding.calls == 1
    assert again.layout == first.layout == (torch.sparse_coo if sparse else torch.strided)
    assert again.dtype == first.dtype
    assert torch.equal(again.to_dense(), first.to_dense())
    assert torch.equal(first.to_dense(), encoding(kite(), torch.Generator().manual_seed(0)).to_dense())
    (file,) = tmp_path.iterdir()
    assert file.name == f"Counting-{position_key(encoding, kite(), seed=0)}.safetensors"


@pytest.mark.parametrize(
    "encoding",
    [PPR(top=3), PPR(top=None), Heat(time=1.0), LaplacianEigenvectors(2), ReturnProbabilities(3), DeepWalk(**DEEPWALK)],
    ids=lambda e: type(e).__name__,
)
def test_every_encoding_is_read_back_unchanged(tmp_path: Path, encoding: Encoding) -> None:
    first, again = (cached_positions(encoding, crooked(), seed=1, folder=tmp_path) for _ in range(2))
    assert first.layout == again.layout
    assert first.is_coalesced() == again.is_coalesced() if first.is_sparse else True
    assert torch.equal(first.to_dense(), again.to_dense())


def test_default_folder_is_below_the_cache_folder(empty_house: Path) -> None:
    cached_positions(Counting(), kite(), seed=0)
    assert [path.parent.name for path in empty_house.rglob("*.safetensors")] == ["positions"]


def test_key_depends_on_seed_graph_and_version(tmp_path: Path) -> None:
    weighted = Edges.build(kite().edge_index, num_nodes=4, weight=torch.ones(8))
    heavier = Edges.build(kite().edge_index, num_nodes=4, weight=torch.full((8,), 2.0))
    double = Edges.build(kite().edge_index, num_nodes=4, weight=torch.ones(8).double())
    larger = Edges.build(kite().edge_index, num_nodes=5)
    other = undirected([(0, 1), (0, 2), (1, 2), (1, 3)], num_nodes=4)
    graphs = [kite(), weighted, heavier, double, larger, other, ragged()]
    keys = {position_key(Counting(), edges, seed=0) for edges in graphs}
    keys |= {position_key(Counting(), kite(), seed=1), position_key(NewVersion(), kite(), seed=0)}
    assert len(keys) == len(graphs) + 2


def test_key_is_independent_of_the_order_of_edges() -> None:
    shuffled = Edges.build(kite().edge_index[:, torch.randperm(8)], num_nodes=4)
    assert position_key(PPR(), shuffled, seed=0) == position_key(PPR(), kite(), seed=0)


def test_key_depends_on_every_parameter() -> None:
    changed: dict[str, Any] = {
        "channels": 5,
        "walk_length": 11,
        "context": 4,
        "walks_per_node": 3,
        "negatives": 2,
        "epochs": 2,
        "rate": 0.2,
        "tuned": True,
    }
    assert set(changed) == set(DEEPWALK) == set(vars(DeepWalk(4))) - {"progress"}
    encodings: list[Encoding] = [DeepWalk(**(DEEPWALK | {name: value})) for name, value in changed.items()]
    encodings += [DeepWalk(**DEEPWALK), PPR(), PPR(top=65), PPR(top=None), PPR(restart=0.1)]
    encodings += [Heat(time=1.0), Heat(time=2.0), Heat(time=1.0, top=None), Heat(time=1.0, top=65)]
    encodings += [ReturnProbabilities(3), ReturnProbabilities(4), LaplacianEigenvectors(3), LaplacianEigenvectors(4)]
    assert len({position_key(encoding, kite(), seed=0) for encoding in encodings}) == len(encodings)


def flipped(content: bytes) -> bytes:
    return content[:-1] + bytes([content[-1] ^ 1])


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    "damage",
    [lambda content: b"", lambda content: content[:-5], flipped, lambda content: b"no tensors"],
    ids=["empty", "truncated", "one bit", "foreign"],
)
def test_damaged_file_is_computed_again(tmp_path: Path, damage: Any, sparse: bool) -> None:
    encoding = Counting(sparse=sparse)
    first = cached_positions(encoding, kite(), seed=0, folder=tmp_path)
    (file,) = tmp_path.iterdir()
    complete = file.read_bytes()
    file.write_bytes(damage(complete))
    again = cached_positions(encoding, kite(), seed=0, folder=tmp_path)
    assert encoding.calls == 2
    assert torch.equal(again.to_dense(), first.to_dense())
    assert file.read_bytes() == complete
    assert list(tmp_path.iterdir()) == [file]


def test_content_of_another_file_is_not_accepted(tmp_path: Path) -> None:
    encoding = Counting()
    cached_positions(encoding, kite(), seed=0, folder=tmp_path)
    (file,) = tmp_path.iterdir()
    cached_positions(encoding, kite(), seed=1, folder=tmp_path)
    (other,) = set(tmp_path.iterdir()) - {file}
    file.write_bytes(other.read_bytes())
    found = cached_positions(encoding, kite(), seed=0, folder=tmp_path)
    assert torch.equal(found, encoding(kite(), torch.Generator().manual_seed(0)))


def test_unwritable_folder_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.warns(UserWarning, match="could not be cached .* name another folder in BELTRAMI_CACHE"):
        found = cached_positions(Counting(), kite(), seed=0, folder=tmp_path / "file")
    assert found.shape == (4, 3)


Z = torch.randn(9, 3, generator=torch.Generator().manual_seed(0))
EDGES = Edges.build(torch.tensor([[0, 1, 2], [1, 0, 3]]), num_nodes=9)


class CountingStencil(Stencil):
    """A stencil that counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, z: Tensor, edges: Edges) -> Edges:
        self.calls += 1
        return AddEdges(KNN(2), weight=0.5)(z, edges)


def same(one: Edges, other: Edges) -> bool:
    assert one.weight is not None
    assert other.weight is not None
    return torch.equal(one.edge_index, other.edge_index) and torch.equal(one.weight, other.weight)


def test_stencil_is_called_once(tmp_path: Path) -> None:
    stencil, wanted = CountingStencil(), AddEdges(KNN(2), weight=0.5)(Z, EDGES)
    for _ in range(2):
        assert same(cached_stencil(stencil, Z, EDGES, by="near", folder=tmp_path), wanted)
    assert stencil.calls == 1


def test_stencil_is_called_for_other_points_graphs_and_descriptions(tmp_path: Path) -> None:
    stencil = CountingStencil()
    other = Edges.build(torch.tensor([[0, 1], [1, 0]]), num_nodes=9)
    for z, edges, by in ((Z, EDGES, "near"), (Z + 1e-3, EDGES, "near"), (Z, other, "near"), (Z, EDGES, "far")):
        cached_stencil(stencil, z, edges, by=by, folder=tmp_path)
    assert stencil.calls == 4


def test_damaged_graph_file_is_computed_again(tmp_path: Path) -> None:
    stencil = CountingStencil()
    first = cached_stencil(stencil, Z, EDGES, by="near", folder=tmp_path)
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-3])
    assert same(cached_stencil(stencil, Z, EDGES, by="near", folder=tmp_path), first)
    assert same(cached_stencil(stencil, Z, EDGES, by="near", folder=tmp_path), first)
    assert stencil.calls == 2


def test_unwritable_folder_of_graphs_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.warns(UserWarning, match="a graph could not be cached at .* name another folder in BELTRAMI_CACHE"):
        found = cached_stencil(CountingStencil(), Z, EDGES, by="near", folder=tmp_path / "file")
    assert same(found, AddEdges(KNN(2), weight=0.5)(Z, EDGES))


@pytest.mark.slow
def test_two_processes_at_once_leave_one_complete_file(tmp_path: Path) -> None:
    code = """
import sys, time
from pathlib import Path
from checks import crooked
from beltrami.data.store import cached_positions
from beltrami.position import DeepWalk
folder = Path(sys.argv[1])
(folder / f"ready-{sys.argv[2]}").touch()
while not (folder / "go").exists():
    time.sleep(0.001)
encoding = DeepWalk(64, epochs=1, walks_per_node=1, progress=lambda *_: None)
u = cached_positions(encoding, crooked(), seed=0, folder=folder / "positions")
print(u.double().sum().item(), u.shape)
"""
    two = [python(code, str(tmp_path), name) for name in "ab"]
    while not ((tmp_path / "ready-a").exists() and (tmp_path / "ready-b").exists()):
        assert all(process.poll() is None for process in two), "a process ended early"
        time.sleep(0.01)
    (tmp_path / "go").touch()
    printed = [process.communicate()[0] for process in two]
    assert [process.returncode for process in two] == [0, 0]
    assert printed[0] == printed[1]
    (file,) = (tmp_path / "positions").iterdir()
    before = file.stat().st_mtime_ns
    u = cached_positions(DeepWalk(64, epochs=1, walks_per_node=1), crooked(), seed=0, folder=tmp_path / "positions")
    assert f"{u.double().sum().item()} {u.shape}" == printed[0].strip()
    assert file.stat().st_mtime_ns == before  # read, not written again


def python(code: str, *arguments: str) -> "subprocess.Popen[str]":
    path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-W", "ignore", "-c", code, *arguments]
    environment = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
