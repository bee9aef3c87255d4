"""Arithmetic, logic, comparisons, conversions, moves and control flow (PTX ISA 9.7.1, 9.7.5 to .9, 9.7.10.3, .4, .20,
9.7.13)."""

from __future__ import annotations

from collections.abc import Mapping

from ptxmm.ptx import operands, ops, syntax
from ptxmm.ptx.makers.common import S64, U32, Maker, guard, source
from ptxmm.ptx.operands import Names
from ptxmm.ptx.ops import Op, Type
from ptxmm.ptx.qualifiers import Qualified, at

_UNSIGNED_COMPARISONS = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_OPPOSITE = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "le": "gt", "gt": "le"}
# How many elements the vector of a packing mov can have (9.7.10.4).
_PACKED = {16: (2,), 32: (2, 4), 64: (2, 4), 128: (2, 4)}


def wide(typ: Type) -> Type:
    """The type of twice the width."""
    return Type(typ.kind, 2 * typ.bits)


def source_type(name: str, typ: Type, index: int) -> Type:
    """The type that the source operand with that index of ``Alu`` has."""
    if name in ("shl", "shr") and index == 1:
        return U32
    return wide(typ) if name == "mad.wide" and index == 2 else typ


def _mov(q: Qualified, names: Names) -> Op:
    """A move; with a vector on one side it packs or unpacks (9.7.10.4)."""
    operands.check_count(q, 2, 2)
    dst, item = q.instruction.operands
    typ = q.types[0]
    if not isinstance(dst, syntax.Vector) and not isinstance(item, syntax.Vector):
        if typ.bits == 128:
            hint = "move its halves: mov.b128 {a, b}, r"
            raise at(q.span("type"), "`mov.b128` packs or unpacks a vector", hint=hint)
        return _alu(q, names)
    if isinstance(dst, syntax.Vector) and isinstance(item, syntax.Vector):
        raise at(item.span, "`mov` has a vector on one side only")
    vector = dst if isinstance(dst, syntax.Vector) else item
    assert isinstance(vector, syntax.Vector)
    if typ.kind != "b":
        message = f"`mov.{typ.name}` takes no vector"
        raise at(q.span("type"), message, hint="types that pack a vector: .b16 .b32 .b64 .b128")
    count = len(vector.items)
    if count not in _PACKED[typ.bits]:
        legal = " or ".join(str(n) for n in _PACKED[typ.bits])
        raise at(vector.span, f"`mov.{typ.name}` takes a vector of {legal}, {count} given")
    element = Type("b", typ.bits // count)
    if isinstance(dst, syntax.Vector):
        targets = tuple(operands.destination_or_sink(names, v) for v in dst.items)
        if not any(targets):
            raise at(dst.span, "at least one element of the vector must be a register")
        value = operands.value(q, names, item, typ)
        return ops.Unpack(targets, typ, value, source(q), guard(q, names))
    target = operands.destination(names, dst)
    values = tuple(operands.value(q, names, v, element) for v in vector.items)
    return ops.Pack(target, typ, values, source(q), guard(q, names))


def _alu(q: Qualified, names: Names) -> Op:
    count = len(q.form.slots)
    operands.check_count(q, count, count)
    opcode = q.form.opcode
    if q.dialect and opcode in ("mul", "mad"):
        opcode += ".lo"
    return _make_alu(q, names, opcode, S64 if q.dialect else q.types[0])


def _wide_alu(q: Qualified, names: Names) -> Op:
    count = len(q.form.slots)
    operands.check_count(q, count, count)
    return _make_alu(q, names, f"{q.form.opcode}.{q.chosen['mode']}", q.types[0])


def _make_alu(q: Qualified, names: Names, opcode: str, typ: Type) -> Op:
    first, *rest = q.instruction.operands
    dst = operands.destination(names, first)
    if q.dialect and opcode in ("shl", "shr"):
        # A shift amount is 32 bits wide and the registers of the dialect are 64 bits wide.
        operands.constant(rest[1], "a shift amount of the untyped dialect")
    sources = tuple(operands.value(q, names, v, source_type(opcode, typ, i)) for i, v in enumerate(rest))
    return ops.Alu(opcode, typ, dst, sources, source(q), guard(q, names))


def _convert(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 2, 2)
    to, frm = q.types
    dst, item = q.instruction.operands
    target, value = operands.destination(names, dst), operands.value(q, names, item, frm)
    return ops.Convert(target, value, to, frm, "sat" in q.chosen, source(q), guard(q, names))


def _set_predicate(q: Qualified, names: Names) -> Op:
    boolop = q.get("bool")
    count = 3 if boolop is None else 4
    operands.check_count(q, count, count)
    target, left, right, *rest = q.instruction.operands
    typ, cmp = q.types[0], q.chosen["cmp"]
    if cmp in _UNSIGNED_COMPARISONS:
        cmp, typ = _UNSIGNED_COMPARISONS[cmp], Type("u", typ.bits)
    complement: ops.Reg | None = None
    if isinstance(target, syntax.Pair):
        if target.first.name == "_":
            # Only the complement is wanted: setp.lt _|q is setp.ge q.
            cmp, target = _OPPOSITE[cmp], target.second
        else:
            if target.second.name != "_":
                complement = operands.destination(names, target.second)
                if target.second.name == target.first.name:
                    raise at(target.span, "the two destinations of `setp` must differ")
            target = target.first
    dst = operands.destination(names, target)
    a, b = operands.value(q, names, left, typ), operands.value(q, names, right, typ)
    c: ops.Reg | None = None
    negated = False
    if rest:
        negated = isinstance(rest[0], syntax.Negated)
        item = rest[0].name if isinstance(rest[0], syntax.Negated) else rest[0]
        c = operands.predicate(names, item)
    return ops.SetPredicate(cmp, typ, dst, complement, a, b, source(q), guard(q, names), boolop, c, negated)


def _select(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 4, 4)
    dst, left, right, p = q.instruction.operands
    typ = q.types[0]
    target = operands.destination(names, dst)
    a, b = operands.value(q, names, left, typ), operands.value(q, names, right, typ)
    return ops.Select(typ, target, a, b, operands.predicate(names, p), source(q), guard(q, names))


def _branch(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 1, 1)
    target = operands.label(names, q.instruction.operands[0])
    return ops.Branch(target, None, source(q), guard(q, names))


def _compare_branch(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 3, 3)
    left, right, label = q.instruction.operands
    a, b = operands.value(q, names, left, S64), operands.value(q, names, right, S64)
    condition = ops.Compare(q.form.fixed["cmp"], S64, a, b)
    return ops.Branch(operands.label(names, label), condition, source(q), guard(q, names))


def _exit(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 0, 0)
    return ops.Exit(source(q), guard(q, names))


MAKERS: Mapping[str, Maker] = {
    "mov": _mov,
    "alu": _alu,
    "wide": _wide_alu,
    "setp": _set_predicate,
    "selp": _select,
    "cvt": _convert,
    "branch": _branch,
    "compare_branch": _compare_branch,
    "exit": _exit,
}
