"""Tuning: random search over the settings of a recipe, by validation alone."""

from beltrami.lab.tune.scheduler import Rungs, TrialWorker, run_search
from beltrami.lab.tune.search import Search, ranking, search_for
from beltrami.lab.tune.trial import TrialProgress, train_trial

__all__ = ["Search", "search_for", "ranking", "TrialProgress", "train_trial", "TrialWorker", "Rungs", "run_search"]
