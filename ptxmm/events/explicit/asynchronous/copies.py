"""Asynchronous copies, stores and reductions, and their groups (PTX ISA 9.7.10.24, 9.7.10.12, 8.9.1.1).

Each has an issue event in program order; its accesses and what follows them are asynchronous (decisions A33 to A39).
An operation with an operand that has no meaning accesses nothing, and has no implicit fence.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct, field

from ptxmm.events.explicit.accesses.elements import operation, part_of
from ptxmm.events.explicit.barriers.synchronization import place
from ptxmm.events.explicit.machine import U32, Copy, Effects, Machine
from ptxmm.events.explicit.program import Spot
from ptxmm.events.explicit.trace import Cell
from ptxmm.events.explicit.values.compute import in_cta
from ptxmm.events.explicit.values.node import Node
from ptxmm.program.shared.legality import apart
from ptxmm.program.shared.refusals import same_group
from ptxmm.ptx.ops import AsyncCommit, AsyncStore, AsyncWait, BulkCopy, CopyAsync, CopyAsyncArrive, Op, Type, copied

U16 = Type("u", 16)
UNIT = 16
"""A bulk copy is of a multiple of 16 bytes, from and to multiples of 16 (9.7.10.24.6)."""


class Pending(Struct):
    """One asynchronous operation while it is put together: positions in the trace of its events."""

    machine: Machine
    issuer: int
    reads: list[int] = field(default_factory=list)
    writes: list[int] = field(default_factory=list)
    maps: list[int] = field(default_factory=list)

    @property
    def next(self) -> int:
        """The position that the next event will have."""
        return len(self.machine.trace.events)


def issue(machine: Machine) -> Pending:
    """An asynchronous operation, with its issue event."""
    operation_ = Pending(machine, len(machine.trace.events))
    machine.add("ISS")
    return operation_


Sources = list[tuple[int, int, Node]]
"""What has been read of a source: offset in it, size, value."""


def read_source(this: Pending, spot: Spot | None, size: int, addr: int, begin: int = 0) -> Sources:
    """Read ``size`` bytes at ``spot``, one read for each chunk; ``begin``: where they are in what is copied."""
    found: Sources = []
    if spot is None or not size:
        return found
    after = tuple(this.maps)
    for first, length in this.machine.program.chunks.of(spot.item.physical, spot.offset, size):
        offset, position = first - spot.offset, this.next
        cells = spot.cells(offset, length)
        node = this.machine.read(cells, addr, begin + offset, asynchronous=True, issuer=this.issuer, after=after)
        this.reads.append(position)
        found.append((begin + offset, length, node))
    return found


def bytes_of(machine: Machine, sources: Sources, first: int, size: int) -> Node:
    """The value of ``size`` bytes of what was read from ``first`` on; bytes that were not read are 0."""
    parts = []
    for offset, length, node in sources:
        start, end = max(first, offset), min(first + size, offset + length)
        if start < end:
            if (start, end) == (offset, offset + length) == (first, first + size):
                return node
            parts.append((node, 8 * (start - offset), 8 * (end - start), 8 * (start - first)))
    return machine.expressions.fields(parts) if parts else machine.expressions.constant(0)


def write_bytes(
    this: Pending, spot: Spot, operand: int, offset: int, size: int, value: Node, addr: int, begin: int = 0
) -> None:
    """Write ``size`` bytes ``offset`` bytes after ``spot``, after all reads so far; ``begin``: where ``spot`` is in the
    destination, which is the ``operand``."""
    position = this.next
    fields = {"asynchronous": True, "issuer": this.issuer, "after": (*this.maps, *this.reads)}
    this.machine.write(spot.cells(offset, size), value, addr, begin + offset, operand, **fields)
    this.writes.append(position)


def _reduce(
    this: Pending, spot: Spot, operand: int, op: str, type_: Type, values: Sequence[tuple[int, Node]], addr: int
) -> None:
    """Read and write each element of a reduction; ``values``: offset and operand of each."""
    expressions = this.machine.expressions
    old = []
    for offset, _ in values:
        this.reads.append(this.next)
        fields: dict[str, Any] = {"asynchronous": True, "issuer": this.issuer, "after": tuple(this.maps)}
        old.append(this.machine.read(spot.cells(offset, type_.bytes), addr, offset, operand, **fields))
    for (offset, value), before in zip(values, old, strict=True):
        new = expressions.operation(op, type_, before, value)
        write_bytes(this, spot, operand, offset, type_.bytes, new, addr)


def complete(this: Pending, k: int, here: tuple[str, int], size: int, after: Iterable[int], addr: int) -> None:
    """The complete_tx of destination ``k``; ``addr``: what the places and sizes of the operation depend on."""
    this.machine.step("mb.complete", k, place=here, number=size, asynchronous=True)
    fields: dict[str, Any] = {"asynchronous": True, "issuer": this.issuer, "after": tuple(after), "addr": addr}
    this.machine.add("MBA", operand=k, mbarrier=here, **fields)


# cp.async and its groups.


def copy_async(machine: Machine, op: CopyAsync) -> None:
    """``cp.async``: bytes past the source size are written as zeros."""
    size, sizes, wrong = op.size, 0, False
    if op.source_size is not None:
        given, sizes = machine.number(op.source_size, U32, "source size of this copy")
        wrong = given > size
        if wrong:
            machine.undefined(f"cp.async reads {given} bytes of {size}")
        size = min(size, given)
    if op.ignore is not None:
        node = machine.expressions.settled(machine.register(op.ignore.name))
        if bool(machine.decide(node, (0, 1))) is not op.ignore_negated:
            size = 0
        sizes |= node.reads
    dst, dst_addr = machine.address(op.dst, op.size, role="destination")
    src, src_addr = machine.address(op.src, size, role="source", alignment=op.size) if size else (None, 0)
    this = issue(machine)
    if dst is None or (size and src is None) or wrong:
        machine.lose()
    else:
        sources = read_source(this, src, size, src_addr | sizes)
        copy_to(this, dst, 1, sources, op.size, dst_addr | sizes)
    machine.alone.setdefault("cp.async", []).append(Copy(tuple(this.writes), tuple(this.writes)))


def copy_to(this: Pending, dst: Spot, operand: int, sources: Sources, size: int, addr: int, begin: int = 0) -> None:
    """Write ``size`` bytes of ``sources``, from ``begin`` on, to ``dst``, one write for each chunk; ``operand`` as in
    ``EventId``."""
    for first, length in this.machine.program.chunks.of(dst.item.physical, dst.offset, size) if size else ():
        offset = first - dst.offset
        value = bytes_of(this.machine, sources, begin + offset, length)
        write_bytes(this, dst, operand, offset, length, value, addr, begin)


def copy_async_arrive(machine: Machine, op: CopyAsyncArrive) -> None:
    """``cp.async.mbarrier.arrive``: an arrival once all earlier cp.async of the thread are done."""
    here, addr = place(machine, op.address)
    if here is None:
        return
    copies = [*machine.alone.get("cp.async", ()), *(c for g in machine.groups.get("cp.async", ()) for c in g)]
    this = issue(machine)
    if not op.noinc:
        machine.step("mb.increment", place=here, number=1)
    machine.step("mb.arrive", place=here, number=1, asynchronous=True)
    after = tuple(i for c in copies for i in c.done)
    machine.add("MBA", mbarrier=here, addr=addr, asynchronous=True, issuer=this.issuer, after=after)


def commit(machine: Machine, op: AsyncCommit | AsyncWait) -> None:
    """``commit_group``: a group of the operations that are in none yet, perhaps empty.

    Copies of one group are in no order: two of them to the same location are undefined (9.7.10.24.4).
    """
    group = machine.alone.pop(op.kind, [])
    machine.groups.setdefault(op.kind, []).append(group)
    if op.kind != "cp.async":
        return
    written: list[tuple[Cell, Op]] = []
    for copy in group:
        events = [machine.trace.events[position] for position in copy.done]
        new = [(event.cell, event.op) for event in events if event.cell is not None and event.op is not None]
        for (key, first, size), op_ in new:
            for (other, begin, length), before in written:
                if key == other and first < begin + length and begin < first + size:
                    machine.undefined(same_group(before, op_))
                    return
        written += new


def wait(machine: Machine, op: AsyncWait) -> None:
    """``wait_group`` and ``wait_all``, which is a commit and a wait for all groups."""
    if op.pending is None:
        commit(machine, op)
    groups = machine.groups.get(op.kind, [])
    done = groups[: max(0, len(groups) - (op.pending or 0))]
    completes = tuple(i for g in done for c in g for i in (c.read if op.read else c.done))
    if op.kind == "wgmma" and machine.products is not None:
        machine.products.finish(completes)
    machine.add("AW", completes=completes, group=len(done) if op.kind == "wgmma" else -1)


# Bulk copies and reductions.


class Target(Struct, frozen=True):
    """A destination of a bulk copy: where it writes, and the mbarrier that it completes."""

    spot: Spot | None
    mbarrier: tuple[str, int] | None

    def sound(self, op: BulkCopy) -> bool:
        """Whether ``op`` may access it."""
        return self.spot is not None and (self.mbarrier is not None or op.mbarrier is None)


def bulk_copy(machine: Machine, op: BulkCopy) -> None:
    """``cp.async.bulk`` and ``cp.reduce.async.bulk``; their tensor forms are in ``tensors``."""
    mask, masks = cta_mask(machine, op)
    assert op.size is not None and op.src is not None and op.dst is not None
    size, sizes = machine.number(op.size, U32, "size of this copy")
    wrong = size % UNIT != 0
    if wrong:
        machine.undefined(f"a bulk copy of {size} bytes, which is no multiple of {UNIT}")
    outward = op.dst_space == "global"
    if outward:
        src, src_addr = machine.address(op.src, size, role="source", alignment=UNIT)
    else:
        dst, dst_addr = machine.address(op.dst, size, role="destination", alignment=UNIT)
    mbarrier, barriers = (None, 0) if op.mbarrier is None else place(machine, op.mbarrier)
    if outward:
        dst, dst_addr = machine.address(op.dst, size, role="destination", alignment=UNIT)
    else:
        src, src_addr = machine.address(op.src, size, role="source", alignment=UNIT)
    this = issue(machine)
    targets = destinations(machine, dst, mbarrier, mask)
    defined = src is not None and not wrong and all(t.sound(op) for t in targets)
    given, bits = byte_mask(machine, op)
    sources = read_source(this, src, size, src_addr | sizes) if defined else []
    parts, sizes = copied(given, size), sizes | bits
    if not defined:
        machine.lose()
    for operand, target in enumerate(targets if defined else (), 1):
        assert target.spot is not None
        if op.reduction is None:
            to = target.spot
            for start, length in parts:
                there = Spot(to.item, to.offset + start)
                copy_to(this, there, operand, sources, length, dst_addr | sizes | masks, start)
        else:
            type_ = op.type
            assert type_ is not None
            name = "add.ftz" if op.reduction == "add" and type_.name == "f32" else op.reduction
            values = [(i, bytes_of(machine, sources, i, type_.bytes)) for i in range(0, size, type_.bytes)]
            _reduce(this, target.spot, operand, name, type_, values, dst_addr | sizes)
    finish(this, op, size, targets, sizes | src_addr | dst_addr | barriers | masks, defined)


def byte_mask(machine: Machine, op: BulkCopy) -> tuple[int, int]:
    """Which bytes of each 16 are copied, and the reads that this depends on."""
    return (0xFFFF, 0) if op.byte_mask is None else machine.number(op.byte_mask, U16, "byte mask of this copy")


def cta_mask(machine: Machine, op: BulkCopy) -> tuple[int | None, int]:
    """The mask of the CTAs that are destinations (None: there is none), and the reads that it depends on."""
    return (None, 0) if op.mask is None else machine.number(op.mask, U16, "CTA mask of this copy")


def finish(this: Pending, op: BulkCopy, size: int, targets: Sequence[Target], addr: int, defined: bool = True) -> None:
    """The implicit proxy fences, and how the completion is told; ``addr`` as in ``complete``.

    Not ``defined``: an operand has no meaning. Who waits for these bytes goes on all the same, as after an access
    outside every object.
    """
    machine = this.machine
    if not defined:
        for k, target in enumerate(targets):
            if target.mbarrier is not None:
                complete(this, k, target.mbarrier, size, (), addr)
        return
    reads, everything = (*this.maps, *this.reads), (*this.maps, *this.reads, *this.writes)
    read_done, done = this.next, this.next + 1
    for operand, before in enumerate((reads, everything)):
        machine.add("PF", operand=operand, asynchronous=True, issuer=this.issuer, after=before, covers=before)
    if op.mbarrier is None:
        machine.alone.setdefault("bulk", []).append(Copy((read_done,), (done,)))
    for k, target in enumerate(targets):
        if target.mbarrier is not None:
            complete(this, k, target.mbarrier, size, (done,), addr)


def destinations(
    machine: Machine, dst: Spot | None, mbarrier: tuple[str, int] | None, mask: int | None
) -> list[Target]:
    """The destinations: one, or with a mask the same variables in each CTA of it."""
    if mask is None:
        return [Target(dst, mbarrier)]
    found = []
    for rank in range(mask.bit_length()):
        if not mask >> rank & 1:
            continue
        item = None if dst is None else in_cta(machine.objects, dst.item, rank)
        barrier = None
        if mbarrier is not None:
            held = in_cta(machine.objects, machine.objects[mbarrier[0]], rank)
            barrier = None if held is None else (held.physical, mbarrier[1])
        if item is None or (mbarrier is not None and barrier is None):
            machine.undefined(f"CTA {rank} has no destination of this copy")
        found.append(Target(None if dst is None or item is None else Spot(item, dst.offset), barrier))
    return found


# st.async and red.async.


def async_store(machine: Machine, op: AsyncStore) -> None:
    """``st.async`` and ``red.async``: weak stores, or a reduction, then complete_tx of their bytes."""
    size = op.type.bytes * len(op.values)
    spot, addr = machine.address(op.address, size)
    values = [machine.stored(v, op.type) for v in op.values]
    here, barriers = place(machine, op.mbarrier)
    if spot is not None and here is not None:
        why = apart(op, spot.item, machine.objects[here[0]])
        if why is not None:
            machine.undefined(why)
            spot = None
    this = issue(machine)
    if spot is None or here is None:
        machine.lose()
    elif op.reduction is not None:
        name = operation(op.reduction, op.type, spot)
        _reduce(this, spot, 0, name, op.type, [(i * op.type.bytes, v) for i, v in enumerate(values)], addr)
    else:
        for i, value in enumerate(values):
            _store_element(this, op, spot, i * op.type.bytes, value, addr)
    if here is not None:
        complete(this, 0, here, size, this.writes, addr | barriers)


def _store_element(this: Pending, op: AsyncStore, spot: Spot, offset: int, value: Node, addr: int) -> None:
    if len(op.values) == 1:
        write_bytes(this, spot, 0, offset, op.type.bytes, value, addr)
        return
    for first, length in this.machine.program.chunks.of(spot.item.physical, spot.offset + offset, op.type.bytes):
        position = first - spot.offset
        part = part_of(this.machine, value, op.type, 8 * (position - offset), length)
        write_bytes(this, spot, 0, position, length, part, addr)


EFFECTS: Effects = {
    CopyAsync: copy_async,
    CopyAsyncArrive: copy_async_arrive,
    AsyncCommit: commit,
    AsyncWait: wait,
    AsyncStore: async_store,
}
