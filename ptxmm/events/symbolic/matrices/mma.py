"""Matrix instructions: ldmatrix, stmatrix and wgmma (PTX ISA 9.7.15.4.15, .16, 9.7.16; A35).

What a product is makes no difference to memory. So that a test sees what was read, the accumulator of a wgmma gets the
first bytes of its matrix B instead.
"""

from __future__ import annotations

from ptxmm.events.symbolic.accesses.elements import Access, load, store
from ptxmm.events.symbolic.asynchronous.groups import (
    Issued,
    combinations_of,
    enqueue,
    locate,
    member,
    read_source,
)
from ptxmm.events.symbolic.event import Operation
from ptxmm.events.symbolic.executor import ADDRESS, Executor
from ptxmm.events.symbolic.machine import State
from ptxmm.events.symbolic.values.domain import Reads, Value
from ptxmm.program.identity import EventId
from ptxmm.program.shared.refusals import SEVERAL_MATRICES, named_warp, refused
from ptxmm.ptx.ops import MATRIX_ROW_BYTES, Element, LoadMatrix, ProxyFence, StoreMatrix, Type, Wgmma, WgmmaFence
from ptxmm.relations.formula import FALSE, TRUE, Formula

ROW = Element(0, Type("b", 8 * MATRIX_ROW_BYTES), 0, 0)
B32 = Type("b", 32)
HALF = 0xFFFF


def load_matrix(
    run: Executor,
    op: LoadMatrix,
    here: EventId,
    state: State,
    presence: Formula,
    condition: Formula,
    control: Reads,
) -> None:
    """``ldmatrix``: a weak read of the row that the thread names, which stands for a warp whose lanes all name it.

    Raises ``PtxmmError`` in a warp with a name: its lanes get bytes of each other's rows.
    """
    _check_warp(run, op, "ldmatrix")
    value = load(run, _row(run, op, here, state, presence, control), ROW, divided=True)
    taken = run.field(value, 0, 32)  # lane 0 gets the first elements of each row
    if op.transposed:
        taken = run.function(("column",), lambda v: (v & HALF) | (v & HALF) << 16, [taken])
    for dst in op.dst:
        if dst is not None:
            run.assign(state, dst.name, taken, condition, op)


def store_matrix(
    run: Executor, op: StoreMatrix, here: EventId, state: State, presence: Formula, control: Reads
) -> None:
    """``stmatrix``: a weak write of the row that the thread names, which stands for a warp whose lanes all hold what it
    holds.

    Raises ``PtxmmError`` in a warp with a name, and for several matrices, which such a warp would write in one place.
    """
    _check_warp(run, op, "stmatrix")
    if len(op.values) > 1:
        raise refused(SEVERAL_MATRICES, run.machine.test, op)
    value = run.operand(state, op.values[0], B32)
    row = run.function(("row", op.transposed), _transposed_row if op.transposed else _plain_row, [value])
    common = _row(run, op, here, state, presence, control)
    store(run, common, ROW, row, divided=True)
    run.wrote(state, common.inside)


def _plain_row(value: int) -> int:
    return sum(value << 32 * i for i in range(4))


def _transposed_row(value: int) -> int:
    return sum((value & HALF) << 16 * i for i in range(8))


def _check_warp(run: Executor, op: LoadMatrix | StoreMatrix, name: str) -> None:
    if run.machine.members.named(run.index):
        raise refused(named_warp(name), run.machine.test, op)


def _row(
    run: Executor, op: LoadMatrix | StoreMatrix, here: EventId, state: State, presence: Formula, control: Reads
) -> Access:
    address = run.address(state, op.address, op.space)
    where, wrong = run.located(op, address, MATRIX_ROW_BYTES, presence)
    return Access(op, here, where, wrong, run.formulas.both(presence, -wrong), address.reads, control)


# -- products of a warpgroup --


def wgmma(
    run: Executor,
    op: Wgmma,
    here: EventId,
    state: State,
    presence: Formula,
    condition: Formula,
    control: Reads,
) -> None:
    """``wgmma.mma_async``: reads of its matrices in shared memory through the async proxy, then an implicit fence.

    It has no issue of its own: it is ordered after the ``wgmma.fence`` and ``fence.proxy.async`` before it only.
    """
    machine = run.machine
    fences = [e.number for e in machine.events if e.thread == run.index and _orders(e.op) and not e.asynchronous]
    operation = Operation("wgmma", run.index, fences, True)
    issued = Issued(op, here, presence, control, len(machine.operations), operation, {})
    machine.products[issued.number] = op
    machine.operations.append(operation)
    matrices = [op.b] if isinstance(op.a, tuple) else [op.b, op.a]
    descriptors = [run.described(run.operand(state, d, ADDRESS)) for d in matrices]
    arms: list[tuple[Formula, Value]] = []
    outside: list[Formula] = []
    for when, addresses in combinations_of(run, descriptors):
        held = run.formulas.both(presence, when)
        if held == FALSE:
            continue
        found = [locate(run, op, number, 1, held, MATRIX_ROW_BYTES, "matrix") for number in addresses]
        if None in found:
            outside.append(when)
            continue
        for k, (place, descriptor) in enumerate(zip(found, descriptors, strict=True)):
            assert place is not None
            item, offset = place
            size = item.size - offset
            parts = read_source(run, issued, item, offset, size, held, descriptor.reads, operand=k)
            if k == 0:
                arms.append((when, parts[0][2]))
        member(run, issued, "PF", held, operand=1)
    if outside or not arms:
        arms.append((run.formulas.any(outside) if outside else TRUE, run.constant(0)))
    value = run.one_of(arms)
    for register in op.dst:
        bits = run.thread.registers[register.name].bits
        run.assign(state, register.name, run.field(value, 0, bits), condition, op)
    enqueue(state, issued)


def _orders(op: object) -> bool:
    """Whether a wgmma is ordered after ``op`` in its thread."""
    return isinstance(op, WgmmaFence) or (isinstance(op, ProxyFence) and op.kind == "async")
