"""Asynchronous operations: copies, reductions, asynchronous stores, their groups and waits (PTX ISA 9.7.8.24).

An operation is issued in program order; what performs it is not in it (8.9.1.1). Where an address or a size has several
possible values, each combination is an operation of its own, of which an execution has one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from ptxmm.errors import PtxmmError
from ptxmm.events.symbolic.accesses import pieces, read, updated
from ptxmm.events.symbolic.computed import field
from ptxmm.events.symbolic.event import Event, Operation, SyncEvent
from ptxmm.events.symbolic.executor import ADDRESS, AMOUNT, PREDICATE, Executor
from ptxmm.events.symbolic.machine import State
from ptxmm.events.symbolic.mapping import RANKS, mapped
from ptxmm.events.symbolic.sync import SIZE, mbarriers
from ptxmm.events.symbolic.values import Domain, Reads, Value, only, signed
from ptxmm.program.test import DESTINATION, TENSORMAP, EventId, MemoryObject
from ptxmm.ptx.ops import (
    AsyncCommit,
    AsyncStore,
    AsyncWait,
    BulkCopy,
    CopyAsync,
    CopyAsyncArrive,
    Element,
    Imm,
    Op,
    Type,
)
from ptxmm.relations.formula import FALSE, TRUE, Formula

MAP_BYTES = 128
COORDINATE = Type("u", 32)

Part = tuple[int, int, Value]
"""Bytes of the source: their offset in the copy, how many, and their value."""


@dataclass(frozen=True, slots=True)
class Issued:
    """One operation in the making. ``address``: the reads that its addresses and sizes depend on."""

    op: Op
    here: EventId
    presence: Formula
    control: Reads
    number: int
    operation: Operation
    address: Reads


def issue(run: Executor, op: Op, kind: str, here: EventId, presence: Formula, control: Reads, grouped: bool) -> Issued:
    """The issue of an asynchronous operation."""
    number = len(run.machine.operations)
    event = run.event("ISS", op, here, presence, control)
    event.operation = number
    operation = Operation(kind, run.index, event.number, grouped)
    run.machine.operations.append(operation)
    return Issued(op, here, presence, control, number, operation, {})


def _member(run: Executor, issued: Issued, kind: str, part: int, presence: Formula) -> Event:
    event = run.event(kind, issued.op, (*issued.here[:3], part), presence, issued.control)
    _join(issued, event)
    return event


def _join(issued: Issued, event: Event) -> None:
    event.operation = issued.number
    issued.operation.events.append(event.number)


def _locate(run: Executor, op: Op, number: int, size: int, presence: Formula) -> tuple[MemoryObject, int] | None:
    """The place of ``size`` bytes at the address ``number``; what is outside every object is undefined behaviour."""
    where, _ = run.located(op, Value(only(number), 0, {}), size, presence)
    return (where[0][1], where[0][2]) if where else None


# -- sources and destinations --


def _source(
    run: Executor, issued: Issued, item: MemoryObject, offset: int, size: int, presence: Formula, address: Reads
) -> list[Part]:
    """Read ``size`` bytes at ``offset`` of ``item``, divided as the other accesses of the test divide them."""
    parts: list[Part] = []
    for start, length in run.machine.chunks(item.physical, offset, size) if size else ():
        ((places,),) = pieces(run, [(TRUE, item, start)], 0, length, False)
        id_ = (*issued.here[:3], start - offset)
        event, value = read(run, issued.op, id_, places, presence, FALSE, address, issued.control)
        _join(issued, event)
        parts.append((start - offset, length, value))
    return parts


def _bytes(run: Executor, parts: list[Part], offset: int, size: int) -> Value:
    """The bytes ``offset .. offset+size`` of the source, zero where it has none."""
    result: Value | None = None
    for start, length, value in parts:
        low, high = max(start, offset), min(start + length, offset + size)
        if low >= high:
            continue
        value = field(run, value, 8 * (low - start), 8 * (high - low))
        shift = 8 * (low - offset)
        if result is None and shift == 0:
            result = value
            continue
        before = result or run.constant(0)
        result = run.function(("pack", shift), lambda a, b, shift=shift: a | b << shift, [before, value])
    return result or run.constant(0)


def _write(
    run: Executor,
    issued: Issued,
    k: int,
    item: MemoryObject,
    offset: int,
    size: int,
    parts: list[Part],
    presence: Formula,
    address: Reads,
) -> None:
    """Write ``size`` bytes of the source to ``offset`` of ``item``, destination number ``k`` of the operation."""
    for start, length in run.machine.chunks(item.physical, offset, size) if size else ():
        value = _bytes(run, parts, start - offset, length)
        ((places,),) = pieces(run, [(TRUE, item, start)], 0, length, False)
        event = _member(run, issued, "W", (1 + k) * DESTINATION + start - offset, presence)
        event.places, event.value, event.address, event.data = places, value.domain, address, value.reads


def _reduce(
    run: Executor,
    issued: Issued,
    op: str,
    type_: Type,
    part: int,
    item: MemoryObject,
    offset: int,
    operand: Value,
    presence: Formula,
    address: Reads,
) -> None:
    """Read and write one element of the destination of a reduction."""
    where = [(TRUE, item, offset)]
    ((places,),) = pieces(run, where, 0, type_.bytes, False)
    id_ = (*issued.here[:3], part)
    event, old = read(run, issued.op, id_, places, presence, FALSE, address, issued.control)
    _join(issued, event)
    new = updated(run, op, type_, where, old, operand)
    write = _member(run, issued, "W", part, presence)
    write.places, write.value, write.address, write.data = places, new.domain, address, new.reads


def _complete(
    run: Executor, issued: Issued, k: int, item: MemoryObject, offset: int, size: int, presence: Formula
) -> None:
    """``complete_tx`` of ``size`` bytes on the mbarrier at ``offset`` of ``item``."""
    event = _member(run, issued, "MBA", k * DESTINATION, presence)
    event.mbarriers = {(item.physical, offset): TRUE}
    event.home = item.owner
    step = SyncEvent(event.id, "mb.complete", issued.op, presence, run.machine.new_step(), amount=only(size))
    step.place, step.asynchronous = event.mbarriers, True
    run.sync(step)


# -- non-bulk copies --


def copy_async(run: Executor, op: CopyAsync, here: EventId, state: State, presence: Formula, control: Reads) -> None:
    """``cp.async``: through the generic proxy; what is past the source size, or ignored, is written as zeros."""
    source, target = run.address(state, op.src), run.address(state, op.dst)
    size = run.constant(op.size) if op.source_size is None else run.operand(state, op.source_size, AMOUNT)
    ignore = run.constant(0)
    if op.ignore is not None:
        ignore = state.registers[op.ignore.name]
        if op.ignore_negated:
            ignore = run.operation("xor", PREDICATE, [ignore, run.operand(state, Imm(1), PREDICATE)])
    issued = issue(run, op, "cp.async", here, presence, control, True)
    reading = _union(run, source, size, ignore)
    writing = _union(run, target, size, ignore)
    for when, (src, dst, given, none) in _combinations(run, [source, target, size, ignore]):
        held = run.formulas.both(presence, when)
        if held == FALSE:
            continue
        taken = 0 if none else min(given, op.size)
        to = _locate(run, op, dst, op.size, held)
        frm = _locate(run, op, src, taken, held) if taken else None
        if to is None or (taken and frm is None):
            continue
        parts = _source(run, issued, *frm, taken, held, reading) if frm is not None else []
        _write(run, issued, 0, *to, op.size, parts, held, writing)
    run.wrote(state, presence)
    _enqueue(state, issued)


def copy_async_arrive(
    run: Executor, op: CopyAsyncArrive, here: EventId, state: State, presence: Formula, control: Reads
) -> None:
    """``cp.async.mbarrier.arrive``: an arrival once all earlier cp.async of the thread are complete."""
    place, presence, address = mbarriers(run, op, state, op.address, presence)
    issued = issue(run, op, "arrive", here, presence, control, False)
    if not op.noinc:
        run.sync(SyncEvent(here, "mb.increment", op, presence, run.machine.new_step(), place=place))
    event = _member(run, issued, "MBA", 0, presence)
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

    Raises ``PtxmmError`` for tensors of more than one dimension and for what is no declared tensor map.
    """
    issued = issue(run, op, "bulk", here, presence, control, op.mbarrier is None)
    if op.tensormap is None:
        assert op.size is not None
        size = run.operand(state, op.size, AMOUNT)
        _bulk(run, op, issued, state, presence, size, _union(run, size), None)
    else:
        for held, length, address, reads in _tensor(run, op, issued, state, presence):
            _bulk(run, op, issued, state, held, run.constant(length), reads, address)
    run.wrote(state, presence)
    _enqueue(state, issued)


