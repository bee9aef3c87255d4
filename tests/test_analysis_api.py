"""The public API, as the guide shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

import ptxmm

ROOT = Path(__file__).parents[1]


def test_every_public_name_is_there() -> None:
    for name in ptxmm.__all__:
        assert getattr(ptxmm, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = ptxmm.nothing


def test_check_from_python() -> None:
    (test,) = ptxmm.read(ROOT / "litmus" / "mp" / "MP+rel+acq.litmus")
    result = ptxmm.check(test, ptxmm.load_model("ptx-8.5"))
    assert (result.observation, result.holds, result.listed, result.conclusion) == ("never", False, True, "unchecked")
    assert [dict(o.registers) for o in result.outcomes] == [
        {"P1:r0": 0, "P1:r1": 0},
        {"P1:r0": 0, "P1:r1": 1},
        {"P1:r0": 1, "P1:r1": 1},
    ]
    with pytest.raises(ptxmm.PtxmmError, match="unknown engine 'z4'"):
        ptxmm.check(test, ptxmm.load_model("ptx-8.5"), engine="z4")
