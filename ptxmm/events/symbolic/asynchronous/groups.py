"""Asynchronous operations: their issue, what performs them, and their groups (PTX ISA 8.9.1.1, 9.7.10.24).

An operation is issued in program order; what performs it is not in it (8.9.1.1). Where an address or a size has several
possible values, each combination is an operation of its own, of which an execution has one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

from msgspec import Struct

from ptxmm.events.symbolic.accesses.elements import pieces, read, updated
from ptxmm.events.symbolic.event import Event, Operation, SyncEvent
from ptxmm.events.symbolic.executor import Executor
from ptxmm.events.symbolic.machine import State
from ptxmm.events.symbolic.values.domain import Domain, Reads, Value, only
from ptxmm.program.identity import EventId
from ptxmm.program.test import MemoryObject
from ptxmm.ptx.ops import AsyncCommit, AsyncWait, Op, Role, Type
from ptxmm.relations.formula import FALSE, TRUE, Formula

Part = tuple[int, int, Value]
"""Bytes of the source: their offset in the copy, how many, and their value."""


class Issued(Struct, frozen=True):
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
    operation = Operation(kind, run.index, [event.number], grouped)
    run.machine.operations.append(operation)
    return Issued(op, here, presence, control, number, operation, {})


def member(run: Executor, issued: Issued, kind: str, presence: Formula, offset: int = 0, operand: int = 0) -> Event:
    """An event of the operation; ``offset`` and ``operand`` as in ``EventId``."""
    event = run.event(kind, issued.op, issued.here.at(offset, operand), presence, issued.control)
    join(issued, event)
    return event


def join(issued: Issued, event: Event) -> None:
    event.operation = issued.number
    issued.operation.events.append(event.number)


def locate(
    run: Executor,
    op: Op,
    number: int,
    size: int,
    presence: Formula,
    alignment: int | None = None,
    role: Role = "data",
    mbarrier: bool = False,
) -> tuple[MemoryObject, int] | None:
    """The place of ``size`` bytes at the address ``number``; what is outside every object is undefined behaviour, as is
    an address that is no multiple of ``alignment`` (by default ``size``) and, unless they are one (``mbarrier``), that
    of an mbarrier."""
    where, _ = run.located(op, Value(only(number), 0, {}), size, presence, alignment, role, mbarrier)
    return (where[0][1], where[0][2]) if where else None


def require(
    run: Executor, op: Op, size: Value, presence: Formula, possible: Callable[[int], bool], why: Callable[[int], str]
) -> None:
    """Note that the values of ``size`` that are not ``possible`` are undefined behaviour; ``why``: in words."""
    for number, when in size.domain.items():
        if not possible(number):
            run.misuse(op, run.formulas.both(presence, when), why(number))


# -- sources and destinations --


def read_source(
    run: Executor,
    issued: Issued,
    item: MemoryObject,
    offset: int,
    size: int,
    presence: Formula,
    address: Reads,
    begin: int = 0,
    operand: int = 0,
) -> list[Part]:
    """Read ``size`` bytes at ``offset`` of ``item``, divided as the other accesses of the test divide them.

    They are those of the ``operand`` from ``begin`` on.
    """
    parts: list[Part] = []
    for start, length in run.machine.chunks(item.physical, offset, size) if size else ():
        ((places,),) = pieces(run, [(TRUE, item, start)], 0, length, False)
        id_ = issued.here.at(begin + start - offset, operand)
        event, value = read(run, issued.op, id_, places, presence, FALSE, address, issued.control)
        join(issued, event)
        parts.append((start - offset, length, value))
    return parts


def bytes_of(run: Executor, parts: list[Part], offset: int, size: int) -> Value:
    """The bytes ``offset .. offset+size`` of the source, zero where it has none."""
    result: Value | None = None
    for start, length, value in parts:
        low, high = max(start, offset), min(start + length, offset + size)
        if low >= high:
            continue
        value = run.field(value, 8 * (low - start), 8 * (high - low))
        shift = 8 * (low - offset)
        if result is None and shift == 0:
            result = value
            continue
        before = result or run.constant(0)
        result = run.join(before, value, shift)
    return result or run.constant(0)


def write_part(
    run: Executor,
    issued: Issued,
    k: int,
    item: MemoryObject,
    offset: int,
    size: int,
    parts: list[Part],
    presence: Formula,
    address: Reads,
    begin: int = 0,
) -> None:
    """Write ``size`` bytes of the source, from ``begin`` on, to ``offset`` of ``item``, destination number ``k`` of the
    operation."""
    for start, length in run.machine.chunks(item.physical, offset, size) if size else ():
        position = begin + start - offset
        value = bytes_of(run, parts, position, length)
        ((places,),) = pieces(run, [(TRUE, item, start)], 0, length, False)
        event = member(run, issued, "W", presence, position, 1 + k)
        event.places, event.value, event.address, event.data = places, value.domain, address, value.reads


def reduce_element(
    run: Executor,
    issued: Issued,
    op: str,
    type_: Type,
    id_: EventId,
    item: MemoryObject,
    offset: int,
    operand: Value,
    presence: Formula,
    address: Reads,
) -> None:
    """Read and write one element of the destination of a reduction."""
    where = [(TRUE, item, offset)]
    ((places,),) = pieces(run, where, 0, type_.bytes, False)
    event, old = read(run, issued.op, id_, places, presence, FALSE, address, issued.control)
    join(issued, event)
    new = updated(run, op, type_, where, old, operand)
    write = run.event("W", issued.op, id_, presence, issued.control)
    join(issued, write)
    write.places, write.value, write.address, write.data = places, new.domain, address, new.reads


def complete_tx(
    run: Executor, issued: Issued, k: int, item: MemoryObject, offset: int, size: int, presence: Formula, address: Reads
) -> None:
    """``complete_tx`` of ``size`` bytes on the mbarrier at ``offset`` of ``item``; ``address``: what the places and the
    size of the operation depend on."""
    event = member(run, issued, "MBA", presence, operand=k)
    event.mbarriers, event.address = {(item.physical, offset): TRUE}, address
    event.home = item.owner
    step = SyncEvent(event.id, "mb.complete", issued.op, presence, run.machine.new_step(), amount=only(size))
    step.place, step.asynchronous = event.mbarriers, True
    run.sync(step)


# -- groups --


def commit(op: AsyncCommit, state: State) -> None:
    """A new group of the operations of a kind that are in none yet."""
    groups, open_ = state.queues.get(op.kind, ((), ()))
    state.queues = {**state.queues, op.kind: ((*groups, open_), ())}


def wait(run: Executor, op: AsyncWait, here: EventId, state: State, presence: Formula, control: Reads) -> None:
    """``wait_group`` and ``wait_all``: an event after what completes the groups that it waits for."""
    done = waited(op, state)
    kind, operand = ("W", None) if op.kind == "cp.async" else ("PF", 0 if op.read else 1)
    event = run.event("AW", op, here, presence, control)
    events = run.machine.events
    event.after = [
        e
        for n in done
        for e in run.machine.operations[n].events
        if events[e].kind == kind and operand in (None, events[e].id.operand)
    ]


def waited(op: AsyncWait, state: State) -> list[int]:
    """The operations that ``op`` waits for."""
    groups, open_ = state.queues.get(op.kind, ((), ()))
    if op.pending is None:
        return [n for group in (*groups, open_) for n in group]
    return [n for group in groups[: max(0, len(groups) - op.pending)] for n in group]


def enqueue(state: State, issued: Issued) -> None:
    if issued.operation.grouped:
        groups, open_ = state.queues.get(issued.operation.kind, ((), ()))
        state.queues = {**state.queues, issued.operation.kind: (groups, (*open_, issued.number))}


# -- helpers --


def combinations_of(run: Executor, values: list[Value]) -> Iterator[tuple[Formula, tuple[int, ...]]]:
    """The values that operands may have together, and when."""
    domains: list[Domain] = [v.domain for v in values]
    for items in product(*(d.items() for d in domains)):
        run.machine.check()
        when = run.formulas.all([f for _, f in items])
        if when != FALSE:
            yield when, tuple(v for v, _ in items)


def reads_of(run: Executor, *values: Value) -> Reads:
    reads: Reads = {}
    for value in values:
        reads = run.machine.union(reads, value.reads)
    return reads
