"""What both engines refuse: the same words of the same instruction, from one place."""

from __future__ import annotations

import re

import pytest

from ptxmm.errors import PtxmmError
from ptxmm.events.explicit.values import circuits, diagrams, essence
from ptxmm.events.symbolic.values import bitvectors
from ptxmm.program.shared import refusals
from ptxmm.program.unspecified.absent import without_absent
from ptxmm.ptx.ops import StoreBulk
from tests.support import ENGINES, ROOT, ask, model_named, parse_one

OBJECTS = """
  .global .align 8 .u32 x[2] = {1, 2};
  .global .u32 y = 0;
  .global .u32 z = 0;
  m @ multimem y, z;
  .shared .align 16 .b8 s[128] @ cta 0 = {0};
"""
LOAD = "ld.relaxed.gpu.global.u32"
STORE = "st.relaxed.gpu.global.u32"
MATRIX = "sync.aligned.m8n8.x1.shared.b16"
HARD = (
    f"{LOAD} r0, [x]; {LOAD} r1, [y]; mul.lo.u32 r2, r0, r1; mul.lo.u32 r2, r2, r1; mul.lo.u32 r3, r1, r1; "
    f"mul.lo.u32 r3, r0, r3; sub.u32 r2, r2, r3; {STORE} [z], r2"
)

# name; what is refused; the number of its instruction in P0; P0; P1; where they are
REFUSED = (
    ("a constant that is stored", refusals.NONCOHERENT, 0, "ld.global.nc.u32 r0, [x]", f"{STORE} [x], 1", ""),
    ("some of its bytes", refusals.NONCOHERENT, 0, "ld.global.nc.u64 r0, [x]", "st.global.u8 [x+5], 1", ""),
    ("the second load", refusals.NONCOHERENT, 1, "ld.global.nc.u32 r0, [x]; ld.global.nc.u32 r1, [x+4]",
     f"{STORE} [x+4], 1", ""),
    ("its own thread's store", refusals.NONCOHERENT, 1, f"{STORE} [y], 1; ldu.global.u32 r0, [y]", "fence.sc.gpu", ""),
    ("an atomic", refusals.NONCOHERENT, 0, "ld.global.nc.u32 r0, [y]", "atom.global.add.u32 r0, [y], 1", ""),
    ("a location by its multimem address", refusals.NONCOHERENT, 0, "ld.global.nc.u32 r0, [z]",
     "multimem.st.u32 [m], 1", ""),
    ("by a register", refusals.NONCOHERENT, 1, "mov.u64 a, x; ld.global.nc.u32 r0, [a+4]", f"{STORE} [x+4], 1", ""),
    ("in one branch of two", refusals.NONCOHERENT, 3,
     f"{LOAD} r0, [y]; setp.eq.u32 p, r0, 0; @p bra L; ld.global.nc.u32 r1, [x]; bra M; "
     "L: ld.global.nc.u32 r1, [x]; M: ret", f"{STORE} [x], 1; {STORE} [y], 1", ""),
    ("a guarded load", refusals.NONCOHERENT, 2, f"{LOAD} r0, [y]; setp.eq.u32 p, r0, 0; @p ld.global.nc.u32 r1, [x]",
     f"{STORE} [x], 1", ""),
    ("ldmatrix of lanes", refusals.named_warp("ldmatrix"), 0, f"ldmatrix.{MATRIX} {{r0}}, [s]", "mov.u32 r0, 0",
     ", warp 0"),
    ("stmatrix of lanes", refusals.named_warp("stmatrix"), 1, f"mov.b32 r0, 0; stmatrix.{MATRIX} [s], {{r0}}",
     "mov.u32 r0, 0", ", warp 0"),
    ("stmatrix of two matrices", refusals.SEVERAL_MATRICES, 1,
     f"mov.b32 r0, 0; stmatrix.{MATRIX.replace('x1', 'x2')} [s], {{r0, r0}}", "mov.u32 r0, 0", ""),
    ("st.bulk by its half", StoreBulk.misaligned, 1, "mov.u64 a, s+4; st.bulk.weak.shared::cta [a], 8, 0",
     "mov.u32 r0, 0", ""),
    ("an approximation in an address", refusals.OPAQUE, 1,
     f"{LOAD} r0, [y]; ex2.approx.f32 r1, r0; and.b32 r1, r1, 4; cvt.u64.u32 r2, r1; mov.u64 a, x; add.u64 a, a, r2; "
     "ld.global.u32 r3, [a]", f"{STORE} [y], 1", ""),
    ("halves that decide a branch", refusals.OPAQUE, 1,
     f"{LOAD} r0, [y]; setp.lt.f16x2 p|q, r0, r0; @q bra L; {STORE} [z], 1; L: ret", f"{STORE} [y], 1", ""),
    ("a product in a barrier", refusals.OPAQUE, 1,
     "mov.u32 r0, 0; mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {r1, r2}, {r0}, {r0}, {r0, r0}; "
     "bar.sync r1, 32", "mov.u32 r0, 0", ""),
    ("a narrow conversion that is asked for", refusals.OPAQUE, 2,
     f"{LOAD} r0, [y]; mov.b32 f, r0; cvt.rn.satfinite.e4m3x2.f32 h, f, f; cvt.u32.u16 r1, h; {STORE} [z], r1",
     f"{STORE} [y], 1", ""),
    ("a lane that is not there", refusals.ABSENT, 1, "mov.u32 r0, 1; shfl.sync.idx.b32 r1, r0, 9, 31, -1",
     "mov.u32 r0, 0; shfl.sync.idx.b32 r1, r0, 0, 31, -1", ", warp 0"),
    ("a difference of products", refusals.UNDECIDABLE, 7, HARD, f"{STORE} [x], 2; {STORE} [y], 3", ""),
)  # fmt: skip


