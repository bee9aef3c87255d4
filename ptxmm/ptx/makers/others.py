"""Exchanges between lanes of a warp, and hints to the hardware (PTX ISA 9.7.10.6, .14 to .17, 9.7.14.9 to .14)."""

from __future__ import annotations

from collections.abc import Mapping

from ptxmm.ptx import operands, ops, syntax
from ptxmm.ptx.makers.common import B64, PREDICATE, SIZE_128, U32, Maker, guard, source
from ptxmm.ptx.operands import Names
from ptxmm.ptx.ops import Op, Type
from ptxmm.ptx.qualifiers import Qualified, at

_F32 = Type("f", 32)
_ONE = 0x3F800000  # 1.0 as .f32


def _pair(names: Names, operand: syntax.Operand, *, sink: bool, what: str) -> tuple[ops.Reg | None, ops.Reg | None]:
    """The destinations ``d`` or ``d|p``; with ``sink`` the first may be ``_``."""
    if not isinstance(operand, syntax.Pair):
        return operands.destination(names, operand), None
    first = operand.first
    if operands.sink(first) and not sink:
        raise at(operand.span, f"the first destination of {what} can't be `_`")
    return operands.destination_or_sink(names, first), operands.destination(names, operand.second)


def _exchange(
    q: Qualified,
    names: Names,
    written: tuple[ops.Reg | None, ops.Reg | None],
    values: tuple[ops.Operand, ...],
    *,
    name: str,
    negated: bool = False,
) -> Op:
    typ = q.types[0] if q.types else PREDICATE
    return ops.WarpExchange(name, typ, *written, values, source(q), guard(q, names), negated)


def _shuffle(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 5, 5)
    dst, *rest = q.instruction.operands
    written = _pair(names, dst, sink=False, what="`shfl`")
    values = tuple(operands.value(q, names, item, U32) for item in rest)
    return _exchange(q, names, written, values, name=f"shfl.{q.chosen['op']}")


def _vote(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 3, 3)
    dst, item, mask = q.instruction.operands
    negated = isinstance(item, syntax.Negated)
    vote = operands.value(q, names, item.name if isinstance(item, syntax.Negated) else item, PREDICATE)
    values = (vote, operands.value(q, names, mask, U32))
    written = (operands.destination(names, dst), None)
    return _exchange(q, names, written, values, name=f"vote.{q.chosen['op']}", negated=negated)


def _match(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 3, 3)
    dst, item, mask = q.instruction.operands
    op = q.chosen["op"]
    if op == "any" and isinstance(dst, syntax.Pair):
        raise at(dst.span, "`match.any` writes no predicate", hint="match.all does")
    written = _pair(names, dst, sink=True, what="`match`")
    values = (operands.value(q, names, item, q.types[0]), operands.value(q, names, mask, U32))
    return _exchange(q, names, written, values, name=f"match.{op}")


def _active_mask(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 1, 1)
    written = (operands.destination(names, q.instruction.operands[0]), None)
    return _exchange(q, names, written, (), name="activemask")


def _reduce(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 3, 3)
    dst, item, mask = q.instruction.operands
    values = (operands.value(q, names, item, q.types[0]), operands.value(q, names, mask, U32))
    written = (operands.destination(names, dst), None)
    return _exchange(q, names, written, values, name=f"redux.{q.chosen['op']}")


def _elect(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 2, 2)
    dst, mask = q.instruction.operands
    if not isinstance(dst, syntax.Pair):
        raise at(dst.span, "`elect` writes a register and a predicate", hint="write d|p, or _|p")
    written = _pair(names, dst, sink=True, what="`elect`")
    return _exchange(q, names, written, (operands.value(q, names, mask, U32),), name="elect")


# -- hints ---------------------------------------------------------------------------------------------------------


def _nothing(q: Qualified, names: Names, dst: ops.Reg | None = None, typ: Type | None = None) -> Op:
    return ops.Nothing(dst, typ, source(q), guard(q, names))


def _discard(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 2, 2)
    place, size = q.instruction.operands
    address = operands.address(q, names, place)
    number = operands.constant_of(size, "the size of `discard`", SIZE_128, "128")
    return ops.Discard(address, number, source(q), guard(q, names), q.get("space"))


def _prefetch(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 1, 1)
    operands.address(q, names, q.instruction.operands[0])
    return _nothing(q, names)


def _apply_priority(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 2, 2)
    place, size = q.instruction.operands
    operands.address(q, names, place)
    operands.constant_of(size, "the size of `applypriority`", SIZE_128, "128")
    return _nothing(q, names)


def _policy_range(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 4, 4)
    dst, place, primary, total = q.instruction.operands
    operands.address(q, names, place)
    sizes = [operands.value(q, names, size, U32) for size in (primary, total)]
    for item, size in zip((primary, total), sizes, strict=True):
        if isinstance(size, ops.Imm) and not 0 <= size.value < 1 << 32:
            raise at(item.span, f"a size has 32 bits: {size.value}")
    first, last = sizes
    if isinstance(first, ops.Imm) and isinstance(last, ops.Imm) and first.value > last.value:
        raise at(primary.span, f"the primary range has at most the {last.value} bytes of all, not {first.value}")
    return _nothing(q, names, operands.destination(names, dst), B64)


def _policy_fraction(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 1, 2)
    dst, *fraction = q.instruction.operands
    if fraction:
        value = operands.value(q, names, fraction[0], _F32)
        if isinstance(value, ops.Imm) and not 0 < value.value <= _ONE:
            raise at(fraction[0].span, "the fraction of a policy is more than 0.0 and at most 1.0")
    return _nothing(q, names, operands.destination(names, dst), B64)


def _policy_convert(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 2, 2)
    dst, item = q.instruction.operands
    operands.value(q, names, item, B64)
    return _nothing(q, names, operands.destination(names, dst), B64)


def _nanosleep(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 1, 1)
    operands.value(q, names, q.instruction.operands[0], U32)
    return _nothing(q, names)


MAKERS: Mapping[str, Maker] = {
    "shfl": _shuffle,
    "vote": _vote,
    "match": _match,
    "activemask": _active_mask,
    "redux": _reduce,
    "elect": _elect,
    "discard": _discard,
    "prefetch": _prefetch,
    "apply_priority": _apply_priority,
    "policy_range": _policy_range,
    "policy_fraction": _policy_fraction,
    "policy_convert": _policy_convert,
    "nanosleep": _nanosleep,
}
