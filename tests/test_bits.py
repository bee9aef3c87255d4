"""Values by their bits: circuits give what the instruction computes, comparisons are those of the condition."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from ptxmm.engines.result import Limits
from ptxmm.engines.symbolic.sat import Solver
from ptxmm.events.symbolic.values.arithmetic import compute
from ptxmm.events.symbolic.values.circuits import circuit
from ptxmm.events.symbolic.values.computation import Computation
from ptxmm.events.symbolic.values.domain import (
    Bits,
    Domain,
    TooMany,
    apply,
    assemble,
    bits_of,
    chosen,
    compared,
    equal,
    field,
    merge,
    of_bits,
    only,
    width_of,
)
from ptxmm.events.symbolic.values.lookups import Lookup, looked_up
from ptxmm.program.condition import compare
from ptxmm.ptx.ops import Type
from ptxmm.relations.formula import FALSE, TRUE, Formula, Formulas

WORD = 8
OPERATIONS = {
    "add": 2, "sub": 2, "mul.lo": 2, "mul.hi": 2, "mul.wide": 2, "mad.lo": 3, "mad.hi": 3, "mad.wide": 3, "and": 2,
    "or": 2, "xor": 2, "not": 1, "neg": 1, "abs": 1, "min": 2, "max": 2, "shl": 2, "shr": 2, "sad": 3, "cnot": 1,
    "eq": 2, "ne": 2, "lt": 2, "le": 2, "gt": 2, "ge": 2, "select": 3,
}  # fmt: skip


class Known:
    """Values of variables, as bits of which each is fixed by an assumption."""

    def __init__(self, values: Sequence[int], width: int) -> None:
        self.formulas = Formulas()
        self.fixed: list[Formula] = []
        self.values = [self._word(value, width) for value in values]

    def _word(self, value: int, width: int) -> Bits:
        bits = [self.formulas.variable() for _ in range(width)]
        self.fixed += [bit if value >> i & 1 else -bit for i, bit in enumerate(bits)]
        return Bits(self.formulas, bits)

    def read(
        self, result: Domain | None, definitions: Sequence[Formula] = (), lookups: Sequence[Lookup] = ()
    ) -> int | None:
        """The one value that ``result`` has."""
        assert result is not None
        solver = Solver(self.formulas, Limits(), lookups=lookups)
        for formula in definitions:
            solver.require(formula)
        for bit in bits_of(self.formulas, result, width_of(result)):
            solver.require(self.formulas.either(bit, -bit))
        assert solver.satisfiable(TRUE, self.fixed)
        return chosen(result, solver.value)


words = some.integers(0, (1 << WORD) - 1)


@pytest.mark.parametrize("name", OPERATIONS)
@settings(deadline=None, max_examples=8)
@given(a=words, b=words, c=words, signed=some.booleans())
def test_a_circuit_computes(name: str, a: int, b: int, c: int, signed: bool) -> None:
    type_, definitions = Type("s" if signed else "u", WORD), list[Formula]()
    given = [a, b, c][: OPERATIONS[name]]
    known = Known(given, WORD)
    how = Computation(name, type_, (), lambda *_: 0)
    if name == "mad.wide":
        known = Known([a, b, c | c << WORD], 2 * WORD)
        known.values[:2] = [Bits(known.formulas, value.bits[:WORD]) for value in known.values[:2]]
        given[2] |= c << WORD
    found = circuit(known.formulas, definitions, how, known.values)
    assert known.read(found, definitions) == compute(name, type_, given)


@settings(deadline=None, max_examples=8)
@given(value=words, shift=some.integers(0, 9), width=some.integers(1, 9), other=words)
def test_parts_and_joins(value: int, shift: int, width: int, other: int) -> None:
    known = Known([value, other], WORD)
    formulas, (word, second) = known.formulas, known.values
    assert known.read(field(formulas, word, shift, width)) == value >> shift & (1 << width) - 1
    cut = circuit(formulas, [], Computation("cut", Type("b", 64), (), lambda v: v, (shift, width)), [word])
    assert known.read(cut) == value >> shift & (1 << width) - 1
    join = circuit(
        formulas, [], Computation("join", Type("b", 64), (), lambda a, b: a, (WORD + shift,)), [word, second]
    )
    assert known.read(join) == value | other << WORD + shift
    assert known.read(assemble(formulas, [(0, word), (WORD + shift, second)], True)) == value | other << WORD + shift


def test_parts_of_what_is_wider_than_vectors() -> None:
    known = Known([5 << 290], 300)
    part = circuit(known.formulas, [], Computation("cut", Type("b", 64), (), lambda v: v, (288, 8)), known.values)
    assert known.read(part) == 5 << 2


@settings(deadline=None, max_examples=8)
@given(a=words, b=words, signed=some.booleans(), op=some.sampled_from(("==", "!=", "<", "<=", ">", ">=")))
def test_comparisons_are_those_of_the_condition(a: int, b: int, signed: bool, op: str) -> None:
    type_ = Type("s" if signed else "u", WORD)
    known = Known([a, b], WORD)
    when = compared(known.formulas, op, known.values[0], known.values[1], type_)
    assert known.read(Domain({0: -when, 1: when})) == int(compare(op, a, b, type_))
    when = compared(known.formulas, op, known.values[0], only(b), type_)
    assert known.read(Domain({0: -when, 1: when})) == int(compare(op, a, b, type_))
    same = equal(known.formulas, *known.values)
    assert known.read(Domain({0: -same, 1: same})) == int(a == b)


@settings(deadline=None, max_examples=8)
@given(a=words, b=words, first=some.booleans())
def test_one_of_two(a: int, b: int, first: bool) -> None:
    known = Known([a, int(first)], WORD)
    guard = known.values[1].bits[0]
    found = merge(known.formulas, [(guard, known.values[0]), (-guard, only(b))])
    assert known.read(found) == (a if first else b)


def test_what_is_small_is_listed() -> None:
    formulas = Formulas()
    a, b = formulas.variable(), formulas.variable()
    assert of_bits(formulas, [TRUE, FALSE, TRUE]) == {5: TRUE}
    assert of_bits(formulas, [a, -a]) == {1: a, 2: -a}
    bits = Bits(formulas, [a, FALSE, b])
    assert dict(bits.items()) == {value: bits[value] for value in (0, 1, 4, 5)}
    assert 2 not in bits and 9 not in bits and 5 in bits and bits.get(2) is None and len(bits) == 4
    many = Bits(formulas, [formulas.variable() for _ in range(64)])
    assert len(many) > 1 << 32 and many[7] != FALSE
    with pytest.raises(TooMany):
        list(many)


def test_floating_point_is_looked_up() -> None:
    type_ = Type("f", 32)
    one, two, three = 0x3F800000, 0x40000000, 0x40400000
    known = Known([one, two], 32)
    add = Computation("add", type_, (), lambda a, b: compute("add", type_, [a, b]))
    assert circuit(known.formulas, [], add, known.values) is None
    lookups: list[Lookup] = []
    found = looked_up(known.formulas, lookups, add.function, known.values, 32)
    again = looked_up(known.formulas, lookups, add.function, known.values, 32)
    assert known.read(found, lookups=lookups) == three
    same = equal(known.formulas, found, again)
    assert known.read(Domain({0: -same, 1: same}), lookups=lookups) == 1


def test_values_of_one_source() -> None:
    """What is computed of one value in several ways has no combinations that this value does not give."""
    formulas = Formulas()
    one, two = formulas.variable(), formulas.variable()
    number = Domain({0: formulas.both(one, two), 1: formulas.both(one, -two), 2: -one})
    third = Domain({3: TRUE})
    plus = apply(formulas, lambda a, b: a + b, number, Domain({1: TRUE}))
    quotient = apply(formulas, lambda a, b: a // b, plus, third)
    product = apply(formulas, lambda a, b: a * b, quotient, third)
    rest = apply(formulas, lambda a, b: a - b, plus, product)
    assert dict(rest) == {1: number[0], 2: number[1], 0: number[2]}
    assert set(apply(formulas, lambda a, b: a - b, rest, apply(formulas, lambda a: a, rest))) == {0}
    other = Domain({0: two, 1: -two})
    assert set(apply(formulas, lambda a, b: a - b, rest, other)) == {1, 0, -1}
