"""The public API, as the guide shows it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import ptxmm
import ptxmm.analysis.search as search_module
from ptxmm.analysis.outcomes import check_listed
from ptxmm.engines.result import Limits
from tests.benchmarks.programs import readers

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


@pytest.mark.parametrize("engine", ["z3", "enumerate", "both"])
def test_as_many_states_as_asked_for(engine: str) -> None:
    model = ptxmm.load_model("ptx-8.5")
    text = readers(2).ptx()
    (bare,) = ptxmm.parse(text)
    (test,) = ptxmm.parse(text + "exists (P0:r0 == 2 /\\ P0:r1 == 2 /\\ P1:r0 == 1 /\\ P1:r1 == 2)\n")
    every = ptxmm.check(test, model, engine=engine)
    assert (every.listed, every.holds, every.observation) == (True, True, "sometimes")
    some = ptxmm.check(bare, model, engine=engine, limits=Limits(states=3))
    assert (some.listed, len(some.outcomes), some.status) == (False, 3, "complete")
    listed = check_listed(test, model, 3, engine=engine)
    assert (listed.listed, listed.holds, listed.observation) == (False, True, "sometimes")
    assert len(listed.outcomes) == 3
    assert all(outcome in every.outcomes for outcome in listed.outcomes)
    assert any(outcome.satisfies for outcome in listed.outcomes)


@pytest.mark.parametrize("engine", ["z3", "enumerate"])
def test_a_list_that_is_cut_settles_nothing_it_does_not_show(engine: str) -> None:
    (test,) = ptxmm.parse(readers(2).ptx() + "exists (P0:r0 == 7)\n")
    model = ptxmm.load_model("ptx-8.5")
    cut = ptxmm.check(test, model, engine=engine, limits=Limits(states=2))
    assert (cut.holds, cut.observation, cut.listed) == (None, None, False)
    listed = check_listed(test, model, 2, engine=engine)
    assert (listed.holds, listed.observation, listed.listed) == (False, "never", False)


def test_states_that_there_is_no_time_to_confirm_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    (test,) = ptxmm.parse(readers(2).ptx() + "exists (P0:r0 == 1)\n")
    monkeypatch.setattr(search_module, "_LAST_STATES", -60.0)
    result = ptxmm.check(test, ptxmm.load_model("sc"), limits=Limits(deadline=time.monotonic() + 60))
    assert (result.status, result.outcomes, result.holds, result.listed) == ("timeout", (), None, False)


@pytest.mark.parametrize("engine", ["z3", "enumerate"])
def test_an_undefined_execution_has_no_flags(engine: str) -> None:
    text = """PTX t
{ .global .u32 x = 0; }
P0 @ cta 0 { st.global.u32 [x], 1; }
P1 @ cta 1 { st.global.u32 [2], 1; ld.global.u32 r1, [x]; }
exists (P1:r1 == 0)
"""
    (test,) = ptxmm.parse(text)
    result = ptxmm.check(test, ptxmm.load_model("ptx-8.5"), engine=engine)
    assert (result.status, result.flags) == ("undefined", ())
