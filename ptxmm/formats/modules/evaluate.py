"""What an instruction that only computes gives for known values: numbers, and addresses of variables.

The arithmetic is that of the interpreter (``events.explicit.values.arithmetic``).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from ptxmm.events.explicit.values import arithmetic
from ptxmm.formats.modules.objects import Object
from ptxmm.program.shared.windows import SPACES
from ptxmm.ptx import ops
from ptxmm.ptx.ops.signatures import source_types

_ORDERS = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip
"""Of addresses in one variable: their order is that of the offsets."""


class Generic(Struct, frozen=True):
    """The generic address of a variable whose state space is a window, plus an offset in bytes."""

    place: ops.Sym


class Half(Struct, frozen=True):
    """32 bits of the address of a variable in global memory, ``high`` or low ones: in their place in 64 bits where they
    are ``placed``, else the lowest bits of a register, with zeros before them."""

    place: ops.Sym
    high: bool
    placed: bool


Known = int | ops.Sym | Generic | Half
"""The value of a register: an unsigned number of its width, or the address of a variable in its state space, or the
generic one, plus an offset in bytes, or a half of one."""


Placed = tuple[int, ...]
"""What a register has, in each of a few ways to lay shared memory out, that is computed from where variables lie."""


def evaluate(
    op: ops.Op, value: Callable[[ops.Operand], Known | None], variables: Mapping[str, Object]
) -> dict[str, Known] | None:
    """The registers that ``op`` writes with what it gives them; None where that is not known before it is executed.

    ``value`` gives the value of an operand as it is held in its register, None if it is not known. ``variables``:
    all that have addresses; what depends on where they lie is not known. The guard of ``op`` plays no part.
    """
    match op:
        case ops.Alu() | ops.Convert() | ops.ConvertAddress() | ops.IsSpace() | ops.Select() | ops.Pack():
            found = _result(op, value, variables)
            return None if found is None else {op.dst.name: found}
        case ops.AluPair(name, second, type_, dst, predicate, sources):
            count = len(source_types(name, type_))
            first = _computed(name, type_, [value(source) for source in sources[:count]])
            flag = _computed(second, type_, [value(source) for source in sources])
            if first is None or flag is None:
                return None
            return {predicate.name: flag} if dst is None else {dst.name: first, predicate.name: flag}
        case ops.SetPredicate():
            return _set_predicate(op, value, variables)
        case ops.Unpack(dsts, type_, source):
            item = value(source)
            width = type_.bits // len(dsts)
            if isinstance(item, ops.Sym) and width == 32 and variables[item.name].space not in SPACES:
                return {d.name: Half(item, i == 1, False) for i, d in enumerate(dsts) if d is not None}
            if not isinstance(item, int):
                return None
            return {d.name: item >> i * width & (1 << width) - 1 for i, d in enumerate(dsts) if d is not None}
    return None


def _result(
    op: ops.Alu | ops.Convert | ops.ConvertAddress | ops.IsSpace | ops.Select | ops.Pack,
    value: Callable[[ops.Operand], Known | None],
    variables: Mapping[str, Object],
) -> Known | None:
    """What an instruction with one result gives."""
    match op:
        case ops.Alu(sources=sources):
            return _alu(op, [value(source) for source in sources], variables)
        case ops.Convert(value=operand):
            return _converted(op, value(operand), variables)
        case ops.ConvertAddress() | ops.IsSpace():
            return _of_space(op, value(op.value), variables)
        case ops.Select(type_, _, a, b, predicate):
            chosen = value(predicate)
            return None if chosen is None else _cut(value(a if chosen else b), type_)
        case ops.Pack(_, type_, sources):
            width = type_.bits // len(sources)
            parts = [value(source) for source in sources]
            if type_.bits == 64 and len(parts) == 2 and (whole := _joined(parts[0], parts[1], 32)) is not None:
                return whole
            numbers = [part for part in parts if isinstance(part, int)]
            if len(numbers) < len(parts):
                return None
            return sum((n & (1 << width) - 1) << i * width for i, n in enumerate(numbers))


def _of_space(
    op: ops.ConvertAddress | ops.IsSpace, item: Known | None, variables: Mapping[str, Object]
) -> Known | None:
    """An address in another form, if it is in the state space that ``op`` is about; or whether it is in that. The
    variables that a thread can name are those of its own CTA."""
    place = item.place if isinstance(item, Generic) else item
    if not isinstance(place, ops.Sym):
        return None
    space = variables[place.name].space
    if isinstance(op, ops.ConvertAddress):
        known = space == op.space.partition("::")[0] and isinstance(item, Generic) == op.to
        return (place if op.to else Generic(place)) if known else None
    if isinstance(item, Generic):
        return int(space == op.space.partition("::")[0])
    return int(op.space == "global") if space not in SPACES else None


def _converted(op: ops.Convert, item: Known | None, variables: Mapping[str, Object]) -> Known | None:
    to, frm = op.to, op.frm
    if isinstance(item, int):
        return arithmetic.convert(item & _mask(frm), to, frm, op.saturate, op.rounding, op.flush)
    if isinstance(item, Half):
        return item if not item.placed and frm.kind in "bu" and not op.saturate else None
    # Addresses in windows have 31 bits, with zeros before them.
    if item is None or op.saturate or {to.bits, frm.bits} - {32, 64} or {to.kind, frm.kind} - {"b", "s", "u"}:
        return None
    window = isinstance(item, ops.Sym) and variables[item.name].space in SPACES
    if not window and isinstance(item, ops.Sym) and (frm.bits, to.bits) == (64, 32):
        return Half(item, False, False)
    return item if window or to.bits == frm.bits == 64 else None


def _mask(type_: ops.Type) -> int:
    return (1 << type_.bits) - 1


def _cut(item: Known | None, type_: ops.Type) -> Known | None:
    """The lowest bits of a number; an address as it is."""
    return item & _mask(type_) if isinstance(item, int) else item


def _alu(op: ops.Alu, sources: Sequence[Known | None], variables: Mapping[str, Object]) -> Known | None:
    if op.op == "mov":
        return _cut(sources[0], op.type)
    result = _computed(op.op, op.type, sources)
    if result is not None:
        return result
    if op.op in ("mul.lo", "and") and 0 in sources:
        return 0
    if op.op == "or" and op.type.kind == "pred" and 1 in sources:
        return 1
    of_address = _halves if any(isinstance(source, Half) for source in sources) else _address
    return of_address(op, sources, variables)


def _computed(op: str, type_: ops.Type, sources: Sequence[Known | None]) -> int | None:
    """``op`` on numbers, None where one of them is none or the execution has to say what is wrong."""
    numbers = [item for item in sources if isinstance(item, int)]
    types = source_types(op, type_)
    if len(numbers) < len(sources) or (op in ("div", "rem") and type_.kind in "us" and not numbers[1]):
        return None
    try:
        return arithmetic.compute(op, type_, *(n & _mask(t) for n, t in zip(numbers, types, strict=True)))
    except KeyError:
        return None


def _joined(low: Known | None, high: Known | None, shift: int = 0) -> ops.Sym | None:
    """The address whose halves are ``low`` and, ``shift`` bits below its place, ``high``."""
    if not isinstance(low, Half) or not isinstance(high, Half) or low.place != high.place:
        return None
    fits = not low.high and high.high and high.placed == (shift == 0)
    return low.place if fits else None


def _halves(op: ops.Alu, sources: Sequence[Known | None], variables: Mapping[str, Object]) -> Known | None:
    """A half of an address that is moved to its place, or joined with the other one; bits that the alignment tells."""
    match op.op, sources:
        case "and", (Half(place, False, _), int(number)) if number & _mask(op.type) < variables[place.name].aligned:
            return place.offset & number & _mask(op.type)
        case _ if op.type.bits != 64:
            return None
        case "shl", (Half(place, True, False), 32):
            return Half(place, True, True)
        case "or" | "add", (Half() as one, Half() as other):
            return _joined(one, other) or _joined(other, one)
        case "bfi", (high, low, 32, 32):
            return _joined(low, high, 32)
    return None


def _address(op: ops.Alu, sources: Sequence[Known | None], variables: Mapping[str, Object]) -> Known | None:
    """Arithmetic on an address of a variable, where the result does not depend on where the variable lies."""
    generic = [isinstance(source, Generic) for source in sources]
    if any(generic):
        if op.type.bits != 64 or any(isinstance(source, ops.Sym) for source in sources):
            return None  # which of the two is greater, and by how much, is not known
        places = [source.place if isinstance(source, Generic) else source for source in sources]
        found = _address(op, places, variables)
        return Generic(found) if isinstance(found, ops.Sym) else found
    if op.op in ("mad.lo", "mad.wide") and isinstance(start := sources[2], ops.Sym):
        return _element(op, start, sources[:2])
    if len(sources) != 2 or None in sources or op.type.bits not in (32, 64):
        return None
    return _of_two(op, *(_cut(item, op.type) for item in sources), variables=variables)


def _of_two(op: ops.Alu, first: Known | None, second: Known | None, *, variables: Mapping[str, Object]) -> Known | None:
    if isinstance(first, int) and op.op != "sub":
        first, second = second, first
    match op.op, first, second:
        case "add" | "sub", ops.Sym(name, offset), int(number):
            step = arithmetic.as_signed(number, op.type.bits)
            return ops.Sym(name, offset + (step if op.op == "add" else -step))
        case "sub", ops.Sym(name, offset), ops.Sym(other, start) if name == other:
            return (offset - start) & _mask(op.type)
        case "and" | "or" | "xor", ops.Sym() as start, int(number):
            return _masked(op, start, number, variables[start.name].aligned)
    return None


def _element(op: ops.Alu, start: ops.Sym, factors: Sequence[Known | None]) -> ops.Sym | None:
    """``start`` plus a product."""
    product = _computed(op.op.replace("mad", "mul"), op.type, factors)
    bits = op.type.bits * (2 if op.op == "mad.wide" else 1)
    if product is None or bits not in (32, 64):
        return None
    return ops.Sym(start.name, start.offset + arithmetic.as_signed(product, bits))


def _masked(op: ops.Alu, start: ops.Sym, number: int, aligned: int) -> Known | None:
    """``start`` and, or, xor ``number``, where the alignment of the variable tells the bits."""
    if op.op == "and" and number < aligned:
        return start.offset & number
    changed = number if op.op != "and" else number ^ _mask(op.type)
    if changed >= aligned:
        return None
    offset = start.offset
    return ops.Sym(start.name, {"and": offset & ~changed, "or": offset | changed, "xor": offset ^ changed}[op.op])


def _places(a: Known | None, b: Known | None) -> tuple[ops.Sym, ops.Sym] | None:
    """Two addresses of one variable, both in its state space or both generic; None for any others."""
    if isinstance(a, Generic) and isinstance(b, Generic):
        a, b = a.place, b.place
    return (a, b) if isinstance(a, ops.Sym) and isinstance(b, ops.Sym) and a.name == b.name else None


def _set_predicate(
    op: ops.SetPredicate, value: Callable[[ops.Operand], Known | None], variables: Mapping[str, Object]
) -> dict[str, Known] | None:
    result = _compared(op, value(op.a), value(op.b), variables)
    if result is None:
        return None
    results = {op.dst.name: result}
    if op.complement is not None:
        results[op.complement.name] = 1 - result
    if op.boolop is not None and op.c is not None:
        c = value(op.c)
        if not isinstance(c, int):
            return None
        combine = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}[op.boolop]
        results = {name: combine(r, c ^ op.c_negated) for name, r in results.items()}
    return {**results}


def _compared(op: ops.SetPredicate, a: Known | None, b: Known | None, variables: Mapping[str, Object]) -> int | None:
    if isinstance(a, int) and isinstance(b, int):
        try:
            return arithmetic.compute(op.cmp, op.type, a & _mask(op.type), b & _mask(op.type))
        except KeyError:
            return None
    if op.cmp in _ORDERS and (places := _places(a, b)) is not None:
        size = variables[places[0].name].size
        if op.cmp not in ("eq", "ne") and not all(0 <= place.offset <= size for place in places):
            return None  # one of them may lie beyond the end of all addresses
        return int(_ORDERS[op.cmp](places[0].offset, places[1].offset))
    if op.cmp in ("eq", "ne") and sum(isinstance(item, ops.Sym | Generic) for item in (a, b)) == 1 and 0 in (a, b):
        return int(op.cmp == "ne") if op.type.bits == 64 else None  # no variable lies at the null pointer
    return None
