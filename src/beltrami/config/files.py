"""Pin: the files that a configuration names, held to what they hold."""

from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from beltrami.config.spec import PositionConfig, RunConfig, StencilConfig
from beltrami.data.store import POSITIONS, STENCIL, VERBS, read_header
from beltrami.errors import DataError

Group = TypeVar("Group", PositionConfig, StencilConfig)


def resolve_files(config: RunConfig) -> RunConfig:
    """The configuration with the full path and the digest of each file it names.

    A file that is missing, or is not what was written down, is refused; only the heads of the files are read.
    """
    position, stencil = _pinned(config.position, POSITIONS), _pinned(config.stencil, STENCIL)
    return replace(config, position=position, stencil=stencil)


def _pinned(group: Group, kind: str) -> Group:
    if group.file is None:
        return group
    path = Path(group.file).expanduser().absolute()
    if group.digest is not None and not path.exists():
        raise DataError(
            f"the {kind} file {path}, which the configuration was made with, is gone: put it back, or make it again "
            f"with `beltrami {VERBS[kind]}`."
        )
    found = read_header(path, kind=kind).digest
    if group.digest not in (None, found):
        raise DataError(
            f"the {kind} file {path} has changed since the configuration was made: it has digest {found[:16]} in place "
            f"of {str(group.digest)[:16]}; put the old one back, or train again."
        )
    return replace(group, file=str(path), digest=found)
