"""Compiled functions compute what they say, with a place for their code on disk or without."""

from typing import Any

import pytest

numba = pytest.importorskip("numba")

from beltrami.graph.jit import compiled  # noqa: E402


def total(count: int) -> int:
    out = 0
    for k in range(count):
        out += k
    return out


def test_compiled_is_the_function() -> None:
    assert compiled(total)(10) == 45


def test_without_a_place_for_the_cache_it_is_compiled_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, asked = numba.njit, []

    def njit(*args: Any, cache: bool = False, **options: Any) -> Any:
        asked.append(cache)
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return whole(*args, **options)

    monkeypatch.setattr(numba, "njit", njit)
    assert compiled(total)(10) == 45
    assert asked == [True, False]
