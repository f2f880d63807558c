"""The processes of one training: their connection, their messages, and errors that all of them raise."""

import os
import platform
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import torch
from torch import Tensor
from torch import distributed as dist

import beltrami
from beltrami.arguments import Positive, checked
from beltrami.errors import DataError, NotFinite, SolverError

VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")  # set by torchrun and by `beltrami train --workers`
LOOPBACK = ("127.0.0.1", "localhost", "::1")
SIOCGIFADDR, IFREQ = 0x8915, 40  # Linux: the request for the address of an interface, and the bytes of its answer
CPU = torch.device("cpu")
TIMEOUT = 600.0  # seconds that processes wait for one another
LONGEST = 1000  # bytes of a text that processes share
SHARED = "every worker raises this error"  # a note of such errors


Failure = TypeVar("Failure", bound=Exception)


class WorkerLost(DataError):
    """Another process of the training ended or does not answer."""


@checked
@dataclass(frozen=True)
class Workers:
    """The ``size`` processes of a training, of which this one is ``rank``; by default one, which sends nothing.

    Every method is called by all of them in the same order. Sums are left to the caller, who adds the values of logical
    units (parts of the nodes, blocks of columns) in the order of the units: results do not depend on ``size``.
    """

    rank: int = 0
    size: int = 1
    device: torch.device = CPU

    def owned(self, units: int, rank: int | None = None) -> range:
        """Return the units, out of 0 to ``units`` - 1, that a process owns; by default this one."""
        rank = self.rank if rank is None else rank
        return range(rank * units // self.size, (rank + 1) * units // self.size)

    def totals(self, sizes: Sequence[int]) -> list[int]:
        """Return the sum of the sizes of the units of each process."""
        return [sum(sizes[unit] for unit in self.owned(len(sizes), rank)) for rank in range(self.size)]

    def gather(self, x: Tensor, sizes: Sequence[int]) -> Tensor:
        """Return the rows of all processes in the order of the units, which have ``sizes`` rows each."""
        if self.size == 1:
            return x
        rows = self.totals(sizes)
        padded = x.new_zeros(max(rows), *x.shape[1:])
        padded[: len(x)] = x
        found = [torch.empty_like(padded) for _ in rows]
        with _connected():
            dist.all_gather(found, padded)
        return torch.cat([each[:count] for each, count in zip(found, rows, strict=True)])

    def exchange(self, x: Tensor, sent: Sequence[int], received: Sequence[int]) -> Tensor:
        """Send ``sent[r]`` consecutive rows of ``x`` to each process r; return the rows received, by their senders."""
        if self.size == 1:
            return x
        out = x.new_empty(sum(received), *x.shape[1:])
        with _connected():
            dist.all_to_all_single(out, x.contiguous(), list(received), list(sent))
        return out

    def share(self, text: str) -> list[str]:
        """Return the texts of all processes; longer ones are cut off."""
        content = list(text.encode()[:LONGEST])
        row = torch.tensor([[*content, *[0] * (LONGEST - len(content))]], dtype=torch.uint8, device=self.device)
        rows: list[list[int]] = self.gather(row, [1] * self.size).tolist()
        return [bytes(each).rstrip(b"\0").decode(errors="ignore") for each in rows]

    def send_file(self, content: bytes) -> bytes:
        """Return the bytes of the first process."""
        sizes = [int(text) for text in self.share(str(len(content) if self.rank == 0 else 0))]
        row = torch.frombuffer(bytearray(content), dtype=torch.uint8) if self.rank == 0 and content else torch.empty(0)
        found = self.gather(row.to(self.device, torch.uint8), sizes)
        return bytes(found.cpu().numpy().tobytes())

    def check_equal(self, what: str, text: str) -> None:
        """Refuse processes that differ in ``what``."""
        texts = self.share(text)
        other = next((rank for rank, found in enumerate(texts) if found != texts[0]), None)
        if other is not None:
            found = f"worker 0 has {what} {texts[0]} and worker {other} has {texts[other]}"
            raise shared(ValueError(f"{found}: make them equal."))

    @contextmanager
    def together(self) -> Iterator[None]:
        """Run a block in every process; if it fails in one, all raise an error. The block must not send anything."""
        failed: Exception | None = None
        try:
            yield
        except (ValueError, DataError, SolverError, OSError) as error:
            failed = error
        texts = self.share("" if failed is None else f"{type(failed).__name__}:{failed}")
        if failed is not None:
            raise shared(failed)
        for rank, text in enumerate(texts):
            if text:
                raise shared(DataError(f"worker {rank} failed: {text.partition(':')[2]}"))

    def fail_together(self, failed: SolverError | None) -> None:
        """Raise the error of a solve that this process or, if it has none, another one met."""
        worst = int(self.gather(torch.tensor([_severity(failed)], device=self.device), [1] * self.size).max())
        if worst and _severity(failed) == worst:
            assert failed is not None
            raise shared(failed)
        if worst:
            kind = NotFinite if worst == 1 else SolverError
            raise shared(kind("the state became NaN or infinite, or the solve failed, in a part of another worker."))


def shared(error: Failure) -> Failure:
    """Note that every process raises an error of its own about the same failure."""
    error.add_note(SHARED)
    return error


def is_shared(error: Exception) -> bool:
    """Return whether every process raises an error about the same failure, so that one of them can report it."""
    return SHARED in getattr(error, "__notes__", ())


@checked
@contextmanager
def join_workers(*, device: torch.device | str = "cpu", timeout: Positive = TIMEOUT) -> Iterator[Workers]:
    """Meet the other processes that torchrun or ``beltrami train --workers`` started, over gloo or, on GPUs, NCCL.

    Without their environment variables there is one process. ``timeout`` is how many seconds a process waits for the
    others, at the start and later. Processes with other versions of the library, torch or Python are refused.
    """
    where = torch.device(device)
    if not all(name in os.environ for name in VARIABLES[:2]):
        yield Workers(device=where)
        return
    rank, size = _number("RANK"), _number("WORLD_SIZE")
    if where.type == "cuda":
        where = torch.device("cuda", int(os.environ.get("LOCAL_RANK", rank)) % torch.cuda.device_count())
        torch.cuda.set_device(where)
    _connect(rank, size, where, timeout)
    try:
        workers = Workers(rank, size, where)
        versions = f"beltrami {beltrami.__version__}, torch {torch.__version__}, Python {platform.python_version()}"
        workers.check_equal("versions", versions)
        yield workers
    finally:
        dist.destroy_process_group()


def _connect(rank: int, size: int, device: torch.device, timeout: float) -> None:
    missing = [name for name in VARIABLES if name not in os.environ]
    if missing or not 0 <= rank < size:
        fault = f"{missing[0]} is not set" if missing else f"RANK={rank} is not below WORLD_SIZE={size}"
        raise ValueError(f"the variables of torchrun do not fit together, {fault}: start all workers by torchrun.")
    if (interface := find_interface(os.environ["MASTER_ADDR"])) is not None:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", interface)
    try:
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=timedelta(seconds=timeout))
    except (RuntimeError, ValueError) as error:
        raise DataError(
            f"worker {rank} did not meet all {size} workers at {os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']} "
            f"within {timeout:g} seconds ({_first_line(error)}): start all of them, or wait longer with `--timeout`."
        ) from None


