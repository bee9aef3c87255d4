"""What the language leaves open of addresses is not known, whatever the layout that the engines take."""

from __future__ import annotations

import pytest

from ptxmm.errors import PtxmmError
from ptxmm.program.test import Test
from ptxmm.program.unspecified.positions import position_uses
from tests.decided import decided_tests
from tests.kernels import launched
from tests.support import parse_one

CHOOSE = " selp.u32 %r1, 1, 0, %p1;"
OFFSET = " sub.u64 %rd6, %rd5, %rd3; cvt.u32.u64 %r1, %rd6;"
BACK = " st.global.u32 [%rd5+4], 7; ld.global.u32 %r1, [%rd0+4];"
LOADED = "st.global.u64 [v], %rd0; ld.global.u64 %rd5, [v];"


def kernel(body: str, value: int, align: str = "") -> list[Test]:
    """With variables of several spaces, and their addresses; it stores %r1 to ``out``."""
    objects = {"a": f'{{ type = "u32", count = 4{align} }}', "b": '{ type = "u32", count = 4 }', "out": '"u32"'}
    declared = ".shared .align 8 .b8 s[16]; .shared .align 8 .b8 t[16]; .local .align 4 .b8 l[8];"
    start = f"{declared} mov.u64 %rd3, v; mov.u64 %rd4, w; mov.u32 %r4, s; mov.u32 %r5, t;"
    before = ".global .align 16 .b8 v[32];\n.global .align 4 .u32 w;"
    return launched(
        f"{start} {body}\nst.global.u32 [%rd2], %r1;", objects, f'condition = "forall (out == {value})"', before=before
    )


def conclusions(body: str, value: int, align: str = "") -> set[str]:
    return {found.conclusion for found in decided_tests(kernel(body, value, align), 60, "both")}


OPEN = {
    "order of two objects": "setp.lt.u64 %p1, %rd0, %rd1;" + CHOOSE,
    "signed order": "setp.gt.s64 %p1, %rd0, %rd1;" + CHOOSE,
    "order of two shared variables": "setp.le.u32 %p1, %r4, %r5;" + CHOOSE,
    "order with a number": "setp.gt.u64 %p1, %rd0, 65536;" + CHOOSE,
    "equal to a number": "setp.eq.u64 %p1, %rd0, 65536;" + CHOOSE,
    "a shared address and 0": "setp.eq.u32 %p1, %r4, 0;" + CHOOSE,
    "the end of one and the other": "add.u64 %rd5, %rd0, 16; setp.eq.u64 %p1, %rd5, %rd1;" + CHOOSE,
    "far beyond the end": "add.u64 %rd5, %rd0, 0x1000000000; setp.lt.u64 %p1, %rd0, %rd5;" + CHOOSE,
    "before the begin": "sub.u64 %rd5, %rd0, 4; setp.lt.u64 %p1, %rd5, %rd0;" + CHOOSE,
    "a bit": "shr.u64 %rd5, %rd0, 20; cvt.u32.u64 %r1, %rd5; and.b32 %r1, %r1, 1;",
    "the low half": "cvt.u32.u64 %r2, %rd0; and.b32 %r1, %r2, 16;",
    "two low halves": "cvt.u32.u64 %r2, %rd0; cvt.u32.u64 %r3, %rd1; setp.eq.u32 %p1, %r2, %r3;" + CHOOSE,
    "a field": "bfe.u64 %rd5, %rd0, 5, 1; cvt.u32.u64 %r1, %rd5;",
    "a difference": "sub.u64 %rd5, %rd1, %rd0; setp.gt.s64 %p1, %rd5, 0;" + CHOOSE,
    "a difference of shared variables": "sub.u32 %r2, %r5, %r4; setp.gt.s32 %p1, %r2, 0;" + CHOOSE,
    "above its alignment": "and.b64 %rd5, %rd4, 15; cvt.u32.u64 %r1, %rd5;",
    "above the alignment of an object": "and.b64 %rd5, %rd0, 7; cvt.u32.u64 %r1, %rd5;",
    "rounded up too far": "add.u64 %rd5, %rd3, 31; and.b64 %rd5, %rd5, -32;" + OFFSET,
    "from memory": LOADED + " setp.lt.u64 %p1, %rd5, %rd1;" + CHOOSE,
    "before the begin, from memory": LOADED + " sub.u64 %rd6, %rd5, 4; setp.lt.u64 %p1, %rd6, %rd0;" + CHOOSE,
    "half of it from memory": "st.global.u64 [v], %rd0; ld.global.u32 %r2, [v+4]; and.b32 %r1, %r2, 1;",
    "the low half, taken apart": "mov.b64 {%r2, _}, %rd0; shr.u32 %r2, %r2, 4; and.b32 %r1, %r2, 1;",
    "halves in the wrong order": "mov.b64 {%r2, %r3}, %rd0; mov.b64 %rd5, {%r3, %r2}; setp.ne.u64 %p1, %rd5, %rd0;"
    + CHOOSE,
    "halves of two addresses": "mov.b64 {%r2, %r3}, %rd0; mov.b64 {%r6, %r7}, %rd1; setp.lt.u32 %p1, %r2, %r6;"
    + CHOOSE,
    "in two parts": "mov.b64 {%r2, %r3}, %rd0; and.b32 %r1, %r3, 1;",
    "the smaller one": "min.u64 %rd5, %rd0, %rd1; setp.eq.u64 %p1, %rd5, %rd0;" + CHOOSE,
    "an atomic minimum": "st.global.u64 [v], %rd1; atom.global.min.u64 %rd5, [v], %rd0; ld.global.u64 %rd6, [v];"
    " setp.eq.u64 %p1, %rd6, %rd0;" + CHOOSE,
    "chosen": "setp.eq.u32 %p2, %r4, %r4; selp.b64 %rd5, %rd0, %rd1, %p2; setp.lt.u64 %p1, %rd5, %rd3;" + CHOOSE,
    "a hash": "mul.lo.u64 %rd5, %rd0, 3; cvt.u32.u64 %r2, %rd5; and.b32 %r1, %r2, 2;",
    "a count of bits": "popc.b64 %r2, %rd0; and.b32 %r1, %r2, 1;",
}  # fmt: skip


