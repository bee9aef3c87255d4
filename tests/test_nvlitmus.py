"""The nvlitmus format: what its files mean, what is wrong with wrong ones, and printing them."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ptxmm.errors import PtxmmError
from ptxmm.formats.nvlitmus import parse, write
from ptxmm.program.condition import (
    Comparison,
    Conjunction,
    Disjunction,
    IntegerTerm,
    MemoryTerm,
    Negation,
    RegisterTerm,
)
from ptxmm.program.test import Placement, Test
from ptxmm.ptx.ops import Address, Atomic, Fence, Imm, Load, ProxyFence, Reg, Store, Sym, Type

S64 = Type("s", 64)

MP = """\
// message passing
.global x;
.global flag;

d0.b0.t0 {
  st [x], 42;
  st.release.cta [flag], 1;  // the flag
}
d0.b0.t1 {
  ld.acquire.cta r0, [flag] == 1;
  ld.weak r1, [x];
}
assert (r1 == 42) as outcome;
"""

TEMPLATE = """\
.global x;
.surfref s virtually aliases x;
d0.b0.t0 {
  $0, 1;
  $1
  $2 r0, $3;
}
$4(r0 $5 1) as r0;

$$

# a comment
st   [x] |                      | ld   | [x] | assert | ==

sust [s] | fence.proxy.surface; | ld   | [x] | assert | ==
st   [x] |                      | suld | [s] | permit | !=
"""


def one(text: str) -> Test:
    tests = parse(text, "t.test")
    assert len(tests) == 1
    return tests[0]


def body(instruction: str, declarations: str = ".global x; .surfref s virtually aliases x;") -> str:
    return f"{declarations}\nd0.b0.t0 {{ ld r0, [x]; {instruction} }} permit (r0 == 0) as q;"


def test_message_passing() -> None:
    test = one(MP)
    assert test.name == "t.outcome"
    assert test.dialect and test.default_model == "ptx-7.5"
    assert test.info == (("Query", "assert"), ("Expect", "ptx-7.5:holds"))
    assert [t.name for t in test.threads] == ["P0", "P1"]
    assert {t.placement for t in test.threads} == {Placement(gpu=0, cta=0)}
    assert test.threads[1].registers == {"r0": S64, "r1": S64}
    st_, release = test.threads[0].body
    assert isinstance(st_, Store) and (st_.sem, st_.scope, st_.values) == ("weak", None, (Imm(42),))
    assert isinstance(release, Store) and (release.sem, release.scope) == ("release", "cta")
    assert release.address == Address(Sym("flag")) and release.type == S64
    acquire, weak = test.threads[1].body
    assert isinstance(acquire, Load) and (acquire.sem, acquire.scope, acquire.dst) == ("acquire", "cta", (Reg("r0"),))
    assert isinstance(weak, Load) and weak.sem == "weak"
    assert test.filter == Comparison("==", RegisterTerm(1, "r0", S64), IntegerTerm(1))
    assert test.condition is not None and test.condition.kind == "forall"
    assert test.condition.text == "r1 == 42"
    assert test.condition.proposition == Comparison("==", RegisterTerm(1, "r1", S64), IntegerTerm(42))


def test_places_of_instructions() -> None:
    test = one(MP)
    source = test.threads[1].body[0].source
    assert (source.span.line, source.span.column) == (10, 3)
    assert source.text == "ld.acquire.cta r0, [flag]"


def test_layout() -> None:
    test = one(
        ".global x; .global y physically aliases x; .surfref s virtually aliases y; .conref c virtually aliases x;"
        ".global z; d0.b0.t0 { ld r0, [x]; } permit (r0 == 0) as q;"
    )
    o = test.objects
    assert o["x"].address == 0x7001_0100_0000
    assert o["y"].address == 0x7002_0200_0000 and (o["y"].virtual, o["y"].physical, o["y"].alias_of) == ("y", "x", "x")
    assert o["s"].address == o["y"].address and (o["s"].virtual, o["s"].physical) == ("y", "x")
    assert o["s"].proxy == "surface" and o["c"].proxy == "constant" and o["c"].alias_of == "x"
    assert o["z"].address == 0x7003_0300_0000
    assert test.locate(0x7002_0200_0007) == (o["y"], 7)


@pytest.mark.parametrize(
    ("text", "proxy"), [("tld r1, [t];", "texture"), ("suld r1, [s];", "surface"), ("ldc r1, [c];", "constant")]
)
def test_proxies_of_loads(text: str, proxy: str) -> None:
    aliases = "".join(f".{d} virtually aliases x;" for d in ("texref t", "surfref s", "conref c"))
    op = one(body(text, ".global x;" + aliases)).threads[0].body[1]
    assert isinstance(op, Load) and op.proxy == proxy and op.sem == "weak"


def test_other_instructions() -> None:
    ops = (
        one(
            body(
                "st.volatile [x], 2; ld.volatile r1, [x]; sust.relaxed.gpu [s], r0; atom.add.acq_rel.gpu r2, [x], 1;"
                "red.add.relaxed.gpu [x], r0; suatom.add.relaxed.gpu r3, [s], 1; fence.sc.sys; fence.acq_rel.cta;"
                "fence.proxy.alias; fence.alias; fence.proxy.texture;"
            )
        )
        .threads[0]
        .body[1:]
    )
    volatile = ops[0]
    assert isinstance(volatile, Store) and volatile.volatile and (volatile.sem, volatile.scope) == ("relaxed", "sys")
    assert isinstance(ops[2], Store) and ops[2].proxy == "surface" and ops[2].values == (Reg("r0"),)
    atom, red, suatom = ops[3], ops[4], ops[5]
    assert isinstance(atom, Atomic) and (atom.op, atom.sem, atom.scope, atom.returns) == ("add", "acq_rel", "gpu", True)
    assert isinstance(red, Atomic) and not red.returns and red.operands == ((Reg("r0"),),)
    assert isinstance(suatom, Atomic) and suatom.proxy == "surface"
    assert isinstance(ops[6], Fence) and (ops[6].sem, ops[6].scope) == ("sc", "sys")
    assert [o.kind for o in ops[8:] if isinstance(o, ProxyFence)] == ["alias", "alias", "texture"]


def test_shared_objects_get_their_cta() -> None:
    test = one(".shared s; d1.b2.t0 { st [s], 1; ld r0, [s]; } permit (r0 == 1) as q;")
    assert test.objects["s"].owner == (1, 0, None, 2)


def test_expected_values_of_several_loads_and_atomics() -> None:
    test = one(body("atom.add.relaxed.gpu r1, [x], 1 == 0; ld r2, [x] == 0x10;"))
    assert test.filter == Conjunction(
        (
            Comparison("==", RegisterTerm(0, "r1", S64), IntegerTerm(0)),
            Comparison("==", RegisterTerm(0, "r2", S64), IntegerTerm(16)),
        )
    )


def test_conditions() -> None:
    text = body("ld r1, [x];").replace("(r0 == 0)", "(r0 == 0 || not r1 != 2 && (r0 == r1 || !(3 == r1)))")
    condition = one(text).condition
    assert condition is not None and condition.kind == "exists"
    r0, r1 = RegisterTerm(0, "r0", S64), RegisterTerm(0, "r1", S64)
    assert condition.proposition == Disjunction(
        (
            Comparison("==", r0, IntegerTerm(0)),
            Conjunction(
                (
                    Negation(Comparison("!=", r1, IntegerTerm(2))),
                    Disjunction((Comparison("==", r0, r1), Negation(Comparison("==", IntegerTerm(3), r1)))),
                )
            ),
        )
    )


def test_several_queries() -> None:
    tests = parse(MP + "permit (r1 == 0) as p; check (r0 == 1) as c;", "dir/MP.test")
    assert [t.name for t in tests] == ["MP.outcome", "MP.p", "MP.c"]
    assert [t.condition.kind for t in tests if t.condition] == ["forall", "exists", "exists"]
    assert [t.info[0][1] for t in tests] == ["assert", "permit", "check"]


def test_template() -> None:
    tests = parse(TEMPLATE, "T.test")
    assert [t.name for t in tests] == ["T.r0.1", "T.r0.2", "T.r0.3"]
    assert [len(t.threads[0].body) for t in tests] == [2, 3, 2]
    assert [t.condition.kind for t in tests if t.condition] == ["forall", "forall", "exists"]
    second = tests[1].threads[0].body
    assert isinstance(second[0], Store) and second[0].proxy == "surface"
    assert second[1].source.span.line == 15 and second[1].source.text == "fence.proxy.surface"
    assert second[0].source.span.line == 15  # a parameter's cell is where the instruction begins
    assert tests[0].description == "st   [x] |  | ld | [x] | assert | =="


def test_crlf_and_byte_order_mark() -> None:
    for text in (MP, TEMPLATE):
        want = parse(text, "t.test")
        got = parse("\ufeff" + text.replace("\n", "\r\n"), "t.test")
        assert [(t.name, t.filter, t.condition) for t in got] == [(t.name, t.filter, t.condition) for t in want]


ERRORS = [
    ("", "the file is empty", None, None),
    (".global x;", "a test needs a thread", 1, 1),
    ("d0.b0.t0 { }", "a test needs a query", 1, 12),
    (".global x\n.global y;", "unexpected `.`", 2, 1),
    (".local x;", "unknown state space `.local`", 1, 2),
    (".global x; .global x;", "`x` is declared twice", 1, 20),
    (".surfref s;", ".surfref s names no location", 1, 10),
    (".surfref s virtually aliases x;", "`x` is not declared", 1, 30),
    (".global x; .surfref s physically aliases x;", "a .surfref alias is not `physically`", 1, 23),
    (".global x; .global y virtually aliases x;", "a .global alias is not `virtually`", 1, 22),
    ("d0.b0.t0 { } d0.b0.t0 { }", "two threads are d0.b0.t0", 1, 14),
    ("d0.b0.t0 { ld r0, [x]; ", "the file ends too early", 1, 22),
    ("d0.b0 { }", "unexpected `d0`", 1, 1),
    (body("ld r1, [y];"), "`y` is not declared", 2, 32),
    (body("ld.relaxed r1, [x];"), None, 2, 24),
    (body("ld.acquire.gpu r1, [s];"), "`s` is accessed through the surface proxy, not the generic one", 2, 24),
    (body("suld r1, [x];"), "`x` is accessed through the generic proxy, not the surface one", 2, 24),
    (body("st [x], r7;"), "this thread has not written `r7` before", 2, 32),
    (body("ld r1, [r0];"), "an access names its location", 2, 24),
    (body("ld r0, [x] == 1; ld r0, [x];"), "`r0` is written again, so `== 1` can't be checked at the end", 2, 35),
    (body("st [x], 1 == 2;"), "only what a load or an atomic returns can be expected", 2, 34),
    (body("ld r1, [x] == r0;"), "an expected value is an integer", 2, 35),
    (body("frob r1;"), None, 2, 24),
    (body("mov r1, 2;"), "no instruction of this format: `mov`", 2, 24),
    (body("").replace("r0 == 0", "r9 == 0"), "no thread writes `r9`", 2, 35),
    (body("").replace("r0 == 0", "r0 < 0"), "unexpected `<`", 2, 38),
    (body("").replace("r0 == 0", "r0 == 0q"), "`0q` is not an integer of at most 64 bits", 2, 41),
    (body("").replace("== 0)", "== 18446744073709551616)"), "`18446744073709551616` is not", 2, 41),
    (body("").replace("(r0 == 0)", "((r0 == 0)"), "unexpected `as`", 2, 45),
    (body("") + "assert (r0 == 1) as q;", "two queries have the name `q`", 2, None),
    (body("").replace("as q", ""), "unexpected `;`", 2, None),
    (body("$0"), "no table gives `$0` a value", 2, 24),
    (body("$x"), "stray `$`", 2, 24),
    (body("$$"), "stray `$$`", 2, 24),
    (body("$0") + "\n$$\n", "the table has no rows", 3, 1),
    (body("$1") + "\n$$\nfence.sc.gpu;\n", "the row has no cell for `$1` of line 2", 4, 1),
    (body("$0") + "\n$$\nfence.sc.gpu; | a\n", "the template does not use `$1`", 4, 17),
    (body("$0") + "\n$$\n\n fence.sc;\n", None, 5, 2),
    (body("ld $0, [x];") + "\n$$\n3\n", None, 4, 1),
    (body("").replace("(r0 == 0)", "(" * 300 + "0 == 0" + ")" * 300), "more than 200 nested parentheses", 2, 234),
    (
        body("").replace("r0 == 0", "not (0 == 1 || 0 == 0 && " * 150 + "r0 == 0" + ")" * 150),
        "the condition is nested more than 200 deep",
        2,
        None,
    ),
    ("\x00\x01", "the file has a NUL character", 1, 1),
    ("\x01", "unexpected character U+0001", 1, 1),
]


@pytest.mark.parametrize(("text", "message", "line", "column"), ERRORS)
def test_errors(text: str, message: str | None, line: int | None, column: int | None) -> None:
    with pytest.raises(PtxmmError) as caught:
        parse(text, "t.test")
    error = caught.value
    assert error.file == "t.test"
    assert message is None or error.message.startswith(message)
    assert error.line == line, str(error)
    assert column is None or error.column == column, str(error)
    assert str(error).startswith("t.test:")


def test_ambiguous_register() -> None:
    text = ".global x; d0.b0.t0 { ld r0, [x]; } d0.b0.t1 { ld r0, [x]; } permit (r0 == 1) as q;"
    with pytest.raises(PtxmmError, match="several threads write `r0`"):
        parse(text)


def test_shared_in_two_ctas() -> None:
    text = ".shared s; d0.b0.t0 { st [s], 1; } d0.b1.t0 { ld r0, [s]; } permit (r0 == 1) as q;"
    with pytest.raises(PtxmmError, match="used by threads of two CTAs") as caught:
        parse(text)
    assert caught.value.kind == "unsupported" and caught.value.column == 47


def test_a_table_that_explodes() -> None:
    text = "d0.b0.t0 { " + "$0 " * 20_000 + "} permit (0 == 0) as q;\n$$\n" + "fence.sc.gpu; " * 20_000
    with pytest.raises(PtxmmError, match="more than 500,000 characters"):
        parse(text)


def test_long_conditions_are_fine() -> None:
    text = body("").replace("r0 == 0", " && ".join(["r0 == 0"] * 5_000))
    condition = one(text).condition
    assert condition is not None and isinstance(condition.proposition, Conjunction)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_mutated_files_give_clean_errors(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from([MP, TEMPLATE, body("atom.add.relaxed.gpu r1, [x], 1 == 0;")]))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        size = data.draw(st.integers(0, 8))
        put = data.draw(st.sampled_from(["", ";", "{", "}", "(", "$0", "$$", "|", "\n", "r0", "ld", "==", "\x00", "é"]))
        text = text[:at] + put + text[at + size :]
    try:
        parse(text)
    except PtxmmError as error:
        assert error.message and (error.line is not None or error.message == "the file is empty")


# Printing.


def shape(test: Test) -> tuple[object, ...]:
    """What printing keeps."""
    ops = [[replace(op, source=None) for op in t.body] for t in test.threads]
    threads = [(t.name, t.placement, t.registers) for t in test.threads]
    kind = test.condition.kind if test.condition else None
    return ops, threads, test.objects, test.filter, kind, test.condition.proposition if test.condition else None


def test_print_then_parse() -> None:
    for test in parse(MP, "t.test") + parse(TEMPLATE, "T.test"):
        assert shape(one(write(test))) == shape(test)


def test_print_conditions_without_parentheses() -> None:
    text = body("ld r1, [x];").replace("(r0 == 0)", "((r0 == 0 || r1 == 1) && not (r0 == 2 && r1 == 3))")
    assert (
        "permit (r0 == 0 && r0 != 2 || r0 == 0 && r1 != 3 || r1 == 1 && r0 != 2 || r1 == 1 && r1 != 3) as t_q;"
        in write(one(text))
    )


def test_print_never() -> None:
    test = one(body(""))
    assert test.condition is not None
    never = replace(test, condition=replace(test.condition, kind="~exists"))
    assert "assert (r0 != 0) as" in write(never)


def test_print_renames_registers_of_two_threads() -> None:
    text = ".global x; d0.b0.t0 { ld r0, [x]; ld r0, [x]; st [x], r0; } d0.b0.t1 { ld r0, [x]; ld r5, [x]; }"
    test = one(text + "permit (r5 == 1) as q;")
    again = one(write(test))
    assert again.threads[0].body[2] != test.threads[0].body[2]
    names = Counter(r for t in again.threads for r in t.registers)
    assert set(names.values()) == {1} and len(names) == 4


def test_print_refuses() -> None:
    test = one(body("fence.sc.gpu;"))
    thread = test.threads[0]
    assert test.condition is not None

    def with_body(*ops: object) -> Test:
        return replace(test, threads=(replace(thread, body=(*thread.body, *ops)),))

    source = thread.body[0].source
    memory = MemoryTerm("x", 0, S64)
    exchange = Atomic((None,), "exch", Address(Sym("x")), ((Imm(1),),), S64, "relaxed", "gpu", None, True, source)
    cases = [
        (replace(test, dialect=False), "typed instructions"),
        (replace(test, condition=None), "a test without a condition"),
        (with_body(Fence("sc", "cluster", source)), "this instruction"),
        (with_body(exchange), "this instruction"),
        (with_body(Store(Address(Reg("r0")), (Imm(1),), S64, "weak", None, None, source)), "addresses other"),
        (with_body(Store(Address(Sym("x")), (Imm(-1),), S64, "weak", None, None, source)), "this value"),
        (replace(test, threads=(replace(thread, placement=Placement(cta=0, warp=1)),)), "the placement of P0"),
        (replace(test, threads=(replace(thread, initial={"r0": 1}),)), "an initial value of the register P0:r0"),
        (replace(test, objects={"x": replace(test.objects["x"], initial=(1,))}), "the initial value of `x`"),
        (
            replace(test, condition=replace(test.condition, proposition=Comparison("==", memory, IntegerTerm(1)))),
            "this condition",
        ),
        (replace(test, filter=Comparison("!=", RegisterTerm(0, "r0", S64), IntegerTerm(1))), "this filter"),
        (replace(test, condition=replace(test.condition, proposition=Conjunction(()))), "a condition that is constant"),
    ]
    for bad, message in cases:
        with pytest.raises(PtxmmError, match="the nvlitmus format has no place for " + message) as caught:
            write(bad)
        assert caught.value.kind == "unsupported"


CORPORA = Path(os.environ.get("PTXMM_CORPORA", Path(__file__).resolve().parents[2] / "shared" / "corpora"))
CORPUS = CORPORA / "nvlitmus"


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the public tests are not here")
def test_corpus() -> None:
    for path in sorted(CORPUS.glob("*.test")):
        for test in parse(path.read_text(), str(path)):
            assert shape(one(write(test))) == shape(test)
