"""``.cp_mask`` of ``cp.async.bulk``: its syntax, its versions, and masks in registers (9.7.9.25.4.1 of PTX ISA 9.0).
What it does is in ``litmus/async`` and in the random programs ``masked``."""

from __future__ import annotations

import pytest

from ptxmm import formats
from ptxmm.errors import PtxmmError
from ptxmm.ptx import isa, ops
from ptxmm.ptx.ops import Imm, Op, Reg, Type
from ptxmm.ptx.parser import parse_statements
from ptxmm.ptx.printer import instruction_text
from ptxmm.ptx.syntax import Instruction
from ptxmm.ptx.table import Version
from tests.support import ask, model_named

COPY = "cp.async.bulk.global.shared::cta.bulk_group"


def parsed(text: str) -> Instruction:
    (statement,) = parse_statements(text)
    assert isinstance(statement, Instruction)
    return statement


def resolve(text: str, version: tuple[int, int] = (8, 6)) -> Op:
    return isa.resolve(parsed(text), dialect=False, variables={"x", "s"}, labels={}, isa=version)


@pytest.mark.parametrize(
    ("text", "canonical", "mask"),
    [
        (f"{COPY}.cp_mask [x], [s], 16, 0x0f0f", f"{COPY}.cp_mask [x], [s], 16, 3855", Imm(0x0F0F)),
        (f"{COPY}.L2::cache_hint.cp_mask [x], [s], 16, p, m", f"{COPY}.cp_mask [x], [s], 16, m", Reg("m")),
        (f"{COPY} [x], [s], 16", f"{COPY} [x], [s], 16", None),
    ],
)
def test_syntax(text: str, canonical: str, mask: ops.Operand | None) -> None:
    op = resolve(text)
    assert isinstance(op, ops.BulkCopy) and op.byte_mask == mask
    assert instruction_text(op, True, str, variables={"x", "s"}) == canonical
    assert isa.uses(op) == ([("m", Type("u", 16))] if mask == Reg("m") else [])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.cp_mask [s], [x], 16, [m], 1",
            "`cp.async.bulk.shared::cta.global` takes no `.cp_mask`",
        ),
        (f"{COPY}.cp_mask [x], [s], 16", "`cp.async.bulk` takes 4 operands ([dst], [src], size, byteMask), 3 given"),
        (f"{COPY} [x], [s], 16, 1", "`cp.async.bulk` takes 3 operands ([dst], [src], size), 4 given"),
        (f"{COPY}.cp_mask [x], [s], 16, 65536", "65536 does not fit in 16 bits (.u16)"),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.cp_mask.add.u32 [x], [s], 16, 1",
         "`cp.reduce.async.bulk` takes no `.cp_mask`"),
    ],
)  # fmt: skip
def test_illegal(text: str, message: str) -> None:
    with pytest.raises(PtxmmError) as caught:
        resolve(text)
    assert caught.value.message == message and caught.value.column is not None


def test_version() -> None:
    assert isa.requires(parsed(f"{COPY}.cp_mask [x], [s], 16, 1")) == Version((8, 6), 100)
    with pytest.raises(PtxmmError, match=r"cp_mask` is PTX ISA 8\.6, and the version here is 8\.5") as caught:
        resolve(f"{COPY}.cp_mask [x], [s], 16, 1", (8, 5))
    assert caught.value.hint == "--isa 8.6"


@pytest.mark.parametrize(
    ("mask", "size", "parts"),
    [
        (0xFFFF, 32, [(0, 32)]),
        (0x0000, 32, []),
        (0x0001, 32, [(0, 1), (16, 1)]),
        (0xF00F, 32, [(0, 4), (12, 8), (28, 4)]),
        (0x0FF0, 16, [(4, 8)]),
        (0x00FF, 0, []),
    ],
)
def test_the_bytes_that_are_copied(mask: int, size: int, parts: list[tuple[int, int]]) -> None:
    assert ops.copied(mask, size) == parts


def test_a_mask_that_is_read() -> None:
    """Of a mask in memory each engine finds both values, and the words that each copies."""
    text = f"""PTX t
ISA=8.6
{{
  .shared .align 16 .u32 s[4] @ cta 0 = {{1, 2, 3, 4}};
  .global .align 16 .u32 g[4] = {{0, 0, 0, 0}};
  .global .u16 m = 0x000f;
}}
P0 @ cta 0 {{
  ld.relaxed.gpu.global.u16 rm, [m];
  {COPY}.cp_mask [g], [s], 16, rm;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
}}
P1 @ cta 1 {{
  st.relaxed.gpu.global.u16 [m], 0xf000;
}}
locations [g[0]; g[1]; g[2]; g[3];]
exists (g[1] == 0)
"""
    (test,) = formats.parse(text)
    solve, enumerated = (ask(engine, test, model_named("ptx-8.5")) for engine in ("solve", "enumerate"))
    assert solve.comparable() == enumerated.comparable()
    assert {state[5:9] for state in solve.states} == {(1, 0, 0, 0), (0, 0, 0, 4)}


@pytest.mark.parametrize("mask", ["0xff0f", "rm", "0"])
@pytest.mark.parametrize("engine", ("solve", "enumerate"))
def test_bytes_that_are_left_out_may_be_read(engine: str, mask: str) -> None:
    """Of bytes that the mask leaves out it is not said that they are not read: a store to them in the source races."""
    text = f"""PTX t
ISA=8.6
{{
  .shared .align 16 .u32 s[4] @ cta 0 = {{1, 2, 3, 4}};
  .global .align 16 .u32 g[4] = {{0, 0, 0, 0}};
}}
P0 @ cta 0 {{
  mov.u16 rm, 0xff0f;
  {COPY}.cp_mask [g], [s], 16, {mask};
}}
P1 @ cta 0 {{ st.shared.u32 [s+4], 9; }}
exists (g[1] != 0)
"""
    (test,) = formats.parse(text)
    assert ask(engine, test, model_named("ptx-8.5")).flags == {"data-race"}
