"""Operations on multimem addresses: one access for each location and element (PTX ISA 8.2.3, 9.7.10.13; A40)."""

from __future__ import annotations

from collections.abc import Iterator

from ptxmm.events.explicit.accesses.elements import part_of
from ptxmm.events.explicit.machine import Effects, Machine
from ptxmm.events.explicit.program import Spot
from ptxmm.events.explicit.trace import Cell
from ptxmm.events.explicit.values.node import Node
from ptxmm.ptx.ops import Element, Multimem, Type, access_bytes, elements


def multimem(machine: Machine, op: Multimem) -> None:
    """``multimem.ld_reduce``, ``.st`` and ``.red``; nothing orders the accesses of one instruction but a read before
    the write of the same scalar."""
    spot, addr = machine.address(op.address, access_bytes(op), multimem=True)
    if op.kind == "ld_reduce":
        _load(machine, op, spot, addr)
    elif spot is None:
        for _ in elements(op):
            machine.lose()
    elif op.kind == "st":
        _store(machine, op, spot, addr)
    else:
        _reduce(machine, op, spot, addr)


def _load(machine: Machine, op: Multimem, spot: Spot | None, addr: int) -> None:
    """The values of all locations, reduced element by element."""
    assert op.op is not None
    lane = 0
    parts: list[list[tuple[Node, int, int, int]]] = [[] for _ in op.dst]
    for element in elements(op):
        result: Node | None = None
        for number in range(1 if spot is None else len(spot.item.replicas)):
            pieces: list[tuple[Node, int, int, int]] = []
            for offset, size, cells in _pieces(machine, op, element, spot, number):
                leaf = machine.read(cells, addr, offset, number, lane=lane)
                pieces.append((leaf, 0, 8 * size, 8 * (offset - element.offset)))
                lane += 1
            value = pieces[0][0] if len(pieces) == 1 else machine.expressions.fields(pieces)
            result = value if result is None else machine.expressions.operation(op.op, element.type, result, value)
        assert result is not None
        parts[element.item].append((result, 0, element.type.bits, element.shift))
    for register, found in zip(op.dst, parts, strict=True):
        if register is not None:
            whole = found[0][0] if len(found) == 1 else machine.expressions.fields(found)
            machine.returned(register, _register(op), whole)


def _store(machine: Machine, op: Multimem, spot: Spot, addr: int) -> None:
    """The same value at every location."""
    lane = 0
    for element in elements(op):
        stored = machine.stored(op.values[element.item], _register(op))
        for number in range(len(spot.item.replicas)):
            for offset, size, cells in _pieces(machine, op, element, spot, number):
                assert cells is not None
                value = part_of(machine, stored, _register(op), element.shift + 8 * (offset - element.offset), size)
                machine.write(cells, value, addr, offset, number, lane=lane)
                lane += 1


def _reduce(machine: Machine, op: Multimem, spot: Spot, addr: int) -> None:
    """A read and a write of each element of each location."""
    assert op.op is not None
    lane = 0
    for element in elements(op):
        stored = machine.stored(op.values[element.item], _register(op))
        operand = part_of(machine, stored, _register(op), element.shift, element.type.bytes)
        for number in range(len(spot.item.replicas)):
            cells = spot.replica(number, element.offset, element.type.bytes)
            old = machine.read(cells, addr, element.offset, number, lane=lane)
            new = machine.expressions.operation(op.op, element.type, old, operand)
            machine.write(cells, new, addr, element.offset, number, lane=lane, stage=1)
            lane += 1
    machine.last_write = machine.step_count


def _register(op: Multimem) -> Type:
    """The type of a register element."""
    return op.type if op.packed == 1 else Type("b", op.packed * op.type.bits)


def _pieces(
    machine: Machine, op: Multimem, element: Element, spot: Spot | None, number: int
) -> Iterator[tuple[int, int, tuple[Cell, Cell] | None]]:
    """The accesses of an element at one location: offset from the address, size, cells.

    The elements of a weak vector are divided as those of ``ld`` and ``st`` (A12).
    """
    size = element.type.bytes
    if spot is None or op.scope is not None or len(elements(op)) == 1:
        yield element.offset, size, None if spot is None else spot.replica(number, element.offset, size)
        return
    for first, length in machine.program.chunks.of(spot.item.replicas[number], spot.offset + element.offset, size):
        offset = first - spot.offset
        yield offset, length, spot.replica(number, offset, length)


EFFECTS: Effects = {Multimem: multimem}
