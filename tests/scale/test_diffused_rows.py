"""Diffused rows are those of the matrix exponential, within the bound, and their files are used again."""

from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from dense_diffusion import diffusion_matrix
from row_examples import TIMES, ring_folder, toy_folder

from beltrami.data.graph_folder import GraphFolder
from beltrami.errors import DataError
from beltrami.scale import diffuse_columns, diffused_rows
from beltrami.scale.diffused_rows import diffuse_rows


@pytest.mark.parametrize("rtol", [1e-2, 1e-6, 1e-12])
def test_rows_are_within_the_bound_of_the_matrix_exponential(tmp_path: Path, rtol: float) -> None:
    folder = toy_folder(tmp_path)
    found = diffuse_rows(folder, times=TIMES, rtol=rtol)
    x = torch.from_numpy(np.array(folder.x))
    assert 0 < found.bound <= rtol
    for time, array in zip(TIMES, found.arrays, strict=True):
        error = (torch.from_numpy(np.array(array)) - diffusion_matrix(folder.edges(), time) @ x).abs()
        assert bool((error <= found.bound * x.abs().amax(0) + 1e-14).all())


def test_rows_of_some_nodes_are_read_at_all_times(tmp_path: Path) -> None:
    found = diffuse_rows(toy_folder(tmp_path), times=TIMES, rtol=1e-6)
    whole = torch.stack([torch.from_numpy(np.array(array)) for array in found.arrays])
    assert torch.equal(found.read(np.array([1, 4, 17])), whole[:, [1, 4, 17]])
    assert torch.equal(found.read(slice(3, 9)), whole[:, 3:9])


def test_features_of_small_integers_become_single_precision(tmp_path: Path) -> None:
    folder = toy_folder(tmp_path)
    np.save(tmp_path / "x.npy", (np.array(folder.x) > 0).astype(np.uint8))
    found = diffuse_rows(GraphFolder.open(tmp_path), times=TIMES, rtol=1e-5)
    assert found.read(slice(0, 2)).dtype == torch.float32
    assert [array.dtype for array in found.arrays] == [np.uint8, np.float32, np.float32]


def test_mean_and_deviation_are_those_of_the_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diffused_rows, "CHUNK_BYTES", 8 * 6 * 7)  # seven rows
    folder = toy_folder(tmp_path)
    x = np.array(folder.x)
    x[:, 2] = 5.0
    np.save(tmp_path / "x.npy", x)
    found = diffuse_rows(GraphFolder.open(tmp_path), times=(1.0,), rtol=1e-5)
    deviation = np.where(np.arange(6) == 2, 1.0, x.std(0))
    assert np.allclose(found.mean.numpy(), x.mean(0), rtol=1e-13)
    assert np.allclose(found.scale.numpy(), deviation, rtol=1e-13)


def test_the_second_call_reads_the_files_of_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = toy_folder(tmp_path)
    first = diffuse_rows(folder, times=TIMES, rtol=1e-6)
    monkeypatch.setattr(diffused_rows, "diffuse_columns", None)
    second = diffuse_rows(folder, times=TIMES, rtol=1e-6)
    assert second.bound == first.bound
    assert torch.equal(first.read(slice(0, 20)), second.read(slice(0, 20)))


@pytest.mark.parametrize("changed", ["x", "index", "rtol", "times", "deleted"])
def test_files_of_other_inputs_are_not_used(tmp_path: Path, changed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, times, rtol = toy_folder(tmp_path), TIMES, 1e-6
    diffuse_rows(folder, times=times, rtol=rtol)
    computed = Mock(wraps=diffuse_columns)
    monkeypatch.setattr(diffused_rows, "diffuse_columns", computed)
    if changed == "x":
        np.save(tmp_path / "x.npy", 2 * np.array(folder.x))
    elif changed == "index":
        np.save(tmp_path / "index.npy", np.array(folder.index)[::-1].copy())
    elif changed == "deleted":
        next(tmp_path.glob("diffused/*/t=3.npy")).unlink()
    diffuse_rows(
        GraphFolder.open(tmp_path),
        times=(0.0, 0.5) if changed == "times" else times,
        rtol=1e-7 if changed == "rtol" else rtol,
    )
    computed.assert_called_once()


def test_an_interrupted_diffusion_leaves_nothing_that_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = toy_folder(tmp_path)

    def fail(*arguments: object, **named: object) -> float:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(diffused_rows, "diffuse_columns", fail)
        with pytest.raises(KeyboardInterrupt):
            diffuse_rows(folder, times=TIMES, rtol=1e-6)
    computed = Mock(wraps=diffuse_columns)
    monkeypatch.setattr(diffused_rows, "diffuse_columns", computed)
    diffuse_rows(folder, times=TIMES, rtol=1e-6)
    computed.assert_called_once()


def test_a_graph_without_features_is_refused(tmp_path: Path) -> None:
    toy_folder(tmp_path)
    (tmp_path / "x.npy").unlink()
    with pytest.raises(DataError, match="has no features to diffuse: write them"):
        diffuse_rows(GraphFolder.open(tmp_path), times=TIMES, rtol=1e-6)


def test_features_that_are_not_finite_are_refused_by_their_node(tmp_path: Path) -> None:
    x = np.array(toy_folder(tmp_path).x)
    x[7, 1] = np.nan
    np.save(tmp_path / "x.npy", x)
    with pytest.raises(DataError, match="node 7 has a value that is NaN or infinite: clean or impute it first"):
        diffuse_rows(GraphFolder.open(tmp_path), times=TIMES, rtol=1e-6)


@pytest.mark.parametrize("times", [(), (1.0, 1.0), (2.0, 1.0), (-1.0, 0.0), (0.0, float("inf"))])
def test_times_that_do_not_increase_from_zero_are_refused(tmp_path: Path, times: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="`times` must be increasing, finite and at least 0"):
        diffuse_rows(toy_folder(tmp_path), times=times, rtol=1e-6)


def test_ring_folder_is_valid(tmp_path: Path) -> None:
    folder = ring_folder(tmp_path, nodes=12, features=2)
    folder.verify()
    assert np.diff(folder.ptr).tolist() == [2] * 12
