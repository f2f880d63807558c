"""beltrami study: killed and resumed it gives the same table, and bad usage is one line."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from beltrami.cli import main
from beltrami.cli.study_tune import NAMES
from beltrami.data import Availability
from beltrami.lab.executor import Finished, JobReport, Local, OnEpoch, Worker
from beltrami.lab.study.planning import Sampling
from beltrami.lab.study.record import Record, RecordLog, read_records
from beltrami.lab.study.studies import STUDIES
from beltrami.lab.study.summary import tabulate

SHORT = ["train.epochs=2", "scheme.kind=constant", "scheme.solver=rk4", "scheme.dt=1", "scheme.time=2", "model.feat=8"]
TINY = ["random", "--datasets", "digits", "--methods", "blend,uniform", "--splits", "2"]
TINY += [word for setting in SHORT for word in ("--set", setting)]


def beltrami(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """The exit code of a study in this process."""
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.delenv("BELTRAMI_TRACEBACK", raising=False)
    monkeypatch.setattr(sys, "argv", ["beltrami", "study", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


def untimed(records: list[Record]) -> list[dict[str, Any]]:
    """Return records without times, in a fixed order."""
    values = [json.loads(record.to_json()) for record in records]
    for value in values:
        if value["result"]:
            del value["result"]["train_seconds"]
    return sorted(values, key=lambda value: (value["method"], value["key"]))


@pytest.mark.slow
def test_a_study_killed_and_resumed_gives_the_same_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    killed = tmp_path / "killed" / "random.jsonl"
    command = [sys.executable, "-m", "beltrami", "study", *TINY, "--out", str(killed.parent)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(6000):
        if killed.exists() and killed.read_bytes().count(b"\n") >= 1:
            break
        assert process.poll() is None
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    before = len(read_records(killed))
    assert 1 <= before < 4
    with killed.open("ab") as file:
        file.write(read_records(killed)[0].to_json()[:100].encode())  # as if it had been killed while writing

    assert beltrami(monkeypatch, *TINY, "--out", str(killed.parent)) == 2
    assert "is not empty: go on with it by `--resume`" in capsys.readouterr().err
    assert beltrami(monkeypatch, *TINY, "--out", str(killed.parent), "--resume") == 0
    resumed = capsys.readouterr()
    assert len(re.findall(r"^\d/\d ", resumed.err, flags=re.MULTILINE)) == 4 - before

    whole = tmp_path / "whole" / "random.jsonl"
    assert beltrami(monkeypatch, *TINY, "--out", str(whole.parent)) == 0
    undisturbed = capsys.readouterr()
    assert untimed(read_records(killed)) == untimed(read_records(whole))
    assert len(read_records(whole)) == 4
    study = STUDIES["random"]
    assert [table.cells for table in tabulate(study, read_records(killed))] == [
        table.cells for table in tabulate(study, read_records(whole))
    ]
    assert resumed.out.replace(str(killed), str(whole)) == undisturbed.out

    assert beltrami(monkeypatch, *TINY, "--out", str(whole.parent), "--resume") == 0  # nothing is left to do
    assert capsys.readouterr().out == undisturbed.out
    assert beltrami(monkeypatch, "random", "--show", "--out", str(whole.parent)) == 0
    assert capsys.readouterr().out == undisturbed.out
    assert len(read_records(whole)) == 4


@pytest.mark.slow
def test_an_interrupted_study_says_how_to_continue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    append = RecordLog.append

    def interrupted(self: RecordLog, record: Record) -> None:
        if self.records:
            raise KeyboardInterrupt
        append(self, record)

    with monkeypatch.context() as patch:
        patch.setattr(RecordLog, "append", interrupted)
        assert beltrami(monkeypatch, *TINY, "--out", str(tmp_path)) == 130
    captured = capsys.readouterr()
    assert captured.out == ""
    last = captured.err.splitlines()[-1]
    assert last.startswith(
        f"beltrami: interrupted with 1 of 4 runs in {tmp_path / 'random.jsonl'}: go on with `beltrami"
    )
    assert last.endswith("--resume`.")
    assert beltrami(monkeypatch, *TINY, "--out", str(tmp_path), "--resume", "--together", "2") == 0
    assert len(read_records(tmp_path / "random.jsonl")) == 4
    assert "n = 2" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (["randm"], r"unknown study 'randm': did you mean 'random'\?"),
        (["random", "--datasets", "digitz"], r"unknown dataset 'digitz': did you mean 'digits'\?"),
        (["random", "--datasets", "digits", "--methods", "blended"], r"unknown method .* did you mean 'blend'\?"),
        (["random", "--splits", "0"], r"`splits` and `inits` of at least 1; got 0"),
        (["planetoid", "--splits", "2"], r"has one split; got `splits` 2"),
        (["random", "--datasets", "digits", "--set", "train.epoch=1"], r"unknown setting 'train.epoch'"),
        (["random", "--datasets", "digits", "--together", "0"], r"`--together` needs at least 1; got 0"),
        (["random", "--show"], r"there are no results at "),
        (["random", "--device", "tpu"], r"`--device` takes cpu, cuda or cuda:N; got 'tpu'"),
        (
            ["random", "--address", "local", "--device", "cuda:1"],
            r"`--device` of a batch is cpu or cuda, and Ray chooses",
        ),
        (["random", "--gpus-per-batch", "0.5"], r"`--gpus-per-batch 0.5` and `--device cpu` contradict each other"),
        (["random", "--cpus-per-batch", "0"], r"a batch needs `--cpus-per-batch` above 0"),
        (["random", "--aids", "sme"], r"unknown training aid 'sme': did you mean 'same'\?"),
        (["random", "--datasets", "digits", "--methods", "blend", "--hours", "0"], r"`--hours` must be above 0; got 0"),
        (["random", "--set", "seed=3"], r"`--set seed=3`: the seeds of a study are those of its splits"),
        (["all", "--methods", "blend"], r"`beltrami study all` makes every study as it is: leave out `--methods`"),
        (["all", "--aids", "none"], r"`beltrami study all` makes every study as it is: leave out `--aids`"),
        (["all", "--datasets", "coar"], r"unknown dataset 'coar': did you mean 'cora'\?"),
        (["all", "--show"], r"leave out `--show`, or name a study"),
        (["random", "--datasets", "digits", "--processes", "0"], r"`--processes` needs at least 1; got 0"),
        (["random", "--processes", "2", "--address", "local"], r"Ray decides how many batches it runs at once"),
        (["runtime", "--processes", "2"], r"times are measured without other work on the machine: leave out"),
        (["runtime", "--address", "local"], r"times are measured without other work on the machine: leave out"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_usage_is_refused_in_one_line(
    arguments: list[str],
    match: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert beltrami(monkeypatch, *arguments, "--out", str(tmp_path / "out")) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert re.search(match, captured.err), captured.err


def test_without_a_name_the_studies_are_listed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert beltrami(monkeypatch) == 0
    out = capsys.readouterr().out
    assert [row.split()[0] for row in out.splitlines() if row[:1].strip()] == list(STUDIES)
    assert NAMES.replace(" or ", ", ").split(", ") == list(STUDIES)


@pytest.mark.slow
def test_all_studies_are_run_in_turn_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two small studies on the digits, one of which counts parameters; a second call finds nothing to do."""
    counted = replace(STUDIES["parameters"], methods=STUDIES["parameters"].methods[:2], datasets=("digits",))
    again = replace(counted, name="planetoid", sampling=Sampling("shchur", 21, 1))
    monkeypatch.setattr("beltrami.lab.study.studies.BY_IMPORTANCE", (counted, again))
    arguments = ["all", "--out", str(tmp_path), "--hours", "1"]
    assert beltrami(monkeypatch, *arguments) == 0
    captured = capsys.readouterr()
    assert "parameters: 2 of 2 runs" in captured.out
    assert "planetoid: 42 of 42 runs" in captured.out
    assert "every study is complete" in captured.out
    seeds = [record.split_seed for record in read_records(tmp_path / "planetoid.jsonl")]
    assert max(seeds[:40]) == 19  # every cell has its first splits before any gets more
    assert sorted(seeds) == sorted(2 * list(range(21)))
    assert beltrami(monkeypatch, *arguments) == 2
    assert "is not empty: go on with it by `--resume`" in capsys.readouterr().err
    assert beltrami(monkeypatch, *arguments, "--resume") == 0
    assert len(read_records(tmp_path / "planetoid.jsonl")) == 42
    monkeypatch.setattr("beltrami.lab.study.time_limit.TimeLimit.allows", lambda *_: False)
    assert beltrami(monkeypatch, "all", "--out", str(tmp_path / "late"), "--hours", "1") == 0
    captured = capsys.readouterr()
    assert "44 runs are left: `beltrami study all --out" in captured.out
    assert "parameters: the time left is too short for 2 runs" in captured.err


