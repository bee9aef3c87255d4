"""Values of the symbolic side: finite maps from integers to the formulas under which a register holds them, or, where
these would be too many, a formula for each bit.

Values out of thin air are excluded (PTX ISA 8.10.4), so every register has finitely many values, and a program
becomes a propositional problem. An expression number stands beside each value for the dependency rewrites.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, ItemsView, Iterable, Iterator, KeysView, Mapping, Sequence
from functools import partial
from itertools import product
from math import prod
from typing import Any, TypeVar

from ptxmm.errors import PtxmmError
from ptxmm.ptx.ops import Type
from ptxmm.relations.formula import FALSE, TRUE, Formula, Formulas

_K = TypeVar("_K")


class Domain(dict[int, Formula]):
    """The possible values (unsigned) and when each is taken; exclusive, and exhaustive where the register is defined.

    ``support`` has for a value the writes (as bits) that every chain of reads and writes to it goes through.
    ``source``: of a function of one other domain that domain, and the value here for each value there.
    """

    __slots__ = ("source", "support")

    def __init__(self, values: Mapping[int, Formula], support: Mapping[int, int] | None = None) -> None:
        super().__init__(values)
        self.support: Mapping[int, int] = support or {}
        self.source: tuple[Domain, Mapping[int, int]] | None = None

    def having(self, wanted: Collection[int], size: int) -> Iterator[tuple[int, Formula]]:
        """The bytes ``wanted`` that are among the lowest ``size`` ones of a value, and when."""
        for value, when in self.items():
            yield from ((byte, when) for byte in set(value.to_bytes(size, "little")).intersection(wanted))


_TRACED = 64
"""Of domains with so many values it is kept what is a function of them."""
_LISTED = 12
"""The values of so many bits that are not known are listed."""


class Bits(Domain):
    """A value by its bits, each a formula, the lowest first: those beyond are 0.

    As a domain it has every value of these bits, also those that they never have together. Nothing is listed before it
    is asked for: then it raises ``TooMany`` where ``_LISTED`` says so.
    """

    __slots__ = ("_cases", "bits", "formulas")

    def __init__(self, formulas: Formulas, bits: Sequence[Formula]) -> None:
        super().__init__({})
        self.formulas = formulas
        self.bits = tuple(bits)
        self._cases: dict[int, Formula] | None = None

    def __getitem__(self, value: int) -> Formula:
        if value >> len(self.bits):
            return FALSE
        return self.formulas.all([bit if value >> i & 1 else -bit for i, bit in enumerate(self.bits)])

    def get(self, value: int, default: Any = None) -> Any:
        """When it is ``value``."""
        found = self[value]
        return default if found == FALSE else found

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int) and self[value] != FALSE

    def __len__(self) -> int:
        return 1 << min(len(self._open()), 40)

    def __iter__(self) -> Iterator[int]:
        return iter(self._listed())

    def keys(self) -> KeysView[int]:  # type: ignore[override]
        """The values."""
        return self._listed().keys()

    def items(self) -> ItemsView[int, Formula]:  # type: ignore[override]
        """The values, and when each is taken."""
        return self._listed().items()

    def having(self, wanted: Collection[int], size: int) -> Iterator[tuple[int, Formula]]:
        """As of any domain, of which no value need be listed."""
        for byte, begin in product(wanted, range(0, min(8 * size, len(self.bits)), 8)):
            when = Bits(self.formulas, self.bits[begin : begin + 8])[byte]
            if when != FALSE:
                yield byte, when

    def _open(self) -> list[Formula]:
        return list(dict.fromkeys(abs(bit) for bit in self.bits if abs(bit) != TRUE))

    def _listed(self) -> dict[int, Formula]:
        if self._cases is None:
            open_ = self._open()
            if len(open_) > _LISTED:
                raise TooMany(
                    "what an instruction does depends on a value with too many cases",
                    kind="unsupported",
                    hint="use --engine enumerate or a smaller program",
                )
            self._cases = {}
            for truths in product((True, False), repeat=len(open_)):
                known = {TRUE: True} | dict(zip(open_, truths, strict=True))
                when = self.formulas.all([node if true else -node for node, true in known.items()])
                if when != FALSE:
                    value = sum(1 << i for i, bit in enumerate(self.bits) if known[abs(bit)] == (bit > 0))
                    self._cases[value] = when
        return self._cases


def of_bits(formulas: Formulas, bits: Sequence[Formula]) -> Domain:
    """A value by its bits: as a finite map, where that is small."""
    found = Bits(formulas, bits)
    return Domain(dict(found.items())) if len(found) <= 4 else found


def bits_of(formulas: Formulas, domain: Domain, width: int) -> tuple[Formula, ...]:
    """The lowest ``width`` bits of a value, where it is defined."""
    if isinstance(domain, Bits):
        return (*domain.bits[:width], *[FALSE] * (width - len(domain.bits)))
    bits: list[Formula] = []
    for i in range(width):
        having = [when for value, when in domain.items() if value >> i & 1]
        bits.append(TRUE if len(having) == len(domain) else formulas.any(having))
    return tuple(bits)


def width_of(domain: Domain) -> int:
    """How many bits the values have at most."""
    return len(domain.bits) if isinstance(domain, Bits) else max((value.bit_length() for value in domain), default=0)


def chosen(domain: Domain, value: Callable[[Formula], bool]) -> int | None:
    """The one value whose formula has this ``value``, None if there is none."""
    if isinstance(domain, Bits):
        return sum(1 << i for i, bit in enumerate(domain.bits) if value(bit))
    for number, when in domain.items():
        if value(when):
            return number
    return None


def compared(formulas: Formulas, op: str, a: Domain, b: Domain, type_: Type) -> Formula:
    """When ``a op b`` holds of values in ``type_``; ``op``: == != < <= > >=."""
    if op in (">", "<="):
        a, b = b, a
    x, y = bits_of(formulas, a, type_.bits), bits_of(formulas, b, type_.bits)
    if type_.signed:  # the order of signed numbers is that of unsigned ones with the other sign bit
        x, y = (*x[:-1], -x[-1]), (*y[:-1], -y[-1])
    different = [differ(formulas, one, other) for one, other in zip(x, y, strict=True)]
    if op in ("==", "!="):
        found = formulas.any(different)
        return -found if op == "==" else found
    less = FALSE
    for other, unlike in zip(y, different, strict=True):
        less = formulas.either(formulas.both(unlike, other), formulas.both(-unlike, less))
    return less if op in ("<", ">") else -less


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


def joined(formulas: Formulas, items: Iterable[tuple[_K, Formula]]) -> dict[_K, Formula]:
    """For each key when any of its formulas holds."""
    found: dict[_K, list[Formula]] = {}
    for key, when in items:
        found.setdefault(key, []).append(when)
    return {key: formulas.any(whens) for key, whens in found.items()}


def is_many(domains: Iterable[Domain]) -> bool:
    """Whether values of ``domains`` can be combined in too many ways."""
    different = {id(domain): domain for domain in domains}
    return len(different) > 1 and prod(map(len, different.values())) > LIMIT


def supported(domain: Domain, by: Domain | None = None) -> Domain:
    """The same values with the support that they have in another domain, or none."""
    return domain if isinstance(domain, Bits) else Domain(domain, None if by is None else by.support)


def apply(formulas: Formulas, function: Callable[..., int], *domains: Domain) -> Domain:
    """The domain of ``function`` of values from ``domains``."""
    different = list({id(d): d for d in domains}.values())
    shared = _sources(different)
    # Together they have no values that their common source does not give them.
    views = [shared[id(d)] for d in domains] if shared else [(d, None) for d in domains]
    bases = list({id(base): base for base, _ in views}.values())
    if is_many(bases):
        raise TooMany(
            f"a value depends on reads in more than {LIMIT} ways",
            kind="unsupported",
            hint="use --engine enumerate or a smaller program",
        )
    where = [(next(i for i, d in enumerate(bases) if d is base), view) for base, view in views]
    found: list[tuple[int, Formula, int]] = []
    open_ = [i for i, base in enumerate(bases) if len(base) > 1]
    results: dict[int, int] = {}
    for items in product(*(d.items() for d in bases)):
        when = formulas.all([f for _, f in items])
        if when != FALSE:
            through = 0
            for (operand, _), domain in zip(items, bases, strict=True):
                through |= domain.support.get(operand, 0)
            result = function(*(items[i][0] if view is None else view[items[i][0]] for i, view in where))
            found.append((result, when, through))
            if len(open_) == 1:
                results[items[open_[0]][0]] = result
    made = _domain(formulas, found)
    if len(open_) == 1 and len(results) == len(bases[open_[0]]):
        base, view = bases[open_[0]].source or (bases[open_[0]], None)
        if len(base) <= _TRACED:
            made.source = base, results if view is None else {number: results[view[number]] for number in base}
    return made


def _sources(different: Sequence[Domain]) -> dict[int, tuple[Domain, Mapping[int, int] | None]]:
    """For each of several domains (by ``id``) that of which it is a function, if some are of the same one and all that
    these sources have together are fewer cases; else nothing."""
    if sum(len(d) > 1 for d in different) < 2:
        return {}
    found: dict[int, tuple[Domain, Mapping[int, int] | None]] = {id(d): d.source or (d, None) for d in different}
    bases = {id(base): len(base) for base, _ in found.values()}
    fewer = len(bases) < len(different) and prod(bases.values()) <= prod(len(d) for d in different)
    return found if fewer else {}


def assemble(formulas: Formulas, parts: Iterable[tuple[int, Domain]], wide: bool) -> Domain:
    """The domain of numbers made of ``parts``, in ascending order each from its bit on; ``wide``: too many values are
    given by their bits."""
    parts = list(parts)
    if wide and is_many(part for _, part in parts):
        bits: list[Formula] = []
        for shift, part in parts:
            bits += [*[FALSE] * (shift - len(bits)), *bits_of(formulas, part, width_of(part))]
        return of_bits(formulas, bits)
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
    if isinstance(a, Bits) or isinstance(b, Bits):
        width = max(width_of(a), width_of(b))
        pairs = zip(bits_of(formulas, a, width), bits_of(formulas, b, width), strict=True)
        return formulas.all([-differ(formulas, x, y) for x, y in pairs])
    if is_many((a, b)):
        return formulas.any(formulas.both(when, b[value]) for value, when in a.items() if value in b)
    return apply(formulas, lambda x, y: int(x == y), a, b).get(1, FALSE)


def differ(formulas: Formulas, x: Formula, y: Formula) -> Formula:
    """When one of two formulas holds, and the other does not."""
    return formulas.either(formulas.both(x, -y), formulas.both(-x, y))


def field(formulas: Formulas, domain: Domain, shift: int, width: int) -> Domain:
    """The ``width`` bits from bit ``shift`` on."""
    if isinstance(domain, Bits):
        return of_bits(formulas, domain.bits[shift : shift + width])
    return apply(formulas, lambda v: v >> shift & (1 << width) - 1, domain)


def merge(formulas: Formulas, arms: list[tuple[Formula, Domain]]) -> Domain:
    """The domain that is that of each arm where the arm's formula holds; one alone holds anyway."""
    if len(arms) == 1:
        return arms[0][1]
    if any(isinstance(domain, Bits) for _, domain in arms):
        width = max(width_of(domain) for _, domain in arms)
        columns = zip(*(bits_of(formulas, domain, width) for _, domain in arms), strict=True)
        guards = [guard for guard, _ in arms]
        return of_bits(formulas, [formulas.any(map(formulas.both, guards, column)) for column in columns])
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
