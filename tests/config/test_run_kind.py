"""Kinds of runs by their configuration files."""

import json
from pathlib import Path

import pytest

from beltrami.config import load_recipe, read_config
from beltrami.config.run_kind import run_kind
from beltrami.config.spec_rows import BlockConfig, GraphFolderSpec, RowConfig
from beltrami.errors import DataError

GRAPH = GraphFolderSpec(path="/graph", digest="0")
CONFIGS = {
    "dataset": load_recipe("blend", "cora"),
    "rows": RowConfig(data=GRAPH),
    "blocks": BlockConfig(graph=GRAPH, run=load_recipe("blend", "cora")),
}


@pytest.mark.parametrize("kind", CONFIGS)
def test_a_file_says_the_kind_of_its_run(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(CONFIGS[kind].to_json())
    assert run_kind(path) == kind
    if kind == "dataset":
        assert read_config(path) == CONFIGS[kind]
    else:
        with pytest.raises(DataError, match=r"belongs to a run .*: use `beltrami evaluate` or `beltrami predict`"):
            read_config(path)


@pytest.mark.parametrize("text", ["", "[]", "{", json.dumps({"run": 1})])
def test_a_damaged_file_is_left_to_its_reader(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(text)
    assert run_kind(path) == "dataset"
    with pytest.raises(DataError, match="cannot be read"):
        read_config(path)
