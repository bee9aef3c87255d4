"""Values of the symbolic side: finite maps from integers to the formulas under which a register holds them.

Values out of thin air are excluded (PTX ISA 8.10.4), so every register has finitely many values, and a program
becomes a propositional problem. An expression number stands beside each value for the dependency rewrites.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import product
from math import prod
from typing import Any, TypeVar

from ptxmm.errors import PtxmmError
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
        raise PtxmmError(
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
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_TWO_STEPS = ("mad.lo", "mad.hi", "mad.wide")
_BOOLEANS = ("and", "or", "xor")


def signed(value: int, bits: int) -> int:
    """``value`` of ``bits`` bits as a signed integer."""
    sign = 1 << (bits - 1)
    return ((value & ((1 << bits) - 1)) ^ sign) - sign


OPERATIONS: Mapping[str, Callable[[Any, Any, Any, int], Any]] = {
    "mov": lambda a, b, c, bits: a,
    "add": lambda a, b, c, bits: a + b,
    "sub": lambda a, b, c, bits: a - b,
    "mul.lo": lambda a, b, c, bits: a * b,
    "mul.hi": lambda a, b, c, bits: a * b >> bits,
    "mul.wide": lambda a, b, c, bits: a * b,
    "mad.lo": lambda a, b, c, bits: a * b + c,
    "mad.hi": lambda a, b, c, bits: (a * b >> bits) + c,
    "mad.wide": lambda a, b, c, bits: a * b + c,
    "and": lambda a, b, c, bits: a & b,
    "or": lambda a, b, c, bits: a | b,
    "xor": lambda a, b, c, bits: a ^ b,
    "not": lambda a, b, c, bits: ~a,
    "neg": lambda a, b, c, bits: -a,
    "abs": lambda a, b, c, bits: abs(signed(a, bits)),
    "min": lambda a, b, c, bits: min(a, b),
    "max": lambda a, b, c, bits: max(a, b),
    "eq": lambda a, b, c, bits: a == b,
    "ne": lambda a, b, c, bits: a != b,
    "lt": lambda a, b, c, bits: a < b,
    "le": lambda a, b, c, bits: a <= b,
    "gt": lambda a, b, c, bits: a > b,
    "ge": lambda a, b, c, bits: a >= b,
}
"""What of ``compute`` is taken in so many ``bits`` of two numbers of the type, and a third operand that is added."""


def compute(op: str, type_: Type, operands: list[int]) -> int:
    """The unsigned result of an instruction that computes (PTX ISA 9.7.1 to .3, 9.7.7, 9.7.9) on unsigned operands;
    those of floating-point types are bit patterns. What the ISA leaves unspecified has some value."""
    first = op.partition(".")[0]
    if first == "set":
        return _set(op.split(".")[1:], type_, operands)
    if first == "slct":
        return operands[0] if _not_negative(op.split(".")[1:], operands[2]) else operands[1]
    if op == "select":
        return operands[0] if operands[2] else operands[1]
    if type_.kind in ("f", "bf") and op != "mov":
        from ptxmm.events.symbolic.values.floats import compute_float

        return compute_float(op, type_, operands)
    bits = type_.bits
    mask = (1 << bits) - 1
    if op in ("shl", "shr"):
        amount = min(operands[1] & 0xFFFFFFFF, bits)
        a = operands[0] & mask
        return (a << amount if op == "shl" else (signed(a, bits) if type_.signed else a) >> amount) & mask
    operation = OPERATIONS.get(op)
    if operation is None:
        from ptxmm.events.symbolic.values.integers import compute_bits  # few programs have these

        return compute_bits(op, type_, operands)
    a, b, c = (*operands, 0, 0)[:3]
    a, b = (signed(a, bits), signed(b, bits)) if type_.signed else (a & mask, b & mask)
    return int(operation(a, b, c, bits)) & ((1 << 2 * bits) - 1 if op.endswith(".wide") else mask)


def _set(modes: list[str], type_: Type, operands: list[int]) -> int:
    """``set``: all ones or 1.0 if the comparison holds (9.7.7.1)."""
    flush = ".ftz" if "ftz" in modes else ""
    truth = compute(modes[0] + flush, type_, operands[:2])
    for mode in modes[1:-1]:
        name, _, negated = mode.partition("_")
        if name in _BOOLEANS:
            c = 1 - operands[2] if negated else operands[2]
            truth = {"and": truth & c, "or": truth | c, "xor": truth ^ c}[name]
    if not truth:
        return 0
    return 0x3F800000 if modes[-1] == "f32" else 0xFFFFFFFF


def _not_negative(modes: list[str], c: int) -> int:
    """Whether ``slct`` takes its first value (9.7.7.4)."""
    if modes[-1] == "s32":
        return int(c < 1 << 31)
    return compute("ge.ftz" if modes[0] == "ftz" else "ge", Type("f", 32), [c, 0])


def update(op: str, type_: Type, old: int, operand: int) -> int:
    """What an atomic operation other than cas writes (PTX ISA 9.7.14.5)."""
    mask = (1 << type_.bits) - 1
    match op:
        case "exch":
            return operand & mask
        case "inc":
            return 0 if old >= operand & mask else old + 1
        case "dec":
            return operand & mask if old == 0 or old > operand & mask else old - 1
    return compute(op, type_, [old, operand])


def convert(value: int, to: Type, frm: Type, saturate: bool, rounding: str | None = None, flush: bool = False) -> int:
    """``cvt.to.frm`` (PTX ISA 9.7.10.20)."""
    if to.kind in ("f", "bf") or frm.kind in ("f", "bf"):
        from ptxmm.events.symbolic.values.floats import convert_float

        return convert_float(value, to, frm, saturate, rounding, flush)
    number = signed(value, frm.bits) if frm.signed else value & ((1 << frm.bits) - 1)
    if saturate:
        low = -(1 << (to.bits - 1)) if to.signed else 0
        high = (1 << (to.bits - 1)) - 1 if to.signed else (1 << to.bits) - 1
        number = max(low, min(high, number))
    return number & ((1 << to.bits) - 1)


def extend(value: int, frm: Type, bits: int) -> int:
    """A loaded value of type ``frm`` in a register of ``bits`` bits: sign- or zero-extended (PTX ISA 9.4.1)."""
    number = signed(value, frm.bits) if frm.signed else value & ((1 << frm.bits) - 1)
    return number & ((1 << bits) - 1)
