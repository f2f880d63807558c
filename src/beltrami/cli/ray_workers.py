"""Workers on the machines of a Ray cluster: the first is a process of this machine, Ray actors start the others."""

import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self

from beltrami.cli.launcher import LAUNCHED, Ending, LaunchedWorker, LocalWorker, Starter, meeting, threads_of_worker
from beltrami.cli.option import needs_ray
from beltrami.errors import DataError
from beltrami.lab.executor import data_folders
from beltrami.lab.ray_cluster import Resources, cannot_run, join_cluster, machines

PASSED_ON = ("MKL_NUM_THREADS", "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")  # variables, where they are set here
PLACED = 60.0  # seconds for a cluster to start the actors
ENDED = 5.0  # seconds for a process that was killed to be gone
GONE = "the loss of its machine or of its Ray process"


class RemoteProcess:
    """The process of a worker on a machine of the cluster; an actor of Ray, so that signals can be sent to it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def place(self) -> str:
        """Return the GPUs that Ray has reserved, as CUDA counts them."""
        return os.environ.get("CUDA_VISIBLE_DEVICES", "")

    def run(self, words: Sequence[str], variables: Mapping[str, str], folder: str) -> tuple[int, str]:
        """Run the command line of ``words``, in the folder where there is one, and return its exit code and the last
        line of its errors."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "beltrami", *words],
            env={**os.environ, **variables, LAUNCHED: str(os.getpid())},
            cwd=folder if os.path.isdir(folder) else None,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        assert self._process.stderr is not None
        with self._process.stderr as lines:
            last = deque(lines, maxlen=1)
        return self._process.wait(), "".join(last).strip()

    def send_signal(self, number: int) -> None:
        """Send a signal to the process."""
        if self._process is not None:
            self._process.send_signal(number)


class RayWorker(LaunchedWorker):
    """A worker that an actor runs."""

    def __init__(self, ray: Any, actor: Any, rank: int, future: Any) -> None:
        self._ray, self._actor, self.rank, self._future = ray, actor, rank, future
        self._ending: Ending | None = None

    def poll(self) -> Ending | None:
        if self._ending is None and self._ray.wait([self._future], timeout=0)[0]:
            self._ending = self._result()
        return self._ending

    def terminate(self) -> None:
        self._actor.send_signal.remote(signal.SIGTERM)

    def kill(self) -> None:
        if self.poll() is None:
            self._actor.send_signal.remote(signal.SIGKILL)
            self._ray.wait([self._future], timeout=ENDED)
        self._ray.kill(self._actor)

    def _result(self) -> Ending:
        from ray.exceptions import RayError, RayTaskError

        try:
            code, last = self._ray.get(self._future)
        except RayTaskError as error:
            return Ending(1, f"worker {self.rank} does not start: {' '.join(str(error.cause).split())}")
        except RayError:
            return Ending(-signal.SIGKILL, GONE)
        return Ending.of(code, f"worker {self.rank} failed: {last.removeprefix('beltrami: ')}")


class RayStarter(Starter):
    """Starts the first worker on this machine and the others on a cluster. A worker reserves a core for each of its
    threads, one by default, and on ``cuda`` a GPU; the first one reserves its GPU alone."""

    patience = 60.0  # Ray finds a lost machine in half a minute

    def __init__(self, ray: Any, device: str) -> None:
        self.threads = threads_of_worker(1)
        cpus = float(self.threads) if self.threads.isdecimal() else 1.0
        self.ray, self.resources = ray, Resources("worker", device, cpus, float(device == "cuda"))
        self._first: Any = None  # the actor that has reserved the GPU of the first worker

    @classmethod
    @contextmanager
    def joined(cls, address: str, device: str) -> Iterator[Self]:
        """Yield a starter on the cluster of an address; workers that are left end with the block."""
        with needs_ray("beltrami train --address"):
            import ray
        starter = cls(ray, device)
        with join_cluster(address):
            yield starter

    def start(self, words: Sequence[str], count: int) -> Sequence[LaunchedWorker]:
        address = self.ray.util.get_node_ip_address()
        self.check_room(count - 1, f"node:{address}")
        shared = {"OMP_NUM_THREADS": self.threads, "LOCAL_RANK": "0", **meeting(address, count)}
        own = self._reserve_here(f"node:{address}")
        options = {"num_cpus": self.resources.cpus, "num_gpus": self.resources.gpus}
        actors = [self._actor(options) for _ in range(1, count)]
        self._place(actors)
        passed_on = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        others = {**shared, **passed_on, **data_folders()}
        workers: list[LaunchedWorker] = [LocalWorker(words, {**shared, **own, "RANK": "0"})]
        for rank, actor in enumerate(actors, 1):
            future = actor.run.remote(words, {**others, "RANK": str(rank)}, os.getcwd())
            workers.append(RayWorker(self.ray, actor, rank, future))
        return workers

    def check_room(self, count: int, here: str) -> None:
        """Refuse ``count`` workers beside the one on this machine if the cluster never has room for them."""
        gpus = self.resources.gpus
        found = [{**each, "GPU": each.get("GPU", 0.0) - gpus * (here in each)} for each in machines()]
        if any(each["GPU"] < 0 for each in found):
            raise ValueError("this machine has no GPU in the Ray cluster: run the command on one that has, or use cpu.")
        room = sum(map(self.resources.jobs_on, found))
        if room < count:
            raise ValueError(
                f"the Ray cluster has room for {room} workers of {self.resources.cpus:g} CPUs and {gpus:g} GPUs beside "
                f"the one on this machine, and `--workers {count + 1}` needs {count}: lower it, or add machines."
            )

    def _reserve_here(self, here: str) -> dict[str, str]:
        """Reserve a GPU of this machine for the first worker, once, and return the variable that selects it."""
        if not self.resources.gpus:
            return {}
        if self._first is None:
            self._first = self._actor({"num_cpus": 0, "num_gpus": self.resources.gpus, "resources": {here: 0.001}})
        (devices,) = self._place([self._first])
        return {"CUDA_VISIBLE_DEVICES": devices}

    def _actor(self, options: Mapping[str, Any]) -> Any:
        # Of two threads: one waits for the process, the other sends signals.
        return self.ray.remote(RemoteProcess).options(**options, max_restarts=0, max_concurrency=2).remote()

    def _place(self, actors: Sequence[Any]) -> list[str]:
        """Wait until Ray has started the actors, and return the GPUs of each."""
        from ray.exceptions import RayError

        if not actors:
            return []
        futures = [actor.place.remote() for actor in actors]
        done, waiting = self.ray.wait(futures, num_returns=len(futures), timeout=PLACED)
        if waiting:
            raise DataError(
                f"the Ray cluster is busy, it started {len(done)} of {len(futures)} workers in {PLACED:g} seconds: try "
                "again later, or lower `--workers`."
            )
        try:
            return list(self.ray.get(futures))
        except RayError as error:
            raise cannot_run(error) from error
