"""Runs of the recipe precomputed: features are diffused once, and a network is trained on their rows."""
