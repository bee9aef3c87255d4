"""Asynchronous copies, reductions and stores (PTX ISA 9.7.10.12, 9.7.10.24, 9.7.14.7)."""

from __future__ import annotations

from ptxmm.events.symbolic.accesses.elements import pieces, write
from ptxmm.events.symbolic.asynchronous.groups import (
    Part,
    Side,
    combinations_of,
    complete_tx,
    enqueue,
    issue,
    locate,
    read_source,
    reads_of,
    reduce_element,
    reduce_part,
    require,
    write_part,
)
from ptxmm.events.symbolic.barriers.synchronization import SIZE, mbarriers
from ptxmm.events.symbolic.executor import AMOUNT, Effects, Executor, Start
from ptxmm.events.symbolic.values.domain import Value, only
from ptxmm.events.symbolic.values.mapping import RANKS, mapped
from ptxmm.program.shared.legality import apart
from ptxmm.ptx.ops import AsyncStore, BulkCopy, CopyAsync, CopyAsyncArrive, Type, copied
from ptxmm.relations.formula import TRUE

BULK_ALIGNMENT = 16
"""Addresses and sizes of bulk copies are multiples of it (9.7.10.24.6)."""


# -- non-bulk copies --


def copy_async(run: Executor, op: CopyAsync) -> None:
    """``cp.async``: through the generic proxy; what is past the source size, or ignored, is written as zeros.

    A source size above the size of the copy is undefined behaviour (9.7.10.24.3).
    """
    source, target = run.address(op.src), run.address(op.dst, "shared")
    size = run.constant(op.size) if op.source_size is None else run.operand(op.source_size, AMOUNT)
    require(run, size, lambda n: n <= op.size, lambda n: f"cp.async reads {n} bytes of {op.size}")
    ignore = run.constant(0) if op.ignore is None else run.predicate(op.ignore, op.ignore_negated)
    operation = issue(run, "cp.async", True)
    reading, writing = reads_of(run, source, size, ignore), reads_of(run, target, size, ignore)
    for _, held, (src, dst, given, none) in combinations_of(run, run.presence, source, target, size, ignore):
        if given > op.size:
            continue
        taken = 0 if none else given
        to = locate(run, dst, op.size, held, role="destination")
        frm = locate(run, src, taken, held, op.size, "source") if taken else None
        if to is None or (taken and frm is None):
            continue
        parts = read_source(run, Side(operation, held, reading), frm, taken) if frm is not None else []
        write_part(run, Side(operation, held, writing), 0, to, op.size, parts)
    run.wrote()
    enqueue(run, operation)


def copy_async_arrive(run: Executor, op: CopyAsyncArrive) -> None:
    """``cp.async.mbarrier.arrive``: an arrival once all earlier cp.async of the thread are complete."""
    place, presence, address = mbarriers(run, op.address, op.space)
    operation = issue(run, "arrive", presence=presence)
    if not op.noinc:
        step = run.step("mb.increment", presence)
        step.place = place
        presence = run.passes(step)
    event = run.event("MBA", presence, operation=operation)
    event.mbarriers, event.address = place, address.reads
    event.after = [
        e
        for operation in run.machine.operations
        if operation.kind == "cp.async" and operation.thread == run.index
        for e in operation.events
        if run.machine.events[e].kind == "W"
    ]
    step = run.step("mb.arrive", presence)
    step.count, step.place, step.asynchronous = only(1), place, True


# -- bulk copies --


def bulk_copy(run: Executor, op: BulkCopy) -> None:
    """``cp.async.bulk`` and ``cp.reduce.async.bulk``: through the async proxy. Tensor copies are in ``tensors``.

    A size that is no multiple of 16 is undefined behaviour; a copy of 0 bytes has its implicit fences and its
    ``complete_tx``, but no accesses (9.7.10.24.6).
    """
    operation = issue(run, "bulk", op.mbarrier is None)
    assert op.size is not None and op.src is not None and op.dst is not None
    size = run.operand(op.size, AMOUNT)
    require(run, size, _is_bulk_size, _not_bulk_size)
    source, target = run.address(op.src, op.src_space), run.address(op.dst, op.dst_space)
    arrival, mask = completion(run, op)
    bits = run.constant(0xFFFF) if op.byte_mask is None else run.operand(op.byte_mask, Type("u", 16))
    reading, writing = reads_of(run, size, source), reads_of(run, size, target, mask, bits)
    deciding = run.machine.all_reads([reading, writing, arrival.reads])
    operands = source, target, size, arrival, mask, bits
    for _, held, (src, dst, length, mbarrier, ranks, chosen) in combinations_of(run, run.presence, *operands):
        targets = destinations(run, op, dst, mbarrier, ranks)
        bars = signal(run, op, Side(operation, held, deciding), targets, length)
        if not _is_bulk_size(length):
            continue
        frm = locate(run, src, length, held, BULK_ALIGNMENT, "source")
        to = [locate(run, address, length, held, BULK_ALIGNMENT, "destination") for address, _ in targets]
        if frm is None or None in to or None in bars:
            continue
        parts = read_source(run, Side(operation, held, reading), frm, length)
        for k, (item, offset) in enumerate(found for found in to if found is not None):
            for start, part in copied(chosen, length):
                deliver(run, op, Side(operation, held, writing), op.type, k, (item, offset + start), part, parts, start)
        for operand in (0, 1):
            run.event("PF", held, run.here.at(0, operand), operation)
    run.wrote()
    enqueue(run, operation)