def find_interface(master: str) -> str | None:
    """Return the network interface that gloo has to use to meet other processes at an address; None if its own choice,
    the address of the host name, will do. That address may not answer, or be one that other machines cannot reach."""
    names = [name for _, name in socket.if_nameindex()]
    if master in LOOPBACK:
        return next((name for name in names if name.startswith("lo")), "lo")
    try:
        if not socket.gethostbyname(socket.gethostname()).startswith("127."):
            return None
    except OSError:
        pass  # the host name has no address
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((master, 1))  # sends nothing, and chooses the address from which it would
            own = probe.getsockname()[0]
        except OSError:
            return None
        return next((name for name in names if _address_of(probe, name) == own), None)


def _address_of(probe: socket.socket, interface: str) -> str | None:
    """Return the address of a network interface, on Linux."""
    import fcntl

    try:
        found = fcntl.ioctl(probe.fileno(), SIOCGIFADDR, interface.encode().ljust(IFREQ, b"\0"))
    except OSError:
        return None
    return socket.inet_ntoa(found[20:24])


@contextmanager
def _connected() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        raise WorkerLost(
            f"a worker lost the connection to another one ({_first_line(error)}): go on from the last checkpoint with "
            "`--resume`."
        ) from None


def _severity(failed: SolverError | None) -> int:
    return 0 if failed is None else 1 if isinstance(failed, NotFinite) else 2


def _number(name: str) -> int:
    text = os.environ[name]
    if not text.isdecimal():
        raise ValueError(f"the environment variable {name} must be a number; it is {text!r}: unset it.")
    return int(text)


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0][:200]
