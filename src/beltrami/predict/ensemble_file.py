"""The files of trained models: a configuration and the weights of its models, once for each part of an average."""

from pathlib import Path
from typing import Any

from beltrami.config.build import check_settings
from beltrami.config.parser import read_config
from beltrami.data.file import write_atomically
from beltrami.data.labelled_graph import LabelledGraph
from beltrami.predict.model_average import ModelAverage
from beltrami.predict.predictor_file import PredictorFacts, check_times
from beltrami.predict.trained_models import AveragedEnsemble, Ensemble, new_model
from beltrami.train import load_weights, save_weights


def save_ensemble(folder: Path, ensemble: Ensemble | AveragedEnsemble) -> list[str]:
    """Write configurations and weights into a folder, and return the names of the files."""
    written = []
    for number, part in enumerate(ensemble.parts):
        config, models = _file_names(number, len(part.models))
        write_atomically(folder / config, part.config.to_json().encode())
        for model, name in zip(part.models, models, strict=True):
            save_weights(model, folder / name)
        written += [config, *models]
    return written


def ensemble_facts(ensemble: Ensemble | AveragedEnsemble) -> dict[str, Any]:
    """Return the times of the models, and for an average its weights, as ``predictor.json`` holds them."""
    if isinstance(ensemble, Ensemble):
        return {"times": ensemble.times, "average": None}
    average, times = ensemble.average, [part.times for part in ensemble.parts]
    shares = {"weights": average.weights, "temperatures": average.temperatures}
    return {"times": times[0], "average": {**shares, "times": times[1:]}}


def load_ensemble(folder: Path, facts: PredictorFacts, graph: LabelledGraph) -> Ensemble | AveragedEnsemble:
    """Return the models that a folder holds; ``graph`` is that of the training."""
    parts = []
    for number, times in enumerate(facts.all_times):
        config_name, names = _file_names(number, len(times))
        config = read_config(folder / config_name)
        check_settings(config)
        check_times(times, config)
        models = tuple(new_model(config, graph, outputs=len(facts.names)) for _ in times)
        for model, name in zip(models, names, strict=True):
            load_weights(model, folder / name)
        parts.append(Ensemble(config, models, tuple(times)))
    if facts.average is None:
        return parts[0]
    average = ModelAverage(tuple(facts.average.weights), tuple(facts.average.temperatures))
    return AveragedEnsemble(tuple(parts), average)


def _file_names(part: int, models: int) -> tuple[str, list[str]]:
    """Return the files of the configuration and of the models of a part; an ensemble that is no average is part 0."""
    mark = f"-{part}" if part else ""
    return f"config{mark}.json", [f"model{mark}-{k}.safetensors" for k in range(models)]
