"""Values of the symbolic side: finite maps from integers to the formulas under which a register holds them.

Values out of thin air are excluded (PTX ISA 8.10.4), so every register has finitely many values, and a program
becomes a propositional problem. An expression number stands beside each value for the dependency rewrites.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import product
from math import prod
from typing import TypeVar

from ptxmm.errors import PtxmmError
from ptxmm.events.symbolic.values.arithmetic import COMPARISONS, compute
from ptxmm.events.symbolic.values.essence import essential
from ptxmm.events.symbolic.values.operation import Operation
from ptxmm.ptx.ops import Type
from ptxmm.relations.formula import FALSE, TRUE, Formula, Formulas

_K = TypeVar("_K")


class Domain(dict[int, Formula]):
    """The possible values (unsigned) and when each is taken; exclusive, and exhaustive where the register is defined.

    ``support`` has for a value the writes (as bits) that every chain of reads and writes to it goes through.
    """

    __slots__ = ("support",)

    def __init__(self, values: Mapping[int, Formula], support: Mapping[int, int] | None = None) -> None:
        super().__init__(values)
        self.support: Mapping[int, int] = support or {}


def only(value: int) -> Domain:
    """The domain of a constant."""
    return Domain({value: TRUE})


Reads = dict[int, Formula]
"""Read events (by number) and when an expression contains what they return."""

LIMIT = 1 << 16


class TooMany(PtxmmError):
    """A value has more cases than are looked at one by one."""


class Value:
    """What a register holds: its domain, the number of its expression and the reads that it depends on.

    ``sources``: the reads in each leaf of the expression; by default it is one leaf itself. ``reads`` given as a
    function are worked out when they are first asked for.
    """

    __slots__ = ("_reads", "domain", "expression", "sources")

    def __init__(
        self,
        domain: Domain,
        expression: int,
        reads: Reads | Callable[[], Reads],
        sources: Mapping[int, Reads] | None = None,
    ) -> None:
        self.domain = domain
        self.expression = expression
        self._reads = reads
        if sources is None:
            sources = {expression: reads} if reads and not callable(reads) else {}
        self.sources = sources

    @property
    def reads(self) -> Reads:
        """The reads that it depends on."""
        if callable(self._reads):
            self._reads = self._reads()
        return self._reads

    def holding(self, domain: Domain) -> Value:
        """The same with another domain."""
        return Value(domain, self.expression, self._reads, self.sources)


class Expressions:
    """Expressions by number: equal numbers are syntactically equal expressions. ``simplify``: make the rewrites that
    drop dependencies; ``values``: drop those on values that make no difference as well."""

    def __init__(self, simplify: bool, values: bool = False) -> None:
        self.simplify = simplify
        self.values = values
        self._numbers: dict[tuple[object, ...], int] = {}
        self._constants: dict[int, int] = {}
        self._made: dict[int, Operation] = {}
        self._widths: dict[int, int] = {}
        self._essential: dict[int, frozenset[int]] = {}

    def number(self, *key: object) -> int:
        """The number of the expression (or leaf) ``key``."""
        return self._numbers.setdefault(key, len(self._numbers))

    def leaf(self, bits: int, *key: object) -> int:
        """The number of the leaf ``key`` of ``bits`` bits."""
        number = self.number(*key)
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
        """The number of the expression ``key`` of ``operands``, made as ``essential.Operation`` says."""
        number = self.number(*key, *operands)
        if self.values:
            self._made[number] = Operation(name, type_, tuple(operands), function, arguments)
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
        if op in _TWO_STEPS:
            wide = Type(type_.kind, 2 * type_.bits) if op == "mad.wide" else type_
            factors = self.operation(op.replace("mad", "mul"), type_, operands[:2])
            return self.operation("add", wide, [factors, operands[2]])
        if self.simplify:
            values = [self._constants.get(o) for o in operands]
            if None not in values:
                return self.constant(compute(op, type_, [v for v in values if v is not None]))
            floats = type_.kind in ("f", "bf") and op not in ("select", "slct.s32")  # a number may differ from itself
            if floats or (op.startswith("slct.") and op != "slct.s32"):
                return self.leaf(_result_bits(op, type_) if floats else type_.bits, op, type_, *operands)
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


def _result_bits(op: str, type_: Type) -> int:
    """The width of what an operation on floating-point numbers gives."""
    first = op.partition(".")[0]
    return 1 if first not in _REAL_RESULTS else 32 if first == "set" else type_.bits


def joined(formulas: Formulas, items: Iterable[tuple[_K, Formula]]) -> dict[_K, Formula]:
    """For each key when any of its formulas holds."""
    found: dict[_K, list[Formula]] = {}
    for key, when in items:
        found.setdefault(key, []).append(when)
    return {key: formulas.any(whens) for key, whens in found.items()}


def apply(formulas: Formulas, function: Callable[..., int], *domains: Domain) -> Domain:
    """The domain of ``function`` of values from ``domains``."""
    different = list({id(d): d for d in domains}.values())
    where = [next(i for i, d in enumerate(different) if d is domain) for domain in domains]
    if prod(len(d) for d in different) > LIMIT:
        raise TooMany(
            f"a value depends on reads in more than {LIMIT} ways",
            kind="unsupported",
            hint="use --engine enumerate or a smaller program",
        )
    found: list[tuple[int, Formula, int]] = []
    for items in product(*(d.items() for d in different)):
        when = formulas.all([f for _, f in items])
        if when != FALSE:
            through = 0
            for (operand, _), domain in zip(items, different, strict=True):
                through |= domain.support.get(operand, 0)
            found.append((function(*(items[i][0] for i in where)), when, through))
    return _domain(formulas, found)


def assemble(formulas: Formulas, parts: Iterable[tuple[int, Domain]]) -> Domain:
    """The domain of numbers made of ``parts``, each from its bit on."""
    whole: Domain | None = None
    for shift, part in parts:
        whole = part if whole is None else apply(formulas, partial(above, shift), whole, part)
    assert whole is not None
    return whole


def above(shift: int, low: int, high: int) -> int:
    """``high`` from bit ``shift`` on, above ``low``."""
    return low | high << shift


def equal(formulas: Formulas, a: Domain, b: Domain) -> Formula:
    """When two values are the same."""
    return apply(formulas, lambda x, y: int(x == y), a, b).get(1, FALSE)


def merge(formulas: Formulas, arms: list[tuple[Formula, Domain]]) -> Domain:
    """The domain that is that of each arm where the arm's formula holds; one alone holds anyway."""
    if len(arms) == 1:
        return arms[0][1]
    return _domain(
        formulas,
        (
            (value, both, domain.support.get(value, 0))
            for guard, domain in arms
            for value, when in domain.items()
            if (both := formulas.both(guard, when)) != FALSE
        ),
    )


def _domain(formulas: Formulas, items: Iterable[tuple[int, Formula, int]]) -> Domain:
    """The domain of values, each with a formula under which it is taken, and its support then."""
    found: dict[int, list[Formula]] = {}
    support: dict[int, int] = {}
    for value, when, through in items:
        found.setdefault(value, []).append(when)
        support[value] = support.get(value, through) & through
    if len(found) == 1:  # nothing else is possible where the register is defined
        return Domain(dict.fromkeys(found, TRUE), support)
    return Domain({v: formulas.any(when) if len(when) > 1 else when[0] for v, when in found.items()}, support)


_REAL_RESULTS = (
    "add", "sub", "mul", "fma", "div", "rcp", "sqrt", "neg", "abs", "min", "max", "copysign", "mov", "set", "slct",
)  # fmt: skip
_TWO_STEPS = ("mad.lo", "mad.hi", "mad.wide")
