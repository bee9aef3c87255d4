"""Tensor copies in tiled mode: ``cp.async.bulk.tensor`` and ``cp.reduce.async.bulk.tensor`` (PTX ISA 5.5, 9.7.10.24).

A tensor map is read in the tensormap proxy when the copy is performed (A38). Each value that its 128 bytes may have is
the description of an operation of its own, of which an execution has one.
"""

from __future__ import annotations

from itertools import product

from ptxmm.events.symbolic.accesses.elements import pieces, read
from ptxmm.events.symbolic.asynchronous.copies import BULK_ALIGNMENT, completion, destinations, signal
from ptxmm.events.symbolic.asynchronous.groups import (
    Issued,
    Part,
    bytes_of,
    combinations_of,
    enqueue,
    issue,
    join,
    locate,
    member,
    read_source,
    reads_of,
    reduce_element,
    write_part,
)
from ptxmm.events.symbolic.executor import Executor
from ptxmm.events.symbolic.machine import State
from ptxmm.events.symbolic.values.domain import Reads, Value, signed
from ptxmm.program.identity import TENSORMAP, EventId
from ptxmm.program.shared.tensors import TENSORMAP_BYTES, Tensor, decode
from ptxmm.program.test import MemoryObject
from ptxmm.ptx.ops import Address, BulkCopy, Role, Type
from ptxmm.relations.formula import FALSE, TRUE, Formula

COORDINATE = Type("u", 32)

Row = tuple[int, MemoryObject, int, int]
"""Adjacent elements inside of the tensor: their offset in the box, their object, the offset in it, how many bytes."""


def tensor_copy(
    run: Executor, op: BulkCopy, place: Address, here: EventId, state: State, presence: Formula, control: Reads
) -> None:
    """A copy or a reduction of the box that the tensor map at ``place`` describes."""
    issued = issue(run, op, "bulk", here, presence, control, op.mbarrier is None)
    base = run.address(state, place)
    coordinates = [run.operand(state, c, COORDINATE) for c in op.coordinates]
    where, wrong = run.located(op, base, TENSORMAP_BYTES, presence, BULK_ALIGNMENT, "tensor map")
    for when, item, offset in where:
        held = run.formulas.all([presence, when, -wrong])
        ((places,),) = pieces(run, [(TRUE, item, offset)], 0, TENSORMAP_BYTES, False)
        id_ = issued.here.at(0, TENSORMAP)
        event, content = read(run, op, id_, places, held, FALSE, base.reads, issued.control)
        join(issued, event)
        _described(run, op, issued, state, held, content, coordinates, reads_of(run, base, content, *coordinates))
    run.wrote(state, presence)
    enqueue(state, issued)


def _described(
    run: Executor,
    op: BulkCopy,
    issued: Issued,
    state: State,
    presence: Formula,
    content: Value,
    coordinates: list[Value],
    reads: Reads,
) -> None:
    """The copies that the values ``content`` of the tensor map describe; ``reads``: what they depend on."""
    loads = op.dst is not None
    side, space = (op.dst, op.dst_space) if loads else (op.src, op.src_space)
    near_role: Role = "destination" if loads else "source"
    assert side is not None
    near = run.address(state, side, space)
    arrival, mask = completion(run, op, state)
    both = reads_of(run, near, mask)
    both = run.machine.union(reads, both)
    deciding = run.machine.union(both, arrival.reads)
    values = [content, near, arrival, mask, *coordinates]
    for when, (map_, local, mbarrier, ranks, *start) in combinations_of(run, values):
        held = run.formulas.both(presence, when)
        if held == FALSE:
            continue
        targets = destinations(run, op, local, mbarrier, ranks)
        tensor = decode(map_, len(start), op.reduction)
        if isinstance(tensor, str):
            run.misuse(op, held, tensor)
            # That it is seen, who waits for the bytes of a destination that fits has to come to an end.
            found = run.machine.test.locate(local)
            signal(run, op, issued, targets, found[0].size - found[1] if found is not None else 0, held, deciding)
            continue
        bars = signal(run, op, issued, targets, tensor.size, held, deciding)
        rows = _rows(run, op, tensor, [signed(c, COORDINATE.bits) for c in start], held)
        sides = [locate(run, op, address, tensor.size, held, BULK_ALIGNMENT, near_role) for address, _ in targets]
        if rows is None or None in sides or None in bars:
            continue
        known = [found for found in sides if found is not None]
        if loads:
            parts = [part for row in rows for part in _read_row(run, issued, row, held, reads)]
            for k, (item, offset) in enumerate(known):
                write_part(run, issued, k, item, offset, tensor.size, parts, held, both)
        else:
            parts = read_source(run, issued, *known[0], tensor.size, held, both)
            for row in rows:
                _write_row(run, op, issued, tensor.type, row, parts, held, reads)
        for operand in (0, 1):
            member(run, issued, "PF", held, operand=operand)


def _rows(run: Executor, op: BulkCopy, tensor: Tensor, start: list[int], presence: Formula) -> list[Row] | None:
    """The elements of the box at ``start`` that lie in the tensor, in the order of the box (5.5.3), adjacent ones as
    one row; None where one lies outside every object."""
    width = tensor.type.bytes
    lines = [
        [(first + step * i, 0 <= first + step * i < size) for i in range(count)]
        for first, step, count, size in zip(start, tensor.steps, tensor.counts, tensor.dims, strict=True)
    ]
    found: list[tuple[int, int, int]] = []
    for number, indices in enumerate(product(*reversed(lines))):
        if not all(inside for _, inside in indices):
            continue
        address = tensor.address
        for (index, _), stride in zip(reversed(indices), (width, *tensor.strides), strict=True):
            address += index * stride
        if found and (found[-1][0] + found[-1][2], found[-1][1] + found[-1][2]) == (number * width, address):
            found[-1] = (*found[-1][:2], found[-1][2] + width)
        else:
            found.append((number * width, address, width))
    rows: list[Row] = []
    for begin, address, size in found:
        place = locate(run, op, address & (1 << 64) - 1, size, presence, 1, "tensor")
        if place is not None:
            rows.append((begin, *place, size))
    return rows if len(rows) == len(found) else None


def _read_row(run: Executor, issued: Issued, row: Row, presence: Formula, address: Reads) -> list[Part]:
    begin, item, offset, size = row
    parts = read_source(run, issued, item, offset, size, presence, address, begin)
    return [(begin + start, length, value) for start, length, value in parts]


def _write_row(
    run: Executor,
    op: BulkCopy,
    issued: Issued,
    type_: Type,
    row: Row,
    parts: list[Part],
    presence: Formula,
    address: Reads,
) -> None:
    begin, item, offset, size = row
    if op.reduction is None:
        write_part(run, issued, 0, item, offset, size, parts, presence, address, begin)
        return
    for start in range(0, size, type_.bytes):
        operand, id_ = bytes_of(run, parts, begin + start, type_.bytes), issued.here.at(begin + start, 1)
        reduce_element(run, issued, op.reduction, type_, id_, item, offset + start, operand, presence, address)


__all__ = ["tensor_copy"]
