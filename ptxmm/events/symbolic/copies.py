"""Asynchronous copies, reductions and stores (PTX ISA 9.7.8.24, 9.7.8.12, 9.7.12.7)."""

from __future__ import annotations

from collections.abc import Iterator

from ptxmm.events.symbolic.accesses import pieces, read
from ptxmm.events.symbolic.computed import field
from ptxmm.events.symbolic.event import SyncEvent
from ptxmm.events.symbolic.executor import ADDRESS, AMOUNT, PREDICATE, Executor
from ptxmm.events.symbolic.machine import State
from ptxmm.events.symbolic.mapping import RANKS, mapped
from ptxmm.events.symbolic.operations import (
    Issued,
    Part,
    bytes_of,
    combinations_of,
    complete_tx,
    enqueue,
    issue,
    join,
    locate,
    member,
    read_source,
    reads_of,
    reduce_element,
    require,
    unsupported,
    write_part,
)  # fmt: skip
from ptxmm.events.symbolic.sync import SIZE, mbarriers
from ptxmm.events.symbolic.values import Reads, Value, only, signed
from ptxmm.program.test import DESTINATION, TENSORMAP, EventId, MemoryObject, TensorMap
from ptxmm.ptx.ops import AsyncStore, BulkCopy, CopyAsync, CopyAsyncArrive, Element, Imm, Type
from ptxmm.relations.formula import FALSE, TRUE, Formula

MAP_BYTES = 128
BULK_ALIGNMENT = 16
"""Addresses and sizes of bulk copies are multiples of it (9.7.10.24.6)."""
COORDINATE = Type("u", 32)


# -- non-bulk copies --


def copy_async(run: Executor, op: CopyAsync, here: EventId, state: State, presence: Formula, control: Reads) -> None:
    """``cp.async``: through the generic proxy; what is past the source size, or ignored, is written as zeros.

    A source size above the size of the copy is undefined behaviour (9.7.10.24.3).
    """
    source, target = run.address(state, op.src), run.address(state, op.dst)
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
        to = locate(run, op, dst, op.size, held)
        frm = locate(run, op, src, taken, held, op.size) if taken else None
        if to is None or (taken and frm is None):
            continue
        parts = read_source(run, issued, *frm, taken, held, reading) if frm is not None else []
        write_part(run, issued, 0, *to, op.size, parts, held, writing)
    run.wrote(state, presence)
    enqueue(state, issued)


def copy_async_arrive(
    run: Executor, op: CopyAsyncArrive, here: EventId, state: State, presence: Formula, control: Reads
) -> None:
    """``cp.async.mbarrier.arrive``: an arrival once all earlier cp.async of the thread are complete."""
    place, presence, address = mbarriers(run, op, state, op.address, presence)
    issued = issue(run, op, "arrive", here, presence, control, False)
    if not op.noinc:
        step = run.sync(SyncEvent(here, "mb.increment", op, presence, run.machine.new_step(), place=place))
        presence = run.passes(state, step)
    event = member(run, issued, "MBA", 0, presence)
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
    """``cp.async.bulk``, ``cp.reduce.async.bulk`` and their ``.tensor`` forms: through the async proxy.

    A size that is no multiple of 16 is undefined behaviour; a copy of 0 bytes has its implicit fences and its
    ``complete_tx``, but no accesses (9.7.10.24.6).

    Raises ``PtxmmError`` for tensors of more than one dimension and for what is no declared tensor map.
    """
    issued = issue(run, op, "bulk", here, presence, control, op.mbarrier is None)
    if op.tensormap is None:
        assert op.size is not None
        size = run.operand(state, op.size, AMOUNT)
        require(run, op, size, presence, _is_bulk_size, _not_bulk_size)
        _bulk(run, op, issued, state, presence, size, reads_of(run, size), None, op.type)
    else:
        for held, shape, address, reads in _tensor(run, op, issued, state, presence):
            length = run.constant(shape.count * shape.type.bytes)
            _bulk(run, op, issued, state, held, length, reads, address, shape.type)
    run.wrote(state, presence)
    enqueue(state, issued)


