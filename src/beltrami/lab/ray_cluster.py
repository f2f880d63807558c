"""Ray: jobs on a Ray cluster, an existing one or one on this machine."""

import logging
import math
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import dataclass
from threading import current_thread, main_thread
from typing import Any, Self

from beltrami.errors import DataError, in_words
from beltrami.lab.executor import RemoteExecutor, Worker, WorkerProcess, data_folders

LOCAL = "local"
"""The address of a Ray cluster that is started on this machine and ends with the block."""
QUIET = {"RAY_USAGE_STATS_ENABLED": "0"}
STORE = 100 * 2**20  # bytes of shared memory: messages are small
TIMEOUT = 5.0  # seconds for a cluster to answer
LONGEST = 24  # characters of a temporary folder that leave room for Ray's socket names
ROUNDING = 1e-9  # of quotients of decimal fractions


@dataclass(frozen=True)
class Resources:
    """CPUs and GPUs that a job reserves on a cluster."""

    unit: str  # `trial` or `batch`, as in the names of the options
    device: str  # `cpu` or `cuda`
    cpus: float  # cores of a job, which are also its threads
    gpus: float  # GPUs of a job; 0.25 puts four jobs on each GPU

    def __post_init__(self) -> None:
        unit, device, cpus, gpus = self.unit, self.device, self.cpus, self.gpus
        if device not in ("cpu", "cuda"):
            raise ValueError(f"`--device` of a {unit} is cpu or cuda, and Ray chooses which GPU; got {device!r}.")
        if cpus <= 0 or gpus < 0:
            least = f"`--cpus-per-{unit}` above 0 and `--gpus-per-{unit}` of at least 0"
            raise ValueError(f"a {unit} needs {least}; got {cpus:g}, {gpus:g}.")
        if (device == "cuda") != (gpus > 0):
            raise ValueError(f"`--gpus-per-{unit} {gpus:g}` and `--device {device}` contradict each other: change one.")

    def jobs_on(self, machine: Mapping[str, float]) -> int:
        """Return how many jobs a machine can run at once; a fraction of a GPU is a fraction of a single one."""
        by_cpu, gpus = math.floor(machine.get("CPU", 0) / self.cpus + ROUNDING), machine.get("GPU", 0)
        if self.gpus == 0:
            return by_cpu
        if self.gpus < 1:
            return min(by_cpu, int(gpus) * math.floor(1 / self.gpus + ROUNDING))
        return min(by_cpu, math.floor(gpus / self.gpus + ROUNDING))

    def check(self, machines: Sequence[Mapping[str, float]]) -> None:
        """Refuse resources that no machine has: Ray would wait for them for ever."""
        if not any(map(self.jobs_on, machines)):
            have = ", ".join(sorted({f"{each.get('CPU', 0):g} and {each.get('GPU', 0):g}" for each in machines}))
            raise ValueError(
                f"no machine of Ray has {self.cpus:g} CPUs and {self.gpus:g} GPUs for a {self.unit} (but {have}): "
                f"lower `--cpus-per-{self.unit}` or `--gpus-per-{self.unit}`."
            )


class Ray(RemoteExecutor):
    """As many jobs at once as the machines of a Ray cluster have room for. Creating it imports Ray.

    Machines that join the cluster are used. When the block is left, the cluster's processes and files on this machine
    are gone, and jobs on other machines are abandoned. ``resources`` are those of each job; ``address`` is that of an
    existing cluster, such as ``auto``, or ``LOCAL``. Every machine needs the library and the data in the same folders.
    """

    def __init__(self, worker: Worker, resources: Resources, *, address: str = LOCAL) -> None:
        import ray

        super().__init__()
        self.worker, self.resources, self.address = worker, resources, address
        self._ray = ray

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(join_cluster(self.address))
            self.resources.check(machines())
            self._stack = stack.pop_all()
        return self

    def capacity(self) -> int:
        return sum(map(self.resources.jobs_on, machines()))

    def start_process(self) -> Any:
        options = {"num_cpus": self.resources.cpus, "num_gpus": self.resources.gpus}
        actor = self._ray.remote(WorkerProcess).options(**options, max_restarts=0, max_task_retries=0)
        return actor.remote(self.worker, max(1, int(self.resources.cpus)), data_folders())

    def end_process(self, process: Any) -> None:
        self._ray.kill(process)

    def call(self, process: Any, method: str, *arguments: Any) -> Any:
        return getattr(process, method).remote(*arguments)

    def first_done(self, futures: Sequence[Any]) -> Any:
        while self._idle:  # there are no jobs left for them, and other users may wait for their resources
            self.end_process(self._idle.pop())
        (future,), _ = self._ray.wait(futures, num_returns=1)
        return future

    def result(self, future: Any) -> Any:
        from ray.exceptions import RayActorError, RayError, RayTaskError

        try:
            return self._ray.get(future)
        except RayTaskError as error:  # of the worker, not of its process
            raise error.cause from None
        except RayError as error:
            if isinstance(error, RayActorError) and error.actor_init_failed:
                raise cannot_run(error) from error
            return None


@contextmanager
def join_cluster(address: str) -> Iterator[Any]:
    """Join the cluster of an address, or start one on this machine for ``LOCAL``, and yield the module of Ray. When the
    block is left, the processes that were started in it and its files on this machine are gone."""
    import ray

    os.environ.update(QUIET)
    logging.getLogger("ray").setLevel(logging.CRITICAL)
    parent = tempfile.gettempdir() if len(tempfile.gettempdir()) <= LONGEST else "/tmp"
    folder = tempfile.mkdtemp(prefix="beltrami-", dir=parent)
    try:
        with redirect_stdout(sys.stderr):  # Ray prints there about processes that died
            with _same_handler(signal.SIGTERM):
                _connect(address, folder)
            yield ray
    finally:
        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


def machines() -> list[Mapping[str, float]]:
    """Return the resources of each machine of the cluster, reserved or not."""
    import ray

    return [node["Resources"] for node in ray.nodes() if node["Alive"]]


def cannot_run(error: Exception) -> DataError:
    """Return the error of a machine on which a process of this library does not start."""
    why = str(error).strip().splitlines()[-1]
    return DataError(f"a machine of the cluster cannot run jobs ({why}): install the same library there.")


def _connect(address: str, folder: str) -> None:
    import ray

    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
    if address == LOCAL:
        own = {"include_dashboard": False, "object_store_memory": STORE, "_temp_dir": os.path.join(folder, "ray")}
        ray.init(address=LOCAL, **own, **quiet)
        return
    try:
        host, colon, port = address.rpartition(":")
        if colon and port.isdecimal() and "/" not in host:  # fails at once; Ray itself would take minutes
            socket.create_connection((host.strip("[]"), int(port)), timeout=TIMEOUT).close()
        ray.init(address=address, **quiet)
    except (OSError, RuntimeError, ValueError) as error:
        raise DataError(
            f"no Ray cluster answers at {address!r} ({in_words(error)[:200]}): check `--address`, and "
            "RAY_AUTH_TOKEN where the cluster asks for one, or leave it out to run on this machine."
        ) from error


@contextmanager
def _same_handler(number: int) -> Iterator[None]:
    """Restore the handler of a signal after a block: Ray replaces that of SIGTERM by one that exits at once."""
    handler = signal.getsignal(number)
    yield
    if current_thread() is main_thread():
        signal.signal(number, handler)
