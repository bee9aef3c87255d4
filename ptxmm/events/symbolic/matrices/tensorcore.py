"""tcgen05: tensor memory and what works on it (PTX ISA 9.0, 9.7.16).

What a product is makes no difference to memory: the column that it writes gets the column of A that it read, if A is in
tensor memory, else the first bytes of B. What each operation is issued after is in ``relations``.
"""

from __future__ import annotations

from typing import assert_never

from ptxmm.events.symbolic.accesses.elements import pieces, read
from ptxmm.events.symbolic.asynchronous.groups import (
    Issued,
    Part,
    bytes_of,
    combinations_of,
    issue,
    join,
    locate,
    member,
    read_source,
    reads_of,
)
from ptxmm.events.symbolic.barriers.synchronization import mbarriers
from ptxmm.events.symbolic.event import SyncEvent
from ptxmm.events.symbolic.executor import ADDRESS, Executor
from ptxmm.events.symbolic.machine import State
from ptxmm.events.symbolic.values.domain import Reads, Value, only
from ptxmm.program.identity import EventId
from ptxmm.ptx.ops import (
    COLUMN_BYTES,
    Address,
    Operand,
    TensorCommit,
    TensorCopy,
    TensorFence,
    TensorLoad,
    TensorOp,
    TensorProduct,
    TensorStore,
    TensorWait,
    Type,
)
from ptxmm.relations.formula import FALSE, TRUE, Formula

B32 = Type("b", 32)
MATRIX_ALIGNMENT = 16


def execute(
    run: Executor, op: TensorOp, here: EventId, state: State, presence: Formula, condition: Formula, control: Reads
) -> None:
    """Execute ``op`` where ``presence`` holds."""
    if isinstance(op, TensorFence):
        run.event("F", op, here, presence, control)
        return
    if isinstance(op, TensorWait):
        kind = TensorLoad if op.kind == "ld" else TensorStore
        earlier = [e.number for e in run.machine.events if e.thread == run.index and isinstance(e.op, kind)]
        tracked = [n for n in earlier if run.machine.events[n].asynchronous]
        run.event("AW", op, here, presence, control).after = tracked
        return
    issued = issue(run, op, "tensor", here, presence, control, False)
    match op:
        case TensorLoad():
            _load(run, op, issued, state, condition)
        case TensorStore():
            _store(run, op, issued, state)
        case TensorCopy():
            _copy(run, op, issued, state)
        case TensorProduct():
            _product(run, op, issued, state)
        case TensorCommit():
            _commit(run, op, issued, state)
        case _:
            assert_never(op)
    if not isinstance(op, TensorLoad | TensorCommit):
        run.wrote(state, presence)


def _column(run: Executor, address: Address, state: State) -> int:
    """The address of a column of tensor memory, which the text of the instruction gives."""
    (number,) = run.address(state, address).domain
    return number


def _there(run: Executor, issued: Issued, at: int, columns: int) -> bool:
    """Whether all of the columns from the address ``at`` on are where the instruction may access them."""
    size = COLUMN_BYTES * columns
    return locate(run, issued.op, at, size, issued.presence, alignment=COLUMN_BYTES) is not None


def _write(run: Executor, issued: Issued, at: int, value: Value, offset: int = 0, operand: int = 0) -> None:
    """Write the column at the address ``at``, which is ``offset`` bytes after the ``operand``."""
    found = locate(run, issued.op, at, COLUMN_BYTES, issued.presence)
    if found is None:
        return
    ((places,),) = pieces(run, [(TRUE, *found)], 0, COLUMN_BYTES, False)
    event = member(run, issued, "W", issued.presence, offset, operand)
    event.places, event.value, event.data = places, value.domain, value.reads


