"""Asynchronous copies, reductions and stores (PTX ISA 9.7.10.12, 9.7.10.24, 9.7.14.7)."""

from __future__ import annotations

from ptxmm.events.symbolic.accesses.elements import pieces
from ptxmm.events.symbolic.asynchronous.groups import (
    Issued,
    Part,
    bytes_of,
    combinations_of,
    complete_tx,
    enqueue,
    issue,
    locate,
    member,
    read_source,
    reads_of,
    reduce_element,
    require,
    write_part,
)  # fmt: skip
from ptxmm.events.symbolic.barriers.synchronization import SIZE, mbarriers
from ptxmm.events.symbolic.event import SyncEvent
from ptxmm.events.symbolic.executor import AMOUNT, PREDICATE, Executor
from ptxmm.events.symbolic.machine import State
from ptxmm.events.symbolic.values.domain import Reads, Value, only
from ptxmm.events.symbolic.values.mapping import RANKS, mapped
from ptxmm.program.identity import EventId
from ptxmm.program.shared.groups import same_group
from ptxmm.program.shared.legality import apart
from ptxmm.program.test import MemoryObject
from ptxmm.ptx.ops import AsyncStore, BulkCopy, CopyAsync, CopyAsyncArrive, Element, Imm, Type, copied
from ptxmm.relations.formula import FALSE, TRUE, Formula

BULK_ALIGNMENT = 16
"""Addresses and sizes of bulk copies are multiples of it (9.7.10.24.6)."""


# -- non-bulk copies --


def copy_async(run: Executor, op: CopyAsync, here: EventId, state: State, presence: Formula, control: Reads) -> None:
    """``cp.async``: through the generic proxy; what is past the source size, or ignored, is written as zeros.

    A source size above the size of the copy is undefined behaviour (9.7.10.24.3).
    """
    source, target = run.address(state, op.src), run.address(state, op.dst, "shared")
    size = run.constant(op.size) if op.source_size is None else run.operand(state, op.source_size, AMOUNT)
    require(run, op, size, presence, lambda n: n <= op.size, lambda n: f"cp.async reads {n} bytes of {op.size}")
    ignore = run.constant(0)
    if op.ignore is not None:
        ignore = state.registers[op.ignore.name]
        if op.ignore_negated:
            ignore = run.operation("xor", PREDICATE, [ignore, run.operand(state, Imm(1), PREDICATE)])
    issued = issue(run, op, "cp.async", here, presence, control, True)
    reading = reads_of(run, source, size, ignore)
    writing = reads_of(run, target, size, ignore)
    for when, (src, dst, given, none) in combinations_of(run, [source, target, size, ignore]):
        held = run.formulas.both(presence, when)
        if held == FALSE or given > op.size:
            continue
        taken = 0 if none else given
        to = locate(run, op, dst, op.size, held, role="destination")
        frm = locate(run, op, src, taken, held, op.size, "source") if taken else None
        if to is None or (taken and frm is None):
            continue
        _check_group(run, op, state, to[0].physical, to[1], held)
        parts = read_source(run, issued, *frm, taken, held, reading) if frm is not None else []
        write_part(run, issued, 0, *to, op.size, parts, held, writing)
    run.wrote(state, presence)
    enqueue(state, issued)


def _check_group(run: Executor, op: CopyAsync, state: State, key: str, offset: int, presence: Formula) -> None:
    """Two copies of one group to the same location are undefined: nothing orders them (9.7.10.24.4)."""
    machine = run.machine
    _, open_ = state.queues.get("cp.async", ((), ()))
    for number in open_:
        writes = [machine.events[e] for e in machine.operations[number].events if machine.events[e].kind == "W"]
        for event in writes:
            for p in event.places:
                if p.physical == key and offset < p.offset + p.size and p.offset < offset + op.size:
                    both = run.formulas.all([presence, event.presence, p.when])
                    run.misuse(op, both, same_group(event.op))


