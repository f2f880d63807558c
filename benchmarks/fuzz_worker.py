"""Processes that try inputs one after another, each within a limit of memory and of time, and judge the answers."""

import os
import resource
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from random import Random
from typing import Any

SECONDS = 5.0  # after which an input counts as a hang
MEMORY = 2 * 2**30  # bytes that an input may allocate
MESSAGE = 1500  # characters of the longest message
FINDINGS = ("crash", "hang", "memory", "partial output", "raw error", "unclear message", "warning")
"""The answers that are faults of the library."""


@dataclass(frozen=True)
class Answer:
    """How an input was answered: ``value``, the name of an error of the library, or one of ``FINDINGS``."""

    kind: str
    message: str = ""
    seconds: float = 0.0
    peak: int = 0  # bytes of memory of the process


def answer_of(work: Callable[[], object]) -> Answer:
    """Run ``work`` and judge what it answers."""
    start = time.perf_counter()
    _reset_peak()
    kind, message = "value", ""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            work()
        if caught:
            kind, message = "warning", f"{caught[0].category.__name__}: {caught[0].message} ({caught[0].filename})"
    except BaseException as error:
        kind, message = _judge(error)
    seconds, peak = time.perf_counter() - start, _status("VmHWM")
    return Answer("memory" if peak > MEMORY and kind not in FINDINGS else kind, message, seconds, peak)


def _judge(error: BaseException) -> tuple[str, str]:
    """Return the kind of an error: only those that this library raised, with one sentence, are right answers."""
    text, frames = str(error), traceback.extract_tb(error.__traceback__)
    place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    told = f"{type(error).__module__}.{type(error).__name__} at {place}: {text[:MESSAGE]}"
    if isinstance(error, MemoryError) or "allocate" in text:
        return "memory", told
    own = type(error).__module__.startswith("beltrami.") or type(error) is ValueError
    raised_here = frames and "/beltrami/" in frames[-1].filename and frames[-1].name != "<lambda>"
    if not own or not raised_here:
        ours = [f"{Path(each.filename).name}:{each.lineno}" for each in frames if "/beltrami/" in each.filename]
        return "raw error", f"{told} (from {' '.join(ours[-3:])})"
    if not text or "\n" in text or "Traceback" in text or len(text) > MESSAGE:
        return "unclear message", f"{len(text)} characters: {told}"
    return type(error).__name__, text


def mutated_folder(name: str, seed: int, originals: Path, folder: Path) -> str:
    """Write the files of a reader into a folder, one of them mutated by ``seed``; return the name of that file."""
    from fuzz_mutation import mutate
    from fuzz_readers import READERS

    shutil.copytree(originals / name, folder)
    random = Random(f"{name} {seed}")
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    chosen, other = random.choice(files), random.choice(files)
    kind = next(kind for end, kind in READERS[name].kinds.items() if chosen.name.endswith(end))
    chosen.write_bytes(mutate(chosen.read_bytes(), other.read_bytes(), kind, random))
    return str(chosen.relative_to(folder))


def try_file(name: str, seed: int | None, originals: Path) -> Answer:
    """Let a reader read its files, one of them mutated by ``seed``, None for none; errors must leave no output."""
    from fuzz_readers import READERS

    with tempfile.TemporaryDirectory() as work:
        source, out = Path(work) / "in", Path(work) / "out"
        out.mkdir()
        if seed is None:
            shutil.copytree(originals / name, source)
        else:
            mutated_folder(name, seed, originals, source)
        before = sorted(source.rglob("*"))
        answer = answer_of(lambda: READERS[name].read(source, out))
        left = [] if answer.kind == "value" else [path.name for path in out.iterdir()]
        left += [path.name for path in sorted(source.rglob("*")) if path not in before]
    if left:
        return Answer("partial output", f"{left[0]} after {answer.kind}: {answer.message}", answer.seconds, answer.peak)
    return answer


def try_settings(recipe: str, dataset: str, settings: list[str]) -> Answer:
    """Check settings as ``train`` does before it trains."""
    from fuzz_settings import check

    return answer_of(lambda: check(recipe, dataset, settings))


def serve(connection: Connection, functions: tuple[Callable[..., Any], ...], warm_up: list[tuple[Any, ...]]) -> None:
    """Answer calls (number of the function, arguments) until None comes."""
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    for call in warm_up:
        functions[call[0]](*call[1:])
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (_status("VmData") + MEMORY, hard))
    connection.send(None)
    while (call := connection.recv()) is not None:
        connection.send(functions[call[0]](*call[1:]))


class Worker:
    """A process that answers one call at a time; it is replaced if it dies or takes too long."""

    def __init__(
        self, warm_up: Iterable[tuple[Any, ...]], functions: tuple[Callable[..., Any], ...] | None = None
    ) -> None:
        self.warm_up, self.functions = list(warm_up), functions or (try_file, try_settings)
        self.start()

    def start(self) -> None:
        context = get_context("spawn")
        self.connection, theirs = context.Pipe()
        arguments = (theirs, self.functions, self.warm_up)
        self.process = context.Process(target=serve, args=arguments, daemon=True)
        self.process.start()
        theirs.close()
        self.connection.recv()  # it is ready

    def ask(self, *call: Any) -> None:
        self.deadline = time.monotonic() + SECONDS
        self.connection.send(call)

    def answer(self) -> Answer:
        """Return the answer to the last call; call it when there is one, or after the deadline."""
        try:
            if self.connection.poll(max(0.0, self.deadline - time.monotonic())):
                found: Answer = self.connection.recv()
                return found
            failure = Answer("hang", f"no answer within {SECONDS:g} s", SECONDS)
        except (EOFError, ConnectionError):
            self.process.join()
            failure = Answer("crash", f"the process ended with code {self.process.exitcode}")
        self.stop()
        self.start()
        return failure

    def stop(self) -> None:
        self.connection.close()
        self.process.kill()
        self.process.join()


@contextmanager
def workers(count: int, warm_up: list[tuple[Any, ...]]) -> Iterator[list[Worker]]:
    """Start workers and stop them in the end."""
    started = [Worker(warm_up) for _ in range(count)]
    try:
        yield started
    finally:
        for worker in started:
            worker.stop()


def answers(pool: list[Worker], calls: Iterable[tuple[Any, ...]]) -> Iterator[tuple[tuple[Any, ...], Answer]]:
    """Yield each call with its answer, in the order in which they come."""
    waiting, idle = iter(calls), list(pool)
    asked: dict[Worker, tuple[Any, ...]] = {}
    while True:
        while idle and (call := next(waiting, None)) is not None:
            worker = idle.pop()
            worker.ask(*call)
            asked[worker] = call
        if not asked:
            return
        first = min(worker.deadline for worker in asked) - time.monotonic()
        ready = wait([worker.connection for worker in asked], timeout=max(0.0, first))
        for worker in list(asked):
            if worker.connection in ready or time.monotonic() > worker.deadline:
                yield asked.pop(worker), worker.answer()
                idle.append(worker)


def _status(name: str) -> int:
    """Return a number of bytes from the status of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return 1024 * int(line.split()[1])
    return 0


def _reset_peak() -> None:
    with suppress(OSError):  # then the peak is that of all inputs so far
        Path("/proc/self/clear_refs").write_text("5")
