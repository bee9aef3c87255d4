"""What a thread has stored in local memory (``formats.modules.propagate``): to know it changes no final state."""

from __future__ import annotations

import random

import pytest

from ptxmm.analysis.observe import observed
from ptxmm.errors import PtxmmError
from ptxmm.formats.modules.propagate import Propagation
from ptxmm.formats.modules.read import parse_ptx
from ptxmm.program.test import Test
from ptxmm.ptx.ops import Load
from tests.support import ask, model_named
from tests.tally import Tally

HEAD = """.version 8.5
.target sm_90
.address_size 64
// ptxmm: grid = 2
// ptxmm: args = ["inp", "out", { fields = [{ u64 = "x" }, { u64 = "y" }] }]
// ptxmm: [objects]
// ptxmm: inp = { type = "u32", count = 2, init = [INP, 1] }
// ptxmm: out = { type = "u32", count = 8 }
// ptxmm: x = "u32"
// ptxmm: y = "u32"
// ptxmm: [check]
// ptxmm: condition = 'forall (out[0] == 7 /\\ out[1] == 7 /\\ out[2] == 7 /\\ out[3] == 7 /\\ x == 7 /\\ y == 7)'
.visible .entry k(.param .u64 a, .param .u64 b, .param .align 8 .b8 c[16])
{
  .local .align 8 .b8 own[16];
  .reg .pred %p<9>; .reg .b32 %r<19>; .reg .b64 %d<9>;
  ld.param.u64 %d1, [a]; ld.param.u64 %d2, [b]; ld.param.u64 %d3, [c]; ld.param.u64 %d4, [c+8];
  mov.u32 %r1, %ctaid.x; mad.wide.u32 %d2, %r1, 8, %d2; mov.u64 %d5, own; cvta.local.u64 %d6, %d5;
  ld.volatile.u32 %r2, [%d1]; setp.eq.u32 %p1, %r2, 1; and.b32 %r3, %r2, 1; mad.wide.u32 %d7, %r3, 8, %d5;
  mad.wide.u32 %d8, %r3, 8, %d6; st.local.v4.u32 [own], {0, 1, 2, 3}; @!%p1 st.u32 [%d1], 1;
"""


def _both(body: str, inp: int = 0) -> tuple[Test, Test]:
    """A kernel as it is specialised, and without anything known of local memory."""
    source = HEAD.replace("INP", str(inp)) + body + "\n  ret;\n}\n"
    (made,) = parse_ptx(source, "k.ptx")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Propagation, "stored", lambda self, pc, environment, holds: environment)
        (plain,) = parse_ptx(source, "k.ptx")
    return made, plain


def _loads(test: Test) -> int:
    return sum(isinstance(op, Load) and op.space != "global" for op in test.threads[0].body)


def _same(made: Test, plain: Test, engine: str = "solve") -> None:
    answers = [ask(engine, test, model_named("ptx-8.5"), observed=observed(plain)) for test in (made, plain)]
    assert answers[0].complete and answers[0].states == answers[1].states


