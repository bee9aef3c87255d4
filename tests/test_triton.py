"""Kernels that Triton printed, with the launches beside them: whether their data races are found, and whether they are
free of races as they are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ptxmm.analysis.races import races
from ptxmm.formats import read
from tests.support import ROOT, model_named

TRITON = ROOT / "tests" / "modules" / "triton"
LAUNCHED = sorted(path.stem for path in TRITON.glob("*.toml"))
BARRIER = re.compile(r"^\tbar\.sync .*\n", re.MULTILINE)
BARRIERS = [
    *(("softmax.sm_90", number) for number in range(3)),
    *(("matmul.sm_90", number) for number in range(2)),
    *(pytest.param("matmul.sm_90", number, marks=pytest.mark.slow) for number in range(2, 4)),
]


@pytest.mark.parametrize("name", LAUNCHED)
def test_as_printed(name: str) -> None:
    (test,) = read(TRITON / f"{name}.ptx")
    found = races(test, model_named("ptx-8.5"))
    assert (found.race_free, found.status) == (True, "complete")


@pytest.mark.parametrize("name,number", BARRIERS)
def test_without_a_barrier(name: str, number: int, tmp_path: Path) -> None:
    text = (TRITON / f"{name}.ptx").read_text(encoding="utf-8")
    barrier = list(BARRIER.finditer(text))[number]
    (tmp_path / "kernel.ptx").write_text(text[: barrier.start()] + text[barrier.end() :], encoding="utf-8")
    (tmp_path / "kernel.toml").write_text((TRITON / f"{name}.toml").read_text(encoding="utf-8"), encoding="utf-8")
    (test,) = read(tmp_path / "kernel.ptx")
    found = races(test, model_named("ptx-8.5"))
    assert found.races and not found.race_free


def test_lanes_that_store_the_same_value_race(tmp_path: Path) -> None:
    """Every lane of a warp stores the maximum of the warp, without a predicate: by the letter (8.7.1) a data race."""
    launch = (TRITON / "softmax.sm_90.toml").read_text(encoding="utf-8")
    (tmp_path / "lanes.toml").write_text(launch.replace('"lane 0"', '"cta 0 warp 0 lane 0-1"'), encoding="utf-8")
    (test,) = read(TRITON / "softmax.sm_90.ptx", launch=str(tmp_path / "lanes.toml"))
    found = races(test, model_named("ptx-8.5"))
    assert {race.first.line for race in found.races} == {race.second.line for race in found.races} == {105, 173}
