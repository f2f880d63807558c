"""Kill commands at random moments, let them go on, and compare what they leave with that of an undisturbed run.

Every trial runs a command in a folder and a cache of its own, in a process that is killed (SIGKILL, SIGTERM or SIGINT)
after a random time, or cannot write files beyond a random size, as on a full disk; one to three times. After each fault
every file that is visible must be whole. Then the command goes on to its end, and the weights, results, predictions,
positions or records must be those of an undisturbed run, bit for bit; times apart. A line of JSON says how many trials
of each kind there were and what went wrong; the exit code is 1 if anything did.
"""

import argparse
import csv
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # the same bits need the same number of threads

from safetensors.torch import load as load_tensors

import beltrami.auto.fit_graph  # modules that the commands need are imported once, before processes fork
import beltrami.lab.study.runner
import beltrami.report.graph_report
import beltrami.report.study_terminal
import beltrami.run  # noqa: F401
from beltrami.cli import main as run_command_line
from beltrami.data.file import file_digest

WINE = Path(__file__).parent.parent / "docs" / "tutorials" / "data" / "wine.csv"
SIGNALS = {signal.SIGKILL: "SIGKILL", signal.SIGTERM: "SIGTERM", signal.SIGINT: "SIGINT"}
FULL_DISK = "full disk"
AUTO, AUTO_EVERY = "train, own table, auto", 50  # a job that takes minutes, and how often it is tried
TIMES = ("train_seconds", "seconds", "budget")  # names of values that differ from run to run
OK = {0, 1, 2, 130, 143}  # exit codes of commands that are not killed at once


@dataclass(frozen=True)
class Job:
    """A command: its arguments, what is added to go on, and what it leaves in a folder, without times."""

    arguments: tuple[str, ...]
    outcome: Callable[[Path], object]
    again: tuple[str, ...] = ()
    before: tuple[str, ...] = ()  # arguments of a command that is run first, undisturbed


def jobs(device: str) -> dict[str, Job]:
    short = ("train", "digits", "--set", "train.epochs=30", "--set", "train.patience=30", "--checkpoint", "3")
    where = ("--device", device, "--out", "run")
    rounds = ("--set", "train.epochs=15", "--set", "train.self_training=5", "--set", "train.ema=0.9")
    found = {
        "train": Job((*short, *where), run_files, again=("--resume",)),
        "train, two rounds": Job((*short, *rounds, *where), run_files, again=("--resume",)),
    }
    if device == "cpu":
        study = ("study", "planetoid", "--datasets", "cora", "--methods", "uniform", "--inits", "3")
        deepwalk = ("--encoding", "deepwalk", "--set", "position.channels=16", "--set", "position.walk_length=20")
        found |= {
            "train, own table": Job(("train", str(WINE), "--fast", "--out", "run"), run_files, again=("--resume",)),
            AUTO: Job(("train", str(WINE), "--budget", "1h", "--out", "run"), run_files, again=("--resume",)),
            "predict": Job(
                ("predict", "run", "--out", "found.csv"),
                predictions,
                before=("train", str(WINE), "--fast", "--out", "run"),
            ),
            "encode": Job(("encode", "digits", *deepwalk, "--out", "found.safetensors"), positions),
        }
        if os.environ.get("BELTRAMI_DATA"):
            settings = ("--set", "train.epochs=5", "--out", "run")
            found["study"] = Job((*study, *settings), records, again=("--resume",))
    else:
        cora = ("train", "cora", "--set", "train.epochs=150", "--checkpoint", "10", *where)
        found["train, cora"] = Job(cora, run_files, again=("--resume",))
    return found


def run_files(folder: Path) -> object:
    """Return what a run leaves: weights to the bit, its result, and which files there are."""
    facts: dict[str, object] = {"files": sorted(path.name for path in (folder / "run").iterdir())}
    for path in sorted((folder / "run").iterdir()):
        if path.suffix == ".safetensors" or path.name == "predictions.csv":
            facts[path.name] = file_digest(path)
        elif path.suffix == ".json":
            facts[path.name] = without_times(json.loads(path.read_text()))
    return facts


def predictions(folder: Path) -> object:
    return file_digest(folder / "found.csv"), json.loads((folder / "found.json").read_text())


def positions(folder: Path) -> object:
    tensors = load_tensors((folder / "found.safetensors").read_bytes())
    return {name: tensor.numpy().tobytes() for name, tensor in tensors.items()}


def records(folder: Path) -> object:
    lines = (folder / "run" / "planetoid.jsonl").read_text().splitlines()
    return sorted(json.dumps(without_times(json.loads(line)), sort_keys=True) for line in lines)


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_times(each) for name, each in value.items() if name not in TIMES and name != "files"}
    return [without_times(each) for each in value] if isinstance(value, list) else value


