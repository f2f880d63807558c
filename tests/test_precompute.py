"""Positions and graphs from files give the same run as computed ones, and are refused where they do not fit."""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from checks import pairs

from beltrami.config import RunConfig, check_settings, load_recipe, override
from beltrami.config.spec_graph import PositionFileSpec, StencilFileSpec
from beltrami.data import read_digits
from beltrami.data.store import POSITIONS, Provenance, load_positions, load_stencil, save_positions
from beltrami.errors import DataError
from beltrami.geometry import PoincareBall
from beltrami.graph import Edges, SparseMatrix
from beltrami.graph.statistics import Rewiring
from beltrami.position import PPR, Hyperbolic
from beltrami.precompute import (
    check_dataset,
    encode,
    position_settings,
    resolve_files,
    rewire,
    space_of,
    stencil_settings,
)
from beltrami.run import evaluate_run, load_problem, run_config, save_run
from beltrami.stencil import KNN, Symmetric, TopK


@pytest.fixture(scope="module")
def edges() -> Edges:
    return Edges.build(read_digits().edge_index, num_nodes=1797)


def digits(*settings: str) -> RunConfig:
    short = ["train.epochs=2", "train.time_grid.kind=terminal", "scheme.time=2"]
    return override(load_recipe("blend", "digits"), [*short, *settings])


def positions_at(path: Path) -> list[str]:
    return ["position.kind=file", f"position.path={path}"]


def stencil_at(path: Path) -> list[str]:
    return ["stencil.kind=file", f"stencil.path={path}"]


@pytest.mark.slow
def test_encoded_positions_are_those_of_the_encoding(tmp_path: Path, edges: Edges) -> None:
    config = position_settings("ppr", settings=["position.top=5", "position.restart=0.2"])
    first = encode("digits", config, tmp_path / "u")
    again = encode("digits", config, tmp_path / "v")
    assert (first.from_cache, again.from_cache) == (False, True)
    found, made = load_positions(tmp_path / "u", edges)
    assert torch.equal(found.to_dense(), PPR(restart=0.2, top=5)(edges).to_dense())
    assert (made.dataset, made.component, made.space) == ("digits", "largest", "flat")
    assert json.loads(made.by)["seed"] == 0
    assert json.loads(made.by)["encoding"]["parameters"] == {"restart": 0.2, "top": 5}


def test_progress_of_an_encoding_is_told(tmp_path: Path) -> None:
    said: list[tuple[str, int, int | None]] = []
    config = position_settings("heat", settings=["position.top=3", "position.time=1.25"])
    encode("digits", config, tmp_path / "u", progress=lambda *told: said.append(told))
    assert said[-1] == ("Heat", 1797, 1797)


@pytest.mark.slow
def test_rewired_graph_is_that_of_the_stencil(tmp_path: Path, edges: Edges) -> None:
    rewired = rewire("digits", stencil_settings("digl", settings=["stencil.k=7"]), tmp_path / "mesh")
    found, expected = load_stencil(tmp_path / "mesh", edges), TopK(7)(torch.zeros(1797, 1), edges)
    assert torch.equal(found.edge_index, expected.edge_index)
    assert found.weight is not None
    assert expected.weight is not None
    assert torch.equal(found.weight, expected.weight)
    assert rewired.rewiring == Rewiring.of(edges, expected, read_digits().y)
    assert rewired.rewiring.homophily_before > 0.9


@pytest.mark.slow
def test_neighbours_are_those_of_the_features_or_of_the_positions(tmp_path: Path, edges: Edges) -> None:
    settings = ["stencil.k=4", "stencil.symmetric=true"]
    rewire("digits", stencil_settings("knn", settings=settings), tmp_path / "by-x")
    x = read_digits().x
    by_x = Symmetric()(x, KNN(4)(x, edges))
    assert pairs(load_stencil(tmp_path / "by-x", edges)) == pairs(by_x)
    u = tmp_path / "u"
    positions = encode("digits", position_settings("laplacian", settings=["position.channels=3"]), u).positions
    rewire("digits", stencil_settings("knn", positions=u, settings=["stencil.k=4"]), tmp_path / "by-u", positions=u)
    assert pairs(load_stencil(tmp_path / "by-u", edges)) == pairs(KNN(4)(positions, edges))


