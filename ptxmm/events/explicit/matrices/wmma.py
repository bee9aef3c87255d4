"""Matrices that a warp loads, multiplies and stores: ``wmma`` (PTX ISA 9.7.15.3).

Which elements a thread holds, and which it accesses, is unspecified. A thread without a named warp, or alone in one,
makes all accesses of its warp. A register that holds a part of a matrix is 0 here, which nothing can see, and depends
on all that was read for it; what is stored is undetermined.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxmm.events.explicit.machine import U32, Effects, Machine
from ptxmm.events.explicit.program import Spot
from ptxmm.ptx.ops import Operand, Reg, Wmma, WmmaLoad, WmmaStore


def load(machine: Machine, op: WmmaLoad) -> None:
    """``wmma.load``: a weak read of each element, of several where nothing tells them apart."""
    spot, addr, stride = _place(machine, op)
    found = addr
    if spot is not None:
        for lane, (offset, size) in enumerate(_pieces(machine, op, spot, stride)):
            found |= machine.read(spot.cells(offset, size), addr, offset, lane=lane).reads
    for register in op.dst:
        if register is not None:
            _assign(machine, register, found)


def store(machine: Machine, op: WmmaStore) -> None:
    """``wmma.store``: a weak write of each element, of several where nothing tells them apart."""
    spot, addr, stride = _place(machine, op)
    if spot is None:
        machine.lose()
        return
    data = _reads(machine, op.values)
    for lane, (offset, size) in enumerate(_pieces(machine, op, spot, stride)):
        cell, place = spot.cells(offset, size)
        value = machine.expressions.constant(op.content.value(*cell))
        machine.add("W", offset, cell=cell, place=place, value=value, addr=addr, data=data, lane=lane)


def multiply(machine: Machine, op: Wmma) -> None:
    """``wmma.mma``: D depends on all of A, B and C."""
    found = _reads(machine, (*op.a, *op.b, *op.c))
    for register in op.dst:
        _assign(machine, register, found)


def _assign(machine: Machine, register: Reg, reads: int) -> None:
    """A fragment is not looked into: it depends on ``reads``."""
    zero = machine.expressions.constant(0)
    machine.assign(register, machine.expressions.joined(zero, reads, machine.width(register.name)))


def _reads(machine: Machine, operands: Sequence[Operand]) -> int:
    found = 0
    for operand in operands:
        if isinstance(operand, Reg):
            found |= machine.expressions.settled(machine.register(operand.name)).reads
    return found


def _place(machine: Machine, op: WmmaLoad | WmmaStore) -> tuple[Spot | None, int, int]:
    """Where the matrix begins (None: nowhere it may), the reads that its place depends on, and its stride."""
    tile = op.tile
    stride, reads = tile.length, 0
    if op.stride is not None:
        stride, reads = machine.number(op.stride, U32, "stride of this matrix")
    if stride < tile.length:
        machine.undefined(f"a stride of {stride} elements, less than the {tile.length} of a line")
        return None, reads, stride
    if stride * tile.bits % (8 * tile.fragment):
        machine.undefined(f"a stride of {stride} elements is no multiple of {tile.fragment} bytes")
        return None, reads, stride
    spot, addr = machine.address(op.address, tile.span(stride), alignment=tile.fragment)
    return spot, reads | addr, stride


def _pieces(machine: Machine, op: WmmaLoad | WmmaStore, spot: Spot, stride: int) -> list[tuple[int, int]]:
    """The accesses: the offset of each from the begin of the matrix and its size."""
    chunks = machine.program.chunks
    return [
        (position - spot.offset, size)
        for first, length in op.tile.segments(stride)
        for position, size in chunks.of(spot.item.physical, spot.offset + first, length, op.tile.unit)
    ]


EFFECTS: Effects = {WmmaLoad: load, WmmaStore: store, Wmma: multiply}
