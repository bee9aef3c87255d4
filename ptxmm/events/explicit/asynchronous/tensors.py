"""Tensor copies and tensor maps (PTX ISA 5.5, 9.7.10.24.9, .10, 9.7.10.25, 9.7.14.16; decision A38).

What a tensor copy accesses is found in the 128 bytes of the tensor map that it reads by the tensormap proxy.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ptxmm.events.explicit.asynchronous import copies
from ptxmm.events.explicit.asynchronous.copies import UNIT, Pending, Sources
from ptxmm.events.explicit.barriers.synchronization import MAP_ALIGNMENT, place
from ptxmm.events.explicit.machine import Effects, Machine
from ptxmm.events.explicit.program import Spot
from ptxmm.events.explicit.values.node import Node
from ptxmm.program.identity import TENSORMAP
from ptxmm.program.shared.tensors import TENSORMAP_BYTES, Tensor, decode, field_place
from ptxmm.ptx.ops import BulkCopy, Role, TensormapCopyFence, TensormapReplace, Type

_S32 = Type("s", 32)


class _Row(Struct, frozen=True):
    """Elements of a box that lie in its tensor and one after the other in both memories: where they begin in the box
    and in global memory, and how many bytes they have."""

    begin: int
    address: int
    size: int


def bulk_copy(machine: Machine, op: BulkCopy) -> None:
    """``cp.async.bulk`` and ``cp.reduce.async.bulk``, with and without a tensor map."""
    if op.tensormap is None:
        copies.bulk_copy(machine, op)
    else:
        _tensor_copy(machine, op)


def _tensor_copy(machine: Machine, op: BulkCopy) -> None:
    """``cp.async.bulk.tensor`` and ``cp.reduce.async.bulk.tensor`` in tiled mode."""
    assert op.tensormap is not None
    what = "address of this tensor map"
    spot, addr = machine.address(op.tensormap, TENSORMAP_BYTES, what, role="tensor map", alignment=MAP_ALIGNMENT)
    coordinates = []
    for operand in op.coordinates:
        value, reads = machine.number(operand, _S32, "coordinate of this copy")
        coordinates.append(value - (value >> 31 << 32))
        addr |= reads
    mask, masks = copies.cta_mask(machine, op)
    mbarrier, barriers = (None, 0) if op.mbarrier is None else place(machine, op.mbarrier)
    this = copies.issue(machine)
    if spot is None:
        machine.lose()
        return
    tensor, reads = _described(this, op, spot, addr)
    addr |= reads
    near = op.src if op.dst is None else op.dst
    side: Role = "source" if op.dst is None else "destination"
    assert near is not None
    if tensor is None:
        # Without a meaning the copy may do anything; who waits for as much as there is room for has to go on.
        local, near_addr = machine.address(near, 1, role=side, alignment=1)
        room = 0 if local is None else local.item.size - local.offset
        machine.lose()
        targets = copies.destinations(machine, local, mbarrier, mask)
        copies.finish(this, op, room, targets, addr | near_addr | barriers | masks, False)
        return
    local, near_addr = machine.address(near, tensor.size, role=side, alignment=UNIT)
    places: list[tuple[_Row, Spot]] = []
    rows = _rows(tensor, coordinates)
    for row in rows:
        far = machine.spot(row.address, row.size, role="tensor")
        if far is not None:
            places.append((row, far))
    targets = copies.destinations(machine, local, mbarrier, mask)
    defined = len(places) == len(rows) and all(t.sound(op) for t in targets)
    if not defined:
        machine.lose()
    elif op.dst is None:
        _store(this, op, tensor, local, places, addr, near_addr)
    else:
        sources: Sources = []
        for row, far in places:
            sources += copies.read_source(this, far, row.size, addr, row.begin)
        for number, target in enumerate(targets, 1):
            assert target.spot is not None
            copies.copy_to(this, target.spot, number, sources, tensor.size, addr | near_addr | masks)
    copies.finish(this, op, tensor.size, targets, addr | near_addr | barriers | masks, defined)


def _described(this: Pending, op: BulkCopy, spot: Spot, addr: int) -> tuple[Tensor | None, int]:
    """Read the tensor map at ``spot``: what it says on this path (None if it has no meaning), and the read of it."""
    machine = this.machine
    this.maps.append(this.next)
    cells = spot.cells(0, TENSORMAP_BYTES)
    content = machine.read(cells, addr, operand=TENSORMAP, asynchronous=True, issuer=this.issuer)
    found = decode(machine.decide(content, None, "content of this tensor map"), len(op.coordinates), op.reduction)
    if isinstance(found, str):
        machine.undefined(found)
        return None, content.reads
    return found, content.reads


def _rows(tensor: Tensor, coordinates: Sequence[int]) -> list[_Row]:
    """The elements of the box at ``coordinates`` that lie in the tensor, in the order of the box, adjacent ones
    together (5.5.3). The others are not accessed (5.5.3.3)."""
    width = tensor.type.bytes
    counts, strides = tensor.counts, (width, *tensor.strides)
    rows: list[_Row] = []
    position = [0] * len(counts)
    begin = 0
    while True:
        where = [c + p * step for c, p, step in zip(coordinates, position, tensor.steps, strict=True)]
        if all(0 <= w < size for w, size in zip(where, tensor.dims, strict=True)):
            address = tensor.address + sum(w * stride for w, stride in zip(where, strides, strict=True))
            last = rows[-1] if rows else None
            if last is not None and (last.begin + last.size, last.address + last.size) == (begin, address):
                rows[-1] = _Row(last.begin, last.address, last.size + width)
            else:
                rows.append(_Row(begin, address, width))
        begin += width
        dimension = 0
        while dimension < len(counts) and position[dimension] == counts[dimension] - 1:
            position[dimension] = 0
            dimension += 1
        if dimension == len(counts):
            return rows
        position[dimension] += 1


def _store(
    this: Pending,
    op: BulkCopy,
    tensor: Tensor,
    local: Spot | None,
    places: Sequence[tuple[_Row, Spot]],
    far_addr: int,
    near_addr: int,
) -> None:
    """Write the box at ``local`` to global memory, or reduce what is there with it."""
    machine = this.machine
    sources = copies.read_source(this, local, tensor.size, far_addr | near_addr)
    if op.reduction is None:
        for row, far in places:
            copies.copy_to(this, far, 1, sources, row.size, far_addr, row.begin)
        return
    name = "add.ftz" if op.reduction == "add" and tensor.type.name == "f32" else op.reduction
    width = tensor.type.bytes
    elements = [(row, far, offset) for row, far in places for offset in range(0, row.size, width)]
    fields = {"asynchronous": True, "issuer": this.issuer, "after": tuple(this.maps)}
    held: list[Node] = []
    for row, far, offset in elements:
        this.reads.append(this.next)
        held.append(machine.read(far.cells(offset, width), far_addr, row.begin + offset, 1, **fields))
    for (row, far, offset), old in zip(elements, held, strict=True):
        value = copies.bytes_of(machine, sources, row.begin + offset, width)
        new = machine.expressions.operation(name, tensor.type, old, value)
        copies.write_bytes(this, far, 1, offset, width, new, far_addr, row.begin)


# Tensor maps.


def tensormap_replace(machine: Machine, op: TensormapReplace) -> None:
    """``tensormap.replace``: reads and writes the 128 bytes of the map, with one field changed."""
    spot, addr = machine.address(op.address, TENSORMAP_BYTES, alignment=MAP_ALIGNMENT)
    value = machine.operand(op.value, op.type)
    if spot is None:
        machine.lose()
        return
    cells = spot.cells(0, TENSORMAP_BYTES)
    old = machine.read(cells, addr)
    first, size = field_place(op.field, op.ordinal)
    end = first + size
    parts = [
        (old, 0, 8 * first, 0),
        (value, 0, 8 * size, 8 * first),
        (old, 8 * end, 8 * (TENSORMAP_BYTES - end), 8 * end),
    ]
    machine.write(cells, machine.expressions.fields([part for part in parts if part[2]]), addr, stage=1)


def tensormap_copy_fence(machine: Machine, op: TensormapCopyFence) -> None:
    """``tensormap.cp_fenceproxy``: copies 128 bytes, then is the release fence of the tensormap proxy."""
    src, src_addr = machine.address(op.src, TENSORMAP_BYTES, role="source")
    dst, dst_addr = machine.address(op.dst, TENSORMAP_BYTES, role="destination")
    if src is None or dst is None:
        machine.lose()
    else:
        value = machine.read(src.cells(0, TENSORMAP_BYTES), src_addr)
        machine.write(dst.cells(0, TENSORMAP_BYTES), value, dst_addr, operand=1, stage=1)
    machine.add("F", stage=2)


EFFECTS: Effects = {BulkCopy: bulk_copy, TensormapReplace: tensormap_replace, TensormapCopyFence: tensormap_copy_fence}
