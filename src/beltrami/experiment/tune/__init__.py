"""Tuning: random search over the settings of a recipe, by validation alone. Ray is imported by ``engine`` alone."""

from beltrami.experiment.tune.clerk import Clerk, Watch
from beltrami.experiment.tune.halving import Halving, Rungs
from beltrami.experiment.tune.search import Search, ranking, search_for
from beltrami.experiment.tune.trial import Progress, Trial, attempt

__all__ = ["Search", "search_for", "ranking", "Trial", "Progress", "attempt", "Halving", "Rungs", "Clerk", "Watch"]
