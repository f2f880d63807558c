"""The command line."""

from beltrami.cli.commands import app, main

__all__ = ["app", "main"]
