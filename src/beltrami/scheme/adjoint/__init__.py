"""Adjoints: how the gradient of a solve is found."""

from beltrami.scheme.adjoint.checkpointed import Checkpointed
from beltrami.scheme.adjoint.continuous import Continuous
from beltrami.scheme.adjoint.direct import Direct

__all__ = ["Direct", "Checkpointed", "Continuous"]
