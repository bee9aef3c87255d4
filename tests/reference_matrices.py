"""Matrix instructions of the reference: rows of ``ldmatrix`` and ``stmatrix``, and the reads of ``wgmma.mma_async``.

A thread that is alone in its warp stands for 32 equal lanes: all of them name the same row and hold the same values.
Products are not computed: their registers hold the first bytes that were read of B.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ptxmm.ptx import isa, ops
from ptxmm.ptx.ops import Type
from tests.reference_accesses import placed
from tests.reference_events import Event, Run
from tests.reference_expressions import Expr, Leaf, call, const, guessed, joined_bytes, reads

if TYPE_CHECKING:
    from tests.reference_threads import Walker

B32 = Type("b", 32)
B64 = Type("b", 64)
ROW = 16


def perform(
    walker: Walker,
    run: Run,
    op: ops.LoadMatrix | ops.StoreMatrix | ops.WgmmaFence | ops.Wgmma,
    taken: Expr,
    common: Event,
) -> Iterator[Run]:
    match op:
        case ops.WgmmaFence():
            event = replace(common, kind="ISS", fences="wgmma")
            yield replace(run, pc=run.pc + 1, events=(*run.events, event))
        case ops.Wgmma():
            yield from product(walker, run, op, taken, common)
        case ops.LoadMatrix() | ops.StoreMatrix() if op.fragments:
            yield from fragments(walker, run, op, taken, replace(common, proxy="GEN"))
        case _:
            if walker.thread.placement.warp is not None:
                raise NotImplementedError(op)
            yield from row(walker, run, op, taken, replace(common, proxy="GEN"))


def row(walker: Walker, run: Run, op: ops.LoadMatrix | ops.StoreMatrix, taken: Expr, common: Event) -> Iterator[Run]:
    """A weak access of 16 bytes, in no order among each other, divided like the object (9.7.15.4.15, .16)."""
    for fork, item, offset, address in walker.places(run, op.address, ROW, ROW):
        new: list[Event] = []
        parts: list[tuple[Expr, int, int]] = []
        for at, size in walker.chunks.of(item.key, offset, ROW):
            event = placed(replace(common, addr=reads(address), part=at - offset), item, at, size)
            if isinstance(op, ops.LoadMatrix):
                parts.append((("read", (walker.index, len(run.events) + len(new))), 0, size))
                new.append(replace(event, kind="R"))
                continue
            if len(op.values) > 1:
                raise NotImplementedError(op)
            # row 0 is held by lanes 0 to 3, two elements each; transposed by lanes 0 to 7, the lower element of each
            value = walker.operand(run, op.values[0], B32)
            width = 2 if op.transposed else 4
            whole = joined_bytes(*[(value, 0, width)] * (ROW // width))
            piece = joined_bytes((whole, at - offset, size))
            new.append(replace(event, kind="W", value=piece, data=reads(piece)))
        registers = fork.registers
        if isinstance(op, ops.LoadMatrix):
            content = joined_bytes(*parts)
            # lane 0 gets elements 0 and 1 of row 0; transposed the elements 0 of rows 0 and 1, which are the same row
            shown = joined_bytes((content, 0, 2), (content, 0, 2)) if op.transposed else joined_bytes((content, 0, 4))
            for register in op.dst:
                registers = walker.assign(replace(run, registers=registers), register, shown, B32, taken)
        yield replace(fork, pc=run.pc + 1, events=(*run.events, *new), registers=registers)


def fragments(
    walker: Walker, run: Run, op: ops.LoadMatrix | ops.StoreMatrix, taken: Expr, common: Event
) -> Iterator[Run]:
    """Weak accesses of what the lane gets of each matrix, or holds of it: two elements side by side, or two elements of
    which each lies in a row of its own (``.trans``), in no order among each other."""
    new: list[Event] = []
    halves: list[tuple[Expr, int, int]] = []
    stored = [] if isinstance(op, ops.LoadMatrix) else [walker.operand(run, value, B32) for value in op.values]
    step = 2 if op.transposed else 4
    for number, place in enumerate(op.fragments):
        ((_, item, begin, _),) = walker.places(run, place, step, step)
        first = step * number  # the byte of all registers, one after the other, that is there
        for at, size in walker.chunks.of(item.key, begin, step):
            event = placed(replace(common, part=first + at - begin), item, at, size)
            if isinstance(op, ops.LoadMatrix):
                halves.append((("read", (walker.index, len(run.events) + len(new))), 0, size))
                new.append(replace(event, kind="R"))
            else:
                register, byte = divmod(first + at - begin, 4)
                piece = joined_bytes((stored[register], byte, size))
                new.append(replace(event, kind="W", value=piece, data=reads(piece)))
    registers = run.registers
    if isinstance(op, ops.LoadMatrix):
        whole = joined_bytes(*halves)
        for number, dst in enumerate(op.dst):
            value = joined_bytes((whole, 4 * number, 4))
            registers = walker.assign(replace(run, registers=registers), dst, value, B32, taken)
    yield replace(run, pc=run.pc + 1, events=(*run.events, *new), registers=registers)


def product(walker: Walker, run: Run, op: ops.Wgmma, taken: Expr, common: Event) -> Iterator[Run]:
    """Reads of both matrices by the async proxy, to the ends of their objects; then an implicit proxy fence (A34)."""
    common = replace(common, sync=False, fences="wgmma", group=sum(kind == "wgmma" for kind, _ in run.groups))
    if op.matrices:
        yield from pieces(walker, run, op, taken, common)
        return
    sources = [op.b] if isinstance(op.a, tuple) else [op.b, op.a]

    def matrices(fork: Run, left: list[ops.Operand], new: tuple[Event, ...]) -> Iterator[tuple[Run, tuple[Event, ...]]]:
        if not left:
            yield fork, new
            return
        address = walker.operand(run, left[0], B64)
        for here, item, offset, _ in walker.at(fork, address, 1, ROW, "matrix"):
            found = tuple(
                placed(replace(common, kind="R", proxy="ASY", addr=reads(address)), item, at, size)
                for at, size in walker.chunks.of(item.key, offset, item.size - offset)
            )
            yield from matrices(here, left[1:], (*new, *found))

    for fork, new in matrices(run, sources, ()):
        first: Leaf = (walker.index, len(run.events))
        cell = new[0].cell
        assert cell is not None
        registers = fork.registers
        for register in op.dst:
            size = walker.thread.registers[register.name].bits // 8
            value: Expr = joined_bytes((("read", first), 0, min(size, cell[2])), (const(0), 0, max(0, size - cell[2])))
            registers = walker.assign(replace(run, registers=registers), register, value, Type("b", 8 * size), taken)
        done = replace(common, kind="PF", fences="ASY", after="writes")
        loose = (*run.loose, ("wgmma", common.step))
        yield replace(fork, pc=run.pc + 1, events=(*run.events, *new, done), registers=registers, loose=loose)


def pieces(walker: Walker, run: Run, op: ops.Wgmma, taken: Expr, common: Event) -> Iterator[Run]:
    """The same for matrices that are given piece by piece; D is some function of all that the product has."""
    new: list[Event] = []
    given: list[Expr] = [walker.operand(run, ops.Reg(name), kind) for name, kind in isa.uses(op)]
    for operand, matrix in enumerate(op.matrices):
        for place, size in matrix:
            assert isinstance(place.base, ops.Sym)
            start = const(walker.test.objects[place.base.name].address + place.base.offset + place.offset)
            found = list(walker.at(run, start, size, ROW, "matrix", named=True))
            if not found:
                return
            ((_, item, begin, _),) = found
            for at, n in walker.chunks.of(item.key, begin, size):
                given.append(("read", (walker.index, len(run.events) + len(new))))
                part = replace(common, kind="R", proxy="ASY", part=operand)
                new.append(placed(part, item, at, n))
    registers = run.registers
    for number, register in enumerate(op.dst):
        made = call(partial(guessed, "wgmma", number, op.type.bits), *given)
        registers = walker.assign(replace(run, registers=registers), register, made, op.type, taken)
    done = replace(common, kind="PF", fences="ASY", after="writes")
    loose = (*run.loose, ("wgmma", common.step))
    yield replace(run, pc=run.pc + 1, events=(*run.events, *new, done), registers=registers, loose=loose)
