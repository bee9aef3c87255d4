"""Floating-point calculations that nothing sees: Z3 need not work them out, and what it finds stays the same."""

from __future__ import annotations

import time

import pytest

from ptxmm.analysis.outcomes import check
from ptxmm.analysis.races import races
from ptxmm.engines.result import Limits, Observed
from ptxmm.events.symbolic import build
from ptxmm.program.condition import MemoryTerm
from ptxmm.ptx.ops import Type
from tests.support import ask, model_named, parse_one

SUMS = """PTX sums
{{
  .global .f32 x[8] = {{1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0}};
  .global .f32 y = 0.0;
  .global .u32 flag = 0;
}}
P0 @ cta 0 {{
  mov.f32 s, 0f00000000;
{0}
  st.f32 [y], s;
  st.{order}.gpu.u32 [flag], 1;
}}
P1 @ cta 1 {{
  st.relaxed.gpu.f32 [x], 0f40A00000;
  st.relaxed.gpu.f32 [x+4], 0f40C00000;
  st.relaxed.gpu.f32 [x+8], 0f40E00000;
{more}  ld.acquire.gpu.u32 f, [flag];
  setp.eq.u32 p, f, 0;
  @p bra E;
  ld.f32 t, [y];
  E: mov.u32 g, f;
}}
exists (P1:g == 1)
"""
LOADS = [f"  ld.relaxed.gpu.f32 r{i}, [x+{4 * (i % 8)}];\n  add.f32 s, s, r{i};\n" for i in range(24)]
MORE = "".join(f"  st.relaxed.gpu.f32 [x+{4 * i}], 0f{0x40000000 + (1 << 23) * i:08X};\n" for i in range(3, 8))


@pytest.mark.parametrize(("order", "free"), [("release", True), ("relaxed", False)])
def test_sums_of_many_values_are_decided(order: str, free: bool) -> None:
    """The sum may have thousands of values, of which nothing sees any."""
    test = parse_one(SUMS.format("".join(LOADS), order=order, more=MORE))
    limits = Limits(deadline=time.monotonic() + 5)
    assert races(test, model_named("ptx-8.5"), limits=limits).race_free is free
    result = check(test, model_named("ptx-8.5"), limits=limits)
    assert (result.holds, result.status) == (True, "complete")


@pytest.mark.parametrize("most", [-1, 1000])
def test_what_is_asked_for_is_worked_out(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many calculations there are: the final value of the sum, if that is asked for."""
    monkeypatch.setattr(build, "_CALCULATIONS", most)
    test = parse_one(SUMS.format("".join(LOADS[:3]), order="release", more=""))
    what = Observed((), (MemoryTerm("y", 0, Type("f", 32)),))
    found = ask("solve", test, model_named("ptx-8.5"), observed=what)
    assert found.states == ask("enumerate", test, model_named("ptx-8.5"), observed=what).states
    assert len(found.states) == 4  # 1 or 5, 2 or 6, 3 or 7: the sums are 6, 10, 14 and 18
