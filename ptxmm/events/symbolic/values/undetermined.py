"""Writes of values that the PTX ISA leaves open: ``discard`` (9.7.10.16)."""

from __future__ import annotations

from ptxmm.events.symbolic.accesses.elements import pieces
from ptxmm.events.symbolic.event import Place
from ptxmm.events.symbolic.executor import Executor
from ptxmm.events.symbolic.machine import State
from ptxmm.events.symbolic.values.domain import Reads
from ptxmm.program.identity import EventId
from ptxmm.ptx.ops import Discard, Op, Undetermined
from ptxmm.relations.formula import FALSE, Formula


def discard(run: Executor, op: Discard, here: EventId, state: State, presence: Formula, control: Reads) -> None:
    """``discard``: a weak write to ``.global`` memory, divided as the other accesses of the test divide it."""
    address = run.address(state, op.address)
    where, _ = run.located(op, address, op.size, presence)
    for columns in pieces(run, where, 0, op.size, True):
        position = 0
        for places in columns:
            held = run.formulas.both(presence, run.formulas.any([p.when for p in places]))
            write_at(run, op, op.content, here.at(position), places, held, address.reads, {}, control)
            position += places[0].size
    run.wrote(state, run.formulas.both(presence, run.formulas.any([when for when, _, _ in where])))


def write_at(
    run: Executor,
    op: Op,
    content: Undetermined,
    id_: EventId,
    places: list[Place],
    presence: Formula,
    address: Reads,
    data: Reads,
    control: Reads,
) -> None:
    """Write what ``content`` has for one of ``places``, each of which has its own."""
    if presence == FALSE:
        return
    event = run.event("W", op, id_, presence, control)
    arms = [(p.when, run.constant(content.value(p.physical, p.offset, p.size))) for p in places]
    event.places, event.value = places, run.one_of(arms).domain
    event.address, event.data = address, data
