"""Matrix instructions: ldmatrix, stmatrix and wgmma (PTX ISA 9.7.15.4.15, .16, 9.7.16; A35).

What a product is makes no difference to memory. So that a test sees what was read, the accumulator of a wgmma gets the
first bytes of its matrix B instead; in a kernel, where it is known which bytes its matrices have, nothing sees it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxmm.events.symbolic.accesses.elements import Access, begins, load, store
from ptxmm.events.symbolic.asynchronous.groups import (
    Side,
    combinations_of,
    enqueue,
    locate,
    operation_of,
    read_source,
    reads_of,
)
from ptxmm.events.symbolic.event import Operation
from ptxmm.events.symbolic.executor import ADDRESS, Effects, Executor
from ptxmm.events.symbolic.values.domain import Value, only
from ptxmm.program.shared.refusals import SEVERAL_MATRICES, named_warp, refused
from ptxmm.ptx.isa import uses
from ptxmm.ptx.ops import (
    MATRIX_ROW_BYTES,
    Element,
    LoadMatrix,
    ProxyFence,
    Reg,
    StoreMatrix,
    Sym,
    Type,
    Wgmma,
    WgmmaFence,
    fragment_bytes,
)
from ptxmm.relations.formula import TRUE, Formula

ROW = Element(0, Type("b", 8 * MATRIX_ROW_BYTES), 0, 0)
B32 = Type("b", 32)
HALF = 0xFFFF


def load_matrix(run: Executor, op: LoadMatrix) -> None:
    """``ldmatrix``: a weak read of the row that the thread names, which stands for a warp whose lanes all name it; or
    of what this lane gets of the rows of its warp.

    Raises ``PtxmmError`` in a warp with a name where these are not known.
    """
    if op.fragments:
        held = [load(run, at, element, divided=True) for at, element in _fragments(run, op)]
        run.here = run.here.at(0)
        for dst, part in zip(op.dst, _pairs(run, op, held), strict=True):
            if dst is not None:
                run.assign(dst.name, part)
        return
    _check_warp(run, op, "ldmatrix")
    row = begins(run, run.address(op.address, op.space), MATRIX_ROW_BYTES)
    taken = run.field(load(run, row, ROW, divided=True), 0, 32)  # lane 0 gets the first elements of each row
    if op.transposed:
        taken = run.function(("column",), lambda v: (v & HALF) | (v & HALF) << 16, [taken])
    for dst in op.dst:
        if dst is not None:
            run.assign(dst.name, taken)


def store_matrix(run: Executor, op: StoreMatrix) -> None:
    """``stmatrix``: a weak write of the row that the thread names, which stands for a warp whose lanes all hold what it
    holds; or of what this lane holds of the rows of its warp.

    Raises ``PtxmmError`` in a warp with a name where these are not known, and for several matrices, which a thread that
    stands for its warp would write in one place.
    """
    if op.fragments:
        values = [run.operand(value, B32) for value in op.values]
        parts = [run.field(v, shift, 16) for v in values for shift in (0, 16)] if op.transposed else values
        for (at, element), part in zip(_fragments(run, op), parts, strict=True):
            store(run, at, element, part, divided=True)
            run.wrote(at.inside)
        run.here = run.here.at(0)
        return
    _check_warp(run, op, "stmatrix")
    if len(op.values) > 1:
        raise refused(SEVERAL_MATRICES, run.machine.test, op)
    value = run.operand(op.values[0], B32)
    content = run.function(("row", op.transposed), _transposed_row if op.transposed else _plain_row, [value])
    row = begins(run, run.address(op.address, op.space), MATRIX_ROW_BYTES)
    store(run, row, ROW, content, divided=True)
    run.wrote(row.inside)


def _fragments(run: Executor, op: LoadMatrix | StoreMatrix) -> Iterator[tuple[Access, Element]]:
    """The access of each fragment, with its number among the events of the instruction."""
    element = Element(0, Type("b", 8 * fragment_bytes(op)), 0, 0)
    for number, place in enumerate(op.fragments):
        run.here = run.here.at(0, number)
        yield begins(run, run.address(place, op.space), element.type.bytes), element


def _pairs(run: Executor, op: LoadMatrix, held: list[Value]) -> list[Value]:
    """What each register gets."""
    if not op.transposed:
        return held
    return [run.join([(0, low), (16, high)]) for low, high in zip(held[::2], held[1::2], strict=True)]


def _plain_row(value: int) -> int:
    return sum(value << 32 * i for i in range(4))


def _transposed_row(value: int) -> int:
    return sum((value & HALF) << 16 * i for i in range(8))


def _check_warp(run: Executor, op: LoadMatrix | StoreMatrix, name: str) -> None:
    if run.machine.setting.members.named(run.index):
        raise refused(named_warp(name), run.machine.test, op)


# -- products of a warpgroup --


def wgmma(run: Executor, op: Wgmma) -> None:
    """``wgmma.mma_async``: reads of its matrices in shared memory through the async proxy, then an implicit fence.

    It has no issue of its own: it is ordered after the ``wgmma.fence`` and ``fence.proxy.async`` before it only.
    """
    machine = run.machine
    fences = [e.number for e in machine.events if e.thread == run.index and _orders(e.op) and not e.asynchronous]
    operation = operation_of(run, "wgmma", fences, True)
    machine.products[operation.number] = op
    if op.matrices:
        _decoded(run, op, operation)
        return
    matrices = [op.b] if isinstance(op.a, tuple) else [op.b, op.a]
    descriptors = [run.described(run.operand(d, ADDRESS)) for d in matrices]
    arms: list[tuple[Formula, Value]] = []
    outside: list[Formula] = []
    for when, held, addresses in combinations_of(run, run.presence, *descriptors):
        found = [locate(run, number, 1, held, MATRIX_ROW_BYTES, "matrix") for number in addresses]
        known = [start for start in found if start is not None]
        if len(known) < len(found):
            outside.append(when)
            continue
        for k, ((item, offset), descriptor) in enumerate(zip(known, descriptors, strict=True)):
            side = Side(operation, held, descriptor.reads)
            parts = read_source(run, side, (item, offset), item.size - offset, operand=k)
            if k == 0:
                arms.append((when, parts[0][2]))
        run.event("PF", held, run.here.at(0, 1), operation)
    if outside or not arms:
        arms.append((run.formulas.any(outside) if outside else TRUE, run.constant(0)))
    value = run.one_of(arms)
    for register in op.dst:
        run.assign(register.name, run.field(value, 0, run.width(register.name)))
    enqueue(run, operation)


def _decoded(run: Executor, op: Wgmma, operation: Operation) -> None:
    """A product whose matrices are known piece by piece; nothing sees what it gives (``unseen.open_results``)."""
    found = [run.operand(Reg(name), type_) for name, type_ in uses(op)]
    objects, inside = run.machine.test.objects, run.presence
    starts = [
        (
            k,
            size,
            locate(
                run, objects[base.name].address + base.offset + place.offset, size, inside, MATRIX_ROW_BYTES, "matrix"
            ),
        )
        for k, matrix in enumerate(op.matrices)
        for place, size in matrix
        if isinstance(base := place.base, Sym)
    ]
    if all(start is not None for _, _, start in starts):
        side, begins = Side(operation, inside, {}), [0] * len(op.matrices)
        for k, size, start in starts:
            assert start is not None
            found += [value for _, _, value in read_source(run, side, start, size, begins[k], k)]
            begins[k] += size
        run.event("PF", inside, run.here.at(0, 1), operation)
    reads = reads_of(run, *found)
    for number, register in enumerate(op.dst):
        leaf = run.machine.expressions.leaf(run.width(register.name), "wgmma", run.here, number)
        run.assign(register.name, Value(only(0), leaf, reads))
    enqueue(run, operation)


def _orders(op: object) -> bool:
    """Whether a wgmma is ordered after ``op`` in its thread."""
    return isinstance(op, WgmmaFence) or (isinstance(op, ProxyFence) and op.kind == "async")


EFFECTS: Effects = {LoadMatrix: load_matrix, StoreMatrix: store_matrix, Wgmma: wgmma}
