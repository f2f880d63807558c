"""All readers that are tried with mutated files; those of the files that the library itself writes are defined here."""

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from fuzz_given_files import GIVEN_FILES, NODES, Reader, table, write_text
from fuzz_published_files import PUBLISHED_FILES

from beltrami.auto.fit_graph import fit_graph
from beltrami.config import check_settings, load_recipe, override, read_config
from beltrami.config.build import build_classifier, build_training
from beltrami.config.convert import FIRST
from beltrami.data import Split, undirected
from beltrami.data.file import file_digest
from beltrami.data.graph_reader import read_graph
from beltrami.data.labelled_graph import LabelledGraph
from beltrami.data.store import (
    POSITIONS,
    STENCIL,
    Provenance,
    load_positions,
    load_stencil,
    save_positions,
    save_stencil,
)
from beltrami.data.target import Targets
from beltrami.graph import Edges
from beltrami.lab.study.record import latest, read_records, record_of
from beltrami.lab.study.summary import independent_values
from beltrami.model import Classifier, Fitted
from beltrami.predict.graph_file import load_graph, save_graph
from beltrami.predict.predictor import Predictor
from beltrami.result import RunResult, versions
from beltrami.train import Checkpoints, Fitting, TrainingState, load_weights, save_weights, start_fit

ROOT = Path(__file__).parents[1]
CONFIG = load_recipe("blend", "digits")
SMALL = override(CONFIG, ["model.feat=8", "diffusivity.width=8"])
EDGES = Edges.build(
    undirected(torch.stack((torch.arange(NODES), torch.arange(NODES).roll(1))), num_nodes=NODES), num_nodes=NODES
)


def _write_predictor(folder: Path) -> None:
    write_text(folder, suffix=".csv", separator=",")
    fit_graph(read_graph(folder), fast=True).save(folder)
    for path in folder.glob("*.csv"):
        path.unlink()


def _read_predictor(folder: Path, out: Path) -> object:
    """Load a predictor, with the digests of the files as they are, and predict on its own and on another graph."""
    try:
        facts = json.loads((folder / "predictor.json").read_bytes())
        facts["files"] = {name: file_digest(folder / name) for name in facts["files"]}
        (folder / "predictor.json").write_text(json.dumps(facts))
    except (ValueError, TypeError, KeyError, OSError, RecursionError):  # this is the file that was mutated
        pass
    predictor = Predictor.load(folder)
    found = predictor.predict(), predictor.predict(read_graph(nodes=table(0), edges=table(1)))
    found[0].write(out / "predictions.csv")
    return found


def _write_sparse_graph(folder: Path) -> None:
    ids, y = [f"n{k}" for k in range(NODES)], torch.arange(NODES) % 2
    graph = LabelledGraph("a", ids, torch.eye(NODES).to_sparse(), EDGES, Targets("classes", ("cat", "dog"), y))
    save_graph(folder / "graph.safetensors", graph, (_split(),))


def _model() -> Classifier:
    return build_classifier(SMALL, features=3, positions=0, num_classes=2)


def _training(model: Classifier, checkpoint: TrainingState | None = None) -> Fitting:
    inputs, y = model.prepare(torch.eye(NODES)[:, :3], EDGES), torch.arange(NODES) % 2
    return start_fit(model, inputs, y, _split(), build_training(SMALL.train), checkpoint=checkpoint)


def _split() -> Split:
    nodes = torch.arange(NODES)
    return Split(nodes < 20, (nodes >= 20) & (nodes < 30), nodes >= 30, protocol="a", seed=0)


def _write_weights(folder: Path) -> None:
    model = _model()
    model.fitted = Fitted(1.0, 1)
    save_weights(model, folder / "model.safetensors")


def _write_checkpoint(folder: Path) -> None:
    fitting = _training(_model())
    next(fitting)
    state = fitting.checkpoint()
    state.values["about"] = {}
    state.write(folder / "checkpoint.safetensors")


def _read_checkpoint(folder: Path, _: Path) -> object:
    state = Checkpoints(folder / "checkpoint.safetensors").read()
    return next(_training(_model(), state))


def _write_positions(folder: Path) -> None:
    save_positions(
        folder / "positions.safetensors", torch.ones(NODES, 3), EDGES, Provenance(POSITIONS, "a", "all", "b")
    )
    save_positions(
        folder / "sparse.safetensors", torch.eye(NODES).to_sparse(), EDGES, Provenance(POSITIONS, "a", "all", "b")
    )
    save_stencil(folder / "stencil.safetensors", EDGES, EDGES, Provenance(STENCIL, "a", "all", "b"))


def _read_positions(folder: Path, _: Path) -> object:
    dense, _made = load_positions(folder / "positions.safetensors", EDGES)
    sparse, _made = load_positions(folder / "sparse.safetensors", EDGES)
    return dense, sparse, load_stencil(folder / "stencil.safetensors", EDGES)


def _write_json(folder: Path) -> None:
    (folder / "config.json").write_text(SMALL.to_json())
    first = {name: dict(group) for name, group in FIRST.items()}
    (folder / "first.json").write_text(json.dumps({"dataset": "cora", "recipe": "mine", **first}))
    (folder / "result.json").write_text(_result().to_json())


def _result() -> RunResult:
    return RunResult(
        dataset="digits",
        recipe="blend",
        seed=0,
        split={"protocol": "digl", "seed": 0, "hash": "0" * 16},
        val_accuracy=90.0,
        test_accuracy=89.5,
        best_time=3.5,
        best_epoch=7,
        epochs=20,
        train_seconds=1.5,
        evaluations={"forward": 10},
        parameters=99,
        attention_spread=0.1,
        device="cpu",
        versions=versions(),
        per_class_accuracy=[90.0, None],
    )


def _read_json(folder: Path, _: Path) -> object:
    for name in ("config.json", "first.json"):
        check_settings(override(load_recipe(str(folder / name), read_config(folder / name).dataset), []))
    return RunResult.read(folder / "result.json")


def _write_records(folder: Path) -> None:
    lines = [record_of("random", "blend", SMALL).to_json()]
    for path in sorted((ROOT / "results" / "study").glob("*.jsonl")):
        lines += path.read_text().splitlines()[:2]
    (folder / "random.jsonl").write_text("".join(f"{line}\n" for line in lines))


def _read_records(folder: Path, _: Path) -> object:
    records = latest(read_records(folder / "random.jsonl"))
    return independent_values(records, "test_accuracy"), independent_values(records, "evaluations.forward")


READERS: Mapping[str, Reader] = {
    **GIVEN_FILES,
    **PUBLISHED_FILES,
    "weights": Reader(
        _write_weights,
        lambda folder, _: load_weights(_model(), folder / "model.safetensors"),
        {"": "safetensors"},
    ),
    "checkpoint": Reader(_write_checkpoint, _read_checkpoint, {"": "safetensors"}),
    "positions": Reader(_write_positions, _read_positions, {"": "safetensors"}),
    "sparse graph": Reader(
        _write_sparse_graph,
        lambda folder, _: load_graph(folder / "graph.safetensors", names=("cat", "dog"), kind="classes"),
        {"": "safetensors"},
    ),
    "predictor": Reader(_write_predictor, _read_predictor, {".json": "json", "": "safetensors"}),
    "json": Reader(_write_json, _read_json, {"": "json"}),
    "records": Reader(_write_records, _read_records, {"": "json"}),
}
"""Every reader by name."""