def completion(run: Executor, op: BulkCopy) -> tuple[Value, Value]:
    """The address of the mbarrier and the mask of CTAs; 0 for what there is not."""
    arrival = run.constant(0) if op.mbarrier is None else run.address(op.mbarrier, "shared::cluster")
    mask = run.constant(0) if op.mask is None else run.operand(op.mask, Type("u", 16))
    return arrival, mask


def destinations(run: Executor, op: BulkCopy, dst: int, mbarrier: int, ranks: int) -> list[tuple[int, int]]:
    """The addresses of each destination and its mbarrier: one, or those in the CTAs of a mask."""
    if op.mask is None:
        return [(dst, mbarrier)]
    test = run.machine.test
    return [(mapped(test, dst, r), mapped(test, mbarrier, r)) for r in range(RANKS) if ranks >> r & 1]


def signal(run: Executor, op: BulkCopy, side: Side, targets: list[tuple[int, int]], size: int) -> list[Start | None]:
    """``complete_tx`` of ``size`` bytes for each destination; the mbarriers (None: where there is none). ``side`` has
    all that the operation depends on.

    Also of a copy that is undefined: who waits for it has to come to an end for that to be seen.
    """
    signalled = [address for _, address in targets] if op.mbarrier is not None else []
    bars = [locate(run, address, SIZE, side.presence, role="mbarrier", mbarrier=True) for address in signalled]
    for k, found in enumerate(bars):
        if found is not None:
            complete_tx(run, side, k, found, size)
    return bars


def deliver(
    run: Executor,
    op: BulkCopy,
    side: Side,
    type_: Type | None,
    k: int,
    start: Start,
    size: int,
    parts: list[Part],
    begin: int,
) -> None:
    """Write ``size`` bytes of the source, or reduce with them, as ``write_part`` says."""
    if op.reduction is None:
        write_part(run, side, k, start, size, parts, begin)
    else:
        assert type_ is not None
        reduce_part(run, side, op.reduction, type_, k, start, size, parts, begin)


def _is_bulk_size(size: int) -> bool:
    return size % BULK_ALIGNMENT == 0


def _not_bulk_size(size: int) -> str:
    return f"a bulk copy of {size} bytes, which is no multiple of {BULK_ALIGNMENT}"


# -- asynchronous stores --


def async_store(run: Executor, op: AsyncStore) -> None:
    """``st.async`` and ``red.async``: to shared memory of the cluster, then ``complete_tx`` on the mbarrier."""
    operation = issue(run, "store")
    target, arrival = (run.address(place, op.space) for place in (op.address, op.mbarrier))
    values = [run.operand(v, op.type) for v in op.values]
    width = op.type.bytes
    for _, held, (dst, mbarrier) in combinations_of(run, run.presence, target, arrival):
        to = locate(run, dst, width * len(values), held)
        bar = locate(run, mbarrier, SIZE, held, role="mbarrier", mbarrier=True)
        if to is not None and bar is not None and (why := apart(op, to[0], bar[0])) is not None:
            run.misuse(held, why)
            to = None
        if bar is not None:
            complete_tx(run, Side(operation, held, reads_of(run, target, arrival)), 0, bar, width * len(values))
        if to is None or bar is None:
            continue
        side, (item, offset) = Side(operation, held, target.reads), to
        for start, value in zip(range(0, width * len(values), width), values, strict=True):
            if op.reduction is not None:
                begin = item, offset + start
                reduce_element(run, side, op.reduction, op.type, run.here.at(start), begin, value)
                continue
            (columns,) = pieces(run, [(TRUE, item, offset)], start, width, len(values) > 1)
            for inner, places in columns:
                piece = run.field(value, 8 * inner, 8 * places[0].size)
                write(run, places, piece, held, target.reads, run.here.at(start + inner), operation=operation)
    run.wrote()


EFFECTS: Effects = {CopyAsync: copy_async, CopyAsyncArrive: copy_async_arrive, AsyncStore: async_store}