def copy_async_arrive(
    run: Executor, op: CopyAsyncArrive, here: EventId, state: State, presence: Formula, control: Reads
) -> None:
    """``cp.async.mbarrier.arrive``: an arrival once all earlier cp.async of the thread are complete."""
    place, presence, address = mbarriers(run, op, state, op.address, presence, op.space)
    issued = issue(run, op, "arrive", here, presence, control, False)
    if not op.noinc:
        step = run.sync(SyncEvent(here, "mb.increment", op, presence, run.machine.new_step(), place=place))
        presence = run.passes(state, step)
    event = member(run, issued, "MBA", presence)
    event.mbarriers, event.address = place, address.reads
    event.after = [
        e
        for operation in run.machine.operations
        if operation.kind == "cp.async" and operation.thread == run.index
        for e in operation.events
        if run.machine.events[e].kind == "W"
    ]
    step = SyncEvent(here, "mb.arrive", op, presence, run.machine.new_step(), count=only(1), place=place)
    step.asynchronous = True
    run.sync(step)


# -- bulk copies --


def bulk_copy(run: Executor, op: BulkCopy, here: EventId, state: State, presence: Formula, control: Reads) -> None:
    """``cp.async.bulk`` and ``cp.reduce.async.bulk``: through the async proxy. Tensor copies are in ``tensors``.

    A size that is no multiple of 16 is undefined behaviour; a copy of 0 bytes has its implicit fences and its
    ``complete_tx``, but no accesses (9.7.10.24.6).
    """
    issued = issue(run, op, "bulk", here, presence, control, op.mbarrier is None)
    assert op.size is not None and op.src is not None and op.dst is not None
    size = run.operand(state, op.size, AMOUNT)
    require(run, op, size, presence, _is_bulk_size, _not_bulk_size)
    source, target = run.address(state, op.src, op.src_space), run.address(state, op.dst, op.dst_space)
    arrival, mask = completion(run, op, state)
    bits = run.constant(0xFFFF) if op.byte_mask is None else run.operand(state, op.byte_mask, Type("u", 16))
    union = run.machine.union
    reading, writing = union(size.reads, source.reads), union(union(size.reads, target.reads), mask.reads)
    writing = union(writing, bits.reads)
    deciding = union(union(reading, writing), arrival.reads)
    operands = [source, target, size, arrival, mask, bits]
    for when, (src, dst, length, mbarrier, ranks, chosen) in combinations_of(run, operands):
        held = run.formulas.both(presence, when)
        if held == FALSE:
            continue
        targets = destinations(run, op, dst, mbarrier, ranks)
        bars = signal(run, op, issued, targets, length, held, deciding)
        if not _is_bulk_size(length):
            continue
        frm = locate(run, op, src, length, held, BULK_ALIGNMENT, "source")
        to = [locate(run, op, address, length, held, BULK_ALIGNMENT, "destination") for address, _ in targets]
        if frm is None or None in to or None in bars:
            continue
        parts = read_source(run, issued, *frm, length, held, reading)
        for k, found in enumerate(to):
            if found is None:
                continue
            for start, part in copied(chosen, length):
                _deliver(run, op, issued, k, found[0], found[1] + start, part, parts, held, writing, op.type, start)
        for operand in (0, 1):
            member(run, issued, "PF", held, operand=operand)
    run.wrote(state, presence)
    enqueue(state, issued)


def completion(run: Executor, op: BulkCopy, state: State) -> tuple[Value, Value]:
    """The address of the mbarrier and the mask of CTAs; 0 for what there is not."""
    arrival = run.constant(0) if op.mbarrier is None else run.address(state, op.mbarrier, "shared::cluster")
    mask = run.constant(0) if op.mask is None else run.operand(state, op.mask, Type("u", 16))
    return arrival, mask


