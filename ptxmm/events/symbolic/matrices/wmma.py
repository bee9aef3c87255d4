"""``wmma.load``, ``wmma.store`` and ``wmma.mma`` (PTX ISA 9.7.15.3).

The thread stands for its warp. The elements that its registers hold are unspecified, so that the value of such a
register has no meaning; it keeps the reads that it is made of.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxmm.events.symbolic.accesses.elements import read
from ptxmm.events.symbolic.asynchronous.groups import combinations_of
from ptxmm.events.symbolic.executor import AMOUNT, Executor, Located, place_at
from ptxmm.events.symbolic.machine import State
from ptxmm.events.symbolic.values.domain import Reads, Value, only
from ptxmm.events.symbolic.values.undetermined import write_at
from ptxmm.program.identity import EventId
from ptxmm.program.test import MemoryObject
from ptxmm.ptx.ops import Operand, Type, Wmma, WmmaLoad, WmmaStore
from ptxmm.relations.formula import FALSE, Formula


def load(
    run: Executor,
    op: WmmaLoad,
    here: EventId,
    state: State,
    presence: Formula,
    condition: Formula,
    control: Reads,
) -> None:
    """``wmma.load``: weak reads of the elements, together where nothing tells them apart."""
    found, places = _places(run, op, state, presence)
    reads = dict(found)
    for when, item, begin, stride in places:
        for offset, size in _accesses(run, op, item, begin, stride):
            at = [place_at(when, item, begin + offset, size)]
            id_ = here.at(offset)
            _, value = read(run, op, id_, at, run.formulas.both(presence, when), FALSE, found, control)
            reads = run.machine.union(reads, value.reads)
    part = Value(only(0), run.machine.expressions.leaf(32, "fragment", here), reads)
    for register in op.dst:
        if register is not None:
            run.assign(state, register.name, part, condition, op)


def store(run: Executor, op: WmmaStore, here: EventId, state: State, presence: Formula, control: Reads) -> None:
    """``wmma.store``: weak writes of the elements, together where nothing tells them apart."""
    found, places = _places(run, op, state, presence)
    data = _reads(run, state, op.values, op.type)
    for when, item, begin, stride in places:
        held = run.formulas.both(presence, when)
        for offset, size in _accesses(run, op, item, begin, stride):
            at = place_at(when, item, begin + offset, size)
            write_at(run, op, op.content, here.at(offset), [at], held, found, data, control)
        run.wrote(state, held)


def product(run: Executor, op: Wmma, state: State) -> list[tuple[str, Value]]:
    """``wmma.mma``: the registers of D, which depend on those of A, B and C."""
    operands = [
        run.operand(state, item, type_)
        for type_, items in zip(op.types[1:], (op.a, op.b, op.c), strict=True)
        for item in items
    ]
    reads: Reads = {}
    for value in operands:
        reads = run.machine.union(reads, value.reads)
    expression = run.machine.expressions.leaf(32, "wmma", *(value.expression for value in operands))
    return [(register.name, Value(only(0), expression, reads)) for register in op.dst]


def _reads(run: Executor, state: State, items: tuple[Operand, ...], type_: Type) -> Reads:
    reads: Reads = {}
    for item in items:
        reads = run.machine.union(reads, run.operand(state, item, type_).reads)
    return reads


def _places(
    run: Executor, op: WmmaLoad | WmmaStore, state: State, presence: Formula
) -> tuple[Reads, list[tuple[Formula, MemoryObject, int, int]]]:
    """What address and stride depend on; when the matrix is where: its object, the offset there, its stride.

    A stride below the length of a line, one that does not keep the alignment, and other memory than ``.global`` and
    ``.shared`` have no meaning (9.7.15.3.2, .3).
    """
    tile = op.tile
    address = run.address(state, op.address, op.space)
    stride = run.constant(tile.length) if op.stride is None else run.operand(state, op.stride, AMOUNT)
    found: list[tuple[Formula, MemoryObject, int, int]] = []
    for when, (number, step) in combinations_of(run, [address, stride]):
        held = run.formulas.both(presence, when)
        if held == FALSE:
            continue
        if step < tile.length:
            run.misuse(op, held, f"a stride of {step} elements, less than the {tile.length} of a line")
        elif step * tile.bits // 8 % tile.fragment or step * tile.bits % 8:
            run.misuse(op, held, f"a stride of {step} elements is no multiple of {tile.fragment} bytes")
        else:
            where: Located
            where, _ = run.located(op, Value(only(number), 0, {}), tile.span(step), held, tile.fragment)
            found += [(when, item, offset, step) for _, item, offset in where]
    return run.machine.union(address.reads, stride.reads), found


def _accesses(
    run: Executor, op: WmmaLoad | WmmaStore, item: MemoryObject, begin: int, stride: int
) -> Iterator[tuple[int, int]]:
    """Offsets from the begin of the matrix and sizes of the accesses."""
    for first, length in op.tile.segments(stride):
        for start, size in run.machine.chunks(item.physical, begin + first, length, op.tile.unit):
            yield start - begin, size
