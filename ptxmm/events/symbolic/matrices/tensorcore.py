"""tcgen05: tensor memory and what works on it (PTX ISA 9.0, 9.7.16).

What a product is makes no difference to memory: the column that it writes gets the column of A that it read, if A is in
tensor memory, else the first bytes of B. What each operation is issued after is in ``relations``.
"""

from __future__ import annotations

from typing import assert_never, get_args

from ptxmm.events.symbolic.accesses.elements import read, write
from ptxmm.events.symbolic.asynchronous.groups import Part, Side, bytes_of, combinations_of, issue, locate, read_source
from ptxmm.events.symbolic.barriers.synchronization import mbarriers
from ptxmm.events.symbolic.event import Operation
from ptxmm.events.symbolic.executor import ADDRESS, Effects, Executor, place_at
from ptxmm.events.symbolic.values.domain import Value, only
from ptxmm.ptx import ops
from ptxmm.ptx.ops import COLUMN_BYTES, Address, Operand, TensorOp, Type
from ptxmm.relations.formula import TRUE, Formula

B32 = Type("b", 32)
MATRIX_ALIGNMENT = 16


def execute(run: Executor, op: TensorOp) -> None:
    """Execute ``op``."""
    match op:
        case ops.TensorFence():
            run.event("F")
        case ops.TensorWait():
            kind = ops.TensorLoad if op.kind == "ld" else ops.TensorStore
            earlier = [e for e in run.machine.events if e.thread == run.index and isinstance(e.op, kind)]
            run.event("AW").after = [e.number for e in earlier if e.asynchronous]
        case ops.TensorLoad():
            _load(run, op, issue(run, "tensor"))
        case ops.TensorStore():
            _store(run, op, issue(run, "tensor"))
        case ops.TensorCopy():
            _copy(run, op, issue(run, "tensor"))
        case ops.TensorProduct():
            _product(run, op, issue(run, "tensor"))
        case ops.TensorCommit():
            _commit(run, op, issue(run, "tensor"))
        case _:
            assert_never(op)
    if isinstance(op, ops.TensorStore | ops.TensorCopy | ops.TensorProduct):
        run.wrote()


def _column(run: Executor, address: Address) -> int:
    """The address of a column of tensor memory, which the text of the instruction gives."""
    (number,) = run.address(address).domain
    return number


def _there(run: Executor, at: int, columns: int) -> bool:
    """Whether all of the columns from the address ``at`` on are where the instruction may access them."""
    return locate(run, at, COLUMN_BYTES * columns, run.presence, alignment=COLUMN_BYTES) is not None


def _write(run: Executor, operation: Operation, at: int, value: Value, offset: int = 0, operand: int = 0) -> None:
    """Write the column at the address ``at``, which is ``offset`` bytes after the ``operand``."""
    found = locate(run, at, COLUMN_BYTES, run.presence)
    if found is not None:
        places, id_ = [place_at(TRUE, *found, COLUMN_BYTES)], run.here.at(offset, operand)
        write(run, places, value, run.presence, {}, id_, operation=operation)


def _read(run: Executor, operation: Operation, at: int, offset: int = 0, operand: int = 0) -> Value:
    """Read the column at the address ``at``, which is ``offset`` bytes after the ``operand``."""
    found = locate(run, at, COLUMN_BYTES, run.presence)
    if found is None:
        return run.constant(0)
    places, id_ = [place_at(TRUE, *found, COLUMN_BYTES)], run.here.at(offset, operand)
    return read(run, places, run.presence, {}, id_, operation=operation)[1]


def _load(run: Executor, op: ops.TensorLoad, operation: Operation) -> None:
    at = _column(run, op.address)
    there = _there(run, at, len(op.dst))
    for i, register in enumerate(op.dst):
        offset = COLUMN_BYTES * i
        run.assign(register.name, _read(run, operation, at + offset, offset) if there else run.constant(0))


def _store(run: Executor, op: ops.TensorStore, operation: Operation) -> None:
    at = _column(run, op.address)
    for i, operand in enumerate(op.values if _there(run, at, len(op.values)) else ()):
        _write(run, operation, at + COLUMN_BYTES * i, run.operand(operand, B32), COLUMN_BYTES * i)


def _matrix(
    run: Executor, operation: Operation, descriptor: Operand, size: int | None, operand: int = 0
) -> list[tuple[Formula, list[Part]]]:
    """Read a matrix of shared memory, the ``operand``, to the end of its object where it has no ``size``; for each
    place what it is: nothing, outside every object."""
    value = run.described(run.operand(descriptor, ADDRESS))
    found: list[tuple[Formula, list[Part]]] = []
    for when, held, (number,) in combinations_of(run, run.presence, value):
        where = locate(run, number, size or 1, held, MATRIX_ALIGNMENT, "matrix")
        parts: list[Part] = []
        if where is not None:
            length = where[0].size - where[1] if size is None else size
            parts = read_source(run, Side(operation, held, value.reads), where, length, operand=operand)
        found.append((when, parts))
    return found


def _of(run: Executor, matrix: list[tuple[Formula, list[Part]]], offset: int) -> Value:
    """Four bytes of a matrix, wherever it is."""
    arms = [(when, bytes_of(run, parts, offset, COLUMN_BYTES)) for when, parts in matrix]
    return run.one_of(arms) if arms else run.constant(0)


def _copy(run: Executor, op: ops.TensorCopy, operation: Operation) -> None:
    at = _column(run, op.dst)
    matrix = _matrix(run, operation, op.src, op.size)
    run.event("PF", id_=run.here.at(0, 1), operation=operation)
    for offset in range(0, op.size if _there(run, at, op.size // COLUMN_BYTES) else 0, COLUMN_BYTES):
        _write(run, operation, at + offset, _of(run, matrix, offset), offset, 1)


def _product(run: Executor, op: ops.TensorProduct, operation: Operation) -> None:
    at = _column(run, op.dst)
    operation.product = (at, op.kind), run.operand(op.descriptor, B32).domain
    value = _of(run, _matrix(run, operation, op.b, None), 0)
    if isinstance(op.a, Address):
        value = _read(run, operation, _column(run, op.a), operand=1)
    else:
        _matrix(run, operation, op.a, None, 1)
    run.event("PF", id_=run.here.at(0, 1), operation=operation)
    _write(run, operation, at, value, operand=2)


def _commit(run: Executor, op: ops.TensorCommit, operation: Operation) -> None:
    place, presence, address = mbarriers(run, op.address, op.space)
    event = run.event("MBA", presence, operation=operation)
    event.mbarriers, event.address = place, address.reads
    step = run.step("mb.arrive", presence)
    step.count, step.place, step.asynchronous = only(1), place, True


EFFECTS: Effects = dict.fromkeys(get_args(TensorOp), execute)