def _read(run: Executor, issued: Issued, at: int, offset: int = 0, operand: int = 0) -> Value:
    """Read the column at the address ``at``, which is ``offset`` bytes after the ``operand``."""
    found = locate(run, issued.op, at, COLUMN_BYTES, issued.presence)
    if found is None:
        return run.constant(0)
    ((places,),) = pieces(run, [(TRUE, *found)], 0, COLUMN_BYTES, False)
    id_ = issued.here.at(offset, operand)
    event, value = read(run, issued.op, id_, places, issued.presence, FALSE, {}, issued.control)
    join(issued, event)
    return value


def _load(run: Executor, op: TensorLoad, issued: Issued, state: State, condition: Formula) -> None:
    at = _column(run, op.address, state)
    there = _there(run, issued, at, len(op.dst))
    for i, register in enumerate(op.dst):
        value = _read(run, issued, at + COLUMN_BYTES * i, COLUMN_BYTES * i) if there else run.constant(0)
        run.assign(state, register.name, value, condition, op)


def _store(run: Executor, op: TensorStore, issued: Issued, state: State) -> None:
    at = _column(run, op.address, state)
    for i, operand in enumerate(op.values if _there(run, issued, at, len(op.values)) else ()):
        _write(run, issued, at + COLUMN_BYTES * i, run.operand(state, operand, B32), COLUMN_BYTES * i)


def _matrix(
    run: Executor, issued: Issued, state: State, descriptor: Operand, size: int | None, operand: int = 0
) -> list[tuple[Formula, list[Part]]]:
    """Read a matrix of shared memory, the ``operand``, to the end of its object where it has no ``size``; for each
    place what it is: nothing, outside every object."""
    value = run.described(run.operand(state, descriptor, ADDRESS))
    found: list[tuple[Formula, list[Part]]] = []
    for when, (number,) in combinations_of(run, [value]):
        held = run.formulas.both(issued.presence, when)
        if held == FALSE:
            continue
        where = locate(run, issued.op, number, size or 1, held, MATRIX_ALIGNMENT, "matrix")
        if where is None:
            found.append((when, []))
        else:
            item, offset = where
            length = item.size - offset if size is None else size
            parts = read_source(run, issued, item, offset, length, held, value.reads, operand=operand)
            found.append((when, parts))
    return found


def _of(run: Executor, matrix: list[tuple[Formula, list[Part]]], offset: int) -> Value:
    """Four bytes of a matrix, wherever it is."""
    arms = [(when, bytes_of(run, parts, offset, COLUMN_BYTES)) for when, parts in matrix]
    return run.one_of(arms) if arms else run.constant(0)


def _copy(run: Executor, op: TensorCopy, issued: Issued, state: State) -> None:
    at = _column(run, op.dst, state)
    matrix = _matrix(run, issued, state, op.src, op.size)
    member(run, issued, "PF", issued.presence, operand=1)
    for offset in range(0, op.size if _there(run, issued, at, op.size // COLUMN_BYTES) else 0, COLUMN_BYTES):
        _write(run, issued, at + offset, _of(run, matrix, offset), offset, 1)


def _product(run: Executor, op: TensorProduct, issued: Issued, state: State) -> None:
    at = _column(run, op.dst, state)
    matrix = _matrix(run, issued, state, op.b, None)
    value = _of(run, matrix, 0)
    if isinstance(op.a, Address):
        column = _column(run, op.a, state)
        value = _read(run, issued, column, operand=1)
    else:
        _matrix(run, issued, state, op.a, None, 1)
    member(run, issued, "PF", issued.presence, operand=1)
    _write(run, issued, at, value, operand=2)


def _commit(run: Executor, op: TensorCommit, issued: Issued, state: State) -> None:
    place, presence, address = mbarriers(run, op, state, op.address, issued.presence, op.space)
    event = member(run, issued, "MBA", presence)
    event.mbarriers, event.address = place, reads_of(run, address)
    step = SyncEvent(issued.here, "mb.arrive", op, presence, run.machine.new_step(), count=only(1), place=place)
    step.asynchronous = True
    run.sync(step)
