"""tcgen05: fences, waits, accesses of tensor memory, copies, products, commits (9.7.16 of PTX ISA 9.0)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, cast

from msgspec.structs import replace

from ptxmm.ptx import operands, ops, syntax
from ptxmm.ptx.makers.common import B64, U32, Maker, guard, source, source_predicate
from ptxmm.ptx.operands import Names
from ptxmm.ptx.ops import COLUMN_BYTES, Op, Type
from ptxmm.ptx.qualifiers import Qualified, at
from ptxmm.ptx.tables.tensorcore import COPY_SHAPES

_B32 = Type("b", 32)


def _fence(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 0, 0)
    return ops.TensorFence(cast("Literal['before', 'after']", q.form.fixed["kind"]), source(q), guard(q, names))


def _wait(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 0, 0)
    return ops.TensorWait(cast("Literal['ld', 'st']", q.form.fixed["kind"]), source(q), guard(q, names))


def _column(q: Qualified, names: Names, place: syntax.Operand) -> ops.Address:
    """An address in tensor memory: a variable and a number of columns."""
    address = operands.address(q, names, place)
    if not isinstance(address.base, ops.Sym):
        hint = "name a variable: `.tmem .b32 t[4] @ cta 0;` and [t], [t+1]"
        message = "an address of tensor memory in a register is not supported yet"
        raise at(place.span, message, kind="unsupported", hint=hint)
    return replace(address, offset=COLUMN_BYTES * address.offset)


def _registers(q: Qualified, operand: syntax.Operand) -> tuple[syntax.Operand, ...]:
    num = q.chosen["num"]
    return operands.vector(operand, int(num[1:]), f"`{q.form.opcode}.{num}`")


def _load(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 2, 2)
    dst, place = q.instruction.operands
    targets = tuple(operands.destination(names, item) for item in _registers(q, dst))
    return ops.TensorLoad(targets, _column(q, names, place), source(q), guard(q, names))


def _store(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 2, 2)
    place, stored = q.instruction.operands
    values = tuple(operands.value(q, names, item, _B32) for item in _registers(q, stored))
    return ops.TensorStore(_column(q, names, place), values, source(q), guard(q, names))


def _copy(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 2, 2)
    place, descriptor = q.instruction.operands
    shape = q.chosen["shape"]
    return ops.TensorCopy(
        _column(q, names, place), operands.value(q, names, descriptor, B64), COPY_SHAPES[shape], shape, source(q),
        guard(q, names),
    )  # fmt: skip


def _product(q: Qualified, names: Names) -> Op:
    """Five operands; a mask of the lanes that are left out, and a factor of D, are not supported."""
    given = q.instruction.operands
    if (len(given) in (6, 7) and isinstance(given[4], syntax.Vector)) or len(given) == 6:
        raise at(given[-1].span, "`tcgen05.mma` with more operands is not supported yet", kind="unsupported")
    operands.check_count(q, 5, 5)
    dst, a, b, descriptor, enable = given
    register, negated = source_predicate(names, enable)
    first = _column(q, names, a) if isinstance(a, syntax.Memory) else operands.value(q, names, a, B64)
    return ops.TensorProduct(
        _column(q, names, dst), first, operands.value(q, names, b, B64), operands.value(q, names, descriptor, U32),
        register, q.chosen["kind"], source(q), guard(q, names), negated,
    )  # fmt: skip


def _commit(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 1, 1)
    address = operands.address(q, names, q.instruction.operands[0])
    return ops.TensorCommit(address, q.get("space"), source(q), guard(q, names))


MAKERS: Mapping[str, Maker] = {
    "tensor_fence": _fence,
    "tensor_wait": _wait,
    "tensor_load": _load,
    "tensor_store": _store,
    "tensor_copy": _copy,
    "tensor_product": _product,
    "tensor_commit": _commit,
}