def _bulk(
    run: Executor,
    op: BulkCopy,
    issued: Issued,
    state: State,
    presence: Formula,
    size: Value,
    reads: Reads,
    tensor: Value | None,
) -> None:
    """The copy itself; ``tensor``: the address on the global side of a tensor copy; ``reads``: what it depends on."""
    source, target = (run.address(state, a) if a is not None else tensor or run.constant(0) for a in (op.src, op.dst))
    arrival = None if op.mbarrier is None else run.address(state, op.mbarrier)
    mask = None if op.mask is None else run.operand(state, op.mask, Type("u", 16))
    union = run.machine.union
    reading = union(reads, source.reads)
    writing = union(reads, target.reads)
    if mask is not None:
        writing = union(writing, mask.reads)
    values = [source, target, size, arrival or run.constant(0), mask or run.constant(0)]
    for when, (src, dst, length, mbarrier, ranks) in _combinations(run, values):
        held = run.formulas.both(presence, when)
        if held == FALSE:
            continue
        targets = [(dst, mbarrier)]
        if mask is not None:
            test = run.machine.test
            targets = [(mapped(test, dst, r), mapped(test, mbarrier, r)) for r in range(RANKS) if ranks >> r & 1]
        frm = _locate(run, op, src, length, held)
        to = [_locate(run, op, address, length, held) for address, _ in targets]
        bars = [_locate(run, op, address, SIZE, held) for _, address in targets] if arrival is not None else []
        if frm is None or None in to or None in bars:
            continue
        parts = _source(run, issued, *frm, length, held, reading)
        for k, found in enumerate(to):
            if found is not None:
                _deliver(run, op, issued, k, *found, length, parts, held, writing)
        for part in (0, 1):
            _member(run, issued, "PF", part, held)
        for k, found in enumerate(bars):
            if found is not None:
                _complete(run, issued, k, *found, length, held)


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
) -> None:
    if op.reduction is None:
        _write(run, issued, k, item, offset, size, parts, presence, address)
        return
    assert op.type is not None
    for start in range(0, size, op.type.bytes):
        operand = _bytes(run, parts, start, op.type.bytes)
        part = (1 + k) * DESTINATION + start
        _reduce(run, issued, op.reduction, op.type, part, item, offset + start, operand, presence, address)