@pytest.mark.slow
def test_positions_in_the_ball_keep_their_geometry(tmp_path: Path, edges: Edges) -> None:
    u, ball = tmp_path / "u", PoincareBall()
    points = ball.exp_origin(torch.randn(1797, 2, generator=torch.Generator().manual_seed(0)))
    save_positions(u, points, edges, Provenance(POSITIONS, "digits", "largest", "by hand", space_of(Hyperbolic(2))))
    problem = load_problem(digits("position.kind=file", f"position.path={u}"))
    assert isinstance(problem.pos, torch.Tensor)
    torch.testing.assert_close(problem.pos, ball.log_origin(points))
    rewire("digits", stencil_settings("knn", positions=u, settings=["stencil.k=4"]), tmp_path / "mesh", positions=u)
    found, expected = set(pairs(load_stencil(tmp_path / "mesh", edges))), set(pairs(KNN(4, metric=ball)(points, edges)))
    assert len(found & expected) > 0.999 * len(expected)  # the logarithm and back again is rounded
    assert len(found & set(pairs(KNN(4)(points, edges)))) < 0.99 * len(expected)


@pytest.mark.slow
def test_loaded_problem_has_the_graph_and_the_positions_of_the_files(tmp_path: Path, edges: Edges) -> None:
    encode("digits", position_settings("ppr"), tmp_path / "u", component="all")
    rewire("digits", stencil_settings("knn", settings=["stencil.k=4"]), tmp_path / "mesh", component="all")
    files = [*positions_at(tmp_path / "u"), *stencil_at(tmp_path / "mesh")]
    from_files, computed = load_problem(digits(*files)), load_problem(digits("position.kind=ppr"))
    assert isinstance(from_files.pos, SparseMatrix)
    assert isinstance(computed.pos, SparseMatrix)
    assert torch.equal(from_files.pos.values, computed.pos.values)
    assert torch.equal(from_files.pos.rows.index, computed.pos.rows.index)
    assert pairs(from_files.edges) == pairs(KNN(4)(read_digits().x, edges))