def _bulk(
    run: Executor,
    op: BulkCopy,
    issued: Issued,
    state: State,
    presence: Formula,
    size: Value,
    reads: Reads,
    tensor: Value | None,
    type_: Type | None,
) -> None:
    """The copy itself; ``tensor``: the address on the global side of a tensor copy; ``reads``: what it depends on;
    ``type_``: of the elements, which a reduction has."""
    source, target = (run.address(state, a) if a is not None else tensor or run.constant(0) for a in (op.src, op.dst))
    arrival = None if op.mbarrier is None else run.address(state, op.mbarrier)
    mask = None if op.mask is None else run.operand(state, op.mask, Type("u", 16))
    union = run.machine.union
    reading = union(reads, source.reads)
    writing = union(reads, target.reads)
    if mask is not None:
        writing = union(writing, mask.reads)
    values = [source, target, size, arrival or run.constant(0), mask or run.constant(0)]
    for when, (src, dst, length, mbarrier, ranks) in combinations_of(run, values):
        held = run.formulas.both(presence, when)
        if held == FALSE:
            continue
        targets = [(dst, mbarrier)]
        if mask is not None:
            test = run.machine.test
            targets = [(mapped(test, dst, r), mapped(test, mbarrier, r)) for r in range(RANKS) if ranks >> r & 1]
        signalled = [address for _, address in targets] if arrival is not None else []
        bars = [locate(run, op, address, SIZE, held, mbarrier=True) for address in signalled]
        for k, found in enumerate(bars):
            if found is not None:
                # Also of a copy that is undefined: who waits for it has to come to an end for that to be seen.
                complete_tx(run, issued, k, *found, length, held)
        if tensor is None and not _is_bulk_size(length):
            continue
        frm = locate(run, op, src, length, held, BULK_ALIGNMENT if op.src is not None else 1)
        aligned = BULK_ALIGNMENT if op.dst is not None else 1  # a tensor's box may begin at any of its elements
        to = [locate(run, op, address, length, held, aligned) for address, _ in targets]
        if frm is None or None in to or None in bars:
            continue
        parts = read_source(run, issued, *frm, length, held, reading)
        for k, found in enumerate(to):
            if found is not None:
                _deliver(run, op, issued, k, *found, length, parts, held, writing, type_)
        for part in (0, 1):
            member(run, issued, "PF", part, held)


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
) -> None:
    if op.reduction is None:
        write_part(run, issued, k, item, offset, size, parts, presence, address)
        return
    assert type_ is not None
    for start in range(0, size, type_.bytes):
        operand = bytes_of(run, parts, start, type_.bytes)
        part = (1 + k) * DESTINATION + start
        reduce_element(run, issued, op.reduction, type_, part, item, offset + start, operand, presence, address)


def _tensor(
    run: Executor, op: BulkCopy, issued: Issued, state: State, presence: Formula
) -> Iterator[tuple[Formula, TensorMap, Value, Reads]]:
    """For each tensor map that may be meant: when, what it is, where its box is, and what that depends on."""
    assert op.tensormap is not None
    if len(op.coordinates) != 1:
        raise unsupported(run, op, "a tensor copy of more than one dimension")
    base = run.address(state, op.tensormap)
    coordinate = run.operand(state, op.coordinates[0], COORDINATE)
    where, wrong = run.located(op, base, MAP_BYTES, presence, BULK_ALIGNMENT)
    for when, item, offset in where:
        shape = item.tensormap
        if shape is None or offset:
            raise unsupported(run, op, f"a tensor copy by {item.name}, which is no declared tensormap")
        held = run.formulas.all([presence, when, -wrong])
        ((places,),) = pieces(run, [(TRUE, item, offset)], 0, MAP_BYTES, False)
        id_ = (*issued.here[:3], TENSORMAP)
        event, content = read(run, op, id_, places, held, FALSE, base.reads, issued.control)
        join(issued, event)
        width = shape.type.bytes
        address = run.function(
            ("box", width),
            lambda a, c, width=width: (a + width * signed(c, 32)) & ((1 << 64) - 1),
            [field(run, content, 0, ADDRESS.bits), coordinate],
        )
        reads = run.machine.union(base.reads, address.reads)
        yield held, shape, Value(address.domain, address.expression, reads), reads


# -- asynchronous stores --


def async_store(run: Executor, op: AsyncStore, here: EventId, state: State, presence: Formula, control: Reads) -> None:
    """``st.async`` and ``red.async``: to shared memory of the cluster, then ``complete_tx`` on the mbarrier."""
    issued = issue(run, op, "store", here, presence, control, False)
    target, arrival = run.address(state, op.address), run.address(state, op.mbarrier)
    values = [run.operand(state, v, op.type) for v in op.values]
    width = op.type.bytes
    parts: list[Part] = [(i * width, width, value) for i, value in enumerate(values)]
    size = width * len(values)
    for when, (dst, mbarrier) in combinations_of(run, [target, arrival]):
        held = run.formulas.both(presence, when)
        to, bar = locate(run, op, dst, size, held), locate(run, op, mbarrier, SIZE, held, mbarrier=True)
        if bar is not None and held != FALSE:
            complete_tx(run, issued, 0, *bar, size, held)
        if to is None or bar is None or held == FALSE:
            continue
        item, offset = to
        for start, _, value in parts:
            if op.reduction is not None:
                reduce_element(
                    run, issued, op.reduction, op.type, start, item, offset + start, value, held, target.reads
                )
                continue
            element = Element(start, op.type, 0, 0)
            columns = pieces(run, [(TRUE, item, offset)], start, element.type.bytes, len(values) > 1)[0]
            for places in columns:
                place = places[0]
                inner = place.offset - offset - start
                event = member(run, issued, "W", place.offset - offset, held)
                piece = field(run, value, 8 * inner, 8 * place.size)
                event.places, event.value = places, piece.domain
                event.address, event.data = target.reads, piece.reads
    run.wrote(state, presence)
