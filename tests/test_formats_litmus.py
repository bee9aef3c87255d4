"""The litmus format: every construct, every public file, and writing what was read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from ptxmm import formats
from ptxmm.errors import PtxmmError
from ptxmm.formats.litmus import parse, same, write
from ptxmm.program.condition import (
    AddressTerm,
    Comparison,
    Conjunction,
    Disjunction,
    IntegerTerm,
    MemoryTerm,
    Negation,
    Proposition,
    RegisterTerm,
)
from ptxmm.program.test import Placement, Test
from ptxmm.ptx.ops import Address, Branch, Imm, Load, Reg, Store, Sym, Type

ROOT = Path(__file__).parent.parent
CORPORA = Path(os.environ.get("PTXMM_CORPORA", ROOT.parent / "shared" / "corpora"))
PUBLIC = sorted((CORPORA / "dartagnan").rglob("*.litmus"))
OWN = sorted((ROOT / "litmus").rglob("*.litmus"))
U32, U64, S64, B64, PRED = Type("u", 32), Type("u", 64), Type("s", 64), Type("b", 64), Type("pred", 1)


def one(text: str) -> Test:
    (test,) = parse(text, "t.litmus")
    assert same(test, parse(write(test))[0]), write(test)
    assert write(parse(write(test))[0]) == write(test)
    return test


def typed(initial: str, rows: str, final: str = "", heads: str = "P0 @ cta 0") -> Test:
    body = "".join(f" {row} ;\n" for row in rows.split("\n"))
    return one(f"PTX t\n{{ {initial} }}\n {heads} ;\n{body}{final}\n")


# -- head ----------------------------------------------------------------------------------------------------------


def test_description_and_information() -> None:
    test = one(
        'PTX MP + x\n"one"\n"two\n  Condition = not read {\nthree"\nA line.\nExpect=ptx-8.5:never ptx-6.0:always\n'
        "Cycle = Rfe PodRR\n{ }\n P0 ;\n"
    )
    assert test.name == "MP + x"
    assert test.description == "one\ntwo\nCondition = not read {\nthree\nA line."
    assert test.info == (("Expect", "ptx-8.5:never ptx-6.0:always"), ("Cycle", "Rfe PodRR"))


def test_quotes_within_a_description() -> None:
    text = 'PTX t\n"\n> No // means "No, but unrolled"\n"\n"a "5" disk"\nnot 6" disks\n{ }\n P0 ;\n'
    assert one(text).description == '> No // means "No, but unrolled"\n\na "5" disk\nnot 6" disks'


def test_comments() -> None:
    test = one(
        "PTX t\n{ (* a (* nested } *) one *) x = 0; // to the end }\n y = 0; /* { */ }\n"
        " P0 (* | *) | P1 ;\n st.weak x, /* ; */ 1 | ;\n (* two\n lines *) | ;\nexists // ~\n (x = 1 (* or *) )\n"
    )
    assert [len(t.body) for t in test.threads] == [1, 0]
    assert test.condition is not None and test.condition.text == "x = 1"


# -- threads -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "placement"),
    [
        ("P0", Placement()),
        ("P0@cta 0,gpu 0", Placement(cta=0)),
        ("P0 @cta  1 , gpu 2", Placement(gpu=2, cta=1)),
        ("P0@cta0", Placement(cta=0)),
        ("P0 @ warp 3, cta 1, cluster 2, grid 4, gpu 5", Placement(5, 4, 2, 1, 3)),
        ("P0 @ gpu 5, grid 4, cluster 2, cta 1, warp 3", Placement(5, 4, 2, 1, 3)),
        ("P0 @ cluster 1", Placement(cluster=1)),
        ("P0 @ host", Placement(host=True)),
    ],
)
def test_placements(written: str, placement: Placement) -> None:
    assert typed(".global .u32 x;", "st.u32 [x], 1", heads=written).threads[0].placement == placement


def test_columns_with_empty_cells_and_labels() -> None:
    test = one(
        "PTX t\n{ x=0; }\n P0@cta 0,gpu 0 | P1@cta 0,gpu 0 ;\n LC00: | st.weak x, 1 ;\n ld.weak r0, x | ;\n"
        " bne r0,1,LC00 | ; | END: ;\n END: |\t;\nexists 0==0"
    )
    first, second = test.threads
    assert isinstance(first.body[1], Branch) and first.body[1].target == 0
    assert len(first.body) == 2 and len(second.body) == 1
    assert test.condition is not None
    assert test.condition.proposition == Comparison("==", IntegerTerm(0), IntegerTerm(0))


def test_places_are_those_of_the_file() -> None:
    test = one("PTX t\r\n{ x=0; }\r\n P0 | P1 ;\r\n | st.weak x, 1 ; ld.weak r0, x | st.weak x, 2 ;\r\n")
    spans = [[(op.source.span.line, op.source.span.column) for op in t.body] for t in test.threads]
    assert spans == [[(4, 19)], [(4, 4), (4, 35)]]
    assert test.threads[1].body[1].source.text == "st.weak x, 2"


def test_blocks() -> None:
    test = one(
        "PTX t\n{ .global .u32 x = 0; }\nP0 @ cta 0 {\n  .reg .pred %p<2>; .reg .b64 rd; // two\n"
        "  L: ld.global.u32 %r0, [x];\n  setp.eq.u32 p0|p1, r0, 0;\n  @!p1 bra DONE;\n  bra L;\nDONE:\n}\n"
        "P1 { mov.u64 rd, x; st.u32 [rd], 1 }\nexists (P0:r0 == 1)\n"
    )
    assert [len(t.body) for t in test.threads] == [4, 2]
    assert test.threads[0].registers == {"r0": U32, "p0": PRED, "p1": PRED}
    assert [op.target for op in test.threads[0].body if isinstance(op, Branch)] == [4, 0]


# -- initial state -------------------------------------------------------------------------------------------------


def test_variables() -> None:
    test = typed(
        ".global .align 16 .u32 a[4] = {1, -2}, b; .const .s8 c = -1; .global .b8 d[] = {0x10, 0b11, 017};"
        ".local .u16 l = 7; .global .u64 p = &a+4, q = generic(p), r = a;",
        "ld.local.u16 r0, [l]",
    )
    a, d = test.objects["a"], test.objects["d"]
    assert (a.count, a.is_array, a.initial, a.size) == (4, True, (1, 0xFFFFFFFE, 0, 0), 16)
    assert d.initial == (16, 3, 15)
    assert test.objects["c"].initial == (255,) and test.objects["c"].space == "const"
    assert test.objects["p"].initial == (a.address + 4,)
    assert test.objects["q"].initial == (test.objects["p"].address,)
    assert [o.address for o in test.objects.values()] == [0x7000_0000_0000 + k * 0x1_0100_0000 for k in range(1, 9)]
    assert test.objects["l"].space == "local"


def test_untyped_declarations_in_typed_tests_take_the_type_of_their_first_access() -> None:
    test = typed("x = 3; a[2] = {1, 2}; P0:r1 = 5; 0:rd = a;", "ld.u16 r0, [x]\nst.u32 [rd+4], r1\nst.u32 [a], r1")
    assert test.objects["x"].type == Type("u", 16) and test.objects["a"].type == U32
    assert test.threads[0].registers == {"r0": Type("u", 16), "r1": U32, "rd": B64}
    assert test.threads[0].initial == {"r1": 5, "rd": test.objects["a"].address}


def test_registers() -> None:
    test = typed(
        ".global .u8 x; .reg .u32 P0:r0; .reg .pred P0:p = 1; .reg .s32 P0:unused = -1;",
        "@p ld.u8 r0, [x]\nst.u8 [x], r0",
    )
    assert test.threads[0].registers == {"r0": U32, "p": PRED, "unused": Type("s", 32)}
    assert test.threads[0].initial == {"p": 1, "unused": 0xFFFFFFFF}


def test_aliases() -> None:
    test = one(
        "PTX t\n{ x = 1; y @ generic aliases x; s @ surface aliases x;\n"
        "  t @ texture aliases y; c @ constant aliases x; }\n"
        " P0 ;\n sust.weak s, 2 ;\n tld.weak r0, t ;\n cold.weak r1, c ;\n ld.weak r2, y ;\nexists (s == 2 /\\ y = 2)\n"
    )
    x, y, s, t = (test.objects[k] for k in "xyst")
    assert (y.virtual, y.physical, y.alias_of, y.initial) == ("y", "x", "x", (1,))
    assert y.address != x.address
    assert (s.virtual, s.physical, s.address, s.proxy) == ("x", "x", x.address, "surface")
    assert (t.virtual, t.physical, t.address) == ("y", "x", y.address)
    assert test.default_model == "ptx-7.5"
    assert test.condition is not None
    term = MemoryTerm("x", 0, S64)
    two = IntegerTerm(2)
    assert test.condition.proposition == Conjunction((Comparison("==", term, two), Comparison("==", term, two)))


def test_shared_variables_exist_once_per_cta() -> None:
    rows = "st.shared.u32 [s], 1 | ld.shared.u32 r0, [s] | ld.shared.u32 r0, [s] | fence.sc.gpu"
    heads = "P0 @ cta 0 | P1 @ cta 0 | P2 @ cta 1 | P3 @ cta 2"
    test = typed(".shared .u32 s = 5;", rows, "exists (cta 0:s == 1 /\\ cta 1:s == 5)", heads)
    assert list(test.objects) == ["cta 0:s", "cta 1:s"]
    assert test.objects["cta 1:s"].owner == (0, 0, None, 1)
    loads = [t.body[0] for t in test.threads[:3]]
    assert [op.address.base for op in loads if isinstance(op, Load | Store)] == [
        Sym("cta 0:s"),
        Sym("cta 0:s"),
        Sym("cta 1:s"),
    ]


def test_names_of_shared_variables_have_the_levels_they_need() -> None:
    row = "st.shared.u32 [s], 1 | st.shared.u32 [s], 2"
    test = typed(".shared .u32 s = 0;", row, "exists (gpu 1, cta 0:s == 2)", "P0 @ cta 0 | P1 @ cta 0, gpu 1")
    assert list(test.objects) == ["gpu 0, cta 0:s", "gpu 1, cta 0:s"]
    test = typed(".shared .u32 s = 0;", row, "locations [cluster 1, cta 0:s;]", "P0 @ cta 0 | P1 @ cta 0, cluster 1")
    assert list(test.objects) == ["cta 0:s", "cluster 1, cta 0:s"]
    test = typed(".shared .u32 s = 0;", "st.shared.u32 [s], 1 | fence.sc.gpu", "exists (s = 1)", "P0 | P1")
    assert test.objects["s"].owner == (0, 0, None, None)


def test_shared_variable_with_an_owner() -> None:
    heads = "P0 @ cta 0, cluster 0 | P1 @ cta 1, cluster 0"
    test = typed(
        ".shared .u32 s @ cluster 0, cta 1 = 0;",
        "st.shared::cluster.u32 [s], 1 | ld.shared.u32 r0, [s]",
        "exists (cta 1:s == 1 /\\ s == 1)",
        heads,
    )
    assert test.objects["s"].owner == (0, 0, 0, 1)
    with pytest.raises(PtxmmError, match="of another CTA of the cluster"):
        typed(".shared .u32 s @ cta 1 = 0;", "st.shared.u32 [s], 1 | fence.sc.gpu", "", heads)


def test_local_variables_exist_once_per_thread() -> None:
    rows = "st.local.u32 [l], 1 | ld.local.u32 r0, [l]"
    test = typed(".local .u32 l = 0;", rows, "exists (P0:l == 1 /\\ P1:r0 == 1)", "P0 | P1")
    assert list(test.objects) == ["P0:l", "P1:l"]


# -- the untyped dialect -------------------------------------------------------------------------------------------


def test_locations_without_declaration() -> None:
    test = one("PTX t\n{ P1:r1 = y; }\n P0 | P1 ;\n st.weak x, 1 | ld.weak r0, r1 ;\nexists (x == 1 /\\ y == 0)")
    assert test.dialect
    assert {k: (o.type, o.initial) for k, o in test.objects.items()} == {"x": (S64, (0,)), "y": (S64, (0,))}
    load = test.threads[1].body[0]
    assert isinstance(load, Load) and load.address == Address(Reg("r1"))
    assert test.threads[1].initial == {"r1": test.objects["y"].address}
    assert test.threads[1].registers == {"r0": S64, "r1": S64}


def test_addresses_in_the_dialect() -> None:
    test = one("PTX t\n{ x = 0; p = &x; rd1 = 4; }\n P0 ;\n st.weak q, &x ;\n mov r1, &z ;\n ld.weak r2, rd1 ;\n")
    assert test.objects["p"].initial == (test.objects["x"].address,)
    assert set(test.objects) == {"x", "p", "rd1", "q", "z"}
    load = test.threads[0].body[2]
    assert isinstance(load, Load) and load.address.base == Sym("rd1")


@pytest.mark.parametrize(
    ("rows", "dialect"),
    [
        ("st.weak x, 1", True),
        ("st.global.u32 [x], 1", False),
        ("L: @p ld.u32 r0, [x]", False),
        ("fence.sc.gpu", False),
        ("goto L\nL:", True),
        ("bar.cta.sync 1\nbeq r0, 0, L\nL:", True),
        ("mov.u32 r0, 1", False),
    ],
)
def test_which_files_are_in_the_dialect(rows: str, dialect: bool) -> None:
    initial = "P0:r0 = 0;" if "beq" in rows else ".reg .pred P0:p = 1;" if "@p" in rows else ""
    assert typed(f".global .{'s64' if dialect else 'u32'} x = 0; {initial}", rows).dialect == dialect


def test_file_without_memory_instructions_is_in_the_dialect_if_it_declares_as_there() -> None:
    assert typed("x = 0;", "fence.sc.gpu").dialect
    assert not typed(".global .u32 x = 0;", "fence.sc.gpu").dialect


# -- conditions ----------------------------------------------------------------------------------------------------

R0, R1 = RegisterTerm(0, "r0", U32), RegisterTerm(1, "r1", U32)


def is_(term: RegisterTerm | MemoryTerm, value: int) -> Proposition:
    return Comparison("==", term, IntegerTerm(value))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("P0:r0 = 1", is_(R0, 1)),
        ("0:r0 == 0x10 /\\ 1:%r1 = -1", Conjunction((is_(R0, 16), is_(R1, -1)))),
        ("0:r0=1 \\/ 0:r0=2 /\\ 1:r1=3", Disjunction((is_(R0, 1), Conjunction((is_(R0, 2), is_(R1, 3)))))),
        ("(0:r0=1 \\/ 0:r0=2) /\\ 1:r1=3", Conjunction((Disjunction((is_(R0, 1), is_(R0, 2))), is_(R1, 3)))),
        ("~0:r0=1 /\\ not (1:r1=3)", Conjunction((Negation(is_(R0, 1)), Negation(is_(R1, 3))))),
        ("~~(0:r0=1)", Negation(Negation(is_(R0, 1)))),
        ("(((0:r0=1)))", is_(R0, 1)),
        ("true /\\ false", Conjunction((Conjunction(()), Disjunction(())))),
        ("a[1] != 1", Comparison("!=", MemoryTerm("a", 1, U32), IntegerTerm(1))),
        ("[x] < P0:r0", Comparison("<", MemoryTerm("x", 0, U32), R0)),
        ("P0:rd >= &a+4", Comparison(">=", RegisterTerm(0, "rd", U64), AddressTerm("a", 4, 0x7002_0200_0004))),
        ("P0:rd > &a[1]", Comparison(">", RegisterTerm(0, "rd", U64), AddressTerm("a", 4, 0x7002_0200_0004))),
        ("P0:r0 <= P1:r1", Comparison("<=", R0, R1)),
    ],
)
def test_conditions(text: str, expected: object) -> None:
    rows = "ld.u32 r0, [x] | ld.u32 r1, [x]\nmov.u64 rd, x | "
    test = typed(".global .u32 x, a[2];", rows, f"~ exists {text}\n", "P0 | P1")
    assert test.condition is not None
    assert (test.condition.kind, test.condition.proposition) == ("~exists", expected)


def test_sections_after_the_threads_in_any_order() -> None:
    final = "filter (P0:r0 == 1)\nforall\n (P0:r0 == 2\n  \\/ (x == 1))\nlocations [x; P0:r0;]"
    test = typed(".global .u32 x;", "ld.u32 r0, [x]", final)
    assert test.filter == is_(R0, 1)
    assert test.locations == (MemoryTerm("x", 0, U32), R0)
    assert test.condition is not None
    assert (test.condition.kind, test.condition.text) == ("forall", "P0:r0 == 2 \\/ (x == 1)")


def test_names_that_are_words_of_the_format() -> None:
    rows = "st.u32 [filter], 1\nst.u32 [cta], 1\nld.u32 exists, [not]"
    test = typed(".global .u32 filter, cta, not, gpu;", rows, "exists (filter == 1 /\\ cta == 1 /\\ P0:exists == 0)")
    assert test.condition is not None


# -- writing -------------------------------------------------------------------------------------------------------


def test_canonical_text() -> None:
    test = one(
        'PTX MP\n"Message passing."\nExpect=ptx-8.5:never\n{\n.global .u32 x=0; .global .u32 f;\n}\n'
        "P0@cta 0|P1@cta 1 ;\nst.global.u32 [x],1|L: ld.acquire.gpu.global.u32 %r0,[f];\n"
        "st.release.gpu.global.u32 [f],1|setp.ne.u32 p, r0, 1;\n|@p bra L;|ld.weak.global.u32 r1,[x];\n"
        "exists (1:r0=1 /\\ 1:r1=0)"
    )
    assert (
        write(test)
        == """\
