"""Training on a user's graph without settings: baselines, the portfolio and its selection by validation."""

from beltrami.auto.baselines import BaselineResult, run_baselines, run_linear
from beltrami.auto.linear import LinearFit, fit_linear
from beltrami.auto.propagation import Propagation, propagate_labels

__all__ = ["fit_linear", "LinearFit", "propagate_labels", "Propagation"]
__all__ += ["run_baselines", "run_linear", "BaselineResult"]
