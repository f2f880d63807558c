"""The file of a study loses and repeats nothing, and one process at a time writes to it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from study_records import a_record

from beltrami.errors import DataError
from beltrami.lab.study.planning import plan
from beltrami.lab.study.record import Record, RecordLog, latest, read_folder, read_records
from beltrami.lab.study.studies import STUDIES
from beltrami.lab.study.work import Outcome

FIRST_RELEASE_GCN = {
    "model.dropout": 0.8,
    "model.input_dropout": 0.8,
    "model.kind": "gcn",
    "scheme.solver": "rk4",
    "scheme.time": 1.0,
    "scheme.dt": 0.25,
    "train.epochs": 300,
    "train.time_multiple": 1.0,
    "train.look_every": 1,
}
"""Settings of recipe ``gcn`` on Cora as a record of the first release holds them."""


def written(path: Path, *records: Record) -> Path:
    with RecordLog(path, resume=True) as log:
        for each in records:
            log.append(each)
    return path


def test_records_are_read_as_they_were_written(tmp_path: Path) -> None:
    records = [a_record(seed=0, tried=12, extra={"along": [[1.0, 80.5]]}), a_record("uniform", None, seed=1)]
    path = written(tmp_path / "deep" / "random.jsonl", *records)
    assert read_records(path) == records
    assert path.read_text().count("\n") == 2


def test_a_record_is_on_the_disk_when_append_returns(tmp_path: Path) -> None:
    with RecordLog(tmp_path / "random.jsonl", resume=False) as log:
        log.append(a_record())
        assert read_records(log.path) == [a_record()]


def test_a_record_written_before_an_interrupt_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(descriptor: int) -> None:
        raise KeyboardInterrupt

    with RecordLog(tmp_path / "random.jsonl", resume=False) as log:
        monkeypatch.setattr("beltrami.lab.study.record.os.fsync", interrupted)
        with pytest.raises(KeyboardInterrupt):
            log.append(a_record())
        assert log.records == []
        log.reread()
        assert log.records == [a_record()]


def test_a_file_with_records_is_refused_without_resume(tmp_path: Path) -> None:
    path = written(tmp_path / "random.jsonl", a_record())
    with pytest.raises(ValueError, match=r"random.jsonl is not empty: go on with it by `--resume`"):
        RecordLog(path, resume=False)
    assert read_records(path) == [a_record()]
    written(path)  # the refusal left no lock behind


@pytest.mark.parametrize("kept", [1, 20, -1], ids=["one byte", "some bytes", "all but the newline"])
def test_an_incomplete_last_line_is_dropped(tmp_path: Path, kept: int) -> None:
    path = written(tmp_path / "random.jsonl", a_record(seed=0), a_record(seed=1))
    whole = path.read_bytes()
    torn = a_record(seed=2).to_json().encode() + b"\n"
    path.write_bytes(whole + torn[:kept])
    with RecordLog(path, resume=True) as log:
        assert [each.seed for each in log.records] == [0, 1]
        log.append(a_record(seed=2))
    assert path.read_bytes() == whole + torn


def test_a_file_with_only_an_incomplete_line_is_emptied(tmp_path: Path) -> None:
    path = tmp_path / "random.jsonl"
    path.write_bytes(b'{"study": "ran\0\0\0')
    with RecordLog(path, resume=True) as log:
        assert log.records == []
    assert path.read_bytes() == b""


def test_a_line_that_is_not_a_record_is_refused_by_its_number(tmp_path: Path) -> None:
    path = written(tmp_path / "random.jsonl", a_record())
    good = a_record().to_json()
    for text, why in (
        ("{}", "study"),
        ("7", "a record is a JSON object; got 7"),
        ("nonsense", "Expecting value"),
        (good.replace('"schema": 2', '"schema": 3'), "schema 3 is unknown; this version reads up to 2"),
        (good.replace('"settings": {}', '"settings": 3'), "settings. takes dict; got 3"),
        (good.replace('"study"', '"stdy"'), "stdy"),
    ):
        path.write_text(f"{good}\n{text}\n")
        with pytest.raises(DataError, match=rf"line 2 of .*random.jsonl is not a record of a study \(.*{why}"):
            read_records(path)


def test_a_line_of_the_first_release_is_read(tmp_path: Path) -> None:
    own = [
        "model.dropout=0.8",
        "model.input_dropout=0.8",
        "model.width=64",
        "train.lr=0.01",
        "train.weight_decay=0.005",
    ]
    (run,) = plan(STUDIES["random"], datasets=["cora"], methods=["gcn"], splits=1, inits=1, settings=own)
    result = {"recipe": "gcn", "test_accuracy": 80.5, "split": {"hash": "0" * 16}, "device": "cpu"}
    record = run.record(Outcome(result, {"along": [[1.0, 80.5]]}))
    values = json.loads(record.to_json())
    del values["schema"]
    values["row"], values["also"] = values.pop("method"), values.pop("extra")
    values |= {"settings": FIRST_RELEASE_GCN, "key": "0" * 16, "setup": "0" * 16}
    path = tmp_path / "random.jsonl"
    path.write_text(json.dumps(values) + "\n")
    assert read_records(path) == [record]
    count = {**values, "result": None, "study": "parameters"}  # which says its recipe by its method alone
    path.write_text(json.dumps(count) + "\n")
    assert read_records(path) == [replace(record, result=None, study="parameters")]


def test_two_processes_do_not_write_to_one_file(tmp_path: Path) -> None:
    with (
        RecordLog(tmp_path / "random.jsonl", resume=True),
        pytest.raises(DataError, match=r"another process is writing to .*random.jsonl"),
    ):
        RecordLog(tmp_path / "random.jsonl", resume=True)
    RecordLog(tmp_path / "random.jsonl", resume=True).__exit__(None, None, None)


def test_a_run_counts_once_by_its_last_line(tmp_path: Path) -> None:
    failed, done, other = a_record(accuracy=None), a_record(accuracy=81.0), a_record("uniform", None)
    path = written(tmp_path / "random.jsonl", failed, other, done)
    with RecordLog(path, resume=True) as log:
        assert latest(log.records) == [done, other]
        assert log.done() == {done.identity}
    assert latest([done, done]) == [done]


def test_a_folder_is_read_by_studies(tmp_path: Path) -> None:
    written(tmp_path / "random.jsonl", a_record())
    (tmp_path / "notes.txt").write_text("not a study")
    assert read_folder(tmp_path) == {"random": [a_record()]}
    assert read_records(tmp_path / "none.jsonl") == []


def test_numbers_are_found_by_their_dotted_names() -> None:
    found = a_record(extra={"evaluations": {"forward": 7}, "along": [[1.0, 2.0]]})
    assert found.number("test_accuracy") == 80.0
    assert found.number("evaluations.forward") == 7.0
    assert found.number("evaluations.backward") is None
    assert found.number("along") is None
    assert a_record(accuracy=None).number("test_accuracy") is None


def test_a_full_disk_is_an_error_that_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with RecordLog(tmp_path / "random.jsonl", resume=True) as log:
        log.append(a_record(seed=0))

        class Full:
            def write(self, text: bytes) -> int:
                return len(text) - 1

        with monkeypatch.context() as patch:
            patch.setattr(log, "_file", Full())
            with pytest.raises(OSError, match=r"the disk of .*random.jsonl is full: make room, and go on with"):
                log.append(a_record(seed=1))
        assert log.records == [a_record(seed=0)]


@pytest.mark.parametrize("change", [{"result": {}}, {"result": {"split": 1.5, "device": "cpu"}}, {"result": ["a"]}])
def test_a_result_without_the_digest_of_its_split_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    line = json.dumps(json.loads(a_record(seed=0).to_json()) | change)
    (tmp_path / "random.jsonl").write_text(f"{line}\n")
    with pytest.raises(DataError, match=r"line 1 of .* is not a record of a study \(`result"):
        read_records(tmp_path / "random.jsonl")


def test_a_line_of_the_first_release_without_a_dataset_is_refused(tmp_path: Path) -> None:
    (tmp_path / "random.jsonl").write_text(json.dumps({"result": {"recipe": "gcn"}, "settings": {}}) + "\n")
    with pytest.raises(DataError, match=r"line 1 of .* is not a record"):
        read_records(tmp_path / "random.jsonl")
