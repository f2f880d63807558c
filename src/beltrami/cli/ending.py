"""How a command ends: warnings and errors as lines, exit codes, and signals.

Exit codes: 0 success, 1 failure, 2 bad usage, 130 interrupted, 143 terminated.
"""

import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from beltrami.errors import DataError, Interrupted, SolverError


class Commands(TyperGroup):
    """The commands; an interrupt ends them with a message and the exit code of its signal."""

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            _fail(str(error) or "interrupted.", code=getattr(error, "code", 130))


def run_commands(app: typer.Typer) -> None:
    """Run the command line; an error is one line, unless BELTRAMI_TRACEBACK is set."""
    with _messages():
        if os.environ.get("BELTRAMI_TRACEBACK"):
            app(prog_name="beltrami")
        try:
            app(prog_name="beltrami")
        except ValueError as error:
            _fail(str(error), code=2)
        except (DataError, SolverError, OSError) as error:
            _fail(str(error), code=1)
        except Exception as error:
            first_line = str(error).strip().split("\n")[0]
            _fail(f"{type(error).__name__}: {first_line} (BELTRAMI_TRACEBACK=1 shows where)", code=1)


@contextmanager
def _messages() -> Iterator[None]:
    """Show warnings as lines, and let SIGTERM end a block as SIGINT does."""

    def show(message: Warning | str, *about: Any, **named: Any) -> None:
        typer.echo(f"beltrami: {' '.join(str(message).split())}", err=True)

    def terminate(number: int, frame: FrameType | None) -> None:
        raise Interrupted("terminated.", code=128 + number)

    before, shown = signal.signal(signal.SIGTERM, terminate), warnings.showwarning
    warnings.showwarning = show
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        warnings.showwarning = shown


def _fail(message: str, *, code: int) -> NoReturn:
    typer.echo(f"beltrami: {' '.join(message.split())}", err=True)
    sys.exit(code)