def test_all_studies_need_a_dataset_on_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("beltrami.data.available", lambda name: Availability.DOWNLOAD)
    assert beltrami(monkeypatch, "all", "--out", str(tmp_path)) == 1
    assert "no dataset of a study is on this machine" in capsys.readouterr().err


@pytest.mark.slow
def test_cells_of_other_settings_are_left_out_of_all_studies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    counted = replace(STUDIES["parameters"], methods=STUDIES["parameters"].methods[:2], datasets=("digits",))
    monkeypatch.setattr("beltrami.lab.study.studies.BY_IMPORTANCE", (counted,))
    one = ["parameters", "--datasets", "digits", "--methods", "gcn", "--set", "model.width=8", "--out", str(tmp_path)]
    assert beltrami(monkeypatch, *one) == 0
    assert beltrami(monkeypatch, "all", "--out", str(tmp_path), "--resume") == 0
    captured = capsys.readouterr()
    assert "parameters: gcn on digits has records of other settings and is left out." in captured.err
    assert "parameters: 1 of 2 runs" in captured.out


def test_ray_is_needed_only_for_a_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    count = ["parameters", "--datasets", "digits", "--methods", "blend", "--out", str(tmp_path)]
    assert beltrami(monkeypatch, *count, "--address", "local") == 2
    assert re.fullmatch(
        r"beltrami: `beltrami study --address` needs Ray \(.*\): `pip install 'beltrami\[tune\]'`\.\n",
        capsys.readouterr().err,
    )
    assert beltrami(monkeypatch, *count) == 0
    assert len(read_records(tmp_path / "parameters.jsonl")) == 1


