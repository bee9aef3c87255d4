"""Matrices: loads and stores of their rows by a warp, and products that a warpgroup makes asynchronously.

PTX ISA 9.7.15.4.15, .16, 9.7.16; decision A35.

A thread without a named warp is lane 0 of its warp, where the others name the same row and hold the same values; it
accesses its own row. In a warp with a name it accesses what it gets of the rows that other lanes name, or what it holds
of them, where these rows are known.

A product reads its matrices in shared memory in the async proxy. It is issued after ``wgmma.fence`` and
``fence.proxy.async`` of its thread alone, not after what else comes before it. What it computes is not modelled: in a
litmus test its results hold the first bytes that it read of its matrix B, so that a test can see them; in a kernel,
where it is known which bytes its matrices have, nothing sees them (``unseen.open_results``).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from ptxmm.events.explicit.accesses.elements import part_of
from ptxmm.events.explicit.machine import ADDRESS, Copy, Effects, Machine
from ptxmm.events.explicit.program import Spot
from ptxmm.events.explicit.values.node import Node
from ptxmm.program.shared.refusals import SEVERAL_MATRICES, named_warp, refused
from ptxmm.ptx.isa import names_read
from ptxmm.ptx.ops import (
    MATRIX_ROW_BYTES,
    LoadMatrix,
    Operand,
    ProxyFence,
    StoreMatrix,
    Type,
    Wgmma,
    WgmmaFence,
    fragment_bytes,
)

_ALIGNMENT = 16


_ELEMENT, _FRAGMENT, _ROW = 16, Type("b", 32), Type("b", 8 * MATRIX_ROW_BYTES)


def load_matrix(machine: Machine, op: LoadMatrix) -> None:
    """``ldmatrix``: a weak read of a row; a register gets its first two elements, or its first twice (``.trans``).
    Where the rows of the warp are known the lane reads what it gets of each matrix."""
    if op.fragments:
        _load_fragments(machine, op)
        return
    _whole_warp(machine, "ldmatrix")
    spot, addr = machine.address(op.address, MATRIX_ROW_BYTES)
    if spot is None:
        row = machine.read(None, addr)
    else:
        parts = []
        for lane, (offset, size) in enumerate(_divided(machine, spot, MATRIX_ROW_BYTES)):
            parts.append((machine.read(spot.cells(offset, size), addr, offset, lane=lane), 0, 8 * size, 8 * offset))
        row = machine.expressions.fields(parts)
    if op.transposed:
        fragment = machine.expressions.fields([(row, 0, _ELEMENT, 0), (row, 0, _ELEMENT, _ELEMENT)])
    else:
        fragment = machine.expressions.fields([(row, 0, _FRAGMENT.bits, 0)])
    for register in op.dst:
        if register is not None:
            machine.returned(register, _FRAGMENT, fragment)


def store_matrix(machine: Machine, op: StoreMatrix) -> None:
    """``stmatrix``: a weak write of a row: two elements from each of four lanes, or with ``.trans`` the lower one from
    each of eight.

    Where the rows of the warp are known the lane writes what it holds of each matrix.

    Raises ``PtxmmError`` (kind ``unsupported``) for several matrices else: the rows of others are those of other lanes.
    """
    if op.fragments:
        _store_fragments(machine, op)
        return
    _whole_warp(machine, "stmatrix")
    if len(op.values) > 1:
        raise refused(SEVERAL_MATRICES, machine.program.test, op)
    spot, addr = machine.address(op.address, MATRIX_ROW_BYTES)
    value = machine.stored(op.values[0], _FRAGMENT)
    width = _ELEMENT if op.transposed else _FRAGMENT.bits
    row = machine.expressions.fields([(value, 0, width, i) for i in range(0, _ROW.bits, width)])
    if spot is None:
        machine.lose()
        return
    for lane, (offset, size) in enumerate(_divided(machine, spot, MATRIX_ROW_BYTES)):
        part = part_of(machine, row, _ROW, 8 * offset, size)
        machine.write(spot.cells(offset, size), part, addr, offset, lane=lane)


def _load_fragments(machine: Machine, op: LoadMatrix) -> None:
    """A weak read of each fragment, in no order among each other."""
    size, lanes = fragment_bytes(op), count()
    held: list[Node] = []
    for operand, place in enumerate(op.fragments):
        spot, addr = machine.address(place, size)
        if spot is None:
            held.append(machine.read(None, addr, 0, operand))
            continue
        parts = [
            (machine.read(spot.cells(offset, n), addr, offset, operand, lane=next(lanes)), 0, 8 * n, 8 * offset)
            for offset, n in _divided(machine, spot, size)
        ]
        held.append(machine.expressions.fields(parts))
    each = len(held) // len(op.dst)
    for number, register in enumerate(op.dst):
        if register is not None:
            own = held[each * number : each * (number + 1)]
            pair = machine.expressions.fields([(node, 0, 8 * size, 8 * size * i) for i, node in enumerate(own)])
            machine.returned(register, _FRAGMENT, pair)


def _store_fragments(machine: Machine, op: StoreMatrix) -> None:
    """A weak write of each fragment, in no order among each other."""
    size, lanes = fragment_bytes(op), count()
    each = len(op.fragments) // len(op.values)
    for operand, place in enumerate(op.fragments):
        spot, addr = machine.address(place, size)
        value = machine.stored(op.values[operand // each], _FRAGMENT)
        if spot is None:
            machine.lose()
            continue
        for offset, n in _divided(machine, spot, size):
            part = part_of(machine, value, _FRAGMENT, 8 * (size * (operand % each) + offset), n)
            machine.write(spot.cells(offset, n), part, addr, offset, operand, lane=next(lanes))


def _divided(machine: Machine, spot: Spot, size: int) -> Iterator[tuple[int, int]]:
    """The accesses of so many bytes: the offset and the size of each."""
    for position, part in machine.program.chunks.of(spot.item.physical, spot.offset, size):
        yield position - spot.offset, part


def _whole_warp(machine: Machine, name: str) -> None:
    if machine.thread.placement.warp is not None:
        raise refused(named_warp(name), machine.program.test, machine.op)


def wgmma_fence(machine: Machine, op: WgmmaFence) -> None:
    """``wgmma.fence``: what later products are issued after."""
    machine.add("ISS")


def wgmma(machine: Machine, op: Wgmma) -> None:
    """``wgmma.mma_async``: reads of its matrices, then an implicit proxy fence; it joins the next group."""
    issuers = tuple(i for i, e in enumerate(machine.trace.events) if _issues(e.op))
    reads: list[int] = []
    if op.matrices:
        _decoded(machine, op, issuers)
        return
    matrices = [_matrix(machine, d) for d in ([op.b] if isinstance(op.a, tuple) else [op.b, op.a])]
    first = machine.expressions.constant(0), 0
    if all(spot is not None for spot, _ in matrices):
        found = [
            _read(machine, spot, addr, k, issuers, reads) for k, (spot, addr) in enumerate(matrices) if spot is not None
        ]
        first = found[0]
        _complete(machine, op, issuers, reads)
    for register in op.dst:
        node, size = first
        bits = machine.thread.registers[register.name].bits
        whole = node if bits >= 8 * size else machine.expressions.fields([(node, 0, bits, 0)])
        machine.assign(register, whole)


def _decoded(machine: Machine, op: Wgmma, issuers: tuple[int, ...]) -> None:
    """A product whose matrices are known piece by piece."""
    found = 0
    for name in names_read(op):
        found |= machine.expressions.settled(machine.register(name)).reads
    spots = [[machine.address(place, n, role="matrix", alignment=_ALIGNMENT)[0] for place, n in m] for m in op.matrices]
    if all(spot is not None for matrix in spots for spot in matrix):
        reads: list[int] = []
        for operand, (matrix, places) in enumerate(zip(op.matrices, spots, strict=True)):
            begin = 0
            for (_, size), spot in zip(matrix, places, strict=True):
                assert spot is not None
                for offset, n in _divided(machine, spot, size):
                    reads.append(len(machine.trace.events))
                    cells = spot.cells(offset, n)
                    node = machine.read(cells, 0, begin + offset, operand, asynchronous=True, issuers=issuers)
                    found |= node.reads
                begin += size
        _complete(machine, op, issuers, reads)
    zero = machine.expressions.constant(0)
    for register in op.dst:
        machine.assign(register, machine.expressions.joined(zero, found, machine.width(register.name)))


def _complete(machine: Machine, op: Wgmma, issuers: tuple[int, ...], reads: list[int]) -> None:
    """The implicit proxy fence of a product, and its place in the next group."""
    done, after, group = len(machine.trace.events), tuple(reads), len(machine.groups.get("wgmma", ()))
    machine.add("PF", operand=1, asynchronous=True, issuers=issuers, after=after, covers=after, group=group)
    machine.alone.setdefault("wgmma", []).append(Copy((done,), (done,)))
    if machine.products is not None:
        machine.products.start(op, done)


def _issues(op: object) -> bool:
    return isinstance(op, WgmmaFence) or (isinstance(op, ProxyFence) and op.kind == "async")


def _matrix(machine: Machine, descriptor: Operand) -> tuple[Spot | None, int]:
    """Where the matrix of a descriptor is, and the reads that this depends on."""
    node = machine.expressions.settled(machine.operand(descriptor, ADDRESS))
    where = machine.program.from_descriptor(machine.decide(node, None, "descriptor of this product"))
    return machine.spot(where, 1, _ALIGNMENT, role="matrix"), node.reads


def _read(
    machine: Machine, spot: Spot, addr: int, operand: int, issuers: tuple[int, ...], reads: list[int]
) -> tuple[Node, int]:
    """Read the bytes from ``spot`` to the end of its object, one read for each chunk.

    Gives the value of the first read and its size; ``reads`` gets the positions of all of them.
    """
    first = machine.expressions.constant(0), 0
    for position, size in machine.program.chunks.of(spot.item.physical, spot.offset, spot.item.size - spot.offset):
        offset = position - spot.offset
        at = len(machine.trace.events)
        value = machine.read(spot.cells(offset, size), addr, offset, operand, asynchronous=True, issuers=issuers)
        first = first if offset else (value, size)
        reads.append(at)
    return first


EFFECTS: Effects = {LoadMatrix: load_matrix, StoreMatrix: store_matrix, WgmmaFence: wgmma_fence, Wgmma: wgmma}
