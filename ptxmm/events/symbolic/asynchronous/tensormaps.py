"""Generic accesses of tensor maps, and the fences of the tensormap proxy (PTX ISA 9.7.10.25, 9.7.14.4, 9.7.14.16)."""

from __future__ import annotations

from ptxmm.events.symbolic.accesses.elements import read
from ptxmm.events.symbolic.event import Place
from ptxmm.events.symbolic.executor import Executor, Located, place_at
from ptxmm.events.symbolic.machine import State
from ptxmm.events.symbolic.values.domain import Reads
from ptxmm.program.identity import EventId
from ptxmm.program.shared.tensors import field_place
from ptxmm.ptx.ops import TensormapCopyFence, TensormapFence, TensormapReplace
from ptxmm.relations.formula import FALSE, Formula

BYTES = 128
ALIGNMENT = 16


def tensormap_fence(
    run: Executor, op: TensormapFence, here: EventId, state: State, presence: Formula, control: Reads
) -> None:
    """``fence.proxy.tensormap::generic``: an acquire has the 128 bytes that it covers as its places."""
    if op.address is None:
        run.event("F", op, here, presence, control)
        return
    address = run.address(state, op.address)
    where, wrong = run.located(op, address, BYTES, presence, ALIGNMENT)
    event = run.event("F", op, here, run.formulas.both(presence, -wrong), control)
    event.covers = _places(where)
    event.address = address.reads


def replace_field(
    run: Executor, op: TensormapReplace, here: EventId, state: State, presence: Formula, control: Reads
) -> None:
    """``tensormap.replace``: a read and a write of all 128 bytes, of which those of one field change."""
    address = run.address(state, op.address, op.space)
    value = run.operand(state, op.value, op.type)
    where, wrong = run.located(op, address, BYTES, presence, ALIGNMENT)
    inside = run.formulas.both(presence, -wrong)
    _, old = read(run, op, here, _places(where), inside, wrong, address.reads, control)
    first, size = field_place(op.field, op.ordinal)
    mask = ((1 << 8 * size) - 1) << 8 * first
    new = run.function(("replace", first), lambda a, b: a & ~mask | b << 8 * first & mask, [old, value])
    if inside == FALSE:
        return
    write = run.event("W", op, here, inside, control)
    write.places, write.value, write.address, write.data = _places(where), new.domain, address.reads, new.reads
    run.wrote(state, inside)


def copy_fence(
    run: Executor, op: TensormapCopyFence, here: EventId, state: State, presence: Formula, control: Reads
) -> None:
    """``tensormap.cp_fenceproxy``: a generic copy of 128 bytes, then the release fence of the tensormap proxy."""
    source, target = run.address(state, op.src, "shared"), run.address(state, op.dst)
    frm, wrong = run.located(op, source, BYTES, presence, role="source")
    to, stray = run.located(op, target, BYTES, presence, role="destination")
    inside = run.formulas.all([presence, -wrong, -stray])
    _, value = read(run, op, here, _places(frm), inside, run.formulas.either(wrong, stray), source.reads, control)
    if inside != FALSE:
        write = run.event("W", op, here.at(0, 1), inside, control)
        write.places, write.value, write.stage = _places(to), value.domain, 1
        write.address, write.data = target.reads, value.reads
        run.wrote(state, inside)
    run.event("F", op, here, presence, control).stage = 2


def _places(where: Located) -> list[Place]:
    return [place_at(when, item, offset, BYTES) for when, item, offset in where]


__all__ = ["copy_fence", "replace_field", "tensormap_fence"]