@pytest.mark.slow
def test_run_on_files_is_the_run_without_them(tmp_path: Path) -> None:
    encode("digits", position_settings("ppr"), tmp_path / "u")
    rewire("digits", stencil_settings("digl", settings=["stencil.k=9"]), tmp_path / "mesh")
    files = [*positions_at(tmp_path / "u"), *stencil_at(tmp_path / "mesh"), "stencil.loops=0"]
    named = ["position.kind=ppr", "stencil.kind=digl", "stencil.k=9", "stencil.loops=0"]
    by_files, by_names = (run_config(digits(*settings))[0] for settings in (files, named))
    timeless = [replace(result, train_seconds=0.0) for result in (by_files, by_names)]
    assert timeless[0] == timeless[1]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Positions and a graph of the digits."""
    u, mesh = tmp_path / "u", tmp_path / "mesh"
    encode("digits", position_settings("ppr", settings=["position.top=4"]), u)
    rewire("digits", stencil_settings("digl", settings=["stencil.k=5"]), mesh)
    return u, mesh


@pytest.mark.slow
def test_resolved_files_have_their_full_paths_and_digests(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    u, mesh = files
    monkeypatch.chdir(u.parent)
    config = resolve_files(digits(*positions_at(Path("u")), *stencil_at(Path("mesh"))))
    assert isinstance(config.position, PositionFileSpec)
    assert isinstance(config.stencil, StencilFileSpec)
    assert (config.position.path, config.stencil.path) == (str(u), str(mesh))
    assert len({config.position.digest, config.stencil.digest, None}) == 3
    assert resolve_files(config) == config
    assert resolve_files(digits()) == digits()


@pytest.mark.slow
def test_run_on_files_is_read_back_until_they_are_gone_or_changed(files: tuple[Path, Path], tmp_path: Path) -> None:
    u, mesh = files
    config = resolve_files(digits(*positions_at(u), *stencil_at(mesh)))
    save_run(tmp_path / "run", config, *run_config(config))
    result, val, test = evaluate_run(tmp_path / "run")
    assert (val, test) == (result.val_accuracy, result.test_accuracy)
    rewire("digits", stencil_settings("digl", settings=["stencil.k=6"]), mesh)
    with pytest.raises(DataError, match=r"the stencil file .*mesh has changed since .*: it has digest \w{16} in place"):
        evaluate_run(tmp_path / "run")
    rewire("digits", stencil_settings("digl", settings=["stencil.k=5"]), mesh)
    assert evaluate_run(tmp_path / "run")[1:] == (val, test)
    os.remove(u)
    with pytest.raises(DataError, match=r"the positions file .*u, which the configuration was made with, is gone"):
        evaluate_run(tmp_path / "run")


def test_stencils_may_look_at_positions_from_a_file() -> None:
    check_settings(digits(*positions_at(Path("u")), "stencil.kind=knn", "stencil.on=u"))
    with pytest.raises(ValueError, match=r"`stencil.on=u` looks at positions and there are none"):
        check_settings(digits("stencil.kind=knn", "stencil.on=u"))


def test_missing_file_is_refused_before_data_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_late(*arguments: object, **named: object) -> None:
        raise AssertionError("the data were loaded first")

    monkeypatch.setattr(sys.modules["beltrami.precompute"], "load", too_late)
    for group, settings in (("positions", positions_at), ("stencil", stencil_at)):
        with pytest.raises(DataError, match=rf"there is no {group} file at .*nowhere"):
            load_problem(digits(*settings(tmp_path / "nowhere")))
    with pytest.raises(DataError, match="there is no positions file"):
        rewire("digits", stencil_settings("knn"), tmp_path / "mesh", positions=tmp_path / "nowhere")


@pytest.mark.slow
def test_files_of_another_component_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = read_digits()
    alone = replace(data, edge_index=data.edge_index[:, (data.edge_index != 0).all(0)])  # node 0 has no edge
    monkeypatch.setattr(sys.modules["beltrami.precompute"], "load", lambda name, progress=None: alone)
    encode("digits", position_settings("ppr", settings=["position.top=3"]), tmp_path / "u")
    with pytest.raises(
        DataError, match=r"component largest, 1796 nodes\) than this one of 1797 nodes: .*data.component"
    ):
        load_problem(digits(*positions_at(tmp_path / "u"), "data.component=all"))
    largest = load_problem(digits(*positions_at(tmp_path / "u"), "data.component=largest"))
    assert largest.edges.num_nodes == 1796


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: position_settings("none"), r"unknown encoding 'none'.* Known: deepwalk, heat, hyperbolic, laplacian"),
        (lambda: position_settings("pp"), r"unknown encoding 'pp': did you mean 'ppr'\?"),
        (
            lambda: position_settings("ppr", settings=["position.restart=2"]),
            r"`position.restart` must be between",
        ),
        (lambda: position_settings("ppr", settings=["position.tops=2"]), r"did you mean 'position.top'\?"),
        (lambda: position_settings("ppr", settings=["position.kind=heat"]), r"`position.kind` is not a setting of"),
        (
            lambda: position_settings("ppr", settings=["scheme.time=2"]),
            r"`scheme.time` is not a setting of",
        ),
        (lambda: position_settings("ppr", settings=["position.top"]), r"takes name=value"),
        (lambda: position_settings("ppr", settings=["position.time=2"]), r"is a setting of `position.kind=heat`"),
        (lambda: position_settings("ppr", seed=3), r"`position.seed` is a setting of `position.kind=deepwalk or hyper"),
        (lambda: stencil_settings("knm"), r"unknown stencil 'knm': did you mean 'knn'\?"),
        (lambda: stencil_settings("knn", settings=["stencil.k=0"]), r"`stencil.k` must be at least 1"),
        (lambda: stencil_settings("knn", settings=["stencil.on=z"]), r"z is for `train`"),
        (lambda: stencil_settings("knn", settings=["stencil.on=u"]), r"name a file that `beltrami encode` wrote"),
        (lambda: stencil_settings("knn", settings=["stencil.on=v"]), r"unknown stencil.on 'v'"),
        (lambda: stencil_settings("digl", positions=Path("u")), r"`--positions` is for knn and radius"),
        (lambda: stencil_settings("knn", positions=Path("u"), settings=["stencil.on=x"]), r"leave it out here"),
        (
            lambda: stencil_settings("knn", settings=["stencil.remesh=1"]),
            r"`stencil.remesh` is not a setting",
        ),
        (lambda: check_dataset("digts", component="all"), r"unknown dataset 'digts': did you mean 'digits'\?"),
        (lambda: check_dataset("digits", component="al"), r"unknown component 'al': did you mean 'all'\?"),
    ],
)
def test_bad_settings_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