@pytest.mark.parametrize(("name", "message", "number", "first", "second", "place"), REFUSED, ids=lambda v: None)
def test_both_engines_say_the_same(
    name: str, message: str, number: int, first: str, second: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_large(*_: object) -> set[int]:
        raise diagrams.TooLarge

    # Neither side is to find out what takes long, so that both have to say so.
    monkeypatch.setattr(circuits, "essential", too_large)
    monkeypatch.setattr(essence, "_known", {})
    monkeypatch.setattr(bitvectors, "_MILLISECONDS", 1)
    code = first.replace("; ", ";\n")
    test = parse_one(
        f"PTX t\nISA=8.6\n{{{OBJECTS}}}\nP0 @ cta 0{place} {{\n{code};\n}}\nP1 @ cta 0{place} {{ {second}; }}\n"
    )
    test = without_absent(test)  # of which nothing is asked yet
    found = []
    for engine in ENGINES:
        with pytest.raises(PtxmmError) as caught:
            ask(engine, test, model_named("ptx-8.5"))
        error = caught.value
        found.append((error.kind, error.message, error.hint, error.line, error.column, error.width))
    span = test.threads[0].body[number].source.span
    place_ = span.line, span.column, span.end_column - span.column
    assert found[0] == found[1] == ("unsupported", message, found[0][2], *place_)


def test_each_refusal_is_shown() -> None:
    messages = {value for name, value in vars(refusals).items() if name.isupper() and isinstance(value, str)}
    assert messages <= {message for _, message, *_ in REFUSED}


TOO_BIG = {
    "events/explicit/machine.py",  # an operand that may take too many values to try them
    "events/explicit/relations/execution.py",  # more events than a relation has room for
    "events/symbolic/values/domain.py",  # more combinations of values than can be gone through
}
"""What refuses a program by itself: the other engine may have room for it."""


def test_an_engine_by_itself_refuses_only_what_is_too_big() -> None:
    found = set()
    for folder in ("events", "engines"):
        for file in sorted((ROOT / "ptxmm" / folder).rglob("*.py")):
            if re.search(r'"unsupported"|refus(?:ed|al)\(f?"', file.read_text("utf-8")):
                found.add(file.relative_to(ROOT / "ptxmm").as_posix())
    assert found == TOO_BIG