def start(arguments: tuple[str, ...], folder: Path, most_bytes: int | None = None) -> int:
    """Return a new process that runs a command in a folder."""
    process = os.fork()
    if process:
        return process
    code = 99
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.chdir(folder)
        os.environ["BELTRAMI_CACHE"] = str(folder / ".cache")
        output = os.open(folder / ".output", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(output, 1)
        os.dup2(output, 2)
        sys.argv = ["beltrami", *arguments]
        if most_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
        run_command_line()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def wait(process: int, seconds: float = 600.0) -> int | None:
    """Return the exit code of a process, negative for a signal; None if it runs longer."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found, status = os.waitpid(process, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    return None


def check_visible(folder: Path) -> None:
    """Read every file that a user sees; a ValueError or an error of its reader says which one is not whole."""
    for path in folder.rglob("*"):
        if any(part.startswith(".") for part in path.relative_to(folder).parts) or path.is_dir():
            continue
        if path.suffix == ".safetensors":
            load_tensors(path.read_bytes())
        elif path.suffix == ".json":
            json.loads(path.read_text())
        elif path.suffix == ".csv":
            widths = {len(row) for row in csv.reader(path.open())}
            if len(widths) != 1 or not path.read_text().endswith("\n"):
                raise ValueError(f"{path.name} is not whole")


@dataclass
class Counts:
    trials: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    early: int = 0  # commands that had ended before the signal
    findings: list[str] = field(default_factory=list)


def trial(name: str, job: Job, expected: object, seconds: float, random_: random.Random, counts: Counts) -> None:
    """Disturb a command one to three times, let it end, and compare."""
    folder = Path(tempfile.mkdtemp(prefix="beltrami-fault-"))
    try:
        prepare(job, folder)
        for time_ in range(random_.randint(1, 3)):
            arguments = (*job.arguments, *(job.again if time_ else ()))
            full = random_.random() < 0.1
            process = start(arguments, folder, random_.randint(2**8, 2**16) if full else None)
            if full:
                code, fault = wait(process), FULL_DISK
            else:
                number = random_.choices(list(SIGNALS), weights=[8, 1, 1])[0]
                code, fault = wait(process, random_.uniform(0, 1.05 * seconds)), SIGNALS[number]
                if code is None:
                    os.kill(process, number)
                    code = wait(process)
                else:
                    counts.early += 1
            counts.faults[fault] += 1
            if code is None or (code not in OK and code != -signal.SIGKILL):
                raise ValueError(f"exit code {code} after {fault}: {(folder / '.output').read_text()[-500:]}")
            check_visible(folder)
        code = wait(start((*job.arguments, *job.again), folder))
        if code != 0 and not (code == 2 and "is finished" in (folder / ".output").read_text()):
            raise ValueError(f"going on ended with {code}: {(folder / '.output').read_text()[-500:]}")
        if job.outcome(folder) != expected:
            raise ValueError(f"the outcome differs: {folder} is kept")
        shutil.rmtree(folder)
    except Exception as error:
        counts.findings.append(f"{name}: {type(error).__name__}: {error}")
        print(counts.findings[-1], flush=True)


def prepare(job: Job, folder: Path) -> None:
    if job.before and wait(start(job.before, folder)) != 0:
        raise ValueError(f"the command before failed: {(folder / '.output').read_text()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="trials")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", nargs="*", help="names of jobs")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    random_, counts, begin = random.Random(options.seed), Counts(), time.monotonic()
    known: dict[str, tuple[Job, object, float]] = {}
    for name, job in jobs(options.device).items():
        if (options.only and name not in options.only) or (name == AUTO and options.runs < AUTO_EVERY):
            continue
        folder = Path(tempfile.mkdtemp(prefix="beltrami-fault-"))
        prepare(job, folder)
        beginning = time.monotonic()
        if wait(start(job.arguments, folder)) != 0:
            raise SystemExit(f"{name}: the undisturbed run failed: {(folder / '.output').read_text()}")
        known[name] = (job, job.outcome(folder), time.monotonic() - beginning)
        shutil.rmtree(folder)
        print(f"{name}: {known[name][2]:.1f} s undisturbed", flush=True)
    short = [name for name in known if name != AUTO] or [AUTO]
    for number in range(options.runs):
        name = AUTO if AUTO in known and number % AUTO_EVERY == AUTO_EVERY - 1 else short[number % len(short)]
        counts.trials[name] += 1
        trial(name, *known[name], random_, counts)
    report = {
        "command": " ".join(("benchmarks/fault.py", *sys.argv[1:])),
        "device": options.device,
        "seed": options.seed,
        "trials": dict(counts.trials),
        "faults": dict(counts.faults),
        "ended before the signal": counts.early,
        "findings": counts.findings,
        "seconds": time.monotonic() - begin,
    }
    print(json.dumps(report, indent=2))
    if options.out is not None:
        with options.out.open("a") as file:
            file.write(json.dumps(report) + "\n")
    sys.exit(1 if counts.findings else 0)


if __name__ == "__main__":
    main()
