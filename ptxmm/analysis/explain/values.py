"""States that no execution ends in, whatever the axioms say: which values are never there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.analysis.observe import address, memory_name, outcome, register_name
from ptxmm.analysis.result import Value
from ptxmm.cat import Model
from ptxmm.engines.result import Limits, Observed
from ptxmm.engines.symbolic.problem import Problem
from ptxmm.program.condition import (
    AddressTerm,
    Comparison,
    Conjunction,
    Disjunction,
    IntegerTerm,
    MemoryTerm,
    Negation,
    Proposition,
    RegisterTerm,
    State,
    Term,
    comparison_type,
    terms,
)
from ptxmm.program.floats import real_text
from ptxmm.program.test import Test

MOST_VALUES = 16
"""At most so many values of a register or location are listed."""


class Impossible(Struct, frozen=True):
    """A part of a state that holds at the end of no execution: ``state`` in words; ``values``: those that the
    register or location it is about may have, for each by its name (at most ``MOST_VALUES``); ``unwritten``: a value
    that it asks for, which no write of that size ever writes and no memory holds at the start, or None. ``filtered``:
    only executions that the filter of the test lets through count."""

    state: str
    values: Mapping[str, tuple[Value, ...]]
    unwritten: Value | None = None
    filtered: bool = False


def impossible(
    test: Test, assigned: Test, model: Model, proposition: Proposition, limits: Limits
) -> tuple[Impossible, ...]:
    """The parts of ``proposition`` that no execution of ``assigned`` meets, the axioms of ``model`` left out; ``true``
    if no execution reaches its end, and the whole if each part can be met but not all.

    ``assigned`` is ``test`` with values of unknown memory. Where its filter lets no execution through, the parts
    are those of the filter. Raises ``Timeout``.
    """
    found = _parts_never_met(test, assigned, model, proposition, limits)
    if test.filter is None:
        return found
    if found == _NO_END:
        found = _parts_never_met(test, replace(assigned, filter=None), model, test.filter, limits)
        if found == _NO_END:
            return found
    return tuple(replace(item, filtered=True) for item in found)


def _parts_never_met(
    test: Test, assigned: Test, model: Model, proposition: Proposition, limits: Limits
) -> tuple[Impossible, ...]:
    problem = Problem(assigned, model, Observed((), ()), limits, terms(proposition), axioms=False)
    problem.solver.require(problem.program.final)
    if not problem.solver.satisfiable(problem.program.final):
        return _NO_END
    found = []
    for part in _parts(proposition):
        limits.check()
        if not problem.solver.satisfiable(problem.formula(part)):
            values = dict(_values(test, problem, part))
            found.append(Impossible(wording(test, part), values, _unwritten(test, problem, part)))
    return tuple(found) or (Impossible(wording(test, proposition), {}),)


_NO_END = (Impossible("true", {}),)


def _parts(proposition: Proposition) -> Iterator[Proposition]:
    if isinstance(proposition, Conjunction):
        for item in proposition.items:
            yield from _parts(item)
    else:
        yield proposition


def _values(test: Test, problem: Problem, part: Proposition) -> Iterator[tuple[str, tuple[Value, ...]]]:
    for term in terms(part):
        values: list[Value] = []
        for value, when in sorted(problem.domain(term).items()):
            if len(values) < MOST_VALUES and problem.solver.satisfiable(when):
                values.append(_shown(test, term, value))
        yield _name(test, term), tuple(values)


def _unwritten(test: Test, problem: Problem, part: Proposition) -> Value | None:
    """The value that ``part`` says a register or location has, if no write ever writes it and none is there first."""
    match part:
        case Comparison("==", RegisterTerm() | MemoryTerm() as term, IntegerTerm(value)):
            value &= (1 << term.type.bits) - 1
            size = term.type.bytes
        case _:
            return None
    for event in problem.program.events:
        if event.kind == "W" and any(p.size != size for p in event.places):
            return None  # a part of another value, or a value made of several, may be what is asked for
        if event.kind == "W" and value in event.value:
            return None
    for item in test.objects.values():
        if item.type.bytes != size or value in item.initial:
            return None
    return _shown(test, term, value)


def _shown(test: Test, term: Term, value: int) -> Value:
    """``value`` of a register or location as results show it, by its type."""
    bare = replace(test, condition=None)
    match term:
        case RegisterTerm():
            state = State({(term.thread, term.register): value}, {})
            return outcome(bare, Observed((term,), ()), state).registers[register_name(test, term)]
        case MemoryTerm():
            state = State({}, {(term.key, term.index): value})
            return outcome(bare, Observed((), (term,)), state).memory[memory_name(test, term)]
    return value


def _name(test: Test, term: Term) -> str:
    match term:
        case RegisterTerm():
            return register_name(test, term)
        case MemoryTerm():
            return memory_name(test, term)
        case IntegerTerm(value):
            return str(value)
        case AddressTerm(key, offset):
            return address(key, offset)


def wording(test: Test, item: Proposition, inside: str = "") -> str:
    """``item`` as a litmus test writes it; ``inside``: the connective around it."""
    match item:
        case Comparison(op, left, right):
            type_ = comparison_type(item)
            if type_ is not None and type_.kind == "f":
                sides = (
                    real_text(t.value, type_) if isinstance(t, IntegerTerm) else _name(test, t) for t in (left, right)
                )
                return f" {op} ".join(sides)
            return f"{_name(test, left)} {op} {_name(test, right)}"
        case Conjunction(items) | Disjunction(items):
            sign = "/\\" if isinstance(item, Conjunction) else "\\/"
            if not items:
                return "true" if isinstance(item, Conjunction) else "false"
            text = f" {sign} ".join(wording(test, i, sign) for i in items)
            return f"({text})" if inside and len(items) > 1 and inside != sign else text
        case Negation(inner):
            return f"~({wording(test, inner)})"
