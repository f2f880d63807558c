"""Line: what one run of a study left behind."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any


@dataclass(frozen=True)
class Record:
    """One run: which it was, and what it found or why it found nothing.

    Args:
        study: the study's name.
        row: the method's.
        dataset: the dataset's.
        split_seed: which split.
        seed: of weights and dropout.
        key: the digest of the whole configuration.
        setup: the digest of the configuration without its seeds.
        settings: every setting that is not its default.
        tried: how many configurations were tried on validation for the recipe; None where nobody counted.
        result: the fields of a :class:`RunResult`; None where nothing was trained.
        also: what else was measured.
        error: why there is no result; None where there is one.
    """

    study: str
    row: str
    dataset: str
    split_seed: int
    seed: int
    key: str
    setup: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    tried: int | None = None
    result: Mapping[str, Any] | None = None
    also: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None

    @property
    def identity(self) -> tuple[str, str]:
        """Which run of the study it is."""
        return self.row, self.key

    @property
    def split(self) -> str:
        """The split's hash, or its seed where nothing was trained."""
        return str(self.split_seed) if self.result is None else str(self.result["split"]["hash"])

    @property
    def device(self) -> str | None:
        """Where it was trained; None where nothing was."""
        return None if self.result is None else str(self.result["device"])

    def number(self, name: str) -> float | None:
        """A number by its dotted name, of the result or of what else was measured; None where there is none."""
        found: Any = {**(self.result or {}), **self.also}
        for part in name.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
        return float(found) if isinstance(found, (int, float)) else None

    def to_json(self) -> str:
        """One line of text, without its end."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @staticmethod
    def parse(text: str) -> "Record":
        """A line back from its text; a ValueError says what it lacks."""
        values = json.loads(text)
        names = {each.name for each in fields(Record)}
        if not isinstance(values, dict) or set(values) != names:
            odd = ", ".join(sorted(names ^ set(values))) if isinstance(values, dict) else "no object"
            raise ValueError(f"missing or foreign: {odd}")
        line = Record(**values)
        groups = (line.settings, line.also, {} if line.result is None else line.result)
        words = (line.study, line.row, line.dataset, line.key, line.setup)
        if not all(isinstance(each, dict) for each in groups) or not all(isinstance(word, str) for word in words):
            raise ValueError("a value is of another type")
        return line


def latest(lines: Iterable[Record]) -> list[Record]:
    """Each run once, by the last line it left: a run that failed may have been tried again."""
    return list({line.identity: line for line in lines}.values())
