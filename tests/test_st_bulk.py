"""``st.bulk``: its syntax, its versions, and what is refused (9.7.9.13 of PTX ISA 9.0). What it does is in
``litmus/st-bulk`` and in the random programs ``zeros``."""

from __future__ import annotations

import pytest

from ptxmm import formats
from ptxmm.errors import PtxmmError
from ptxmm.ptx import isa, ops
from ptxmm.ptx.ops import Address, Imm, Op, Reg, Sym
from ptxmm.ptx.parser import parse_statements
from ptxmm.ptx.printer import instruction_text
from ptxmm.ptx.syntax import Instruction
from ptxmm.ptx.table import Version
from tests.support import ask, model_named

ENGINES = ("solve", "enumerate")


def resolve(text: str, version: tuple[int, int] = (8, 6)) -> Op:
    (statement,) = parse_statements(text)
    assert isinstance(statement, Instruction)
    return isa.resolve(statement, dialect=False, variables={"s"}, labels={}, isa=version)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("st.bulk.weak.shared::cta [s], 16, 0", "st.bulk.weak.shared::cta [s], 16, 0"),
        ("st.bulk [a+8], n, 0", "st.bulk.weak [a+8], n, 0"),
        ("@p st.bulk [s], 0, 0x0", "@p st.bulk.weak [s], 0, 0"),
    ],
)
def test_syntax(text: str, canonical: str) -> None:
    op = resolve(text)
    assert isinstance(op, ops.StoreBulk)
    assert instruction_text(op, True, str, variables={"s"}) == canonical


def test_operands() -> None:
    op = resolve("st.bulk.shared::cta [a+8], n, 0")
    assert isinstance(op, ops.StoreBulk)
    assert (op.address, op.size, op.space) == (Address(Reg("a"), 8), Reg("n"), "shared::cta")
    assert isa.uses(op) == [("a", ops.Type("b", 64)), ("n", ops.Type("u", 64))] and isa.definitions(op) == []
    op = resolve("st.bulk [s], 16777216, 0")
    assert isinstance(op, ops.StoreBulk) and (op.address, op.size) == (Address(Sym("s")), Imm(1 << 24))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("st.bulk [s], 12, 0", "the size of `st.bulk` is a multiple of 8 up to 16777216, not 12"),
        ("st.bulk [s], 16777224, 0", "the size of `st.bulk` is a multiple of 8 up to 16777216, not 16777224"),
        ("st.bulk [s], -8, 0", "the size of `st.bulk` is a multiple of 8 up to 16777216, not -8"),
        ("st.bulk [s], 8, 1", "what `st.bulk` writes is 0, not 1"),
        ("st.bulk [s], 8, a", "what `st.bulk` writes must be an integer constant, found `a`"),
        ("st.bulk [s], 8", "`st.bulk` takes 3 operands ([a], size, initval), 2 given"),
        ("st.bulk.relaxed [s], 8, 0", "`st.bulk` takes no `.relaxed`"),
        ("st.bulk.global [s], 8, 0", "`st.bulk` takes no `.global`"),
        ("st.bulk.shared [s], 8, 0", "`st.bulk` takes no `.shared`"),
        ("st.bulk.u32 [s], 8, 0", "`st.bulk` takes no `.u32`"),
    ],
)
def test_illegal(text: str, message: str) -> None:
    with pytest.raises(PtxmmError) as caught:
        resolve(text)
    assert caught.value.message == message and caught.value.column is not None


def test_version() -> None:
    (statement,) = parse_statements("st.bulk.weak.shared::cta [s], 8, 0")
    assert isinstance(statement, Instruction)
    assert isa.requires(statement) == Version((8, 6), 100)
    with pytest.raises(PtxmmError, match=r"is PTX ISA 8\.6, and the version here is 8\.5") as caught:
        resolve("st.bulk [s], 8, 0", (8, 5))
    assert caught.value.hint == "--isa 8.6"


def program(declared: str, body: str, more: str = "") -> str:
    return f"PTX t\nISA=8.6\n{{ {declared} }}\nP0 @ cta 0 {{ {body} }}\n{more}exists (P0:r0 == 0)\n"


SHORT = "mov.u32 n, 8; st.bulk.shared::cta [s], n, 0; ld.shared.u32 r0, [s+4];"


@pytest.mark.parametrize("engine", ENGINES)
def test_the_size_may_have_32_bits_since_9_0(engine: str) -> None:
    text = program(".shared .align 8 .u32 s[4] @ cta 0 = {1, 2, 3, 4};", SHORT)
    (test,) = formats.parse(text.replace("ISA=8.6", "ISA=9.0"))
    assert ask(engine, test, model_named("ptx-8.5")).states == {(8, 0, 0, 0, 3, 4)}
    with pytest.raises(PtxmmError, match="`n` is 32 bits wide since line 4, but this reads it as 64 bits"):
        formats.parse(text)


@pytest.mark.parametrize("engine", ENGINES)
def test_alignment_is_left_open(engine: str) -> None:
    declared = ".shared .align 8 .u32 s[4] @ cta 0;"
    for place in ("s", "a"):
        body = f"mov.u64 a, s; st.bulk.shared::cta [{place}+4], 8, 0; ld.shared.u32 r0, [s];"
        (test,) = formats.parse(program(declared, body))
        with pytest.raises(PtxmmError) as caught:
            ask(engine, test, model_named("ptx-8.5"))
        message = "st.bulk at an address that is no multiple of 8 is not supported: what it does is not said"
        assert (caught.value.message, caught.value.line, caught.value.kind) == (message, 4, "unsupported")


@pytest.mark.parametrize(
    ("declared", "address", "cta"),
    [
        (".global .align 8 .u32 s[4];", "mov.u64 a, s", "cta 0"),
        (".shared .align 8 .u32 s[4] @ cluster 0, cta 1;", "mapa.shared::cluster.u64 a, s, 1", "cluster 0, cta 1"),
    ],
)
def test_memory_of_others_is_undefined(declared: str, address: str, cta: str) -> None:
    """9.7.9.13: the address has to be in the window of ``.shared``, which is that of the own CTA."""
    body = f"{address}; st.bulk [a], 8, 0; mov.u32 r0, 0;"
    text = program(declared, body, f"P1 @ {cta} {{ mov.u32 r1, 0; }}\n").replace("P0 @ cta 0", "P0 @ cluster 0, cta 0")
    (test,) = formats.parse(text)
    assert all(ask(engine, test, model_named("ptx-8.5")).undefined for engine in ENGINES)