def destinations(run: Executor, op: BulkCopy, dst: int, mbarrier: int, ranks: int) -> list[tuple[int, int]]:
    """The addresses of each destination and its mbarrier: one, or those in the CTAs of a mask."""
    if op.mask is None:
        return [(dst, mbarrier)]
    test = run.machine.test
    return [(mapped(test, dst, r), mapped(test, mbarrier, r)) for r in range(RANKS) if ranks >> r & 1]


def signal(
    run: Executor,
    op: BulkCopy,
    issued: Issued,
    targets: list[tuple[int, int]],
    size: int,
    presence: Formula,
    address: Reads,
) -> list[tuple[MemoryObject, int] | None]:
    """``complete_tx`` of ``size`` bytes for each destination; the mbarriers (None: where there is none). ``address`` as
    in ``complete_tx``.

    Also of a copy that is undefined: who waits for it has to come to an end for that to be seen.
    """
    signalled = [address for _, address in targets] if op.mbarrier is not None else []
    bars = [locate(run, op, address, SIZE, presence, role="mbarrier", mbarrier=True) for address in signalled]
    for k, found in enumerate(bars):
        if found is not None:
            complete_tx(run, issued, k, *found, size, presence, address)
    return bars


def _is_bulk_size(size: int) -> bool:
    return size % BULK_ALIGNMENT == 0


def _not_bulk_size(size: int) -> str:
    return f"a bulk copy of {size} bytes, which is no multiple of {BULK_ALIGNMENT}"


def _deliver(
    run: Executor,
    op: BulkCopy,
    issued: Issued,
    k: int,
    item: MemoryObject,
    offset: int,
    size: int,
    parts: list[Part],
    presence: Formula,
    address: Reads,
    type_: Type | None,
    begin: int,
) -> None:
    if op.reduction is None:
        write_part(run, issued, k, item, offset, size, parts, presence, address, begin)
        return
    assert type_ is not None
    for start in range(0, size, type_.bytes):
        operand, id_ = bytes_of(run, parts, start, type_.bytes), issued.here.at(start, 1 + k)
        reduce_element(run, issued, op.reduction, type_, id_, item, offset + start, operand, presence, address)


# -- asynchronous stores --


def async_store(run: Executor, op: AsyncStore, here: EventId, state: State, presence: Formula, control: Reads) -> None:
    """``st.async`` and ``red.async``: to shared memory of the cluster, then ``complete_tx`` on the mbarrier."""
    issued = issue(run, op, "store", here, presence, control, False)
    target, arrival = (run.address(state, place, op.space) for place in (op.address, op.mbarrier))
    values = [run.operand(state, v, op.type) for v in op.values]
    width = op.type.bytes
    parts: list[Part] = [(i * width, width, value) for i, value in enumerate(values)]
    size = width * len(values)
    for when, (dst, mbarrier) in combinations_of(run, [target, arrival]):
        held = run.formulas.both(presence, when)
        to = locate(run, op, dst, size, held)
        bar = locate(run, op, mbarrier, SIZE, held, role="mbarrier", mbarrier=True)
        if to is not None and bar is not None and (why := apart(op, to[0], bar[0])) is not None:
            run.misuse(op, held, why)
            to = None
        if bar is not None and held != FALSE:
            complete_tx(run, issued, 0, *bar, size, held, reads_of(run, target, arrival))
        if to is None or bar is None or held == FALSE:
            continue
        item, offset = to
        for start, _, value in parts:
            if op.reduction is not None:
                id_ = here.at(start)
                reduce_element(run, issued, op.reduction, op.type, id_, item, offset + start, value, held, target.reads)
                continue
            element = Element(start, op.type, 0, 0)
            columns = pieces(run, [(TRUE, item, offset)], start, element.type.bytes, len(values) > 1)[0]
            for places in columns:
                place = places[0]
                inner = place.offset - offset - start
                event = member(run, issued, "W", held, place.offset - offset)
                piece = run.field(value, 8 * inner, 8 * place.size)
                event.places, event.value = places, piece.domain
                event.address, event.data = target.reads, piece.reads
    run.wrote(state, presence)