PTX MP
"Message passing."
Expect=ptx-8.5:never
{
  .global .u32 x = 0;
  .global .u32 f = 0;
}
 P0 @ cta 0, gpu 0                | P1 @ cta 1, gpu 0                 ;
 st.global.u32 [x], 1             | L0:                               ;
 st.release.gpu.global.u32 [f], 1 | ld.acquire.gpu.global.u32 r0, [f] ;
                                  | setp.ne.u32 p, r0, 1              ;
                                  | @p bra L0                         ;
                                  | ld.global.u32 r1, [x]             ;
exists (P1:r0 == 1 /\\ P1:r1 == 0)
"""
    )


def test_same_sees_every_difference_but_places() -> None:
    test = typed(".global .u32 x;", "ld.u32 r0, [x]", "exists (P0:r0 == 1)")
    assert same(test, replace(test, file="other", text=""))
    load = test.threads[0].body[0]
    assert isinstance(load, Load)
    other = replace(test.threads[0], body=(replace(load, address=Address(Imm(0))),))
    assert not same(test, replace(test, threads=(other,)))
    assert not same(test, replace(test, name="u"))


def test_unnatural_propositions_are_written_and_read() -> None:
    test = typed(".global .u32 x;", "ld.u32 r0, [x]", "exists (P0:r0 == 1)")
    assert test.condition is not None
    odd = Conjunction((Disjunction((is_(R0, 1),)), Negation(Conjunction(())), Disjunction(())))
    changed = replace(test, condition=replace(test.condition, proposition=odd))
    assert write(changed).endswith("exists (P0:r0 == 1 /\\ ~(true) /\\ false)\n")
    assert same(changed, parse(write(changed))[0])


# -- files ---------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not PUBLIC, reason=f"no public tests in {CORPORA}: set PTXMM_CORPORA")
@pytest.mark.parametrize("path", PUBLIC, ids=lambda p: p.stem)
def test_public_file(path: Path) -> None:
    (test,) = formats.read(path)
    text = write(test)
    (again,) = formats.parse(text)
    assert test.dialect
    assert same(test, again)
    assert write(again) == text
    expected = "ptx-7.5" if "roxy" in str(path) else "ptx-8.5"
    assert test.default_model == expected


@pytest.mark.parametrize("path", OWN, ids=lambda p: p.stem)
def test_own_file(path: Path) -> None:
    (test,) = formats.read(path)
    text = write(test)
    (again,) = formats.parse(text)
    assert same(test, again)
    assert write(again) == text


def test_an_instruction_without_types_does_not_decide_the_language() -> None:
    """``st.bulk`` has no type in PTX."""
    body = "st.bulk.weak.shared::cta [s], 8, 0; st.shared.u64 [s], 1;"
    text = f"PTX t\n{{ .shared .b64 s @ cta 0; }}\nP0 @ cta 0 {{ {body} }}\n"
    with pytest.raises(PtxmmError, match=r"`st\.bulk` is PTX ISA 8\.6"):
        formats.parse(text)
