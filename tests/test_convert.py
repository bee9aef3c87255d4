"""Conversion between typed PTX, the untyped dialect and nvlitmus: it keeps the meaning or says what it can't keep."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ptxmm.errors import PtxmmError
from ptxmm.formats import parse
from ptxmm.formats.convert import convert
from ptxmm.formats.typed import to_typed
from ptxmm.formats.untyped import to_dialect
from ptxmm.program.test import Test
from ptxmm.ptx.ops import Barrier, Branch, Imm, Op, SetPredicate, Type
from tests.reference import everything
from tests.support import ask, model_named

DIALECT = {
    "message passing": r"""PTX MP
{ x = 0; flag = 0; P1:r0 = 0; }
 P0@cta 0,gpu 0         | P1@cta 1,gpu 0           ;
 st.weak x, 1           | ld.acquire.gpu r0, flag  ;
 st.release.gpu flag, 1 | ld.weak r1, x            ;
~exists (P1:r0 == 1 /\ P1:r1 != 1)
""",
    "spin lock": r"""PTX Lock
{ x = 0; lock = 0; }
 P0@cta 0,gpu 0                    | P1@cta 0,gpu 0                    ;
 LC00:                             | LC10:                             ;
 atom.acquire.gpu.cas r0, lock, 0, 1 | atom.acquire.gpu.cas r0, lock, 0, 1 ;
 bne r0, 0, LC00                   | bne r0, 0, LC10                   ;
 ld.weak r1, x                     | ld.weak r1, x                     ;
 add r1, r1, 1                     | add r1, r1, 1                     ;
 st.weak x, r1                     | st.weak x, r1                     ;
 atom.release.gpu.exch r2, lock, 0 | atom.release.gpu.exch r2, lock, 0 ;
exists (x != 2)
""",
    "branches": r"""PTX Branches
{ x = 0; y = 0; }
 P0@cta 0,gpu 0       | P1@cta 1,gpu 0       ;
 ld.relaxed.gpu r0, x | ld.relaxed.gpu r0, y ;
 beq r0, 0, LC01      | blt r0, 1, LC10      ;
 st.relaxed.gpu y, 1  | st.relaxed.gpu x, 1  ;
 goto LC02            |                      ;
 LC01:                | LC10:                ;
 st.relaxed.gpu y, 2  | st.relaxed.gpu x, -3 ;
 LC02:                |                      ;
exists (P0:r0 < 0 /\ (P1:r0 >= 2 \/ x == 1))
""",
    "atomics": r"""PTX Atomics
{ x = 5; }
 P0@cta 0,gpu 0                | P1@cta 0,gpu 1                ;
 atom.relaxed.sys.add r0, x, 1 | atom.acq_rel.sys.sub r0, x, 2 ;
 red.release.sys.sub x, 1      | atom.relaxed.sys.min r1, x, r0 ;
exists (x == 3)
""",
    "aliases": r"""PTX Alias
{ x = 0; y @ generic aliases x; }
 P0@cta 0,gpu 0    ;
 st.weak x, 1      ;
 fence.proxy.alias ;
 ld.weak r0, y     ;
forall (P0:r0 == 1)
""",
    "barrier": r"""PTX Barrier
{ x = 0; y = 0; }
 P0@cta 0,gpu 0  | P1@cta 0,gpu 0  | P2@cta 1,gpu 0  ;
 st.weak x, 1    | bar.cta.sync 3  | bar.cta.sync 3  ;
 bar.cta.sync 3  | ld.weak r0, x   | ld.weak r0, x   ;
 bar.cta.sync 4  | bar.cta.sync 4  |                 ;
exists (P1:r0 == 0)
""",
}

TYPED = {
    "message passing": r"""PTX MP
{ .global .s64 x = 0; .global .u64 flag = 7; }
 P0 @ cta 0, gpu 0                   | P1 @ cta 1, gpu 0                   ;
 st.global.s64 [x], 1                | ld.acquire.gpu.global.u64 r0, [flag] ;
 st.release.gpu.global.u64 [flag], 1 | ld.global.b64 r1, [x]               ;
