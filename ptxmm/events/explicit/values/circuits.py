"""Expressions of integers as vectors of decision diagrams: which of the values in them make a difference.

The operations are those of ``arithmetic``; one that has no circuit of its own is tabulated, if it has few inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product

from ptxmm.events.explicit.values.arithmetic import COMPARISONS, bounds, compute, result_bits
from ptxmm.events.explicit.values.diagrams import FALSE, MOST_NODES, TRUE, Diagrams, TooLarge, Vector, cut, number
from ptxmm.events.explicit.values.node import Node
from ptxmm.ptx.ops import Type
from ptxmm.ptx.ops.signatures import source_types

MOST_INPUTS = 10
"""How many bits may decide an operation that is tabulated."""
_MOST_BITS = 640
"""Diagrams with more variables than this are refused: they are as deep as they have variables."""


def essential(
    order: Sequence[Node], sources: Sequence[Node], values: Mapping[int, int] | None = None, most: int = MOST_NODES
) -> set[int]:
    """Of ``sources`` the indices of those that make a difference to the last node of ``order``.

    ``order`` has the nodes that are made of others, operands first. ``values``: those of some sources, by index, which
    then make none; what makes a difference for some values of them does so. Raises ``TooLarge`` if it takes more than
    ``most`` nodes.
    """
    values = values or {}
    if sum(node.bits for i, node in enumerate(sources) if i not in values) > _MOST_BITS:
        raise TooLarge
    diagrams = Diagrams(most)
    count = len(sources)
    known: dict[int, Vector] = {}
    for i, node in enumerate(sources):
        if i in values:
            known[id(node)] = number(values[i], node.bits)
        else:
            known[id(node)] = [diagrams.variable(bit * count + i) for bit in range(node.bits)]
    maker = _Circuits(diagrams)
    for node in order:
        arguments = [known[id(a)] if id(a) in known else number(a.value or 0, 128) for a in node.args]
        known[id(node)] = maker.of(node, arguments)
    return {index % count for index in diagrams.support(known[id(order[-1])])}


class _Circuits:
    def __init__(self, diagrams: Diagrams) -> None:
        self.d = diagrams

    def of(self, node: Node, args: list[Vector]) -> Vector:
        """The vector of an operation on vectors."""
        if node.op == "select":
            return self.d.pick(self.d.some(args[0]), args[1], args[2])
        if node.op == "fields":
            result: Vector = []
            for (first, bits, position), vector in zip(node.fields, args, strict=True):
                result = cut(result, max(len(result), position + bits))
                result[position : position + bits] = cut(vector[first:], bits)
            return result
        type_ = node.type
        assert type_ is not None
        if node.op == "cvt":
            assert node.modes is not None
            frm, saturate, *_ = node.modes
            return self._convert(args[0], type_, frm, saturate, node)
        return self._operation(node.op, type_, args)

    def _convert(self, value: Vector, to: Type, frm: Type, saturate: bool, node: Node) -> Vector:
        value = cut(value, frm.bits)
        if saturate:
            return self._clamped(value, to, frm)
        return cut(value, to.bits, value[-1] if frm.signed else FALSE)

    def _clamped(self, value: Vector, to: Type, frm: Type) -> Vector:
        wide = cut(value, 130, value[-1] if frm.signed else FALSE)
        low, high = bounds(to)
        for limit, below in ((low, True), (high, False)):
            bound = number(limit & ((1 << 130) - 1), 130)
            beyond = self.d.less(wide, bound, True) if below else self.d.less(bound, wide, True)
            wide = self.d.pick(beyond, bound, wide)
        return wide[: to.bits]

    def _operation(self, op: str, type_: Type, args: list[Vector]) -> Vector:
        first, *modes = op.split(".")
        if op in ("inc", "dec", "exch"):
            types: tuple[Type, ...] = (type_, type_)
        elif op in COMPARISONS:
            types = (type_, type_)
        else:
            types = source_types(op, type_)
        given = [cut(a, t.bits) for a, t in zip(args, types, strict=True)]
        maker = _MAKERS.get(first)
        if op in COMPARISONS:
            return [self._compare(op, type_, *given[:2])]
        found = None if maker is None else maker(self, type_, modes, *given)
        return self._table(op, type_, given) if found is None else found

    def _compare(self, op: str, type_: Type, a: Vector, b: Vector) -> int:
        if op in ("eq", "ne"):
            same = self.d.equal(a, b)
            return same if op == "eq" else self.d.negate(same)
        less = self.d.less(a, b, type_.signed) if op in ("lt", "ge") else self.d.less(b, a, type_.signed)
        return less if op in ("lt", "gt") else self.d.negate(less)

    def _table(self, op: str, type_: Type, args: list[Vector]) -> Vector:
        """An operation by its values for each choice of the bits that are not constant."""
        inputs = sorted({bit for vector in args for bit in vector if bit not in (FALSE, TRUE)})
        if len(inputs) > MOST_INPUTS:
            raise TooLarge
        width = result_bits(op, type_)
        result = [FALSE] * width
        for choice in product((FALSE, TRUE), repeat=len(inputs)):
            known = dict(zip(inputs, choice, strict=True)) | {FALSE: FALSE, TRUE: TRUE}
            values = [sum(known[bit] << i for i, bit in enumerate(vector)) for vector in args]
            here = TRUE
            for bit, value in zip(inputs, choice, strict=True):
                here = self.d.both(here, bit if value else self.d.negate(bit))
            found = compute(op, type_, *values)
            result = [self.d.either(r, here) if found >> i & 1 else r for i, r in enumerate(result)]
        return result

    # One method for each operation, by its first word; None where the operation is not that plain.

    def _mov(self, t: Type, modes: list[str], a: Vector) -> Vector:
        return a

    def _exch(self, t: Type, modes: list[str], a: Vector, b: Vector) -> Vector:
        return b

    def _add(self, t: Type, modes: list[str], a: Vector, b: Vector) -> Vector | None:
        return None if modes else self.d.add(a, b)[0]

    def _sub(self, t: Type, modes: list[str], a: Vector, b: Vector) -> Vector | None:
        return None if modes else self.d.subtract(a, b)[0]

    def _mul(self, t: Type, modes: list[str], a: Vector, b: Vector) -> Vector:
        if modes == ["lo"]:
            return self.d.multiply(a, b)
        wide = [cut(v, 2 * t.bits, v[-1] if t.signed else FALSE) for v in (a, b)]
        product_ = self.d.multiply(*wide)
        return product_ if modes == ["wide"] else product_[t.bits :]

    def _and(self, t: Type, modes: list[str], a: Vector, b: Vector) -> Vector:
        return self.d.map(self.d.both, a, b)

    def _or(self, t: Type, modes: list[str], a: Vector, b: Vector) -> Vector:
        return self.d.map(self.d.either, a, b)

    def _xor(self, t: Type, modes: list[str], a: Vector, b: Vector) -> Vector:
        return self.d.map(self.d.differ, a, b)

    def _not(self, t: Type, modes: list[str], a: Vector) -> Vector:
        return self.d.map(self.d.negate, a)

    def _cnot(self, t: Type, modes: list[str], a: Vector) -> Vector:
        return cut([self.d.negate(self.d.some(a))], t.bits)

    def _neg(self, t: Type, modes: list[str], a: Vector) -> Vector:
        return self.d.minus(a)

    def _abs(self, t: Type, modes: list[str], a: Vector) -> Vector:
        return self.d.magnitude(a)

    def _shl(self, t: Type, modes: list[str], a: Vector, b: Vector) -> Vector:
        return self.d.shift(a, b, left=True)

    def _shr(self, t: Type, modes: list[str], a: Vector, b: Vector) -> Vector:
        return self.d.shift(a, b, left=False, fill=a[-1] if t.signed else FALSE)

    def _shf(self, t: Type, modes: list[str], a: Vector, b: Vector, c: Vector) -> Vector:
        left, amount = modes[0] == "l", cut(c, 5)
        both = self.d.shift(a + b, amount, left)
        result = both[32:] if left else both[:32]
        if modes[1] == "clamp":
            result = self.d.pick(self.d.some(c[5:]), a if left else b, result)
        return result

    def _min(self, t: Type, modes: list[str], a: Vector, b: Vector) -> Vector | None:
        return None if modes else self.d.pick(self.d.less(b, a, t.signed), b, a)

    def _max(self, t: Type, modes: list[str], a: Vector, b: Vector) -> Vector | None:
        return None if modes else self.d.pick(self.d.less(a, b, t.signed), b, a)

    def _sad(self, t: Type, modes: list[str], a: Vector, b: Vector, c: Vector) -> Vector:
        less = self.d.less(a, b, t.signed)
        return self.d.add(c, self.d.pick(less, self.d.subtract(b, a)[0], self.d.subtract(a, b)[0]))[0]

    def _inc(self, t: Type, modes: list[str], a: Vector, b: Vector) -> Vector:
        more = self.d.add(a, number(1, t.bits))[0]
        return self.d.pick(self.d.less(a, b, False), more, number(0, t.bits))

    def _dec(self, t: Type, modes: list[str], a: Vector, b: Vector) -> Vector:
        wraps = self.d.either(self.d.negate(self.d.some(a)), self.d.less(b, a, False))
        return self.d.pick(wraps, b, self.d.subtract(a, number(1, t.bits))[0])

    def _div(self, t: Type, modes: list[str], a: Vector, b: Vector) -> Vector:
        return self._divided(t, a, b)[0]

    def _rem(self, t: Type, modes: list[str], a: Vector, b: Vector) -> Vector:
        return self._divided(t, a, b)[1]

    def _divided(self, t: Type, a: Vector, b: Vector) -> tuple[Vector, Vector]:
        d = self.d
        if not t.signed:
            return d.divide(a, b)
        quotient, rest = d.divide(d.magnitude(a), d.magnitude(b))
        opposite = d.both(d.differ(a[-1], b[-1]), d.some(b))
        return d.pick(opposite, d.minus(quotient), quotient), d.pick(a[-1], d.minus(rest), rest)

    def _popc(self, t: Type, modes: list[str], a: Vector) -> Vector:
        total = number(0, 32)
        for bit in a:
            total = self.d.add(total, cut([bit], 32))[0]
        return total

    def _clz(self, t: Type, modes: list[str], a: Vector) -> Vector:
        result = number(t.bits, 32)
        for i, bit in enumerate(a):
            result = self.d.pick(bit, number(t.bits - 1 - i, 32), result)
        return result

    def _brev(self, t: Type, modes: list[str], a: Vector) -> Vector:
        return a[::-1]

    def _lop3(self, t: Type, modes: list[str], a: Vector, b: Vector, c: Vector, *more: Vector) -> Vector:
        d, table = self.d, more[0]

        def row(x: int, y: int, z: int) -> int:
            rows = table[:8]
            for chooser in (z, y, x):
                rows = [d.choose(chooser, rows[i + 1], rows[i]) for i in range(0, len(rows), 2)]
            return rows[0]

        result = d.map(row, a, b, c)
        if not modes:
            return result
        join = d.both if modes == ["and"] else d.either
        return [join(d.some(result), d.some(more[1]))]

    def _bfe(self, t: Type, modes: list[str], a: Vector, start: Vector, length: Vector) -> Vector:
        d, length = self.d, length[:8]
        field = d.shift(a, start[:8], left=False, fill=a[-1] if t.signed else FALSE)
        above = FALSE
        if t.signed:  # the highest bit of the field goes on above it
            above = field[-1]
            for bits in reversed(range(t.bits)):
                below = field[bits - 1] if bits else FALSE
                above = d.choose(d.equal(length, number(bits, 8)), below, above)
        return [d.choose(inside, bit, above) for inside, bit in zip(self._ones(length, t.bits), field, strict=True)]

    def _bfi(self, t: Type, modes: list[str], a: Vector, b: Vector, start: Vector, length: Vector) -> Vector:
        d, start = self.d, start[:8]
        hole = d.shift(self._ones(length[:8], t.bits), start, left=True)
        return d.map(d.choose, hole, d.shift(a, start, left=True), b)

    def _ones(self, length: Vector, width: int) -> Vector:
        """As many ones as ``length`` says, from the lowest bit on."""
        return [self.d.less(number(i, len(length)), length, False) for i in range(width)]

    def _prmt(self, t: Type, modes: list[str], a: Vector, b: Vector, c: Vector) -> Vector | None:
        if modes:
            return None
        d, result = self.d, []
        for i in range(4):
            selector = c[4 * i : 4 * i + 4]
            options = [(a + b)[8 * k : 8 * k + 8] for k in range(8)]
            for chooser in selector[:3]:
                options = [d.pick(chooser, options[k + 1], options[k]) for k in range(0, len(options), 2)]
            (byte,) = options
            result += d.pick(selector[3], [byte[7]] * 8, byte)
        return result

    def _slct(self, t: Type, modes: list[str], a: Vector, b: Vector, c: Vector) -> Vector | None:
        return self.d.pick(c[31], b, a) if modes == ["s32"] else None

    def _set(self, t: Type, modes: list[str], a: Vector, b: Vector, *more: Vector) -> Vector:
        truth = self._compare(modes[0], t, a, b)
        joins: Mapping[str, Callable[[int, int], int]] = {
            "and": self.d.both, "or": self.d.either, "xor": self.d.differ,
        }  # fmt: skip
        for mode in modes[1:-1]:
            name, _, negated = mode.partition("_")
            if name in joins:
                other = self.d.some(more[0])
                truth = joins[name](truth, self.d.negate(other) if negated else other)
        return self.d.pick(truth, number(0x3F800000 if modes[-1] == "f32" else 0xFFFFFFFF, 32), number(0, 32))


_MAKERS: Mapping[str, Callable[..., Vector | None]] = {
    "mov": _Circuits._mov, "exch": _Circuits._exch, "add": _Circuits._add, "sub": _Circuits._sub,
    "mul": _Circuits._mul, "and": _Circuits._and, "or": _Circuits._or, "xor": _Circuits._xor, "not": _Circuits._not,
    "cnot": _Circuits._cnot, "neg": _Circuits._neg, "abs": _Circuits._abs, "shl": _Circuits._shl,
    "shr": _Circuits._shr, "shf": _Circuits._shf, "min": _Circuits._min, "max": _Circuits._max,
    "sad": _Circuits._sad, "inc": _Circuits._inc, "dec": _Circuits._dec, "div": _Circuits._div,
    "rem": _Circuits._rem, "popc": _Circuits._popc, "clz": _Circuits._clz, "brev": _Circuits._brev,
    "lop3": _Circuits._lop3, "bfe": _Circuits._bfe, "bfi": _Circuits._bfi, "prmt": _Circuits._prmt,
    "slct": _Circuits._slct, "set": _Circuits._set,
}  # fmt: skip
"""By the first word of an operation what makes its circuit."""
