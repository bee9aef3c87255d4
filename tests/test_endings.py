"""Loops of kernels that only compute: which of them are known to end, and what is said of others."""

from __future__ import annotations

import time

import pytest

from ptxmm.analysis.kernel import decide
from ptxmm.analysis.progress import progress
from ptxmm.engines.result import Limits
from ptxmm.program.test import Test
from tests.kernels import launched
from tests.support import model_named


def kernel(body: str) -> Test:
    """Thread 1 goes through ``body``, and then meets thread 0."""
    before = "mov.u32 %r1, %tid.x; mov.u32 %r5, 0; setp.eq.u32 %p1, %r1, 0; ld.global.u32 %r2, [%rd1]; @%p1 bra E;"
    objects = {"x": '"u32"', "y": '{ type = "u32", init = 3 }'}
    behind = "E: barrier.sync 0; @%p1 st.global.u32 [%rd0], 1;"
    (test,) = launched(f"{before} {body} {behind}", objects, 'barriers = "convergent"', launch="block = 2")
    return test


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        # Whatever memory holds.
        ("L: sub.u32 %r2, %r2, 1; setp.ne.u32 %p2, %r2, 0; @%p2 bra L;", "terminates"),
        ("L: add.s32 %r5, %r5, 1; setp.lt.s32 %p2, %r5, %r2; @%p2 bra L;", "terminates"),
        ("L: setp.gt.u32 %p2, %r2, %r5; @!%p2 bra E; add.u32 %r5, 1, %r5; bra L;", "terminates"),
        ("L: shr.u32 %r2, %r2, 1; setp.ne.u32 %p2, %r2, 0; @%p2 bra L;", "terminates"),
        ("mov.u64 %rd3, %clock64; L: mov.u64 %rd4, %clock64; sub.u64 %rd4, %rd4, %rd3; setp.lt.u64 %p2, %rd4, 9; "
         "@%p2 bra L;", "terminates"),
        # As the launch says.
        ("L: add.u32 %r5, %r5, 2; setp.ne.u32 %p2, %r5, 8; @%p2 bra L;", "terminates"),
        ("L: add.u32 %r5, %r5, 2; setp.ne.u32 %p2, %r5, 7; @%p2 bra L;", "unknown"),
        ("L: xor.b32 %r5, %r5, 1; setp.ne.u32 %p2, %r5, 7; @%p2 bra L;", "unknown"),
        # Of others nobody knows, as some of them go on for ever.
        ("L: sub.u32 %r2, %r2, 2; setp.ne.u32 %p2, %r2, 0; @%p2 bra L;", "unknown"),
        ("L: setp.eq.u32 %p2, %r2, 3; @%p2 bra L;", "unknown"),
        ("L: add.u32 %r5, %r5, 1; setp.le.u32 %p2, %r5, %r2; @%p2 bra L;", "unknown"),
        ("L: add.u32 %r5, %r5, 1; setp.ge.u32 %p2, %r5, %r2; @%p2 bra L;", "unknown"),
        ("L: add.u32 %r5, %r5, 1; and.b32 %r5, %r5, %r2; setp.lt.u32 %p2, %r5, 9; @%p2 bra L;", "unknown"),
        ("L: @%p3 sub.u32 %r2, %r2, 1; setp.ne.u32 %p2, %r2, 0; @%p2 bra L;", "unknown"),
        ("L: add.u32 %r2, %r2, 1; sub.u32 %r2, %r2, 1; setp.ne.u32 %p2, %r2, 0; @%p2 bra L;", "unknown"),
        ("L: add.u32 %r5, %r5, 1; shl.b32 %r2, %r2, 1; setp.lt.u32 %p2, %r5, %r2; @%p2 bra L;", "unknown"),
        ("L: shr.s32 %r2, %r2, 1; setp.ne.s32 %p2, %r2, 0; @%p2 bra L;", "unknown"),
        ("L: add.u32 %r5, %r5, 2; setp.eq.u32 %p2, %r5, %r2; @%p2 exit; bra L;", "unknown"),
    ],
)  # fmt: skip
def test_loops_that_only_compute(body: str, verdict: str) -> None:
    test, model = kernel(body), model_named("ptx-8.5")
    found = progress(test, model, limits=Limits(deadline=time.monotonic() + 30))
    assert found.verdict == verdict, found.notes
    claim = decide(test, model, "convergent barriers", Limits(deadline=time.monotonic() + 30))
    assert claim.holds is (True if verdict == "terminates" else None), claim.notes
    if verdict == "unknown":
        assert any("loop" in note.text for note in (*found.notes, *claim.notes))