exists (P1:r0 == 1 /\ P1:r1 == 0)
""",
    "spin": r"""PTX Spin
{ .global .s64 x = 0; .global .s64 flag = 0; }
 P0 @ cta 0                          | P1 @ cta 1                           ;
 st.global.s64 [x], 1                | L: ld.acquire.gpu.global.s64 r0, [flag] ;
 st.release.gpu.global.s64 [flag], 1 | setp.lt.s64 p, r0, 1                 ;
                                     | @p bra L                             ;
                                     | ld.global.s64 r1, [x]                ;
exists (P1:r1 == 0)
""",
    "negated guard": r"""PTX Negated
{ .global .s64 x = 0; }
 P0 @ cta 0                     ;
 ld.relaxed.cta.global.s64 r0, [x] ;
 setp.gt.s64 p, r0, 4           ;
 @!p bra END                    ;
 st.relaxed.cta.global.s64 [x], 9 ;
 END: mov.s64 r1, 3             ;
forall (P0:r1 == 3)
""",
    "barrier": r"""PTX Barrier
{ .global .s64 x = 0; }
 P0 @ cta 0           | P1 @ cta 0             ;
 st.global.s64 [x], 1 | bar.sync 2             ;
 bar.sync 2           | ld.global.s64 r0, [x]  ;
~exists (P1:r0 == 0)
""",
}


def one(text: str) -> Test:
    (test,) = parse(text, "t.litmus")
    return test


def shape(test: Test) -> tuple[object, ...]:
    """What conversion keeps."""
    ops = [[replace(op, source=None) for op in t.body] for t in test.threads]
    threads = [(t.name, t.placement, t.registers, t.initial) for t in test.threads]
    condition = (test.condition.kind, test.condition.proposition) if test.condition else None
    return ops, threads, test.objects, test.filter, condition, test.locations, test.dialect


@pytest.mark.parametrize("name", DIALECT)
def test_dialect_to_typed(name: str) -> None:
    test = one(DIALECT[name])
    assert test.dialect
    typed = one(convert(test, "litmus"))
    assert not typed.dialect
    assert shape(typed) == shape(to_typed(test))


@pytest.mark.parametrize("name", DIALECT)
def test_dialect_to_dialect(name: str) -> None:
    test = one(DIALECT[name])
    assert shape(one(convert(test, "dialect"))) == shape(test)


@pytest.mark.parametrize("name", TYPED)
def test_typed_to_typed(name: str) -> None:
    test = one(TYPED[name])
    assert shape(one(convert(test, "litmus"))) == shape(test)


@pytest.mark.parametrize("name", TYPED)
def test_typed_to_dialect(name: str) -> None:
    test = one(TYPED[name])
    assert not test.dialect
    untyped = one(convert(test, "dialect"))
    assert untyped.dialect
    assert shape(untyped) == shape(to_dialect(test))


@pytest.mark.parametrize("name", ["message passing", "aliases"])
def test_dialect_to_nvlitmus(name: str) -> None:
    test = one(DIALECT[name])
    (again,) = parse(convert(test, "nvlitmus"), "t.test")
    assert [[replace(o, source=None) for o in t.body] for t in again.threads] == shape(test)[0]
    assert again.objects == test.objects


def test_nvlitmus_to_typed_and_dialect() -> None:
    text = """.global x; .global f;
