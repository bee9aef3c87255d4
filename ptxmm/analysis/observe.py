"""Which registers and memory elements distinguish two outcomes, and the names and values they are shown with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache

from ptxmm.analysis.result import Outcome, Unknown, Value
from ptxmm.engines.result import Observed
from ptxmm.program.condition import (
    Comparison,
    Conjunction,
    IntegerTerm,
    MemoryTerm,
    Proposition,
    RegisterTerm,
    State,
    Term,
    evaluate,
    terms,
)
from ptxmm.program.floats import real_text
from ptxmm.program.fragments import fragments
from ptxmm.program.shared.windows import BITS, in_window
from ptxmm.program.test import Test
from ptxmm.program.unspecified.unknown import Bytes, unknown_bytes
from ptxmm.ptx.ops import Type


def observed(test: Test, all_state: bool = False) -> Observed:
    """What a result of ``test`` lists: the terms of its condition and ``locations``, in order of threads and
    declarations.

    ``all_state`` adds every register that a thread writes and every element of every object. A test that names
    nothing is shown with all its state.
    """
    named: set[Term] = set(test.locations)
    if test.condition is not None:
        named.update(terms(test.condition.proposition))
    if all_state or not named:
        named.update(_everything(test))
    order = {key: number for number, key in enumerate(test.objects)}
    registers = [t for t in named if isinstance(t, RegisterTerm)]
    memory = [t for t in named if isinstance(t, MemoryTerm)]
    registers.sort(key=lambda t: (t.thread, _natural(t.register)))
    memory.sort(key=lambda t: (order[t.key], t.index))
    return Observed(tuple(registers), tuple(memory))


def outcome(test: Test, what: Observed, state: State) -> Outcome:
    """``state`` with the names and values that results use."""
    return next(outcomes(test, what, (state,)))


def outcomes(test: Test, what: Observed, states: Iterable[State]) -> Iterator[Outcome]:
    """Each of ``states`` with the names and values that results use."""
    condition = test.condition
    bytes_ = unknown_bytes(test)
    parts = [fragments(thread) for thread in test.threads]

    @cache
    def value(type_: Type, number: int) -> Value:
        return _unknown(type_, number, bytes_) or _value(test, type_, number)

    registers = [
        (register_name(test, t), (t.thread, t.register), t.type, t.register in parts[t.thread]) for t in what.registers
    ]
    memory = [(memory_name(test, t), (t.key, t.index), t.type) for t in what.memory]
    for state in states:
        yield Outcome(
            {
                name: Unknown("fragment") if part else value(type_, state.registers[key])
                for name, key, type_, part in registers
            },
            {name: value(type_, state.memory[key]) for name, key, type_ in memory},
            None if condition is None else evaluate(condition.proposition, state),
        )


def exactly(values: Iterable[tuple[Term, int]]) -> Proposition:
    """That each of these registers and memory elements has its value."""
    return Conjunction(tuple(Comparison("==", term, IntegerTerm(value)) for term, value in values))


def register_name(test: Test, term: RegisterTerm) -> str:
    """``P1:r0``."""
    return f"{test.threads[term.thread].name}:{term.register}"


def memory_name(test: Test, term: MemoryTerm) -> str:
    """``x``, or ``x[1]`` for an element of an array."""
    return f"{term.key}[{term.index}]" if test.objects[term.key].is_array else term.key


def _value(test: Test, type_: Type, value: int) -> Value:
    """An integer in the type's sign, a floating-point number, or the address that a value inside an object is: one of
    64 bits, or one in a window, which fits in 32."""
    value &= (1 << type_.bits) - 1
    if type_.kind == "f":
        return real_text(value, type_)
    if type_.bits == 64:
        for item in test.objects.values():
            # One past the end still reads best as an address of this object: nothing else lies there.
            if item.virtual == item.key and item.address <= value <= item.address + item.size:
                return address(item.key, value - item.address)
    found = in_window(test.objects, value) if type_.bits in (BITS, 64) else None
    if found is not None:
        return address(found[0].key, found[1])
    if type_.signed and value >> (type_.bits - 1):
        value -= 1 << type_.bits
    return value


def address(key: str, offset: int) -> str:
    """``&x``, or ``&x+4``."""
    return f"&{key}+{offset}" if offset else f"&{key}"


def _unknown(type_: Type, value: int, unknown: Bytes) -> Unknown | None:
    """``value`` by the name of the memory whose unknown value it holds, or None if it has no unknown byte."""
    if not unknown or type_.bits < 8:
        return None
    content = value.to_bytes(type_.bits // 8, "little")
    places = [unknown.get(byte) for byte in content]
    if not any(places):
        return None
    key, first = places[0] or ("", 0)
    if first >= 0 and all(place == (key, first + i) for i, place in enumerate(places)):
        return Unknown(f"{key}+{first}" if first else key)
    return Unknown("0x" + "".join("??" if p else f"{b:02x}" for b, p in zip(content[::-1], places[::-1], strict=True)))


def _everything(test: Test) -> list[Term]:
    from ptxmm.ptx.isa import names_written  # the instruction table is only needed here

    found: list[Term] = []
    for number, thread in enumerate(test.threads):
        written = {name for op in thread.body for name in names_written(op)}
        found += [RegisterTerm(number, name, thread.registers[name]) for name in written]
    for item in test.objects.values():
        if item.virtual == item.key and item.physical == item.key:  # an alias shows the bytes of its object again
            found += [MemoryTerm(item.key, index, item.type) for index in range(item.count)]
    return found


def _natural(name: str) -> tuple[tuple[str, int], ...]:
    """A sort key in which r2 comes before r10."""
    return tuple((text, int(digits or -1)) for text, digits in re.findall(r"(\D*)(\d*)", name))
