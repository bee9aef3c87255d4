"""Expressions by number, for the dependencies of what they give (PTX ISA 8.10.4)."""

from __future__ import annotations

from collections.abc import Callable

from ptxmm.events.symbolic.values.arithmetic import COMPARISONS, compute
from ptxmm.events.symbolic.values.computation import Computation
from ptxmm.events.symbolic.values.essence import essential
from ptxmm.ptx.ops import Type


class Expressions:
    """Expressions by number: equal numbers are syntactically equal expressions, in all executions of one test, as what
    is asked of an expression follows from how it is made and from the widths of its leaves. ``simplify``: make the
    rewrites that drop dependencies; ``values``: drop those on values that make no difference as well."""

    def __init__(self, simplify: bool, values: bool = False) -> None:
        self.simplify = simplify
        self.values = values
        self._numbers: dict[tuple[object, ...], int] = {}
        self._constants: dict[int, int] = {}
        self._made: dict[int, Computation] = {}
        self._widths: dict[int, int] = {}
        self._essential: dict[int, frozenset[int]] = {}

    def number(self, *key: object) -> int:
        """The number of the expression (or leaf) ``key``."""
        return self._numbers.setdefault(key, len(self._numbers))

    def leaf(self, bits: int, *key: object) -> int:
        """The number of the leaf ``key`` of ``bits`` bits."""
        number = self.number(bits, *key)
        self._widths[number] = bits
        return number

    def made(
        self,
        key: tuple[object, ...],
        operands: list[int],
        name: str,
        type_: Type,
        function: Callable[..., int],
        *arguments: object,
    ) -> int:
        """The number of the expression ``key`` of ``operands``, made as ``Computation`` says."""
        number = self.number(*key, *operands)
        if self.values:
            self._made[number] = Computation(name, type_, tuple(operands), function, arguments)
        return number

    def transparent(self, number: int) -> bool:
        """Whether it is known how the expression is made, and this is asked for."""
        return number in self._made

    def essential(self, number: int) -> frozenset[int]:
        """The leaves of an expression that make a difference to it."""
        found = self._essential.get(number)
        if found is None:
            found = self._essential[number] = essential(number, self._made, self._constants, self._widths)
        return found

    def constant(self, value: int) -> int:
        """The number of the constant ``value``."""
        number = self.number("constant", value)
        self._constants[number] = value
        return number

    def value_of(self, number: int) -> int | None:
        """The value of a constant expression, else None."""
        return self._constants.get(number) if self.simplify else None

    def operation(self, op: str, type_: Type, operands: list[int]) -> int:
        """``op`` applied to expressions, after the rewrites that drop dependencies."""
        if op in TWO_STEPS:
            wide = Type(type_.kind, 2 * type_.bits) if op == "mad.wide" else type_
            factors = self.operation(op.replace("mad", "mul"), type_, operands[:2])
            return self.operation("add", wide, [factors, operands[2]])
        if self.simplify:
            values = [self._constants.get(o) for o in operands]
            if None not in values:
                return self.constant(compute(op, type_, [v for v in values if v is not None]))
            floats = type_.kind in ("f", "bf") and op not in ("select", "slct.s32")  # a number may differ from itself
            if floats or (op.startswith("slct.") and op != "slct.s32"):
                return self.leaf(_real_bits(op, type_) if floats else type_.bits, op, type_, *operands)
            if op == "select" and operands[0] == operands[1]:
                return operands[0]
            known = _absorbed(op, type_, values, operands[:1] == operands[1:2])
            if known is not None:
                return self.constant(known)
        return self.made((op, type_), operands, op, type_, lambda *given: compute(op, type_, list(given)))


def _absorbed(op: str, type_: Type, values: list[int | None], same: bool) -> int | None:
    """The result of ``op`` where some of ``values`` make it the same whatever the others are, or its two first operands
    are the ``same``; else None."""
    if same and op in ("xor", "sub", *COMPARISONS):
        return int(op in ("eq", "le", "ge"))
    if op in ("and", "mul.lo", "mul.hi", "mul.wide") and 0 in values:
        return 0
    if op == "or" and (1 << type_.bits) - 1 in values:
        return (1 << type_.bits) - 1
    if op == "shl" or (op == "shr" and not type_.signed):
        return 0 if (values[1] or 0) >= type_.bits else None
    return None


def result_bits(how: Computation) -> int:
    """The width of what an operation gives; where nothing is known of it, it is that of its type."""
    if not how.name:
        return how.type.bits
    if how.type.kind in ("f", "bf"):
        return _real_bits(how.name, how.type)
    return how.arguments[0].bits if how.name == "cvt" else 2 * how.type.bits


def _real_bits(op: str, type_: Type) -> int:
    """The width of what an operation on floating-point numbers gives."""
    first = op.partition(".")[0]
    return 1 if first not in _REAL_RESULTS else 32 if first == "set" else type_.bits


_REAL_RESULTS = (
    "add", "sub", "mul", "fma", "div", "rcp", "sqrt", "neg", "abs", "min", "max", "copysign", "mov", "set", "slct",
)  # fmt: skip
TWO_STEPS = ("mad.lo", "mad.hi", "mad.wide")
