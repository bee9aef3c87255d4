"""Asynchronous operations: their issue, what performs them, and their groups (PTX ISA 8.9.1.1, 9.7.10.24).

An operation is issued in program order; what performs it is not in it (8.9.1.1). Where an address or a size has several
possible values, each combination is an operation of its own, of which an execution has one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, product

from msgspec import Struct

from ptxmm.events.symbolic.accesses.elements import read, updated, write
from ptxmm.events.symbolic.event import Operation
from ptxmm.events.symbolic.executor import Effects, Executor, Start, place_at
from ptxmm.events.symbolic.machine import State
from ptxmm.events.symbolic.values.domain import Reads, Value, only
from ptxmm.program.identity import EventId
from ptxmm.program.shared.refusals import same_group
from ptxmm.ptx.ops import AsyncCommit, AsyncWait, Role, Type
from ptxmm.relations.formula import FALSE, TRUE, Formula

Part = tuple[int, int, Value]
"""Bytes of the source: their offset in the copy, how many, and their value."""


class Side(Struct, frozen=True):
    """The source or the destinations of an operation, for one combination of its operands: when it has that one, and
    the reads that the ``address`` and the size depend on."""

    operation: Operation
    presence: Formula
    address: Reads


def operation_of(run: Executor, kind: str, issues: list[int], grouped: bool) -> Operation:
    """A new asynchronous operation, issued after the events ``issues``."""
    operation = Operation(len(run.machine.operations), kind, run.index, issues, grouped)
    run.machine.operations.append(operation)
    return operation


def issue(run: Executor, kind: str, grouped: bool = False, presence: Formula | None = None) -> Operation:
    """The issue of an asynchronous operation."""
    event = run.event("ISS", presence)
    operation = operation_of(run, kind, [event.number], grouped)
    event.operation = operation.number
    return operation


def locate(
    run: Executor,
    number: int,
    size: int,
    presence: Formula,
    alignment: int | None = None,
    role: Role = "data",
    mbarrier: bool = False,
) -> Start | None:
    """The place of ``size`` bytes at the address ``number``; what is outside every object is undefined behaviour, as is
    an address that is no multiple of ``alignment`` (by default ``size``) and, unless they are one (``mbarrier``), that
    of an mbarrier."""
    where, _ = run.located(Value(only(number), 0, {}), size, presence, alignment, role, mbarrier)
    return where[0][1:] if where else None


def require(run: Executor, size: Value, possible: Callable[[int], bool], why: Callable[[int], str]) -> None:
    """Note that the values of ``size`` that are not ``possible`` are undefined behaviour; ``why``: in words."""
    for number, when in size.domain.items():
        if not possible(number):
            run.misuse(run.formulas.both(run.presence, when), why(number))


# -- sources and destinations --


def read_source(run: Executor, side: Side, start: Start, size: int, begin: int = 0, operand: int = 0) -> list[Part]:
    """Read ``size`` bytes from ``start`` on, divided as the other accesses of the test divide them.

    They are those of the ``operand`` from ``begin`` on.
    """
    parts: list[Part] = []
    item, first = start
    for offset, length in run.machine.setting.chunks(item.physical, first, size) if size else ():
        id_ = run.here.at(begin + offset - first, operand)
        places = [place_at(TRUE, item, offset, length)]
        _, value = read(run, places, side.presence, side.address, id_, operation=side.operation)
        parts.append((begin + offset - first, length, value))
    return parts


def bytes_of(run: Executor, parts: list[Part], offset: int, size: int) -> Value:
    """The bytes ``offset .. offset+size`` of the source, zero where it has none."""
    return run.join(
        (8 * (low - offset), run.field(value, 8 * (low - start), 8 * (high - low)))
        for start, length, value in parts
        if (low := max(start, offset)) < (high := min(start + length, offset + size))
    )


def write_part(run: Executor, side: Side, k: int, start: Start, size: int, parts: list[Part], begin: int = 0) -> None:
    """Write ``size`` bytes of the source, from ``begin`` on, at ``start`` in destination number ``k``."""
    item, first = start
    for offset, length in run.machine.setting.chunks(item.physical, first, size) if size else ():
        position = begin + offset - first
        value, id_ = bytes_of(run, parts, position, length), run.here.at(position, 1 + k)
        places = [place_at(TRUE, item, offset, length)]
        write(run, places, value, side.presence, side.address, id_, operation=side.operation)


def reduce_part(
    run: Executor, side: Side, op: str, type_: Type, k: int, start: Start, size: int, parts: list[Part], begin: int = 0
) -> None:
    """As ``write_part``, but ``op`` of what is there and the source, in elements of ``type_``."""
    item, first = start
    for position in range(begin, begin + size, type_.bytes):
        operand, id_ = bytes_of(run, parts, position, type_.bytes), run.here.at(position, 1 + k)
        reduce_element(run, side, op, type_, id_, (item, first + position - begin), operand)


def reduce_element(run: Executor, side: Side, op: str, type_: Type, id_: EventId, start: Start, operand: Value) -> None:
    """Read and write one element of the destination of a reduction."""
    places = [place_at(TRUE, *start, type_.bytes)]
    _, old = read(run, places, side.presence, side.address, id_, operation=side.operation)
    new = updated(run, op, type_, [(TRUE, *start)], old, operand)
    write(run, places, new, side.presence, side.address, id_, operation=side.operation)


def complete_tx(run: Executor, side: Side, k: int, start: Start, size: int) -> None:
    """``complete_tx`` of ``size`` bytes on the mbarrier at ``start``, that of destination number ``k``."""
    item, offset = start
    event = run.event("MBA", side.presence, run.here.at(0, k), side.operation)
    event.mbarriers, event.address = {(item.physical, offset): TRUE}, side.address
    event.home = item.owner
    step = run.step("mb.complete", side.presence, event.id)
    step.amount, step.place, step.asynchronous = only(size), event.mbarriers, True


# -- groups --


def commit(run: Executor, op: AsyncCommit | AsyncWait) -> None:
    """A new group of the operations of a kind that are in none yet.

    Copies of one group are in no order: two of them to the same location are undefined (9.7.10.24.4).
    """
    groups, open_ = run.state.queues.get(op.kind, ((), ()))
    run.state.queues = {**run.state.queues, op.kind: ((*groups, open_), ())}
    if op.kind != "cp.async":
        return
    written = [[e for e in run.machine.operations[n].events if run.machine.events[e].kind == "W"] for n in open_]
    for one, other in combinations(written, 2):
        for a, b in product((run.machine.events[e] for e in one), (run.machine.events[e] for e in other)):
            for p, q in product(a.places, b.places):
                if p.physical == q.physical and p.offset < q.offset + q.size and q.offset < p.offset + p.size:
                    when = run.formulas.all([run.presence, a.presence, p.when, b.presence, q.when])
                    run.misuse(when, same_group(a.op, b.op))


def wait(run: Executor, op: AsyncWait) -> None:
    """``wait_group``, an event after what completes the groups that it waits for; ``wait_all`` commits before."""
    if op.pending is None:
        commit(run, op)
    kind, operand = ("W", None) if op.kind == "cp.async" else ("PF", 0 if op.read else 1)
    events, operations = run.machine.events, run.machine.operations
    event = run.event("AW")
    if op.kind == "wgmma":
        event.group = max(0, len(run.state.queues.get(op.kind, ((), ()))[0]) - (op.pending or 0))
    event.after = [
        e
        for n in waited(op, run.state)
        for e in operations[n].events
        if events[e].kind == kind and operand in (None, events[e].id.operand)
    ]


def waited(op: AsyncWait, state: State) -> list[int]:
    """The operations that ``op`` waits for."""
    groups, _ = state.queues.get(op.kind, ((), ()))
    return [n for group in groups[: max(0, len(groups) - (op.pending or 0))] for n in group]


def enqueue(run: Executor, operation: Operation) -> None:
    """``operation`` waits for the next commit of its kind, if it is for groups."""
    if operation.grouped:
        groups, open_ = run.state.queues.get(operation.kind, ((), ()))
        operation.group = len(groups)
        run.state.queues = {**run.state.queues, operation.kind: (groups, (*open_, operation.number))}


# -- helpers --


def combinations_of(
    run: Executor, presence: Formula, *values: Value
) -> Iterator[tuple[Formula, Formula, tuple[int, ...]]]:
    """The values that operands may have together: when, and when where ``presence`` holds."""
    for items in product(*(v.domain.items() for v in values)):
        run.machine.setting.check()
        when = run.formulas.all([f for _, f in items])
        held = run.formulas.both(presence, when)
        if held != FALSE:
            yield when, held, tuple(v for v, _ in items)


def reads_of(run: Executor, *values: Value) -> Reads:
    """The reads that ``values`` depend on."""
    return run.machine.all_reads(v.reads for v in values)


EFFECTS: Effects = {AsyncCommit: commit, AsyncWait: wait}
