"""Operations on multimem addresses (PTX ISA 8.2.3, 9.7.10.13): at each location as ``ld``, ``st`` and ``red``."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ptxmm.events.symbolic.accesses.elements import read
from ptxmm.events.symbolic.event import Place
from ptxmm.events.symbolic.executor import Executor
from ptxmm.events.symbolic.machine import State
from ptxmm.events.symbolic.values.domain import Reads, Value
from ptxmm.events.symbolic.values.floats import compute_float, is_float
from ptxmm.program.identity import EventId
from ptxmm.program.test import MemoryObject
from ptxmm.ptx.ops import Element, Multimem, Type, access_bytes, elements
from ptxmm.relations.formula import FALSE, TRUE, Formula


class _At(Struct, frozen=True):
    """The operation at one multimem address that it may have: when, the object and the byte offset in it."""

    op: Multimem
    here: EventId
    presence: Formula
    item: MemoryObject
    start: int
    address: Reads
    control: Reads

    def id(self, replica: int, offset: int) -> EventId:
        """The id of the access ``offset`` bytes after the address, of one location."""
        return self.here.at(offset, replica)


def multimem(
    run: Executor, op: Multimem, here: EventId, state: State, presence: Formula, condition: Formula, control: Reads
) -> None:
    """Execute ``op``. Where its address has several values, each is an operation of its own."""
    address = run.address(state, op.address)
    where, wrong = run.located(op, address, access_bytes(op), presence, multimem=True)
    arms: dict[int, list[tuple[Formula, Value]]] = {}
    parts = elements(op)
    for when, item, start in where:
        at = _At(op, here, run.formulas.both(presence, when), item, start, address.reads, control)
        if at.presence == FALSE:
            continue
        for element in parts:
            if op.kind == "ld_reduce":
                arms.setdefault(element.offset, []).append((when, _loaded(run, at, element)))
            elif op.kind == "st":
                _write(run, at, element, _operand(run, state, op, element))
            else:
                _update(run, at, element, _operand(run, state, op, element))
    run.wrote(state, presence if op.kind != "ld_reduce" else FALSE)
    for number, register in enumerate(op.dst):
        if register is not None:
            results = [(e, _either(run, arms.get(e.offset, []), wrong)) for e in parts if e.item == number]
            whole = results[0][1]
            for element, value in results[1:]:
                whole = _above(run, whole, value, element.shift)
            run.assign(state, register.name, whole, condition, op)


def _either(run: Executor, arms: list[tuple[Formula, Value]], wrong: Formula) -> Value:
    """The value of the arm that holds; 0 where the address is none of a multimem object."""
    zero = [(wrong, run.constant(0))] if wrong != FALSE or not arms else []
    return run.one_of([*arms, *zero])


def _above(run: Executor, low: Value, high: Value, shift: int) -> Value:
    """Both values, the second one from bit ``shift`` on."""
    return run.join(low, high, shift)


def _operand(run: Executor, state: State, op: Multimem, element: Element) -> Value:
    whole = run.operand(state, op.values[element.item], Type("b", op.packed * op.type.bits))
    return whole if op.packed == 1 else run.field(whole, element.shift, element.type.bits)


def _places(run: Executor, at: _At, element: Element) -> Iterator[tuple[int, list[tuple[int, Place]]]]:
    """Of each location its number and its accesses: the offset in ``element`` and the place of each.

    What other accesses divide, a weak vector is divided by too (A12). The virtual address of a location is
    the multimem address, but two locations don't overlap (8.2.1), so each counts as an address of its own.
    """
    first, size = at.start + element.offset, element.type.bytes
    divided = at.op.scope is None and len(elements(at.op)) > 1
    for number, key in enumerate(at.item.replicas):
        ranges = run.machine.chunks(key, first, size) if divided else ((first, size),)
        virtual = f"{at.item.virtual}[{number}]"
        yield number, [(offset - first, Place(TRUE, key, virtual, offset, length)) for offset, length in ranges]


def _read(run: Executor, at: _At, replica: int, offset: int, place: Place) -> tuple[EventId, Value]:
    id_ = at.id(replica, offset)
    return id_, read(run, at.op, id_, [place], at.presence, FALSE, at.address, at.control)[1]


def _loaded(run: Executor, at: _At, element: Element) -> Value:
    """The reduction of what ``element`` is at all locations."""
    result: Value | None = None
    for number, accesses in _places(run, at, element):
        value: Value | None = None
        for offset, place in accesses:
            _, piece = _read(run, at, number, element.offset + offset, place)
            value = piece if value is None else _above(run, value, piece, 8 * offset)
        assert value is not None
        result = value if result is None else _combined(run, at.op, element.type, result, value)
    assert result is not None
    return result


def _write(run: Executor, at: _At, element: Element, value: Value) -> None:
    """Write ``value`` to ``element`` at all locations."""
    for number, accesses in _places(run, at, element):
        for offset, place in accesses:
            part = value if len(accesses) == 1 else run.field(value, 8 * offset, 8 * place.size)
            _write_at(run, at, at.id(number, element.offset + offset), place, part)


def _update(run: Executor, at: _At, element: Element, operand: Value) -> None:
    """Read, compute and write ``element`` at all locations."""
    for number, accesses in _places(run, at, element):
        for offset, place in accesses:
            id_, old = _read(run, at, number, element.offset + offset, place)
            _write_at(run, at, id_, place, _combined(run, at.op, element.type, old, operand))


def _write_at(run: Executor, at: _At, id_: EventId, place: Place, value: Value) -> None:
    event = run.event("W", at.op, id_, at.presence, at.control)
    event.places, event.value = [place], value.domain
    event.address, event.data = at.address, value.reads


def _combined(run: Executor, op: Multimem, type_: Type, a: Value, b: Value) -> Value:
    """``a op b``. Nothing is said of subnormal numbers, so they are kept (9.7.10.13)."""
    assert op.op is not None
    name = op.op
    if is_float(name, type_):
        return run.function(("float", name, type_, False), lambda x, y: compute_float(name, type_, x, y, False), [a, b])
    return run.operation(name, type_, [a, b])
