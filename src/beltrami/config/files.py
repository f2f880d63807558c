"""Resolve the files that a configuration names and record their digests."""

from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from beltrami.config.spec import RunConfig
from beltrami.config.spec_graph import PositionFileSpec, StencilFileSpec
from beltrami.data.store import POSITIONS, STENCIL, VERBS, read_header
from beltrami.errors import DataError

FileSpec = TypeVar("FileSpec", PositionFileSpec, StencilFileSpec)


def resolve_files(config: RunConfig) -> RunConfig:
    """Return the configuration with the full path and the digest of each file it names.

    A file that is missing, or whose digest is not the recorded one, is refused; only the headers of files are read.
    """
    if isinstance(config.position, PositionFileSpec):
        config = replace(config, position=_resolved(config.position, POSITIONS))
    if isinstance(config.stencil, StencilFileSpec):
        config = replace(config, stencil=_resolved(config.stencil, STENCIL))
    return config


def _resolved(spec: FileSpec, kind: str) -> FileSpec:
    path = Path(spec.path).expanduser().absolute()
    if spec.digest is not None and not path.exists():
        raise DataError(
            f"the {kind} file {path}, which the configuration was made with, is gone: put it back, or make it again "
            f"with `beltrami {VERBS[kind]}`."
        )
    found = read_header(path, kind=kind).digest
    if spec.digest not in (None, found):
        raise DataError(
            f"the {kind} file {path} has changed since the configuration was made: it has digest {found[:16]} in place "
            f"of {str(spec.digest)[:16]}; put the old one back, or train again."
        )
    return replace(spec, path=str(path), digest=found)
