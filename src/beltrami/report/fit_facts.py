"""What a predictor says of itself in words: the model that was chosen, baselines beside it, its calibration."""

import math
from collections.abc import Mapping

from beltrami.auto.portfolio import MEMBERS
from beltrami.auto.selection import AVERAGE, LINEAR, LINEAR_SAYS
from beltrami.predict.predictor import Predictor

DIFFUSION = "linear diffusion"
METRICS = {"classes": "accuracy", "labels": "micro-F1", "numbers": "error"}


def chosen_model(predictor: Predictor) -> tuple[str, str]:
    """Return the name of the model that validation chose, and what it is."""
    found = predictor.record["chosen"]
    if found == AVERAGE:
        shares = [f"{100 * share:.0f}% {name}" for name, share in predictor.record["weights"].items()]
        return found, f"of {', '.join(shares)}"
    chosen = DIFFUSION if found == LINEAR else found
    return chosen, MEMBERS[chosen].says if chosen in MEMBERS else LINEAR_SAYS


def metric_name(predictor: Predictor) -> str:
    """Return the name of the metric by which validation chose."""
    return f"{'balanced ' if predictor.record.get('balanced') else ''}{METRICS[predictor.targets.kind]}"


def fit_results(predictor: Predictor) -> dict[str, tuple[float, float | None]]:
    """Return the metric on validation and test nodes of the chosen model, which is first, and of the baselines; that of
    numbers is minus the error, in their units."""
    record, unit = predictor.record, _unit(predictor)
    rows = {chosen_model(predictor)[0]: (record["validation"], record["test"])}
    for each in record["baselines"]:
        test = None if each["test"] is None else unit * each["test"]
        rows.setdefault(each["name"], (unit * each["validation"], test))
    return rows


def gain_in_words(predictor: Predictor) -> str:
    """Return by how much the chosen model is better on validation nodes than the best baseline, or that it is not."""
    record, unit = predictor.record, _unit(predictor)
    baselines = {each["name"]: unit * each["validation"] for each in record["baselines"]}
    if len(record["attempts"]) == 1:  # then linear diffusion is the model, and the others are its baselines
        baselines.pop(DIFFUSION, None)
    return gain(record["validation"], baselines, predictor.targets.kind) if baselines else "No baselines were run."


def gain(validation: float, baselines: Mapping[str, float], kind: str) -> str:
    """Return in words by how much a metric on the validation nodes is better than the best of the baselines."""
    best = max(baselines, key=lambda name: baselines[name])
    against = f"{in_words(validation, kind)} against {in_words(baselines[best], kind)} on the validation nodes"
    if validation > baselines[best]:
        return f"The flow is better than the best baseline, {best}: {against}."
    return f"The flow gains nothing over {best} here: {against}."


def calibration_facts(predictor: Predictor) -> dict[str, str]:
    """Return how many labels trained, validated and calibrated the predictor, and its temperature, in words."""
    record, calibration = predictor.record, predictor.calibration
    nodes, folds = record["nodes"], record["splits"]
    seen = f"{nodes['train']:,} train, {nodes['val']:,} validate"
    if folds > 1:
        seen = f"{nodes['train'] + nodes['val']:,} in {folds} folds of cross-validation"
    aside = nodes.get("calibration", 0)
    facts = {"labels": f"{seen}, {aside:,} calibrate" + (f", {nodes['test']:,} test" if nodes["test"] else "")}
    if predictor.targets.kind != "numbers":
        facts["temperature"] = f"{calibration.temperature:.3g}, fitted on the validation nodes"
    return facts


def in_words(metric: float | None, kind: str) -> str:
    """Return a metric as text: per cent, or for numbers the root mean square error."""
    if metric is None or math.isnan(metric):
        return "-"
    return f"{-metric:.4g}" if kind == "numbers" else f"{100 * metric:.1f}%"


def _unit(predictor: Predictor) -> float:
    return predictor.calibration.scale[0] if predictor.targets.kind == "numbers" else 1.0
