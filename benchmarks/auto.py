"""Measure `--recipe auto` on random splits: every member of the portfolio, the baselines, the confidence of the best.

Every member is trained on all splits as one program, and for each split the member of the best validation accuracy is
kept, as `beltrami train --recipe auto` does without a budget. A line of JSON per graph holds, for each split, the
validation and test accuracy of every member and baseline, the chosen one, its calibration error before and after the
temperature, and the coverage and size of its 90% sets on the test nodes.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from beltrami import train
from beltrami.auto.baselines import run_baselines
from beltrami.auto.fit_graph import UNKNOWN_LABELS
from beltrami.auto.portfolio import COUPLED, MEMBERS
from beltrami.auto.selection import LINEAR
from beltrami.config.build import build_training
from beltrami.data import Split, load, make_split
from beltrami.data.labelled_graph import LabelledGraph
from beltrami.data.labelled_split import hold_out
from beltrami.errors import SolverError
from beltrami.graph.sparse_matrix import sparse_where_it_pays
from beltrami.predict import Conformal, bin_surplus, expected_calibration_error, match_confidence
from beltrami.predict.trained_models import new_model, prepare

COVERAGE = 0.9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graphs", nargs="+")
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="seed of the first split")
    parser.add_argument("--protocol", default="digl")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--together", type=int, default=20, help="splits trained as one program")
    parser.add_argument("--out", type=Path, default=Path("results/auto.jsonl"))
    options = parser.parse_args()
    for name in options.graphs:
        start = time.perf_counter()
        record = measure(name, options.first, options.splits, options.protocol, options.device, options.together)
        record["seconds"] = time.perf_counter() - start
        with options.out.open("a") as file:
            file.write(json.dumps(record) + "\n")
        print_record(record)


def measure(name: str, first: int, count: int, protocol: str, device: str, together: int) -> dict[str, Any]:
    """Return the record of one graph."""
    dataset = load(name) if protocol == "planetoid" else load(name).largest_component()
    graph, _ = LabelledGraph.of_dataset(dataset)
    splits = [hold_out(make_split(dataset, protocol=protocol, seed=seed)) for seed in range(first, first + count)]
    rows: list[dict[str, Any]] = [{} for _ in splits]
    best: list[tuple[float, float, str, Tensor] | None] = [None] * count
    x, y = sparse_where_it_pays(graph.x), dataset.y
    seconds: dict[str, float] = {}

    def keep(k: int, member: str, outputs: Tensor) -> None:
        val, truth = outputs[splits[k].val], y[splits[k].val]
        score = float((val.argmax(1) == truth).double().mean())
        loss = float(torch.nn.functional.cross_entropy(val, truth))
        rows[k][member] = {"val": 100 * score, "test": 100 * train.read_test(outputs, y, splits[k])}
        found = best[k]
        if found is None or (score, -loss) > found[:2]:
            best[k] = (score, -loss, member, outputs)

    task = train.Classification(dataset.num_classes)
    for k, split in enumerate(splits):
        start = time.perf_counter()
        results, linear = run_baselines(x, graph.edges, y, [split], task=task)
        for result in results[:2]:
            rows[k][result.name] = {"val": 100 * result.validation, "test": 100 * (result.test or 0.0)}
        (model,) = linear.models
        keep(k, LINEAR, train.predict(model, model.prepare(x, graph.edges), time=linear.time))
        seconds["baselines"] = seconds.get("baselines", 0.0) + time.perf_counter() - start
    for member, settings in ((name, each) for name, each in MEMBERS.items() if name != COUPLED):  # for heterophily
        start = time.perf_counter()
        config = settings.config(name, exclusive=True, seed=0)
        inputs_x, edges = prepare(config, graph, device=device)
        for low in range(0, count, together):
            some = splits[low : low + together]
            models = []
            for k in range(len(some)):
                with train.seeded(first + low + k):
                    models.append(new_model(config, graph, outputs=dataset.num_classes).to(device))
            inputs = models[0].prepare(inputs_x, edges)
            moved: list[Split] = [split.to(device) for split in some]
            fits = train.fit_many(models, inputs, y.to(device), moved, build_training(config.train))
            for k, fit in enumerate(fits):
                if not isinstance(fit, SolverError):
                    keep(low + k, member, train.predict(models[k], inputs, time=fit.best.time).cpu())
        seconds[member] = time.perf_counter() - start
        print(f"  {name} {member}: {seconds[member]:.0f} s", flush=True)
    chosen = [confidence(found[2], found[3], y, split) for found, split in zip(best, splits, strict=True) if found]
    return {
        "graph": name,
        "protocol": protocol,
        "first": first,
        "members": rows,
        "chosen": chosen,
        "member_seconds": seconds,
    }


def confidence(member: str, outputs: Tensor, y: Tensor, split: Split) -> dict[str, Any]:
    """Return how well the confidence of one prediction is calibrated on the test nodes of its split."""
    assert split.calibration is not None
    temperature = match_confidence(outputs[split.val], y[split.val], unknown_labels=UNKNOWN_LABELS)
    raw, calibrated = outputs.softmax(1), (outputs / temperature).softmax(1)
    conformal = Conformal.fit(calibrated, y, calibration=split.calibration, kind="threshold")
    sets = conformal.sets(calibrated, coverage=COVERAGE, fill_empty=False)[split.test]
    test = split.test
    return {
        "member": member,
        "test": 100 * train.read_test(outputs, y, split),
        "temperature": temperature,
        "error_before": 100 * expected_calibration_error(raw[test], y[test]),
        "error_after": 100 * expected_calibration_error(calibrated[test], y[test]),
        "bins_before": bin_surplus(raw[test], y[test]).tolist(),
        "bins_after": bin_surplus(calibrated[test], y[test]).tolist(),
        "test_nodes": int(test.sum()),
        "coverage": 100 * float(sets.gather(1, y[test][:, None]).double().mean()),
        "set_size": float(sets.sum(1).double().mean()),
        "calibration_labels": int(split.calibration.sum()),
    }


def print_record(record: dict[str, Any]) -> None:
    """Print the means of one graph."""
    members, chosen = record["members"], record["chosen"]

    def mean(values: list[float]) -> float:
        return sum(values) / len(values)

    names = list(dict.fromkeys(name for row in members for name in row))
    print(f"{record['graph']}, {record['protocol']}, {len(members)} splits")
    for name in names:
        found = [row[name] for row in members if name in row]
        picked = sum(each["member"] == name for each in chosen)
        val, test = mean([each["val"] for each in found]), mean([each["test"] for each in found])
        print(f"  {name:22s} val {val:.2f} test {test:.2f} chosen {picked}")
    for when in ("before", "after"):
        bins = torch.tensor([each[f"bins_{when}"] for each in chosen]).sum(0)
        error = 100 * float(bins.abs().sum()) / sum(each["test_nodes"] for each in chosen)
        print(f"  auto error_{when} of all splits together {error:.2f}")
    for key in ("test", "error_before", "error_after", "coverage", "set_size", "temperature"):
        print(f"  auto {key:14s} {mean([each[key] for each in chosen]):.2f}")


if __name__ == "__main__":
    main()
