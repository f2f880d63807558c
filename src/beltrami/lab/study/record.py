"""Records: what each run of a study or a search found, one JSON line per run in a file."""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from io import FileIO
from pathlib import Path
from typing import Any

from beltrami import file_limits as limits
from beltrami.arguments import AnyPath, checked
from beltrami.config.convert import convert
from beltrami.config.parser import departures, parse
from beltrami.config.recipe.recipes import RECIPES, search_count
from beltrami.config.spec import SCHEMA, RunConfig
from beltrami.errors import DataError

LENGTH = 16  # hexadecimal characters of a digest


def key_of(config: RunConfig) -> str:
    """Return the digest of a configuration, seeds included. Settings at their defaults are left out, so that a new
    setting does not change the keys of existing runs."""
    named = {"dataset": config.dataset, "recipe": config.recipe, **departures(config)}
    return hashlib.sha256(json.dumps(named, sort_keys=True).encode()).hexdigest()[:LENGTH]


def setup_of(config: RunConfig) -> str:
    """Return the digest of a configuration without its seeds: only runs that share it have a mean."""
    return key_of(replace(config, seed=0, data=replace(config.data, split_seed=0)))


@dataclass(frozen=True)
class Record:
    """One run of a study, or one trial of a search."""

    study: str  # name of the study
    method: str  # name of the method; the number of a trial
    dataset: str  # name of the dataset
    split_seed: int  # seed of the split
    seed: int  # seed of weights and dropout
    key: str  # digest of the configuration
    setup: str  # digest of the configuration without its seeds
    settings: dict[str, Any] = field(default_factory=dict)  # every setting that is not at its default
    tried: int | None = None  # how many configurations were tried on validation for the recipe; None if unknown
    result: dict[str, Any] | None = None  # fields of a :class:`RunResult`; None if nothing was trained
    extra: dict[str, Any] = field(default_factory=dict)  # what else was measured
    error: str | None = None  # why there is no result; None if there is one

    @property
    def identity(self) -> tuple[str, str]:
        """Which run of the study it is."""
        return self.method, self.key

    @property
    def split(self) -> str:
        """Digest of the split, or its seed if nothing was trained."""
        return str(self.split_seed) if self.result is None else str(self.result["split"]["hash"])

    @property
    def device(self) -> str | None:
        return None if self.result is None else str(self.result["device"])

    def number(self, name: str) -> float | None:
        """Return a number by its dotted name in the result or the extra values; None if there is none."""
        found: Any = {**(self.result or {}), **self.extra}
        for part in name.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
        return float(found) if isinstance(found, (int, float)) else None

    def to_json(self) -> str:
        """Return the record as one line, without a newline."""
        return json.dumps({"schema": SCHEMA, **asdict(self)}, ensure_ascii=False)

    @staticmethod
    def from_json(text: str) -> "Record":
        """Parse a line; a ValueError says what is wrong with it."""
        values = json.loads(text)
        if not isinstance(values, dict):
            raise ValueError(f"a record is a JSON object; got {values!r}.")
        schema = values.pop("schema", 1)
        if schema not in (1, SCHEMA):
            raise ValueError(f"schema {schema!r} is unknown; this version reads up to {SCHEMA}.")
        record = parse(Record, _from_first_release(values) if schema == 1 else values)
        if record.result is not None:
            split = record.result.get("split")
            if not isinstance(split, dict) or "hash" not in split or "device" not in record.result:
                raise ValueError("`result` has no `split.hash` or no `device`.")
        return record


def record_of(study: str, method: str, config: RunConfig) -> Record:
    """Return the record of a run that has neither a result nor an error."""
    data, keys = (config.dataset, config.data.split_seed, config.seed), (key_of(config), setup_of(config))
    return Record(study, method, *data, *keys, departures(config), search_count(config))


def _from_first_release(values: dict[str, Any]) -> dict[str, Any]:
    """Convert a record of the first release: two fields had other names, and settings and digests another form."""
    names = {"row": "method", "also": "extra"}
    values = {names.get(name, name): value for name, value in values.items()}
    result, settings = values.get("result"), values.get("settings")
    recipe = result.get("recipe") if isinstance(result, dict) else values.get("method")  # of counts, no recipe is known
    if settings and isinstance(settings, dict) and (isinstance(result, dict) or recipe in RECIPES):
        first = {"dataset": values.get("dataset"), "recipe": recipe, **settings}
        config = parse(RunConfig, convert(first))
        values |= {"settings": departures(config), "key": key_of(config), "setup": setup_of(config)}
    return values


def latest(records: Iterable[Record]) -> list[Record]:
    """Return each run once, by its last record: a run that failed may have been repeated."""
    return list({record.identity: record for record in records}.values())


class RecordLog(AbstractContextManager["RecordLog"]):
    """A file of records, locked for writing. A record is on the disk when :meth:`append` returns. A process that is
    killed while it writes leaves an incomplete last line, which is dropped when the file is next opened. A file that
    has records is refused unless ``resume``."""

    def __init__(self, path: Path, *, resume: bool) -> None:
        from fcntl import LOCK_EX, LOCK_NB, flock

        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = FileIO(path, "a+")
        try:
            flock(self._file.fileno(), LOCK_EX | LOCK_NB)
            if not resume and os.fstat(self._file.fileno()).st_size:
                raise ValueError(
                    f"the results file {path} is not empty: go on with it by `--resume`, or name another folder with "
                    "`--out`."
                )
            self.records: list[Record] = read_records(path)
            self._file.seek(0)
            self._file.truncate(self._file.read().rfind(b"\n") + 1)  # drops an incomplete line
            os.fsync(self._file.fileno())
            folder = os.open(path.parent, os.O_RDONLY)
            os.fsync(folder)  # puts the name of a new file on the disk too
            os.close(folder)
        except BlockingIOError:
            self._file.close()
            raise DataError(
                f"another process is writing to {path}: wait for it, or name another folder with `--out`."
            ) from None
        except BaseException:
            self._file.close()
            raise

    def append(self, record: Record) -> None:
        """Add a record, durably."""
        text = f"{record.to_json()}\n".encode()
        if self._file.write(text) != len(text):
            raise OSError(f"the disk of {self.path} is full: make room, and go on with `--resume`.")
        os.fsync(self._file.fileno())
        self.records.append(record)

    def reread(self) -> None:
        """Read the file again: an interrupt may come after a record is written and before it is in ``records``."""
        self.records = read_records(self.path)

    def done(self) -> set[tuple[str, str]]:
        """Return the identities of the runs that ended without an error."""
        return {record.identity for record in latest(self.records) if record.error is None}

    def __exit__(self, *_: object) -> None:
        self._file.close()  # which releases the lock


@checked
def read_records(path: AnyPath) -> list[Record]:
    """Read the complete lines of a file; no records if there is no file."""
    path = Path(path)
    content = limits.read_json(path) if path.exists() else b""
    records = []
    for number, text in enumerate(content.split(b"\n")[:-1], start=1):  # the rest is empty or incomplete
        try:
            records.append(Record.from_json(text.decode()))
        except (ValueError, RecursionError) as error:
            raise DataError(
                f"line {number} of {path} is not a record of a study ({error}): remove it, or choose another folder."
            ) from None
    return records


def read_folder(folder: Path) -> dict[str, Sequence[Record]]:
    """Read the records of every study in a folder, by the study's name."""
    return {path.stem: read_records(path) for path in sorted(folder.glob("*.jsonl"))}
