"""The parser of statements: syntax, positions, and the exact text of every error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxmm.errors import PtxmmError, Span
from ptxmm.ptx.parser import MAX_CHARACTERS, parse_float, parse_integer, parse_statements
from ptxmm.ptx.syntax import (
    AddressOf,
    Float,
    Instruction,
    Label,
    Memory,
    Name,
    Negated,
    Number,
    Operand,
    Pair,
    Sum,
    Vector,
)
from tests.support import watched


def only(text: str) -> Instruction:
    (statement,) = parse_statements(text)
    assert isinstance(statement, Instruction)
    return statement


def operand(text: str) -> Operand:
    (item,) = only(f"op {text}").operands
    return item


def error_of(text: str, *, dialect: bool = False) -> PtxmmError:
    with pytest.raises(PtxmmError) as caught:
        parse_statements(text, dialect=dialect)
    return caught.value


def test_an_instruction_has_opcode_qualifiers_operands() -> None:
    item = only("ld.relaxed.gpu.shared::cta.L1::no_allocate.u32 %r0, [x+4]")
    assert item.opcode == "ld"
    assert [q for q, _ in item.qualifiers] == ["relaxed", "gpu", "shared::cta", "L1::no_allocate", "u32"]
    assert item.mnemonic == "ld.relaxed.gpu.shared::cta.L1::no_allocate.u32"
    first, second = item.operands
    assert isinstance(first, Name) and first.name == "r0" and first.percent and first.text == "%r0"
    assert isinstance(second, Memory) and isinstance(second.base, Name)
    assert (second.base.name, second.offset) == ("x", 4)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("42", 42),
        ("-42", -42),
        ("+7", 7),
        ("0x1f", 31),
        ("0XFFU", 255),
        ("0b101", 5),
        ("017", 15),
        ("00", 0),
        ("3U", 3),
        ("1+2", 3),
        ("8-2-1", 5),
        ("1+-2", -1),
        ("18446744073709551615", (1 << 64) - 1),
        ("-9223372036854775808", -(1 << 63)),
    ],
)
def test_integer_constants(text: str, value: int) -> None:
    item = operand(text)
    assert isinstance(item, Number) and item.value == value


def test_parse_integer_is_none_for_other_text() -> None:
    assert [parse_integer(t) for t in ("", "x", "0x", "09", "1.5", "9" * 5000, "0x1" + "0" * 16)] == [None] * 7


@pytest.mark.parametrize(
    ("text", "bits", "single", "exact"),
    [
        ("1.0", 0x3FF0000000000000, False, False),
        ("-1.5", 0xBFF8000000000000, False, False),
        ("2.", 0x4000000000000000, False, False),
        ("1e3", 0x408F400000000000, False, False),
        ("2.5e-1", 0x3FD0000000000000, False, False),
        ("-0.0", 0x8000000000000000, False, False),
        ("0f3F800000", 0x3F800000, True, True),
        ("0FbF800000", 0xBF800000, True, True),
        ("0d7FF0000000000000", 0x7FF0000000000000, False, True),
    ],
)
def test_floating_point_constants(text: str, bits: int, single: bool, exact: bool) -> None:
    item = operand(text)
    assert isinstance(item, Float) and (item.bits, item.single, item.exact) == (bits, single, exact)


def test_parse_float_is_none_for_other_text() -> None:
    assert [parse_float(t) for t in ("", "1", "0f3F80", "1e999", "x", "1.5x", "1." * 50)] == [None] * 7
    assert parse_float("0f7F800000") == (0x7F800000, True)


@pytest.mark.parametrize(
    ("text", "name", "offset"),
    [("[x]", "x", 0), ("[x+4]", "x", 4), ("[x-4]", "x", -4), ("[%rd1+-8]", "rd1", -8), ("[ x + 0x10 ]", "x", 16)],
)
def test_memory_operands(text: str, name: str, offset: int) -> None:
    item = operand(text)
    assert isinstance(item, Memory) and isinstance(item.base, Name)
    assert (item.base.name, item.offset, item.extra) == (name, offset, None)


def test_other_operands() -> None:
    absolute = operand("[64]")
    assert isinstance(absolute, Memory) and isinstance(absolute.base, Number) and absolute.base.value == 64
    total = operand("x+4")
    assert isinstance(total, Sum) and (total.base.name, total.offset) == ("x", 4)
    address = operand("&x-8")
    assert isinstance(address, AddressOf) and (address.base.name, address.offset) == ("x", -8)
    pair = operand("p|_")
    assert isinstance(pair, Pair) and (pair.first.name, pair.second.name) == ("p", "_")
    negated = operand("!%p")
    assert isinstance(negated, Negated) and negated.name.name == "p"
    vector = operand("{a, 1, x+4}")
    assert isinstance(vector, Vector) and len(vector.items) == 3
    unified = operand("[x].unified")
    assert isinstance(unified, Memory) and unified.extra == "unified"
    tensor = operand("[tm, {c0, 3}]")
    assert isinstance(tensor, Memory) and isinstance(tensor.coordinates, Vector) and tensor.extra is None
    assert len(tensor.coordinates.items) == 2
    texture = operand("[tex, smp]")
    assert isinstance(texture, Memory) and (texture.coordinates, texture.extra) == (None, "coordinates")
    special = operand("%tid.x")
    assert isinstance(special, Name) and special.name == "tid.x"


@pytest.mark.parametrize(
    ("text", "name", "negated"), [("@p exit", "p", False), ("@!p exit", "p", True), ("@ ! %p1 exit", "p1", True)]
)
def test_guards(text: str, name: str, negated: bool) -> None:
    guard = only(text).guard
    assert guard is not None and (guard.name.name, guard.negated) == (name, negated)


def test_labels_and_statements() -> None:
    statements = parse_statements("L0: L1:\n ret; $L_2: bra L0;\n end:")
    assert [s.name if isinstance(s, Label) else s.text for s in statements] == [
        "L0",
        "L1",
        "ret",
        "$L_2",
        "bra L0",
        "end",
    ]
    assert parse_statements("") == []
    assert parse_statements(" // only a comment") == []
    assert len(parse_statements("ret; ret;")) == len(parse_statements("ret; ret")) == 2


def test_comments_and_line_ends() -> None:
    item = only("/* a \n b */ st.u32 /* ; */ [x],\r\n // here: ;\r\n 1 /***/")
    assert item.opcode == "st" and len(item.operands) == 2
    assert item.span == Span(2, 7, 26)
    assert item.text == "st.u32 [x], 1"


def test_positions_are_those_of_the_file() -> None:
    label, first, second = parse_statements("L: @p ld.u32 r0, [x];\n st.u32 [x], 1", 10, 5)
    assert isinstance(label, Label) and label.span == Span(10, 5, 7)
    assert isinstance(first, Instruction) and isinstance(second, Instruction)
    assert first.span == Span(10, 8, 25)
    assert first.guard is not None and first.guard.span == Span(10, 8, 10)
    assert first.opcode_span == Span(10, 11, 17)
    assert first.qualifiers[0][1] == Span(10, 13, 17)
    assert first.operands[1].span == Span(10, 22, 25)
    assert second.span == Span(11, 2, 15)
    assert first.text == "@p ld.u32 r0, [x]"


ERRORS = [
    ("ld.u32 r0 [x]", 1, 11, "missing `,` before `[`", None),
    ("ld.u32 r0 x", 1, 11, "missing `,` before `x`", None),
    ("ld.u32 r0, x[1]", 1, 13, "array indexing is not PTX assembly here", "write the offset in bytes: [x+4]"),
    ("ld.u32 r0, [x", 1, 14, "missing `]` before the end", None),
    ("ld.u32 r0, [x;", 1, 14, "missing `]` before `;`", None),
    ("ld.u32 r0, [x y]", 1, 15, "missing `]` before `y`", None),
    ("ld.u32 {a, b, [x]", 1, 15, "expected a register or an integer constant, found `[`", None),
    ("ld.u32 {a, b", 1, 13, "missing `}` before the end", None),
    (";", 1, 1, "stray `;`: there is no instruction before it", None),
    ("ret;;", 1, 5, "stray `;`: there is no instruction before it", None),
    ("L: ;", 1, 4, "stray `;`: there is no instruction before it", "a label needs no `;`"),
    ("ld.u32 r0,;", 1, 11, "expected an operand after `,`, found `;`", None),
    ("ld.u32 r0,", 1, 11, "expected an operand after `,`, found the end", None),
    ("ld.u32 r0,,[x]", 1, 11, "expected an operand after `,`, found `,`", None),
    ("ld.u32 r0, [x]\n  st.u32 [x], 1", 1, 14, "missing `;` after the instruction", None),
    ("@p", 1, 3, "expected an instruction after the guard, found the end", None),
    ("@p;", 1, 3, "expected an instruction after the guard, found `;`", None),
    ("@[x]", 1, 2, "expected a name or `!`, found `[`", None),
    ("mov.u32 r0, -r1", 1, 14, "expected an integer constant, found `r1`", None),
    ("mov.u32 r0, [[x]]", 1, 14, "expected a register or an integer constant, found `[`", None),
    ("5", 1, 1, "expected an instruction or a label, found `5`", None),
    (".u32 x", 1, 1, "expected an instruction or a label, found `.u32`", None),
    (
        "r0 = 1",
        1,
        1,
        "`r0 =` is CUDA C++: a thread is written in PTX",
        "write `mov.u32 r0, 1`, `ld.global.u32 r0, [x]` or `st.global.u32 [x], 1`",
    ),
    ("ld\x00", 1, 3, "unexpected character U+0000", None),
    ("ld. x", 1, 3, "unexpected character `.`", None),
    ("ret; /* x", 1, 6, "the comment `/*` has no end", "close it with `*/`"),
    ("mov.u32 r0, 0x1G", 1, 13, "`0x1G` is not an integer constant", None),
    ("mov.u32 r0, 09", 1, 13, "`09` is not an integer constant", "a constant with a leading 0 is octal"),
    ("mov.u32 r0, 18446744073709551616", 1, 13, "the integer constant needs more than 64 bits", None),
    ("mov.u32 r0, -9223372036854775809", 1, 14, "the integer constant needs more than 64 bits", None),
    ("mov.u32 r0, 1 + 0xffffffffffffffff", 1, 13, "the integer constant needs more than 64 bits", None),
    ("mov.f32 r0, 1e400", 1, 13, "the floating-point constant `1e400` is too large", None),
    ("mov.f32 r0, -0f3F800000", 1, 13, "`0f3F800000` gives all bits of the constant: no sign before it", None),
    ("mov.f32 r0, 1.5 + 1", 1, 13, "a floating-point constant takes no offset", None),
    ("mov.f32 r0, 1.5x", 1, 13, "`1.5x` is not an integer constant", None),
    ("ld.u32 r0, [1.5]", 1, 13, "an address is no floating-point constant", None),
    ("call (r0), f, (r1)", 1, 1, "`call` is not supported yet", None),
    ("ret; L: @p tex.1d r, (", 1, 12, "`tex.1d` is not supported yet", None),
]


@pytest.mark.parametrize(("text", "line", "column", "message", "hint"), ERRORS)
def test_errors(text: str, line: int, column: int, message: str, hint: str | None) -> None:
    error = error_of(text)
    assert (error.message, error.line, error.column, error.hint) == (message, line, column, hint)
    assert error.kind == ("unsupported" if message.endswith("not supported yet") else "syntax")


def test_errors_move_with_the_origin() -> None:
    with pytest.raises(PtxmmError) as caught:
        parse_statements("ret;\nld.u32 r0 [x]", 7, 20)
    assert (caught.value.line, caught.value.column) == (8, 11)
    with pytest.raises(PtxmmError) as caught:
        parse_statements("ld.u32 r0 [x]", 7, 20)
    assert (caught.value.line, caught.value.column) == (7, 30)


def test_the_hint_speaks_the_dialect() -> None:
    assert error_of("ld.weak r0, x[1]", dialect=True).hint == "write the offset in bytes: x+8"


@pytest.mark.parametrize(
    "text",
    ["a" * (MAX_CHARACTERS + 1), "ret;" * 20_000, "a:" * 50_000, "add.u32 " + "a, " * 9000 + "a", "/*" * 90_000],
)
def test_absurdly_long_texts_end_quickly(text: str) -> None:
    try:
        with watched():
            parse_statements(text)
    except PtxmmError as error:
        assert "too long" in error.message


@given(st.text(alphabet="ldst.u32 r01x[]{}+-,;:@!p|&%_\n/*\t\x00é", max_size=60))
def test_any_text_parses_or_gives_a_placed_error(text: str) -> None:
    try:
        parse_statements(text)
    except PtxmmError as error:
        assert error.line is not None and 1 <= error.line <= text.count("\n") + 1
        assert error.column is not None and error.column >= 1
        assert "Token" not in error.message


def test_blanks_do_not_count_as_length() -> None:
    assert len(parse_statements((" " * 30_000 + "ret;") * 10)) == 10