d0.b0.t0 { st [x], 1; st.release.gpu [f], 1; }
d0.b1.t0 { ld.acquire.gpu r0, [f] == 1; ld r1, [x]; }
assert (r1 == 1 && not (r0 == 0 || r1 == 2)) as q;
"""
    (test,) = parse(text, "t.test")
    assert shape(one(convert(test, "dialect"))) == shape(test)
    typed = one(convert(test, "litmus"))
    assert typed.filter == test.filter and typed.condition is not None and test.condition is not None
    assert typed.condition.proposition == test.condition.proposition
    assert "ld.acquire.gpu.global.s64 r0, [f]" in convert(test, "litmus")
    assert typed.info == (("Expect", "ptx-7.5:holds"),)
    assert one(convert(test, "dialect")).info == test.info


def test_compare_and_branch() -> None:
    body = to_typed(one(DIALECT["spin lock"])).threads[0].body
    setp, branch = body[1], body[2]
    assert isinstance(setp, SetPredicate) and setp.cmp == "ne" and setp.type == Type("s", 64)
    assert isinstance(branch, Branch) and branch.target == 0 and branch.guard is not None
    assert branch.guard.register == setp.dst.name == "p"


def test_atomic_sub() -> None:
    text = convert(one(DIALECT["atomics"]), "litmus")
    assert "atom.acq_rel.sys.global.add.u64 r0, [x], -2" in text
    assert "red.release.sys.global.add.u64 [x], -1" in text
    assert "atom.relaxed.sys.global.min.s64 r1, [x], r0" in text


def barriers(test: Test) -> list[list[Op]]:
    return [[replace(o, source=None) for o in t.body if isinstance(o, Barrier)] for t in test.threads]


def test_barriers() -> None:
    typed = barriers(to_typed(one(DIALECT["barrier"])))
    assert [[(b.barrier, b.count, b.instance) for b in t if isinstance(b, Barrier)] for t in typed] == [
        [(Imm(0), Imm(64), None), (Imm(1), Imm(64), None)],
        [(Imm(0), Imm(64), None), (Imm(1), Imm(64), None)],
        [(Imm(0), Imm(32), None)],
    ]
    untyped = barriers(to_dialect(one(TYPED["barrier"])))
    assert [[(b.barrier, b.count, b.instance) for b in t if isinstance(b, Barrier)] for t in untyped] == [
        [(Imm(2), None, 2)],
        [(Imm(2), None, 2)],
    ]


def dialect(*columns: str, objects: str = "x = 0; y = 0;", condition: str = "exists (x == 1)") -> str:
    heads = "|".join(f"P{i}@cta 0,gpu 0" for i in range(len(columns)))
    cells = [c.split(";") for c in columns]
    rows = ["|".join(c[i] if i < len(c) else "" for c in cells) for i in range(max(map(len, cells)))]
    return "\n".join(["PTX T", "{ " + objects + " }", heads + ";", *(r + ";" for r in rows), condition, ""])


def typed(*columns: str, objects: str = ".global .s64 x = 0;", condition: str = "exists (x == 1)", at: str = "") -> str:
    heads = " | ".join(f"P{i} @ cta 0{at}" for i in range(len(columns)))
    cells = [c.split(";") for c in columns]
    rows = ["|".join(c[i] if i < len(c) else "" for c in cells) for i in range(max(map(len, cells)))]
    return "\n".join(["PTX T", "{ " + objects + " }", heads + " ;", *(r + " ;" for r in rows), condition, ""])


LOAD = "ld.relaxed.gpu.global.s64 r0, [x]"

REFUSED = [
    ("litmus", dialect("suld.weak r0, s", objects="x = 0; s @ surface aliases x;"), "through the surface proxy", 4),
    ("litmus", dialect("ld.weak r0, x;fence.proxy.texture"), "fence for the texture proxy", 5),
    ("litmus", dialect("ld.weak r0, x;atom.relaxed.gpu.sub r1, x, r0"), "atomic `sub`", 5),
    ("litmus", dialect("red.acq_rel.gpu.add x, 1"), "red.acq_rel", 4),
    ("litmus", dialect("atom.relaxed.gpu.inc r0, x, 5"), "inc", 4),
    ("litmus", dialect("st.weak x, 1;bar.cta.arrive 1", "bar.cta.sync 1"), "every thread waits", 5),
    ("litmus", dialect("st.weak x, 1;bar.cta.sync 1, 1, 2", "bar.cta.sync 1, 1, 2"), "quorum", 5),
    ("litmus", dialect("ld.weak r0, x;bar.cta.sync 1, r0", "bar.cta.sync 1"), "chosen at run time", 5),
    ("litmus", dialect("st.weak x, 1;bar.cta.sync 1;bar.cta.sync 1", "bar.cta.sync 1"), "twice", 6),
    ("litmus", dialect("L:;bar.cta.sync 1;ld.weak r0, x;beq r0, 0, L", "bar.cta.sync 1"), "loop", 5),
    ("dialect", typed(LOAD.replace("s64", "u32"), objects=".global .u32 x = 0;"), "64 bits wide", 4),
    ("dialect", typed(LOAD, objects=".global .s64 x[2];", condition="exists (P0:r0 == 1)"), "one 64-bit integer", None),
    ("dialect", typed(LOAD + ";cvt.u32.u64 r1, r0"), "cvt", 5),
    ("dialect", typed(LOAD + ";mov.u32 r1, 3"), "64 bits wide", 5),
    ("dialect", typed(LOAD + ";min.u64 r1, r0, 3"), "signed", 5),
    ("dialect", typed(LOAD + ";setp.eq.s64 p, r0, 1;mov.s64 r1, 2;@p bra L;L: mov.s64 r2, 3"), "no predicates", 5),
    ("dialect", typed(LOAD + ";setp.lt.u64 p, r0, 1;@p bra L;L: mov.s64 r2, 3"), "signed", 5),
    ("dialect", typed(LOAD + ";setp.eq.s64 p, r0, 1;@p mov.s64 r1, 2"), "no predicates", 5),
    ("dialect", typed(LOAD, at=", cluster 0"), "placement", None),
    ("dialect", typed("ld.relaxed.cluster.global.s64 r0, [x]"), "clusters", 4),
    ("dialect", typed("ld.mmio.relaxed.sys.global.s64 r0, [x]"), "mmio", 4),
    ("dialect", typed("ld.global.u64 r0, [x]", condition="exists (P0:r0 < 3)"), "signed", None),
    ("dialect", typed("bar.sync 1", LOAD), "leave out", 4),
    ("dialect", typed("bar.sync 1, 32", "bar.sync 1, 32"), "count is 32", 4),
    ("dialect", typed("bar.arrive 1, 64", "bar.sync 1, 64"), "every thread waits", 4),
    ("nvlitmus", dialect("ld.weak r0, x;add r1, r0, 1"), "this instruction", 5),
    ("nvlitmus", dialect("ld.weak r0, x"), "this condition", None),
    ("nvlitmus", typed("ld.global.u32 r0, [x]", objects=".global .u32 x = 0;"), "64 bits wide", 4),
]


@pytest.mark.parametrize(("to", "text", "message", "line"), REFUSED)
def test_refused(to: str, text: str, message: str, line: int | None) -> None:
    test = one(text)
    with pytest.raises(PtxmmError) as caught:
        convert(test, to)
    assert caught.value.kind == "unsupported"
    assert message in caught.value.message, str(caught.value)
    assert caught.value.line == line, str(caught.value)
    assert caught.value.file == "t.litmus"


@pytest.mark.parametrize("to", ["litmus", "dialect"])
@pytest.mark.parametrize("name", [*DIALECT, *(f"typed {n}" for n in TYPED)])
def test_final_states_are_kept(name: str, to: str) -> None:
    test = one(TYPED[name.removeprefix("typed ")] if name.startswith("typed") else DIALECT[name])
    converted = one(convert(test, to))
    model = model_named("ptx-7.5")
    kept = {r for t in test.threads for r in t.registers}
    answers = []
    for each in (test, converted):
        everything_ = everything(each)
        registers = [r for r in everything_.registers if r.register in kept and r.type.kind != "pred"]
        answers.append(ask("solve", each, model, unroll=2, observed=replace(everything_, registers=tuple(registers))))
    assert answers[0].states and answers[0].comparable() == answers[1].comparable()


def test_unknown_target() -> None:
    with pytest.raises(PtxmmError, match="no format `pdf`"):
        convert(one(DIALECT["aliases"]), "pdf")
