"""Cluster: Ray as the place where trials and batches run, here or on other machines. Importing it imports Ray."""

import logging
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack, redirect_stdout
from pathlib import Path
from types import TracebackType
from typing import Any

import ray

from beltrami.errors import DataError, in_words
from beltrami.lab.resources import LOCAL, Resources

QUIET = {"RAY_USAGE_STATS_ENABLED": "0"}  # nothing is told to anybody
STORE = 100 * 2**20  # bytes of shared memory: what is told is small
PATIENCE = 5.0  # seconds for a cluster to answer
LONGEST = 24  # characters of a temporary folder under which Ray's sockets still find room


class Cluster:
    """Ray, from the beginning of a block to its end: then none of its processes and files on this machine lives on,
    and what is under way on others is given up.

    Args:
        share: what each piece of work gets of it.
        address: of an existing cluster, such as ``auto``, or ``LOCAL``. On a cluster the library and the data are
            needed on every machine, in the same places.
    """

    def __init__(self, share: Resources, *, address: str = LOCAL) -> None:
        self.share, self.address = share, address

    def __enter__(self) -> "Cluster":
        os.environ.update(QUIET)
        logging.getLogger("ray").setLevel(logging.CRITICAL)
        place = tempfile.gettempdir() if len(tempfile.gettempdir()) <= LONGEST else "/tmp"
        with ExitStack() as stack:
            stack.enter_context(redirect_stdout(sys.stderr))  # Ray tells there of processes that died
            self.folder = Path(tempfile.mkdtemp(prefix="beltrami-", dir=place))
            stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
            stack.callback(ray.shutdown)
            self._start()
            self.share.check(self._machines())
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()

    def room(self) -> int:
        """How many pieces of work the machines that are there now can do at once."""
        return sum(map(self.share.times_in, self._machines()))

    def _machines(self) -> list[Mapping[str, float]]:
        """What each machine holds, in use or not."""
        return [node["Resources"] for node in ray.nodes() if node["Alive"]]

    def _start(self) -> None:
        common: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
        if self.address == LOCAL:
            own = {"include_dashboard": False, "object_store_memory": STORE, "_temp_dir": str(self.folder / "ray")}
            ray.init(address=LOCAL, **own, **common)
            return
        try:
            _knock(self.address)
            ray.init(address=self.address, **common)
        except (OSError, RuntimeError, ValueError) as error:
            raise DataError(
                f"no Ray cluster answers at {self.address!r} ({in_words(error)[:200]}): check `--address`, and "
                "RAY_AUTH_TOKEN where the cluster asks for one, or leave it out to run on this machine."
            ) from error


def _knock(address: str) -> None:
    """Miss a cluster that is not there now: Ray itself takes minutes for it."""
    host, colon, port = address.rpartition(":")
    if colon and port.isdecimal() and "/" not in host:
        socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE).close()