@pytest.mark.parametrize(
    ("body", "known"),
    [
        ("st.local.u64 [own+8], %d3; ld.local.u64 %d1, [own+8]; st.u32 [%d1], 1;", 1),
        ("st.local.v2.u64 [own], {%d3, %d4}; ld.local.v2.u64 {%d1, %d2}, [own]; st.u32 [%d2], 1;", 1),
        ("st.local.u32 [own+4], -1; ld.local.s8 %r4, [own+4]; st.u32 [%d2], %r4;", 0),  # of another size
        ("st.local.u8 [own+4], -1; ld.local.s8 %r4, [own+4]; st.u32 [%d2], %r4;", 1),
        ("st.local.u8 [own+4], -1; ld.local.u8 %r4, [own+4]; st.u32 [%d2], %r4;", 1),
        ("st.local.u32 [own], 5; st.local.u8 [own+3], 1; ld.local.u32 %r4, [own]; st.u32 [%d2], %r4;", 0),
        ("st.local.u32 [own], 5; @%p1 st.local.u32 [own], 6; ld.local.u32 %r4, [own]; st.u32 [%d2], %r4;", 0),
        ("st.local.u32 [own], 5; st.local.u32 [%d7], 6; ld.local.u32 %r4, [own]; st.u32 [%d2], %r4;", 0),
        ("st.local.u32 [own], 5; st.u32 [%d8], 6; ld.local.u32 %r4, [own]; st.u32 [%d2], %r4;", 0),
        ("st.local.u32 [own], 5; st.u32 [%d6], 6; ld.local.u32 %r4, [own]; st.u32 [%d2], %r4;", 1),
        ("st.u32 [%d6+4], 6; ld.u32 %r4, [%d6+4]; st.u32 [%d2], %r4;", 1),
        ("st.local.u32 [own], %r2; ld.local.u32 %r4, [own]; st.u32 [%d2], %r4;", 0),
        ("st.local.u32 [own], 5; st.local.u32 [own], %r2; ld.local.u32 %r4, [own]; st.u32 [%d2], %r4;", 0),
        ("st.local.u32 [own], 5; @%p1 bra B; st.local.u32 [own], 6; B: ld.local.u32 %r4, [own]; st.u32 [%d2], %r4;", 0),
        ("st.local.u32 [own], 5; @%p1 bra B; st.u32 [%d3], 6; B: ld.local.u32 %r4, [own]; st.u32 [%d2], %r4;", 1),
        ("mov.u32 %r4, 0; L: st.local.u32 [own], %r4; add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, 3; @%p2 bra L; "
         "ld.local.u32 %r5, [own]; st.u32 [%d2], %r5;", 1),
        ("L: ld.local.u32 %r4, [own]; add.u32 %r4, %r4, 1; st.local.u32 [own], %r4; ld.volatile.u32 %r5, [%d1]; "
         "setp.eq.u32 %p2, %r5, 0; @%p2 bra L; st.u32 [%d2], 1;", 0),
    ],
)  # fmt: skip
def test_what_is_read_back(body: str, known: int) -> None:
    """Whether the load is left out."""
    made, plain = _both(body, inp=1)
    assert (_loads(made) < _loads(plain)) == bool(known)
    for inp in (0, 1, 2):
        _same(*_both(body, inp))


def _random(number: int) -> str:
    """A few accesses of local memory, some of them at a place or under a guard that memory decides."""
    rng = random.Random(f"local memory {number}")
    lines, registers = [], [f"%r{n}" for n in (2, 4, 5, 6)]
    for step in range(rng.randint(3, 8)):
        size = rng.choice([1, 2, 4, 4, 4, 4, 8])
        at = size * rng.randrange(16 // size)
        place, space = rng.choice([
            *[(f"[own+{at}]", ".local")] * 4, (f"[%d6+{at}]", ""),
            (f"[%d7+{at % 8}]", ".local"), (f"[%d8+{at % 8}]", ""),
        ])  # fmt: skip
        guard = rng.choice(["", "", "", "@%p1 ", "@!%p1 "])
        kind = rng.random()
        if kind < 0.55:
            value = rng.choice(["%d3", "%d4", "3"]) if size == 8 else rng.choice([*registers, "-1", "258"])
            lines.append(f"{guard}st{space}.u{8 * size} {place}, {value};")
        elif size < 8:
            sign = rng.choice("us")
            lines.append(f"{guard}ld{space}.{sign}{8 * size} {rng.choice(registers[1:])}, {place};")
        elif kind < 0.8:
            lines.append(f"@%p1 bra B{step}; st{space}.u8 {place}, {step}; B{step}:")
    outs = " ".join(f"st.u32 [%d2+{4 * n}], {r};" for n, r in enumerate(registers[1:3]))
    start = "mov.u32 %r4, 0; mov.u32 %r5, 0; mov.u32 %r6, 0;"
    return "\n  ".join([start, *lines, "add.u32 %r5, %r5, %r6;", outs])


def _compare(first: int, many: int, tally: Tally) -> tuple[int, int]:
    compared = fewer = 0
    for number in range(first, first + many):
        for inp in (0, 1):
            made, plain = _both(_random(number), inp)
            try:
                _same(made, plain, "enumerate")
            except PtxmmError as error:
                assert error.kind in ("unsupported", "type"), (number, error)
                continue
            compared, fewer = compared + 1, fewer + (_loads(made) < _loads(plain))
    tally.notes.append(f"kernels with local memory: {compared} compared, {fewer} with reads that are known")
    return compared, fewer


def test_no_final_state_changes(tally: Tally) -> None:
    compared, fewer = _compare(0, 15, tally)
    assert compared >= 10 and fewer >= 3


@pytest.mark.slow
@pytest.mark.parametrize("share", range(4))
def test_no_final_state_of_many_changes(share: int, tally: Tally, shift: int) -> None:
    compared, fewer = _compare(1000 + 100 * share + shift, 100, tally)
    assert compared >= 100 and fewer >= 20
