"""The command line: verbs only."""

from beltrami.cli.app import app, main

__all__ = ["app", "main"]
