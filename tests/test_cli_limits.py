"""The command line refuses work that does not end or does not fit, in one line and at once."""

from pathlib import Path

import pytest
from shell import Beltrami

from beltrami.config import cost_check

PASSES = ("train.consistency.kind=squared", "train.consistency.weight=1", "train.consistency.passes=10000000")
RK4 = ("scheme.kind=constant", "scheme.solver=rk4", "scheme.dt=1e-9")
DOPRI5 = ("scheme.kind=adaptive", "scheme.solver=dopri5", "scheme.rtol=0", "scheme.atol=1e-14")


def check_refused(outcome_of: Beltrami, *arguments: str, match: str) -> None:
    outcome = outcome_of(*arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.count("\n") == 1
    assert match in outcome.err


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        (("scheme.time=1e9",), "takes too many steps"),
        (RK4, "takes too many steps"),
        (DOPRI5, "less than float32 resolves"),
        (("model.feat=2000000000",), "for the weights"),
        (PASSES, "for a training step"),
    ],
    ids=lambda value: "" if isinstance(value, str) else value[-1],
)
def test_train_refuses_too_much_work(beltrami: Beltrami, settings: tuple[str, ...], match: str) -> None:
    arguments = [word for setting in settings for word in ("--set", setting)]
    check_refused(beltrami, "train", "digits", *arguments, match=match)
    assert not Path("runs").exists() or not list(Path("runs").rglob("*.*"))


@pytest.mark.parametrize("time", ["1e9", "1e300"])
def test_encode_and_denoise_refuse_long_times(beltrami: Beltrami, time: str, tmp_path: Path) -> None:
    arguments = ("encode", "digits", "--encoding", "heat", "--set", f"position.time={time}", "--out", "u.safetensors")
    check_refused(beltrami, *arguments, match="the heat kernel at `position.time`")
    image = pytest.importorskip("PIL.Image")
    image.new("L", (8, 8), 100).save(tmp_path / "in.png")
    for scheme in ("explicit", "implicit"):
        check_refused(
            beltrami, "denoise", "in.png", "out.png", "--time", time, "--scheme", scheme, match="metrics, and at"
        )
    assert not Path("u.safetensors").exists()
    assert not Path("out.png").exists()


def test_encode_and_rewire_refuse_what_does_not_fit(beltrami: Beltrami, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost_check, "free_memory", lambda: 2**20)
    encode = ("encode", "digits", "--encoding", "deepwalk", "--out", "u.safetensors")
    check_refused(beltrami, *encode, match="for 1797 nodes, and 1 MiB are free: choose fewer channels")
    rewire = ("rewire", "digits", "--stencil", "complete", "--out", "e.safetensors")
    check_refused(beltrami, *rewire, match="`stencil.kind=complete` makes 3.23e+06 edges, which need about 185 MiB")
