"""Tensor copies in tiled mode: ``cp.async.bulk.tensor`` and ``cp.reduce.async.bulk.tensor`` (PTX ISA 5.5, 9.7.10.24).

A tensor map is read in the tensormap proxy when the copy is performed (A38). Each value that its 128 bytes may have is
the description of an operation of its own, of which an execution has one.
"""

from __future__ import annotations

from itertools import product

from ptxmm.events.symbolic.accesses.elements import read
from ptxmm.events.symbolic.asynchronous.copies import (
    BULK_ALIGNMENT,
    bulk_copy,
    completion,
    deliver,
    destinations,
    signal,
)
from ptxmm.events.symbolic.asynchronous.groups import (
    Side,
    combinations_of,
    enqueue,
    issue,
    locate,
    read_source,
    reads_of,
    write_part,
)
from ptxmm.events.symbolic.executor import Effects, Executor, Start, place_at
from ptxmm.events.symbolic.values.arithmetic import signed
from ptxmm.events.symbolic.values.domain import Value
from ptxmm.program.identity import TENSORMAP
from ptxmm.program.shared.tensors import TENSORMAP_BYTES, Tensor, decode
from ptxmm.ptx.ops import Address, BulkCopy, Role, Type
from ptxmm.relations.formula import TRUE, Formula

COORDINATE = Type("u", 32)

Row = tuple[int, Start, int]
"""Adjacent elements inside of the tensor: their offset in the box, where they are, how many bytes."""


def _bulk_copy(run: Executor, op: BulkCopy) -> None:
    """A copy of bytes, or of the box of a tensor map."""
    if op.tensormap is None:
        bulk_copy(run, op)
    else:
        tensor_copy(run, op, op.tensormap)


def tensor_copy(run: Executor, op: BulkCopy, place: Address) -> None:
    """A copy or a reduction of the box that the tensor map at ``place`` describes."""
    operation = issue(run, "bulk", op.mbarrier is None)
    base = run.address(place)
    coordinates = [run.operand(c, COORDINATE) for c in op.coordinates]
    where, wrong = run.located(base, TENSORMAP_BYTES, None, BULK_ALIGNMENT, "tensor map")
    for when, item, offset in where:
        held = run.formulas.all([run.presence, when, -wrong])
        places, id_ = [place_at(TRUE, item, offset, TENSORMAP_BYTES)], run.here.at(0, TENSORMAP)
        _, content = read(run, places, held, base.reads, id_, operation=operation)
        _described(run, op, Side(operation, held, reads_of(run, base, content, *coordinates)), content, coordinates)
    run.wrote()
    enqueue(run, operation)


def _described(run: Executor, op: BulkCopy, map_: Side, content: Value, coordinates: list[Value]) -> None:
    """The copies that the values ``content`` of a tensor map describe; ``map_`` has what they depend on."""
    loads = op.dst is not None
    near_side, space = (op.dst, op.dst_space) if loads else (op.src, op.src_space)
    assert near_side is not None
    near = run.address(near_side, space)
    arrival, mask = completion(run, op)
    both = run.machine.union(map_.address, reads_of(run, near, mask))
    deciding = run.machine.union(both, arrival.reads)
    operands = content, near, arrival, mask, *coordinates
    for _, held, (bits, local, mbarrier, ranks, *start) in combinations_of(run, map_.presence, *operands):
        targets = destinations(run, op, local, mbarrier, ranks)
        far, all_of = Side(map_.operation, held, map_.address), Side(map_.operation, held, deciding)
        tensor = decode(bits, len(start), op.reduction)
        if isinstance(tensor, str):
            run.misuse(held, tensor)
            # That it is seen, who waits for the bytes of a destination that fits has to come to an end.
            found = run.machine.test.locate(local)
            signal(run, op, all_of, targets, found[0].size - found[1] if found is not None else 0)
            continue
        bars = signal(run, op, all_of, targets, tensor.size)
        rows = _rows(run, tensor, [signed(c, COORDINATE.bits) for c in start], held)
        role: Role = "destination" if loads else "source"
        sides = [locate(run, address, tensor.size, held, BULK_ALIGNMENT, role) for address, _ in targets]
        known = [found for found in sides if found is not None]
        if rows is None or len(known) < len(sides) or None in bars:
            continue
        here = Side(map_.operation, held, both)
        if loads:
            parts = [part for begin, at, size in rows for part in read_source(run, far, at, size, begin)]
            for k, at in enumerate(known):
                write_part(run, here, k, at, tensor.size, parts)
        else:
            parts = read_source(run, here, known[0], tensor.size)
            for begin, at, size in rows:
                deliver(run, op, far, tensor.type, 0, at, size, parts, begin)
        for operand in (0, 1):
            run.event("PF", held, run.here.at(0, operand), map_.operation)


def _rows(run: Executor, tensor: Tensor, start: list[int], presence: Formula) -> list[Row] | None:
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
        place = locate(run, address & (1 << 64) - 1, size, presence, 1, "tensor")
        if place is not None:
            rows.append((begin, place, size))
    return rows if len(rows) == len(found) else None


EFFECTS: Effects = {BulkCopy: _bulk_copy}
