"""Rows of personalised PageRank and of the heat kernel."""
