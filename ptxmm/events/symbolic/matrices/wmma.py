"""``wmma.load``, ``wmma.store`` and ``wmma.mma`` (PTX ISA 9.7.15.3).

The thread stands for its warp. The elements that its registers hold are unspecified, so that the value of such a
register has no meaning; it keeps the reads that it is made of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ptxmm.events.symbolic.accesses.elements import read, undetermined, write
from ptxmm.events.symbolic.asynchronous.groups import combinations_of, reads_of
from ptxmm.events.symbolic.executor import AMOUNT, Effects, Executor, place_at
from ptxmm.events.symbolic.values.domain import Reads, Value, only
from ptxmm.program.test import MemoryObject
from ptxmm.ptx.ops import Operand, Type, Wmma, WmmaLoad, WmmaStore
from ptxmm.relations.formula import Formula


def load(run: Executor, op: WmmaLoad) -> None:
    """``wmma.load``: weak reads of the elements, together where nothing tells them apart."""
    found, places = _places(run, op)
    parts = [found]
    for when, item, begin, stride in places:
        for offset, size in _accesses(run, op, item, begin, stride):
            at, held = [place_at(when, item, begin + offset, size)], run.formulas.both(run.presence, when)
            parts.append(read(run, at, held, found, run.here.at(offset))[1].reads)
    part = Value(only(0), run.machine.expressions.leaf(32, "fragment", run.here), run.machine.all_reads(parts))
    for register in op.dst:
        if register is not None:
            run.assign(register.name, part)


def store(run: Executor, op: WmmaStore) -> None:
    """``wmma.store``: weak writes of the elements, together where nothing tells them apart."""
    found, places = _places(run, op)
    data = reads_of(run, *_operands(run, op.values, op.type))
    for when, item, begin, stride in places:
        held = run.formulas.both(run.presence, when)
        for offset, size in _accesses(run, op, item, begin, stride):
            at = [place_at(when, item, begin + offset, size)]
            write(run, at, undetermined(run, op.content, at, data), held, found, run.here.at(offset))
        run.wrote(held)


def product(run: Executor, op: Wmma) -> list[tuple[str, Value]]:
    """``wmma.mma``: the registers of D, which depend on those of A, B and C."""
    matrices = zip(op.types[1:], (op.a, op.b, op.c), strict=True)
    operands = [value for type_, items in matrices for value in _operands(run, items, type_)]
    expression = run.machine.expressions.leaf(32, "wmma", *(value.expression for value in operands))
    return [(register.name, Value(only(0), expression, reads_of(run, *operands))) for register in op.dst]


def _operands(run: Executor, items: Iterable[Operand], type_: Type) -> list[Value]:
    return [run.operand(item, type_) for item in items]


def _places(run: Executor, op: WmmaLoad | WmmaStore) -> tuple[Reads, list[tuple[Formula, MemoryObject, int, int]]]:
    """What address and stride depend on; when the matrix is where: its object, the offset there, its stride.

    A stride below the length of a line, one that does not keep the alignment, and other memory than ``.global`` and
    ``.shared`` have no meaning (9.7.15.3.2, .3).
    """
    tile = op.tile
    address = run.address(op.address, op.space)
    stride = run.constant(tile.length) if op.stride is None else run.operand(op.stride, AMOUNT)
    found: list[tuple[Formula, MemoryObject, int, int]] = []
    for when, held, (number, step) in combinations_of(run, run.presence, address, stride):
        if step < tile.length:
            run.misuse(held, f"a stride of {step} elements, less than the {tile.length} of a line")
        elif step * tile.bits // 8 % tile.fragment or step * tile.bits % 8:
            run.misuse(held, f"a stride of {step} elements is no multiple of {tile.fragment} bytes")
        else:
            where, _ = run.located(Value(only(number), 0, {}), tile.span(step), held, tile.fragment)
            found += [(when, item, offset, step) for _, item, offset in where]
    return reads_of(run, address, stride), found


def _accesses(
    run: Executor, op: WmmaLoad | WmmaStore, item: MemoryObject, begin: int, stride: int
) -> Iterator[tuple[int, int]]:
    """Offsets from the begin of the matrix and sizes of the accesses."""
    for first, length in op.tile.segments(stride):
        for start, size in run.machine.setting.chunks(item.physical, begin + first, length, op.tile.unit):
            yield start - begin, size


EFFECTS: Effects = {WmmaLoad: load, WmmaStore: store}
