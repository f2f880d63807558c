"""Adjoints: ways to compute the gradient of a solve."""

from beltrami.scheme.adjoint.continuous import Continuous
from beltrami.scheme.adjoint.discrete import Checkpointed, Direct

__all__ = ["Direct", "Checkpointed", "Continuous"]
