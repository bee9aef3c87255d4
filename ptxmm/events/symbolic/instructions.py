"""What one instruction does to the state of a path, and the events it gives (PTX ISA chapter 9)."""

from __future__ import annotations

from ptxmm.events.symbolic.accesses.elements import access
from ptxmm.events.symbolic.executor import Executor
from ptxmm.events.symbolic.machine import State
from ptxmm.events.symbolic.values.compute import Eventless, computed
from ptxmm.events.symbolic.values.domain import Reads
from ptxmm.program.identity import EventId
from ptxmm.ptx.isa import definitions
from ptxmm.ptx.ops import (
    AsyncCommit,
    Atomic,
    Fence,
    GenericToAsyncFence,
    GridControl,
    Load,
    MbarrierInitFence,
    ProxyFence,
    Store,
    Straight,
    WgmmaFence,
)
from ptxmm.relations.formula import FALSE, Formula


def execute(run: Executor, op: Straight, here: EventId, state: State, condition: Formula, reads: Reads) -> None:
    """Execute ``op`` on the path ``state`` under its guard ``condition``, which depends on ``reads``."""
    assert not isinstance(op, AsyncCommit), "which paths are with it and which without is up to ``threads``"
    if isinstance(op, Eventless):
        for name, value in computed(run, op, state):
            run.assign(state, name, value, condition, op)
        return
    presence = run.formulas.both(state.guard, condition)
    if presence == FALSE:
        for name, _ in definitions(op):
            run.absent(state, name, here, op)
        return
    if isinstance(op, Load | Store | Atomic):
        access(run, op, here, state, presence, condition, reads)
        return
    control = run.control(state, reads)
    match op:
        case Fence() | GenericToAsyncFence() | MbarrierInitFence():
            run.event("F", op, here, presence, control)
        case ProxyFence():
            run.event("AF" if op.kind == "alias" else "PF", op, here, presence, control)
        case WgmmaFence():
            run.event("ISS", op, here, presence, control)
        case GridControl():
            if op.kind == "wait":
                run.event("API", op, here, presence, control)
            elif run.machine.api and op.triggers(run.machine.test.isa):
                run.event("GD", op, here, presence, control)
        case _:
            # Few programs have one of the others, and loading all of them takes time at the start.
            from ptxmm.events.symbolic import families

            families.execute(run, op, here, state, presence, condition, control)
