"""Tuning: random search over the settings of a recipe, by validation alone."""

from beltrami.lab.tune.scheduler import Rungs, Scheduler, TrialWorker
from beltrami.lab.tune.search import Halving, Search, ranking, search_for
from beltrami.lab.tune.trial import Trial, TrialProgress, train_trial

__all__ = [
    "Search",
    "search_for",
    "ranking",
    "Halving",
    "Trial",
    "TrialProgress",
    "train_trial",
    "TrialWorker",
    "Rungs",
    "Scheduler",
]
