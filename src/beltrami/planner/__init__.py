"""Predict the memory and the time of a training in every mode, and choose the mode for a graph and its devices."""
