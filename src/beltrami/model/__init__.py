"""Models: encoders, the evolution, decoders, and BLEND."""

from beltrami.model.blend import BLEND
from beltrami.model.classifier import Classifier, Fitted, OtherGraphWarning, Output
from beltrami.model.coder import Decoder, Dropout, Encoder
from beltrami.model.conv import BeltramiConv
from beltrami.model.evolution import Evolution, Trajectory
from beltrami.model.inputs import Inputs

__all__ = [
    "BLEND", "BeltramiConv", "Classifier", "Inputs", "Output", "Fitted", "OtherGraphWarning",
    "Encoder", "Decoder", "Dropout", "Evolution", "Trajectory",
]  # fmt: skip
