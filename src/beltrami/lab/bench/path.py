"""Paths: the ways a sparse product can go, so that one can be timed against another."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from beltrami.graph.ops import dispatch, vendor

PATHS = ("ours", "library", "reference")


@contextmanager
def going(path: str) -> Iterator[None]:
    """Have products go one of ``PATHS``: whatever serves the tensors best, the vendor's library, or plain torch."""
    if path == "ours":
        yield
        return
    dtypes = vendor.DTYPES if path == "library" else ()
    with patch.object(dispatch, "has_kernel", lambda _: False), patch.object(vendor, "DTYPES", dtypes):
        yield
