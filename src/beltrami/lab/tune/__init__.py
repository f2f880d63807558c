"""Tuning: random search over the settings of a recipe, by validation alone. Ray is imported by ``engine`` alone."""

from beltrami.lab.tune.halving import Halving, Rungs
from beltrami.lab.tune.scheduler import Scheduler, Watch
from beltrami.lab.tune.search import Search, ranking, search_for
from beltrami.lab.tune.trial import Progress, Trial, attempt

__all__ = ["Search", "search_for", "ranking", "Trial", "Progress", "attempt", "Halving", "Rungs", "Scheduler", "Watch"]