class InterruptedWorker:
    """A worker of a study that is interrupted in its third job."""

    def __init__(self, worker: Worker) -> None:
        self.worker, self.jobs = worker, 0

    def run(self, job: Any, on_epoch: OnEpoch) -> Generator[JobReport | Finished, None, None]:
        self.jobs += 1
        if self.jobs == 3:
            raise KeyboardInterrupt
        yield from self.worker.run(job, on_epoch)


@pytest.mark.slow
def test_a_study_on_a_cluster_is_interrupted_and_continues_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runs, path = 4, tmp_path / "random.jsonl"
    arguments = ["random", "--datasets", "digits", "--methods", "blend", "--splits", str(runs), "--out", str(tmp_path)]
    arguments += [word for setting in SHORT for word in ("--set", setting)]
    with monkeypatch.context() as patch:  # tests/test_cli_tune.py interrupts jobs of a real cluster
        patch.setattr(
            "beltrami.cli.study_run.ray_executor", lambda verb, worker, *_, **__: Local(InterruptedWorker(worker))
        )
        assert beltrami(patch, *arguments, "--together", "1", "--address", "local") == 130
    captured = capsys.readouterr()
    assert captured.out == ""
    before = len(read_records(path))
    *told, last = captured.err.splitlines()
    ended = rf"\d+/{runs} blend on digits, split \d+, seed \d+: test "
    assert all(re.match(rf"({ended}|random: \d+/{runs} )", line) for line in told), captured.err
    assert last.startswith(f"beltrami: interrupted with {before} of {runs} runs in {path}: go on with ")
    assert last.endswith("--address local --resume`.")
    assert before == 2

    assert beltrami(monkeypatch, *arguments, "--resume") == 0
    assert f"n = {runs}" in capsys.readouterr().out
    records = read_records(path)
    assert sorted(record.split_seed for record in records) == list(range(runs))
    assert beltrami(monkeypatch, *arguments, "--resume", "--address", "local") == 0  # nothing is left: no Ray either
    assert read_records(path) == records
