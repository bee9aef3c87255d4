"""What an instruction that only computes gives for known values: numbers, and addresses of variables.

The arithmetic is that of the interpreter (``events.arithmetic``).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from ptxmm.events import arithmetic
from ptxmm.formats.modules.objects import Object
from ptxmm.ptx.ops import (
    Alu,
    AluPair,
    Convert,
    GenericAddress,
    IsSpace,
    Op,
    Operand,
    Pack,
    Select,
    SetPredicate,
    Sym,
    Type,
    Unpack,
)
from ptxmm.ptx.signatures import source_types

_ORDERS = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip
"""Of addresses in one variable: their order is that of the offsets."""

Known = int | Sym
"""The value of a register: an unsigned number of its width, or the address of a variable plus an offset in bytes."""


def evaluate(
    op: Op, value: Callable[[Operand], Known | None], variables: Mapping[str, Object]
) -> dict[str, Known] | None:
    """The registers that ``op`` writes with what it gives them; None where that is not known before it is executed.

    ``value`` gives the value of an operand as it is held in its register, None if it is not known. ``variables``:
    all that have addresses; what depends on where they lie is not known. The guard of ``op`` plays no part.
    """
    match op:
        case Alu():
            return _alu(op, value, variables)
        case AluPair(name, second, type_, dst, predicate, sources):
            count = len(source_types(name, type_))
            first = _computed(name, type_, [value(source) for source in sources[:count]])
            flag = _computed(second, type_, [value(source) for source in sources])
            if first is None or flag is None:
                return None
            return {predicate.name: flag} if dst is None else {dst.name: first, predicate.name: flag}
        case Convert(dst, source, to, frm, saturate):
            item = value(source)
            if isinstance(item, int):
                return {dst.name: arithmetic.convert(item & _mask(frm), to, frm, saturate, op.rounding, op.flush)}
            # The low half of an address is the one in the window; the other way round it is cvta that counts.
            if item is None or saturate or to.bits not in (32, 64) or frm.bits not in (to.bits, 64):
                return None
            window = variables[item.name].space in ("shared", "local")
            return {dst.name: item} if window or to.bits == frm.bits else None
        case GenericAddress(dst, _, source):
            item = value(source)
            return {dst.name: item} if isinstance(item, Sym) else None
        case IsSpace(dst, space, source):
            item = value(source)
            # The variables that a thread can name are those of its own CTA.
            inside = isinstance(item, Sym) and variables[item.name].space == space.partition("::")[0]
            return {dst.name: int(inside)} if isinstance(item, Sym) else None
        case SetPredicate():
            return _set_predicate(op, value)
        case Select(type_, dst, a, b, predicate):
            chosen = value(predicate)
            item = None if chosen is None else value(a if chosen else b)
            return None if item is None else {dst.name: item & _mask(type_) if isinstance(item, int) else item}
        case Pack(dst, type_, sources):
            width = type_.bits // len(sources)
            parts = [value(source) for source in sources]
            numbers = [part for part in parts if isinstance(part, int)]
            if len(numbers) < len(parts):
                return None
            return {dst.name: sum((n & (1 << width) - 1) << i * width for i, n in enumerate(numbers))}
        case Unpack(dsts, type_, source):
            item = value(source)
            width = type_.bits // len(dsts)
            if not isinstance(item, int):
                return None
            return {d.name: item >> i * width & (1 << width) - 1 for i, d in enumerate(dsts) if d is not None}
    return None


def _mask(type_: Type) -> int:
    return (1 << type_.bits) - 1


def _alu(
    op: Alu, value: Callable[[Operand], Known | None], variables: Mapping[str, Object]
) -> dict[str, Known] | None:
    sources = [value(source) for source in op.sources]
    if op.op == "mov":
        item = sources[0]
        return None if item is None else {op.dst.name: item if isinstance(item, Sym) else item & _mask(op.type)}
    result = _computed(op.op, op.type, sources)
    if result is not None:
        return {op.dst.name: result}
    if op.op == "mul.lo" and 0 in sources:
        return {op.dst.name: 0}
    found = _address(op, sources, variables)
    return None if found is None else {op.dst.name: found}


def _computed(op: str, type_: Type, sources: list[Known | None]) -> int | None:
    """``op`` on numbers, None where one of them is none or the execution has to say what is wrong."""
    numbers = [item for item in sources if isinstance(item, int)]
    types = source_types(op, type_)
    if len(numbers) < len(sources) or (op in ("div", "rem") and type_.kind in "us" and not numbers[1]):
        return None
    try:
        return arithmetic.compute(op, type_, *(n & _mask(t) for n, t in zip(numbers, types, strict=True)))
    except KeyError:
        return None


def _address(op: Alu, sources: list[Known | None], variables: Mapping[str, Object]) -> Known | None:
    """Arithmetic on an address of a variable, where the result does not depend on where the variable lies."""
    if op.op in ("mad.lo", "mad.wide") and isinstance(start := sources[2], Sym):
        product = _computed(op.op.replace("mad", "mul"), op.type, sources[:2])
        bits = op.type.bits * (2 if op.op == "mad.wide" else 1)
        if product is None or bits not in (32, 64):
            return None
        return Sym(start.name, start.offset + arithmetic.as_signed(product, bits))
    if len(sources) != 2 or None in sources or op.type.bits not in (32, 64):
        return None
    first, second = (item if isinstance(item, Sym) else item & _mask(op.type) for item in sources if item is not None)
    match op.op, first, second:
        case "add", Sym(name, offset), int(number):
            return Sym(name, offset + arithmetic.as_signed(number, op.type.bits))
        case "add", int(number), Sym(name, offset):
            return Sym(name, offset + arithmetic.as_signed(number, op.type.bits))
        case "sub", Sym(name, offset), int(number):
            return Sym(name, offset - arithmetic.as_signed(number, op.type.bits))
        case "sub", Sym(name, offset), Sym(other, start) if name == other:
            return (offset - start) & _mask(op.type)
        case "and" | "or" | "xor", int(number), Sym() as start:
            return _masked(op, start, number, variables[start.name].aligned)
        case "and" | "or" | "xor", Sym() as start, int(number):
            return _masked(op, start, number, variables[start.name].aligned)
    return None


def _masked(op: Alu, start: Sym, number: int, aligned: int) -> Known | None:
    """``start`` and, or, xor ``number``, where the alignment of the variable tells the bits."""
    if op.op == "and" and number < aligned:
        return start.offset & number
    changed = number if op.op != "and" else number ^ _mask(op.type)
    if changed >= aligned:
        return None
    offset = start.offset
    return Sym(start.name, {"and": offset & ~changed, "or": offset | changed, "xor": offset ^ changed}[op.op])


def _set_predicate(op: SetPredicate, value: Callable[[Operand], Known | None]) -> dict[str, Known] | None:
    a, b = value(op.a), value(op.b)
    if isinstance(a, int) and isinstance(b, int):
        try:
            result = arithmetic.compute(op.cmp, op.type, a & _mask(op.type), b & _mask(op.type))
        except KeyError:
            return None
    elif op.cmp in _ORDERS and isinstance(a, Sym) and isinstance(b, Sym) and a.name == b.name:
        result = int(_ORDERS[op.cmp](a.offset, b.offset))
    elif op.cmp in ("eq", "ne") and {type(a), type(b)} == {int, Sym} and 0 in (a, b) and op.type.bits == 64:
        result = int(op.cmp == "ne")  # no variable lies at the null pointer
    else:
        return None
    results = [result] if op.complement is None else [result, 1 - result]
    if op.boolop is not None and op.c is not None:
        c = value(op.c)
        if not isinstance(c, int):
            return None
        c = c ^ 1 if op.c_negated else c
        results = [{"and": r & c, "or": r | c, "xor": r ^ c}[op.boolop] for r in results]
    registers = [op.dst] if op.complement is None else [op.dst, op.complement]
    return {register.name: r for register, r in zip(registers, results, strict=True)}