@pytest.mark.parametrize("name", OPEN)
def test_no_value_is_certain(name: str) -> None:
    for value in (0, 1):
        assert "expected" not in conclusions(OPEN[name], value), value


KNOWN = {
    "order in one object": ("add.u64 %rd5, %rd0, 4; setp.lt.u64 %p1, %rd0, %rd5;" + CHOOSE, 1),
    "order to the end": ("add.u64 %rd5, %rd0, 16; setp.ge.u64 %p1, %rd0, %rd5;" + CHOOSE, 0),
    "a difference in one object": ("add.u64 %rd5, %rd0, 12; sub.u64 %rd6, %rd5, %rd0; cvt.u32.u64 %r1, %rd6;", 12),
    "a difference of shared addresses": ("add.u32 %r2, %r4, 8; sub.u32 %r1, %r2, %r4;", 8),
    "different objects are not equal": ("setp.eq.u64 %p1, %rd0, %rd1;" + CHOOSE, 0),
    "different shared variables": ("setp.ne.u32 %p1, %r4, %r5;" + CHOOSE, 1),
    "no null pointer": ("setp.eq.u64 %p1, %rd0, 0;" + CHOOSE, 0),
    "its alignment": ("add.u64 %rd5, %rd3, 5; and.b64 %rd6, %rd5, 15; cvt.u32.u64 %r1, %rd6;", 5),
    "rounded up": ("add.u64 %rd5, %rd3, 17; and.b64 %rd5, %rd5, -16;" + OFFSET, 16),
    "rounded down": ("add.u64 %rd5, %rd3, 7; and.b64 %rd5, %rd5, -8;" + OFFSET, 0),
    "a bit that is set": ("or.b64 %rd5, %rd3, 4;" + OFFSET, 4),
    "from memory and back": (LOADED + " setp.eq.u64 %p1, %rd5, %rd0;" + CHOOSE, 1),
    "from memory and accessed": (LOADED + " st.global.u32 [%rd5+4], 7; ld.global.u32 %r1, [%rd0+4];", 7),
    "from memory in one object": (LOADED + " add.u64 %rd6, %rd5, 4; setp.gt.u64 %p1, %rd6, %rd0;" + CHOOSE, 1),
    "an exchange of pointers": (
        "st.global.u64 [v], %rd0; atom.global.cas.b64 %rd5, [v], %rd0, %rd1; ld.global.u64 %rd6, [v];"
        " setp.eq.u64 %p1, %rd6, %rd1;" + CHOOSE, 1,
    ),
    "a generic address of shared memory": (
        "cvt.u64.u32 %rd5, %r4; cvta.shared.u64 %rd6, %rd5; st.u32 [%rd6+4], 3; cvta.to.shared.u64 %rd7, %rd6;"
        " cvt.u32.u64 %r2, %rd7; ld.shared.u32 %r1, [%r2+4];", 3,
    ),
    "two halves of a pair": ("mov.b64 {%r2, %r3}, %rd0; mov.b64 %rd5, {%r2, %r3};" + BACK, 7),
    "two halves, shifted": (
        "mov.b64 {%r2, %r3}, %rd0; cvt.u64.u32 %rd5, %r3; shl.b64 %rd5, %rd5, 32; cvt.u64.u32 %rd6, %r2;"
        " or.b64 %rd5, %rd5, %rd6;" + BACK, 7,
    ),
    "two halves, inserted": (
        "cvt.u32.u64 %r2, %rd0; mov.b64 {_, %r3}, %rd0; cvt.u64.u32 %rd5, %r3; cvt.u64.u32 %rd6, %r2;"
        " bfi.b64 %rd5, %rd5, %rd6, 32, 32;" + BACK, 7,
    ),
    "the alignment of the low half": ("cvt.u32.u64 %r2, %rd0; and.b32 %r1, %r2, 3;", 0),
    "the space": ("isspacep.global %p1, %rd0;" + CHOOSE, 1),
    "a loop to the end": (
        "mov.u32 %r1, 0; add.u64 %rd5, %rd0, 16;\nL: st.global.u32 [%rd0], 1; add.u64 %rd0, %rd0, 4;"
        " add.u32 %r1, %r1, 1; setp.lt.u64 %p1, %rd0, %rd5; @%p1 bra L;", 4,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", KNOWN)
def test_what_every_layout_gives(name: str) -> None:
    body, value = KNOWN[name]
    assert conclusions(body, value) == {"expected"}


def test_the_launch_says_how_an_object_is_aligned() -> None:
    body = "and.b64 %rd5, %rd0, 15; cvt.u32.u64 %r1, %rd5;"
    assert conclusions(body, 0) == {"inconclusive"}
    assert conclusions(body, 0, ", align = 16") == {"expected"}
    with pytest.raises(PtxmmError, match="`align` is a power of two, not 12"):
        conclusions(body, 0, ", align = 12")


LITMUS = """PTX t
{{ .global .u64 p = x; .global .u64 q = 0; .global .u32 x[4] = {{0}}; .global .align 16 .u32 y[4] = {{0}};
.reg .b64 P0:rd8; .reg .b64 P0:rd9; P0:rd8 = x; P0:rd9 = y; }}
P0 {{
  {body}
}}
exists ({condition})
"""


@pytest.mark.parametrize(("body", "condition", "found"), [
    ("ld.global.u64 rd0, [p];", "P0:rd0 == &x", []),
    ("ld.global.u64 rd0, [p];", "P0:rd0 == 0", []),
    ("ld.global.u64 rd0, [p];", "P0:rd0 < &y", ["the condition compares addresses"]),
    ("setp.lt.u64 p0, rd8, rd9; @p0 st.global.u32 [x], 1;", "x[0] == 1", ["P0 line 5: setp.lt.u64 of addresses"]),
    ("setp.eq.u64 p0, rd8, rd9; @p0 st.global.u32 [x], 1;", "x[0] == 1", []),
    ("and.b64 rd1, rd9, 15; st.global.u64 [q], rd1;", "q == 0", []),
    ("and.b64 rd1, rd8, 15; st.global.u64 [q], rd1;", "q == 0", ["P0 line 5: and.b64 of addresses"]),
    ("st.global.u64 [q], rd8; ld.global.u64 rd1, [q]; sub.u64 rd2, rd1, rd8;", "P0:rd2 == 0", []),
    ("L: add.u64 rd8, rd8, 4; setp.ne.u64 p0, rd8, rd9; @p0 bra L;", "P0:rd8 == 0",
     ["P0 line 5: setp.ne.u64 of addresses"]),
])  # fmt: skip
def test_litmus_tests(body: str, condition: str, found: list[str]) -> None:
    assert position_uses(parse_one(LITMUS.format(body=body, condition=condition))) == found
