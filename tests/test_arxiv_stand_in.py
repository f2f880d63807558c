"""A generated graph in the files of ogbn-arxiv trains from the command line, by the recipes blend and blend-knn."""

import gzip
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from shell import Beltrami

from beltrami.data import catalogue
from beltrami.data.ogb import read_ogb
from beltrami.data.synthetic import power_law

NODES, EDGES, FEATURES, CLASSES = 120, 500, 8, 3
SHORT = (
    *("train.epochs=3", "position.walk_length=20", "position.channels=8", "model.feat=16", "model.pos=8"),
    "scheme.time=1",
)


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a graph in OGB's files, each edge in one direction, and let the catalogue expect its sizes."""
    data = power_law(NODES, EDGES, seed=0, features=FEATURES, classes=CLASSES)
    folder, (j, i) = tmp_path / "ogbn_arxiv", data.edge_index
    write(folder, "raw/edge", (f"{a},{b}" for a, b in data.edge_index[:, j < i].T.tolist()))
    write(folder, "raw/node-feat", (",".join(f"{value:.6g}" for value in row) for row in data.x.tolist()))
    write(folder, "raw/node-label", map(str, data.y.tolist()))
    write(folder, "raw/num-node-list", [str(NODES)])
    write(folder, "raw/num-edge-list", [str(EDGES)])
    for part, nodes in (("train", range(60)), ("valid", range(60, 90)), ("test", range(90, NODES))):
        write(folder, f"split/time/{part}", map(str, nodes))
    sizes = (NODES, EDGES, FEATURES, CLASSES)
    source = replace(
        catalogue.SOURCES["ogbn-arxiv"], read=lambda root: read_ogb(root / "ogbn_arxiv", name="ogbn-arxiv", sizes=sizes)
    )
    monkeypatch.setattr(catalogue, "SOURCES", {"ogbn-arxiv": source})
    monkeypatch.setenv("BELTRAMI_DATA", str(tmp_path))


def write(folder: Path, name: str, lines: Iterable[str]) -> None:
    path = folder / f"{name}.csv.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(("\n".join(lines) + "\n").encode()))


@pytest.mark.slow
@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize("recipe", ["blend", "blend-knn"])
def test_files_of_arxiv_train_from_the_command_line(beltrami: Beltrami, tmp_path: Path, recipe: str) -> None:
    settings = [f"--set={each}" for each in SHORT]
    done = beltrami("train", "ogbn-arxiv", "--recipe", recipe, *settings, "--out", str(tmp_path / "run"))
    assert done.code == 0, done.err
    result = json.loads((tmp_path / "run/result.json").read_text())
    config = json.loads((tmp_path / "run/config.json").read_text())
    assert (result["split"]["protocol"], result["epochs"]) == ("ogb", 3)
    assert config["position"]["kind"] == "deepwalk"
    assert config["stencil"]["kind"] == ("digl" if recipe == "blend-knn" else "keep")
    assert result["test_accuracy"] > 100 / CLASSES  # better than a guess
