"""What Ray is told and what it tells, without starting it."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from beltrami.lab.resources import Resources
from beltrami.lab.study import Record, RecordLog
from beltrami.lab.tune import Progress, Scheduler, search_for

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")]
SHORT = ["train.epochs=25", "scheme.kind=constant", "scheme.solver=rk4", "scheme.dt=1", "scheme.time=2", "model.feat=8"]
SEARCH = search_for("digits", "blend", splits=1, settings=SHORT)


class Nobody:
    def epoch(self, going: int, best: Record | None) -> None:
        pass

    def end(self, line: Record) -> None:
        pass


@pytest.fixture
def engine() -> Any:
    pytest.importorskip("ray.tune")
    from beltrami.lab.tune import ray_backend as engine

    return engine


def sent(engine: Any, monkeypatch: pytest.MonkeyPatch, settings: list[str]) -> list[dict[str, Any]]:
    """What a worker reports of trial 0."""
    messages: list[dict[str, Any]] = []
    monkeypatch.setattr(engine.tune, "report", messages.append)
    search = search_for("digits", "blend", splits=1, settings=[*SHORT, *settings])
    surroundings = Resources("trial", "cpu", cpus=1.0, gpus=0.0).surroundings()
    engine._trainable(search, search.halving.milestones(25), device="cpu", surroundings=surroundings)({"number": 0})
    return messages


def test_a_worker_reports_milestones_and_its_end(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    messages = sent(engine, monkeypatch, [])
    assert [len(message["by_epoch"]) for message in messages] == [10, 20, 25]
    assert [message["final"] is None for message in messages] == [True, True, False]


def test_a_worker_reports_its_error_in_words(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (message,) = sent(engine, monkeypatch, ["train.lr=1e20"])
    assert set(message) == {"error"}
    assert "Traceback" not in message["error"]


def test_the_clerk_decides_and_hears_of_every_end(engine: Any, tmp_path: Path) -> None:
    with RecordLog(tmp_path / "t.jsonl", resume=False) as ledger:
        clerk = Scheduler(SEARCH, ledger, Nobody())
        scheduler, listener = engine._Scheduler(clerk), engine._Listener(clerk)
        strong, weak, broken, dead = (SimpleNamespace(config={"number": number}) for number in range(4))
        for trial in (strong, weak, broken, dead):
            listener.on_trial_start(0, [], trial)

        def result(trial: Any, level: float, epochs: int, final: float | None = None) -> str:
            told = {"by_epoch": [level] * epochs, "seconds": 1.0, "final": final, "time_total_s": 3.0}
            return str(scheduler.on_trial_result(None, trial, told))

        assert result(strong, 90.0, 10) == "CONTINUE"
        assert result(weak, 80.0, 10) == "STOP"
        assert result(strong, 90.0, 25, final=91.0) == "CONTINUE"
        assert scheduler.on_trial_result(None, broken, {"error": "the loss became nan"}) == "CONTINUE"
        for trial in (weak, strong, broken):
            listener.on_trial_complete(0, [], trial)
        listener.on_trial_error(0, [], dead)
        found = {line.row: (line.number("validation"), line.also["stopped"], line.error) for line in ledger.lines}
        assert found == {
            "0": (91.0, False, None),
            "1": (80.0, True, None),
            "2": (None, False, "the loss became nan"),
            "3": (None, False, "the trial's process died: the machine may be short of memory"),
        }
        assert Progress((80.0,) * 10, 1.0).by_epoch == tuple(ledger.lines[0].also["by_epoch"])


def test_a_trial_gets_its_share_of_the_machine(engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}
    monkeypatch.setattr(engine.tune, "run", lambda trainable, **named: asked.update(named))
    share = Resources("trial", "cuda", cpus=2.0, gpus=0.25)
    with RecordLog(tmp_path / "t.jsonl", resume=False) as ledger:
        cluster = SimpleNamespace(share=share, folder=tmp_path / "scratch")
        engine.RayBackend(cluster).run([1, 3], Scheduler(SEARCH, ledger, Nobody()))
    assert asked["resources_per_trial"] == {"cpu": 2.0, "gpu": 0.25}
    assert asked["config"]["number"] == {"grid_search": [1, 3]}
    assert Path(asked["storage_path"]) == tmp_path / "scratch" / "tune"