def _tensor(
    run: Executor, op: BulkCopy, issued: Issued, state: State, presence: Formula
) -> Iterator[tuple[Formula, int, Value, Reads]]:
    """For each tensor map that may be meant: when, the bytes of its box, where the box is, and what that depends on."""
    assert op.tensormap is not None
    if len(op.coordinates) != 1:
        raise _unsupported(run, op, "a tensor copy of more than one dimension")
    base = run.address(state, op.tensormap)
    coordinate = run.operand(state, op.coordinates[0], COORDINATE)
    where, wrong = run.located(op, base, MAP_BYTES, presence)
    for when, item, offset in where:
        shape = item.tensormap
        if shape is None or offset:
            raise _unsupported(run, op, f"a tensor copy by {item.name}, which is no declared tensormap")
        held = run.formulas.all([presence, when, -wrong])
        ((places,),) = pieces(run, [(TRUE, item, offset)], 0, MAP_BYTES, False)
        id_ = (*issued.here[:3], TENSORMAP)
        event, content = read(run, op, id_, places, held, FALSE, base.reads, issued.control)
        _join(issued, event)
        width = shape.type.bytes
        address = run.function(
            ("box", width),
            lambda a, c, width=width: (a + width * signed(c, 32)) & ((1 << 64) - 1),
            [field(run, content, 0, ADDRESS.bits), coordinate],
        )
        reads = run.machine.union(base.reads, address.reads)
        yield held, shape.count * width, Value(address.domain, address.expression, reads), reads


