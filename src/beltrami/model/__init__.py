"""Models: encoders, the evolution, decoders, and BLEND."""

from beltrami.model.blend import BLEND
from beltrami.model.classifier import Classifier, Inputs, Output
from beltrami.model.coder import Decoder, Dropout, Encoder
from beltrami.model.evolution import Evolution, Trajectory

__all__ = ["BLEND", "Classifier", "Inputs", "Output", "Encoder", "Decoder", "Dropout", "Evolution", "Trajectory"]
