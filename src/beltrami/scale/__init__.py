"""Graphs larger than the device: edges in row blocks, states in blocks of columns, and a plan of the memory."""

from beltrami.scale.diffuse import diffuse_columns
from beltrami.scale.streamed_blend import StreamedBlend
from beltrami.scale.streamed_inputs import StreamedInputs
from beltrami.scale.streamed_model import open_streamed

__all__ = ["diffuse_columns", "open_streamed", "StreamedBlend", "StreamedInputs"]