# -- asynchronous stores --


def async_store(run: Executor, op: AsyncStore, here: EventId, state: State, presence: Formula, control: Reads) -> None:
    """``st.async`` and ``red.async``: to shared memory of the cluster, then ``complete_tx`` on the mbarrier."""
    issued = issue(run, op, "store", here, presence, control, False)
    target, arrival = run.address(state, op.address), run.address(state, op.mbarrier)
    values = [run.operand(state, v, op.type) for v in op.values]
    width = op.type.bytes
    parts: list[Part] = [(i * width, width, value) for i, value in enumerate(values)]
    size = width * len(values)
    for when, (dst, mbarrier) in _combinations(run, [target, arrival]):
        held = run.formulas.both(presence, when)
        to, bar = _locate(run, op, dst, size, held), _locate(run, op, mbarrier, SIZE, held)
        if to is None or bar is None or held == FALSE:
            continue
        item, offset = to
        for start, _, value in parts:
            if op.reduction is not None:
                _reduce(run, issued, op.reduction, op.type, start, item, offset + start, value, held, target.reads)
                continue
            element = Element(start, op.type, 0, 0)
            columns = pieces(run, [(TRUE, item, offset)], start, element.type.bytes, len(values) > 1)[0]
            for places in columns:
                place = places[0]
                inner = place.offset - offset - start
                event = _member(run, issued, "W", place.offset - offset, held)
                piece = field(run, value, 8 * inner, 8 * place.size)
                event.places, event.value = places, piece.domain
                event.address, event.data = target.reads, piece.reads
        _complete(run, issued, 0, *bar, size, held)
    run.wrote(state, presence)


# -- groups --


def commit(op: AsyncCommit, state: State) -> None:
    """A new group of the operations of a kind that are in none yet."""
    groups, open_ = state.queues.get(op.kind, ((), ()))
    state.queues = {**state.queues, op.kind: ((*groups, open_), ())}


def wait(run: Executor, op: AsyncWait, here: EventId, state: State, presence: Formula, control: Reads) -> None:
    """``wait_group`` and ``wait_all``: an event after what completes the groups that it waits for."""
    groups, open_ = state.queues.get(op.kind, ((), ()))
    if op.pending is None:
        done = [n for group in (*groups, open_) for n in group]
    else:
        done = [n for group in groups[: max(0, len(groups) - op.pending)] for n in group]
    kind, part = ("W", None) if op.kind == "cp.async" else ("PF", 0 if op.read else 1)
    event = run.event("AW", op, here, presence, control)
    events = run.machine.events
    event.after = [
        e
        for n in done
        for e in run.machine.operations[n].events
        if events[e].kind == kind and part in (None, events[e].id[3])
    ]


def _enqueue(state: State, issued: Issued) -> None:
    if issued.operation.grouped:
        groups, open_ = state.queues.get(issued.operation.kind, ((), ()))
        state.queues = {**state.queues, issued.operation.kind: (groups, (*open_, issued.number))}


# -- helpers --


def _combinations(run: Executor, values: list[Value]) -> Iterator[tuple[Formula, tuple[int, ...]]]:
    """The values that operands may have together, and when."""
    domains: list[Domain] = [v.domain for v in values]
    for items in product(*(d.items() for d in domains)):
        run.machine.check()
        when = run.formulas.all([f for _, f in items])
        if when != FALSE:
            yield when, tuple(v for v, _ in items)


def _union(run: Executor, *values: Value) -> Reads:
    reads: Reads = {}
    for value in values:
        reads = run.machine.union(reads, value.reads)
    return reads


def _unsupported(run: Executor, op: Op, what: str) -> PtxmmError:
    span = op.source.span
    error = PtxmmError(
        f"{what} is not supported yet",
        kind="unsupported",
        line=span.line,
        column=span.column,
        width=max(1, span.end_column - span.column),
    )
    return error.place(run.machine.test.file, run.machine.test.text)
