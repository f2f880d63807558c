"""Try every reader with mutated files, and `train`'s check with random settings; record the answers.

python benchmarks/fuzz.py --inputs 10000 --settings 2000 --seed 0 --out results/fuzz.json

Right answers are a value, or an error of this library (DataError, ValueError, SolverError) of one sentence. All else is
a finding: it is printed with its number, by which `--repeat READER NUMBER` tries it again, and its files are kept in
the folder of `--keep`.
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fuzz_readers import READERS
from fuzz_settings import calls
from fuzz_worker import FINDINGS, Answer, Worker, answers, mutated_folder, try_file, workers
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as hypothesis_seed

from beltrami.result import versions

SETTINGS = "settings"


class Log:
    """Counts of answers by reader, the slowest, the largest memory, and the findings."""

    def __init__(self) -> None:
        self.counts: dict[str, Counter[str]] = defaultdict(Counter)
        self.slowest: dict[str, float] = defaultdict(float)
        self.peak: dict[str, float] = defaultdict(float)
        self.findings: list[dict[str, Any]] = []

    def add(self, name: str, what: Any, answer: Answer) -> None:
        self.counts[name][answer.kind] += 1
        self.slowest[name] = max(self.slowest[name], answer.seconds)
        self.peak[name] = max(self.peak[name], answer.peak / 2**30)
        if answer.kind in FINDINGS:
            self.findings.append({"reader": name, "input": what, **asdict(answer)})
            print(f"finding: {name} {what}: {answer.kind}: {answer.message}", file=sys.stderr)

    def record(self) -> dict[str, Any]:
        """Return everything as JSON takes it."""
        readers = {
            name: {
                "inputs": self.counts[name].total(),
                "answers": dict(sorted(self.counts[name].items())),
                "slowest_seconds": round(self.slowest[name], 3),
                "peak_gib": round(self.peak[name], 3),
            }
            for name in sorted(self.counts)
        }
        return {"readers": readers, "findings": self.findings}


def write_originals(folder: Path, names: list[str]) -> None:
    """Write the valid files of the readers, each into the folder of its name."""
    for name in names:
        (folder / name).mkdir(parents=True)
        READERS[name].write(folder / name)


def fuzz_files(inputs: int, *, seed: int, names: list[str], pool: list[Worker], originals: Path, log: Log) -> None:
    """Try mutated files, as many of each reader."""
    every = ((0, names[k % len(names)], seed * 10**9 + k // len(names), originals) for k in range(inputs))
    for (_, name, number, _), answer in answers(pool, every):
        log.add(name, number, answer)


def fuzz_settings(examples: int, *, seed: int, pool: list[Worker], log: Log) -> None:
    """Try random settings."""

    @hypothesis_seed(seed)
    @settings(
        max_examples=max(examples, 1),
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(calls())
    def one(call: tuple[str, str, list[str]]) -> None:
        pool[0].ask(1, *call)
        log.add(SETTINGS, call, pool[0].answer())

    if examples:
        one()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=10_000, help="mutated files, over all readers")
    parser.add_argument("--settings", type=int, default=2_000, help="random settings")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--reader", action="append", choices=sorted(READERS), help="try these readers alone")
    parser.add_argument("--repeat", nargs=2, metavar=("READER", "NUMBER"), help="try one input again, in this process")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-findings"), help="folder for the files of findings")
    parser.add_argument("--out", type=Path, help="the JSON file to write")
    options = parser.parse_args(arguments)
    names, log, start = options.reader or list(READERS), Log(), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        originals = Path(folder)
        if options.repeat:
            name, number = options.repeat[0], int(options.repeat[1])
            write_originals(originals, [name])
            print(try_file(name, number, originals))
            return 0
        write_originals(originals, names)
        warm_up = [(1, "blend", "cora", []), *((0, name, None, originals) for name in names)]
        with workers(options.workers, warm_up) as pool:
            for (_, name, *_), answer in answers(pool, [(0, name, None, originals) for name in names]):
                if answer.kind != "value":
                    raise SystemExit(f"the valid files of {name} are not read: {answer}")
            fuzz_files(options.inputs, seed=options.seed, names=names, pool=pool, originals=originals, log=log)
            fuzz_settings(options.settings, seed=options.seed, pool=pool, log=log)
        for finding in log.findings:
            if finding["reader"] in READERS:
                place = options.keep / f"{finding['reader']}-{finding['input']}"
                shutil.rmtree(place, ignore_errors=True)
                mutated_folder(finding["reader"], finding["input"], originals, place)
    asked = {"inputs": options.inputs, "settings": options.settings, "seed": options.seed}
    facts = {**asked, "seconds": round(time.perf_counter() - start, 1), "versions": versions(), **log.record()}
    if options.out:
        options.out.write_text(json.dumps(facts, indent=2) + "\n")
    print(json.dumps({name: entry["answers"] for name, entry in facts["readers"].items()}, indent=2))
    print(f"{len(log.findings)} findings")
    return 1 if log.findings else 0


if __name__ == "__main__":
    sys.exit(main())
