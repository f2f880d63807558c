"""The file of a study: nothing that was written is lost or counted twice, and one process at a time writes."""

from pathlib import Path

import pytest
from study_lines import line

from beltrami.errors import DataError
from beltrami.lab.study import Record, RecordLog, read_folder, read_lines
from beltrami.lab.study.record import latest


def written(path: Path, *lines: Record) -> Path:
    with RecordLog(path, resume=True) as ledger:
        for each in lines:
            ledger.append(each)
    return path


def test_lines_come_back_as_they_were(tmp_path: Path) -> None:
    lines = [line(seed=0, tried=12, also={"along": [[1.0, 80.5]]}), line("uniform", None, seed=1)]
    path = written(tmp_path / "deep" / "random.jsonl", *lines)
    assert read_lines(path) == lines
    assert path.read_text().count("\n") == 2


def test_a_line_is_on_the_disk_when_append_comes_back(tmp_path: Path) -> None:
    with RecordLog(tmp_path / "random.jsonl", resume=False) as ledger:
        ledger.append(line())
        assert read_lines(ledger.path) == [line()]


def test_a_line_that_an_interrupt_came_after_is_known_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(descriptor: int) -> None:
        raise KeyboardInterrupt

    with RecordLog(tmp_path / "random.jsonl", resume=False) as ledger:
        monkeypatch.setattr("beltrami.lab.study.record_log.os.fsync", interrupted)
        with pytest.raises(KeyboardInterrupt):
            ledger.append(line())
        assert ledger.lines == []
        ledger.read_again()
        assert ledger.lines == [line()]


def test_a_file_that_holds_lines_is_refused_without_resume(tmp_path: Path) -> None:
    path = written(tmp_path / "random.jsonl", line())
    with pytest.raises(ValueError, match=r"random.jsonl is not empty: go on with it by `--resume`"):
        RecordLog(path, resume=False)
    assert read_lines(path) == [line()]
    written(path)  # the refusal left no lock behind


@pytest.mark.parametrize("kept", [1, 20, -1], ids=["one byte", "some bytes", "all but the line's end"])
def test_a_torn_last_line_is_dropped(tmp_path: Path, kept: int) -> None:
    path = written(tmp_path / "random.jsonl", line(seed=0), line(seed=1))
    whole = path.read_bytes()
    torn = line(seed=2).to_json().encode() + b"\n"
    path.write_bytes(whole + torn[:kept])
    with RecordLog(path, resume=True) as ledger:
        assert [each.seed for each in ledger.lines] == [0, 1]
        ledger.append(line(seed=2))
    assert path.read_bytes() == whole + torn


def test_a_file_of_nothing_but_a_torn_line_is_emptied(tmp_path: Path) -> None:
    path = tmp_path / "random.jsonl"
    path.write_bytes(b'{"study": "ran\0\0\0')
    with RecordLog(path, resume=True) as ledger:
        assert ledger.lines == []
    assert path.read_bytes() == b""


def test_a_foreign_line_is_refused_by_its_number(tmp_path: Path) -> None:
    path = written(tmp_path / "random.jsonl", line())
    for text, why in (("{}", "missing or foreign"), ("7", "no object"), ("nonsense", "Expecting value")):
        path.write_text(f"{line().to_json()}\n{text}\n")
        with pytest.raises(DataError, match=rf"line 2 of .*random.jsonl is no line of a study \(.*{why}"):
            read_lines(path)
    path.write_text(line().to_json().replace('"settings": {}', '"settings": 3') + "\n")
    with pytest.raises(DataError, match=r"a value is of another type"):
        read_lines(path)


def test_two_studies_do_not_write_to_one_file(tmp_path: Path) -> None:
    with (
        RecordLog(tmp_path / "random.jsonl", resume=True),
        pytest.raises(DataError, match=r"another study is writing to .*random.jsonl"),
    ):
        RecordLog(tmp_path / "random.jsonl", resume=True)
    RecordLog(tmp_path / "random.jsonl", resume=True).__exit__(None, None, None)


def test_a_run_counts_once_by_its_last_line(tmp_path: Path) -> None:
    failed, done, other = line(accuracy=None), line(accuracy=81.0), line("uniform", None)
    path = written(tmp_path / "random.jsonl", failed, other, done)
    with RecordLog(path, resume=True) as ledger:
        assert ledger.runs() == [done, other]
        assert ledger.done() == {done.identity}
    assert latest([done, done]) == [done]


def test_a_folder_is_read_by_studies(tmp_path: Path) -> None:
    written(tmp_path / "random.jsonl", line())
    (tmp_path / "notes.txt").write_text("not a study")
    assert read_folder(tmp_path) == {"random": [line()]}
    assert read_lines(tmp_path / "none.jsonl") == []


def test_numbers_are_found_by_their_dotted_names() -> None:
    found = line(also={"evaluations": {"forward": 7}, "along": [[1.0, 2.0]]})
    assert found.number("test_accuracy") == 80.0
    assert found.number("evaluations.forward") == 7.0
    assert found.number("evaluations.backward") is None
    assert found.number("along") is None
    assert line(accuracy=None).number("test_accuracy") is None


def test_a_full_disk_is_said_to_be_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with RecordLog(tmp_path / "random.jsonl", resume=True) as ledger:
        ledger.append(line(seed=0))

        class Full:
            def write(self, text: bytes) -> int:
                return len(text) - 1

        with monkeypatch.context() as patch:
            patch.setattr(ledger, "_file", Full())
            with pytest.raises(OSError, match=r"the disk of .*random.jsonl is full: make room, and go on with"):
                ledger.append(line(seed=1))
        assert ledger.lines == [line(seed=0)]
