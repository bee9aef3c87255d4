"""Operations on multimem addresses (PTX ISA 8.2.3, 9.7.10.13): at each location as ``ld``, ``st`` and ``red``."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ptxmm.events.symbolic.accesses.elements import read, write
from ptxmm.events.symbolic.event import Place
from ptxmm.events.symbolic.executor import Effects, Executor
from ptxmm.events.symbolic.values.domain import Reads, Value
from ptxmm.program.test import MemoryObject
from ptxmm.ptx.ops import Element, Multimem, Type, access_bytes, elements
from ptxmm.relations.formula import FALSE, TRUE, Formula


class _At(Struct, frozen=True):
    """The operation at one multimem address that it may have: when, the object and the byte offset in it."""

    op: Multimem
    presence: Formula
    item: MemoryObject
    start: int
    address: Reads


def multimem(run: Executor, op: Multimem) -> None:
    """Execute ``op``. Where its address has several values, each is an operation of its own."""
    address = run.address(op.address)
    where, wrong = run.located(address, access_bytes(op), multimem=True)
    arms: dict[int, list[tuple[Formula, Value]]] = {}
    parts = elements(op)
    for when, item, start in where:
        at = _At(op, run.formulas.both(run.presence, when), item, start, address.reads)
        if at.presence == FALSE:
            continue
        for element in parts:
            if op.kind == "ld_reduce":
                arms.setdefault(element.offset, []).append((when, _loaded(run, at, element)))
            else:
                _write(run, at, element, _operand(run, op, element))
    run.wrote(run.presence if op.kind != "ld_reduce" else FALSE)
    for number, register in enumerate(op.dst):
        if register is not None:
            results = ((e.shift, _either(run, arms.get(e.offset, []), wrong)) for e in parts if e.item == number)
            run.assign(register.name, run.join(results))


def _either(run: Executor, arms: list[tuple[Formula, Value]], wrong: Formula) -> Value:
    """The value of the arm that holds; 0 where the address is none of a multimem object."""
    zero = [(wrong, run.constant(0))] if wrong != FALSE or not arms else []
    return run.one_of([*arms, *zero])


def _operand(run: Executor, op: Multimem, element: Element) -> Value:
    whole = run.operand(op.values[element.item], Type("b", op.packed * op.type.bits))
    return whole if op.packed == 1 else run.field(whole, element.shift, element.type.bits)


def _places(run: Executor, at: _At, element: Element) -> Iterator[tuple[int, list[tuple[int, Place]]]]:
    """Of each location its number and its accesses: the offset in ``element`` and the place of each.

    What other accesses divide, a weak vector is divided by too (A12). The virtual address of a location is
    the multimem address, but two locations don't overlap (8.2.1), so each counts as an address of its own.
    """
    first, size = at.start + element.offset, element.type.bytes
    divided = at.op.scope is None and len(elements(at.op)) > 1
    for number, key in enumerate(at.item.replicas):
        ranges = run.machine.setting.chunks(key, first, size) if divided else ((first, size),)
        virtual = f"{at.item.virtual}[{number}]"
        yield number, [(offset - first, Place(TRUE, key, virtual, offset, length)) for offset, length in ranges]


def _loaded(run: Executor, at: _At, element: Element) -> Value:
    """The reduction of what ``element`` is at all locations. Nothing is said of subnormal numbers, so they are kept
    (9.7.10.13)."""
    result: Value | None = None
    assert at.op.op is not None
    for number, accesses in _places(run, at, element):
        ids = [(offset, place, run.here.at(element.offset + offset, number)) for offset, place in accesses]
        value = run.join((8 * o, read(run, [place], at.presence, at.address, id_)[1]) for o, place, id_ in ids)
        result = value if result is None else run.operation(at.op.op, element.type, [result, value])
    assert result is not None
    return result


def _write(run: Executor, at: _At, element: Element, operand: Value) -> None:
    """Write ``element`` at all locations, or what it makes of what they hold."""
    for number, accesses in _places(run, at, element):
        for offset, place in accesses:
            id_ = run.here.at(element.offset + offset, number)
            if at.op.op is not None:
                _, old = read(run, [place], at.presence, at.address, id_)
                value = run.operation(at.op.op, element.type, [old, operand])
            else:
                value = operand if len(accesses) == 1 else run.field(operand, 8 * offset, 8 * place.size)
            write(run, [place], value, at.presence, at.address, id_)


EFFECTS: Effects = {Multimem: multimem}
