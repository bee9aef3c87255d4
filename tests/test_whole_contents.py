"""What objects hold of which a launch says nothing, and whether an answer about a whole launch rests on that."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError
from ptxmm.formats.modules.read import kernels, parse_ptx
from ptxmm.whole.analysis import whole
from ptxmm.whole.result import WholeResult

KERNEL = """\
.version 8.5
.target sm_90
.address_size 64
// ptxmm: block = 64
// ptxmm: args = ["in", "out"]
// ptxmm: [objects]
// ptxmm: in = {{ type = "u32", count = 64{init} }}
// ptxmm: out = {{ type = "u32", count = 64 }}
// ptxmm: [check]
// ptxmm: races = "none"
.visible .entry k(.param .u64 a, .param .u64 b)
{{
    .reg .pred %p<4>;
    .reg .b32 %r<8>;
    .reg .b64 %d<8>;
    .shared .align 8 .b32 s[64];
    .shared .align 8 .b32 t[64];
    ld.param.u64 %d1, [a];
    ld.param.u64 %d2, [b];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %d3, %r1, 4;
    add.u64 %d4, %d1, %d3;
    add.u64 %d5, %d2, %d3;
    mov.u32 %r2, s;
    mov.u32 %r3, t;
    shl.b32 %r4, %r1, 2;
    add.u32 %r2, %r2, %r4;
    add.u32 %r3, %r3, %r4;
    {body}
    ret;
}}
"""

READ = "ld.global.u32 %r5, [%d4]; "
STORED = READ + "st.global.u32 [%d5], %r5;"
ADDRESS = READ + "and.b32 %r6, %r5, 63; mul.wide.u32 %d6, %r6, 4; add.u64 %d7, %d1, %d6; ld.global.u32 %r7, [%d7];"
BRANCH = READ + "setp.ne.u32 %p1, %r5, 0; @!%p1 bra E; st.global.u32 [%d2], 1; E:"
GUARD = READ + "setp.ne.u32 %p1, %r5, 0; @%p1 st.global.u32 [%d2], 1;"
COMPUTED = READ + "setp.ne.u32 %p1, %r5, 0; @%p1 add.u32 %r5, %r5, 1; st.global.u32 [%d5], %r5;"
NUMBER = READ + "and.b32 %r6, %r5, 1; barrier.sync %r6;"
SHARED = (
    READ + "st.shared.u32 [%r2], %r5; ld.shared.u32 %r5, [%r2]; setp.ne.u32 %p1, %r5, 0; @%p1 bra E; bar.sync 1; E:"
)
COPIED = (
    "cp.async.ca.shared.global [%r2], [%d4], 4; cp.async.wait_all; ld.shared.u32 %r5, [%r2]; "
    "setp.ne.u32 %p1, %r5, 0; @%p1 st.global.u32 [%d2], 1;"
)
WRITTEN = "st.global.u32 [%d4], 0; " + GUARD
BESIDE = (
    READ + "st.shared.u32 [%r2], %r5; st.shared.u32 [%r3], 0; ld.shared.u32 %r7, [%r3]; "
    "setp.ne.u32 %p1, %r7, 0; @%p1 bra E; st.global.u32 [%d5], 1; E:"
)
REUSED = STORED + "mov.u32 %r5, 0; setp.ne.u32 %p1, %r5, 0; @%p1 bra E; st.global.u32 [%d5], 1; E:"
COUNTED = "atom.relaxed.gpu.global.add.u32 %r6, [%d4], 0; st.global.u32 [%d5], %r6;"


def result(path: Path, body: str, init: str = "") -> WholeResult:
    """The answer about a launch of 64 threads that read ``in``, of which the launch says ``init``."""
    path.write_text(KERNEL.format(body=body, init=init))
    (found,) = kernels(path)
    return whole(found, str(path), Limits(deadline=time.monotonic() + 30))


def told(found: WholeResult) -> list[str]:
    """The notes that say on what the answer rests."""
    return [note.text for note in found.notes if "has no `init`" in note.text]


@pytest.mark.parametrize(
    "body, at",
    [
        (ADDRESS, "ld.global.u32 %r7, [%d7]"),
        (BRANCH, "@!%p1 bra E"),
        (GUARD, "@%p1 st.global.u32 [%d2], 1"),
        (NUMBER, "barrier.sync %r6"),
        (SHARED, "@%p1 bra E"),
        (COPIED, "@%p1 st.global.u32 [%d2], 1"),
    ],
    ids=["address", "branch", "guard", "barrier", "through-shared", "copied"],
)  # fmt: skip
def test_that_an_answer_rests_on_contents_is_said(tmp_path: Path, body: str, at: str) -> None:
    found = result(tmp_path / "k.ptx", body)
    assert found.answer == "race-free"
    (text,) = told(found)
    assert "`in`" in text and at in text
    given = result(tmp_path / "k.ptx", body, ", init = 0")
    assert given.answer == "race-free" and not told(given)
    left = result(tmp_path / "k.ptx", body, ', init = "unknown"')
    assert left.answer == "undecided" and left.spot is not None and left.spot.text == at


@pytest.mark.parametrize("body", [STORED, COMPUTED, WRITTEN, BESIDE, REUSED])
def test_nothing_is_said_where_contents_decide_nothing(tmp_path: Path, body: str) -> None:
    found = result(tmp_path / "k.ptx", body)
    assert found.answer == "race-free" and not told(found)


def test_data_that_decide_nothing_may_be_anything(tmp_path: Path) -> None:
    assert result(tmp_path / "k.ptx", STORED, ', init = "unknown"').answer == "race-free"


def test_other_contents_race(tmp_path: Path) -> None:
    assert result(tmp_path / "k.ptx", BRANCH).answer == "race-free"
    assert result(tmp_path / "k.ptx", BRANCH, ", init = 1").answer == "race"


def test_counters_begin_with_zero(tmp_path: Path) -> None:
    found = result(tmp_path / "k.ptx", COUNTED)
    assert found.answer == "race-free" and not told(found)


def test_an_initial_value_that_is_no_object(tmp_path: Path) -> None:
    with pytest.raises(PtxmmError, match="no variable is called `unkown`") as caught:
        result(tmp_path / "k.ptx", STORED, ', init = "unkown"')
    assert (caught.value.line, caught.value.hint) == (7, "did you mean `unknown`?")


def test_engines_refuse_contents_that_are_left_open(tmp_path: Path) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(KERNEL.format(body=STORED, init=', init = "unknown"'))
    with pytest.raises(PtxmmError, match="only `check --whole` leaves values open") as caught:
        parse_ptx(path.read_text(), str(path))
    assert caught.value.line == 7


FILLED = "@%p2 st.bulk.weak.shared::cta [s], 128, 0; bar.sync 0; "
ZERO = "setp.eq.u32 %p1, %r5, 0; @%p1 bra E; bar.sync 1; E:"
FIRST = "setp.eq.u32 %p2, %r1, 0; "


@pytest.mark.parametrize(
    "body, answer",
    [
        (FIRST + FILLED + "ld.shared.u32 %r5, [s]; " + ZERO, "race-free"),
        (FIRST + FILLED + "ld.shared.u32 %r5, [s+128]; " + ZERO, "undecided"),
        (FIRST + FILLED.replace("bar.sync 0", "st.shared.u32 [%r2], 1"), "race"),
        ("st.bulk.weak.shared::cta [s], 128, 0;", "race"),
        (FIRST + "mov.u64 %d6, 132; @%p2 st.bulk.weak.shared::cta [s], %d6, 0;", "undefined"),
        (FIRST + "@%p2 st.bulk.weak.shared::cta [s+4], 128, 0;", "unsupported"),
        (FIRST + "@%p2 st.bulk.weak.shared::cta [s+136], 128, 0;", "outside"),
        (FIRST + "@%p2 discard.global.L2 [%d1], 128; bar.sync 0; " + STORED, "race-free"),
        (FIRST + "@%p2 discard.global.L2 [%d1], 128; bar.sync 0; " + GUARD, "undecided"),
        (FIRST + "@%p2 discard.global.L2 [%d1], 128; " + STORED, "race"),
    ],
)  # fmt: skip
def test_bytes_that_are_filled_or_discarded(tmp_path: Path, body: str, answer: str) -> None:
    path = tmp_path / "k.ptx"
    text = KERNEL.format(body=body, init=", init = 0, align = 128")
    path.write_text(text.replace(".version 8.5", ".version 9.0").replace("sm_90", "sm_100"))
    (found,) = kernels(path)
    told = whole(found, str(path), Limits(deadline=time.monotonic() + 30))
    assert told.answer == answer, told
