"""Undetermined values in the reference: ``discard`` (9.7.10.16), and matrices of ``wmma`` (9.7.15.3).

A part of a matrix in a register is 0 to those who look, and nobody can; it is made of all that was read for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ptxmm.ptx import ops
from tests.reference_accesses import placed
from tests.reference_events import Event, Run
from tests.reference_expressions import Expr, Leaf, call, const, guessed, is_const, reads

if TYPE_CHECKING:
    from tests.reference_threads import Walker

U32 = ops.Type("u", 32)


def perform(
    walker: Walker, run: Run, op: ops.Discard | ops.WmmaLoad | ops.WmmaStore, taken: Expr, common: Event
) -> Iterator[Run]:
    common = replace(common, proxy="GEN")
    if isinstance(op, ops.Discard):
        for fork, item, offset, address in walker.places(run, op.address, op.size, op.size):
            places = walker.chunks.of(item.physical, offset, op.size)
            events = [
                replace(
                    placed(replace(common, kind="W", part=at - offset, addr=reads(address)), item, at, size),
                    value=const(op.content.value(item.physical, at, size)),
                )
                for at, size in places
            ]
            yield replace(fork, pc=run.pc + 1, events=(*run.events, *events))
        return
    tile = op.tile
    if op.stride is not None and not is_const(walker.operand(run, op.stride, U32)):
        raise NotImplementedError(op)
    stride = tile.length if op.stride is None else walker.operand(run, op.stride, U32)[1]
    if stride < tile.length or stride * tile.bits % (8 * tile.fragment):
        return  # undefined
    end = (tile.lines - 1) * stride * tile.bits // 8 + tile.line_bytes
    for fork, item, offset, address in walker.places(run, op.address, end, tile.fragment):
        places = [
            place
            for first, length in tile.segments(stride)
            for place in walker.chunks.of(item.physical, offset + first, length, tile.unit)
        ]
        common = replace(common, addr=reads(address))
        if isinstance(op, ops.WmmaLoad):
            leaves: list[Leaf] = [(walker.index, len(run.events) + i) for i in range(len(places))]
            part = call(lambda *_: 0, *(("read", leaf) for leaf in leaves), address)
            registers = run.registers
            for register in op.dst:
                registers = walker.assign(replace(run, registers=registers), register, part, op.type, taken)
            events = [placed(replace(common, kind="R", part=at - offset), item, at, size) for at, size in places]
        else:
            registers = run.registers
            data = frozenset().union(*(reads(walker.operand(run, value, op.type)) for value in op.values))
            events = [
                replace(
                    placed(replace(common, kind="W", part=at - offset, data=data), item, at, size),
                    value=const(op.content.value(item.physical, at, size)),
                )
                for at, size in places
            ]
        yield replace(fork, pc=run.pc + 1, events=(*run.events, *events), registers=registers)


def product(walker: Walker, run: Run, op: ops.Wmma, taken: Expr) -> Run:
    """``wmma.mma`` and ``mma``: D is made of A, B and C; nothing sees which part of it a register of the former has."""
    parts = zip(op.types[1:], (op.a, op.b, op.c), strict=True)
    given = [walker.operand(run, item, kind) for kind, items in parts for item in items]
    registers = run.registers
    for n, register in enumerate(op.dst):
        name, bits = ".".join((op.instruction, *op.qualifiers)), 0 if op.instruction == "wmma.mma" else op.types[0].bits
        made = call(partial(guessed, name, n, bits), *given)
        registers = walker.assign(replace(run, registers=registers), register, made, op.types[0], taken)
    return replace(run, pc=run.pc + 1, registers=registers)
