"""Generic accesses of tensor maps, and the fences of the tensormap proxy (PTX ISA 9.7.10.25, 9.7.14.4, 9.7.14.16)."""

from __future__ import annotations

from ptxmm.events.symbolic.accesses.elements import begins, read, write
from ptxmm.events.symbolic.event import Place
from ptxmm.events.symbolic.executor import Effects, Executor, Located, place_at
from ptxmm.program.shared.tensors import field_place
from ptxmm.ptx.ops import TensormapCopyFence, TensormapFence, TensormapReplace
from ptxmm.relations.formula import FALSE

BYTES = 128
ALIGNMENT = 16


def _fence(run: Executor, op: TensormapFence) -> None:
    """``fence.proxy.tensormap::generic``: an acquire has the 128 bytes that it covers as its places."""
    if op.address is None:
        run.event("F")
        return
    common = begins(run, run.address(op.address), BYTES, ALIGNMENT)
    event = run.event("F", common.inside)
    event.covers, event.address = _places(common.where), common.address


def _replace_field(run: Executor, op: TensormapReplace) -> None:
    """``tensormap.replace``: a read and a write of all 128 bytes, of which those of one field change."""
    address, value = run.address(op.address, op.space), run.operand(op.value, op.type)
    common = begins(run, address, BYTES, ALIGNMENT)
    places = _places(common.where)
    _, old = read(run, places, common.inside, common.address, wrong=common.wrong)
    first, size = field_place(op.field, op.ordinal)
    mask = ((1 << 8 * size) - 1) << 8 * first
    new = run.function(("replace", first), lambda a, b: a & ~mask | b << 8 * first & mask, [old, value])
    if common.inside != FALSE:
        write(run, places, new, common.inside, common.address)
        run.wrote(common.inside)


def _copy_fence(run: Executor, op: TensormapCopyFence) -> None:
    """``tensormap.cp_fenceproxy``: a generic copy of 128 bytes, then the release fence of the tensormap proxy."""
    source, target = run.address(op.src, "shared"), run.address(op.dst)
    frm, wrong = run.located(source, BYTES, role="source")
    to, stray = run.located(target, BYTES, role="destination")
    inside = run.formulas.all([run.presence, -wrong, -stray])
    _, value = read(run, _places(frm), inside, source.reads, wrong=run.formulas.either(wrong, stray))
    if inside != FALSE:
        write(run, _places(to), value, inside, target.reads, run.here.at(0, 1))
        run.machine.events[-1].stage = 1
        run.wrote(inside)
    run.event("F").stage = 2


def _places(where: Located) -> list[Place]:
    return [place_at(when, item, offset, BYTES) for when, item, offset in where]


EFFECTS: Effects = {TensormapFence: _fence, TensormapReplace: _replace_field, TensormapCopyFence: _copy_fence}
