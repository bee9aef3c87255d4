"""What one instruction does to the state of a path, and the events it gives (PTX ISA chapter 9)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ptxmm.events.symbolic.accesses import elements
from ptxmm.events.symbolic.executor import Executor
from ptxmm.events.symbolic.values.compute import Eventless, computed
from ptxmm.events.symbolic.values.domain import Reads
from ptxmm.ptx import ops
from ptxmm.ptx.isa import names_written
from ptxmm.ptx.ops import Straight
from ptxmm.relations.formula import FALSE


def execute(run: Executor, op: Straight, reads: Reads) -> None:
    """Execute ``op``, whose guard depends on ``reads``."""
    if isinstance(op, Eventless):
        run.look()
        for name, value in computed(run, op):
            run.assign(name, value)
        return
    run.presence = run.formulas.both(run.state.guard, run.condition)
    if run.presence == FALSE:
        for name in names_written(op):
            run.absent(name)
        return
    run.control = run.controlling(reads)
    match op:
        case ops.Fence() | ops.GenericToAsyncFence() | ops.MbarrierInitFence():
            run.event("F")
        case ops.ProxyFence():
            run.event("AF" if op.kind == "alias" else "PF")
        case ops.WgmmaFence():
            run.event("ISS")
        case ops.GridControl():
            if op.kind == "wait":
                run.event("API")
            elif run.machine.setting.api and op.triggers(run.machine.test.isa):
                run.event("GD")
        case _:
            effect(type(op))(run, op)


def effect(kind: type) -> Callable[[Executor, Any], None]:
    """What executes the operations of one kind that is not matched above."""
    if kind in elements.EFFECTS:
        return elements.EFFECTS[kind]
    # Few programs have one of the others, and loading all of them takes time at the start.
    from ptxmm.events.symbolic import families

    return families.EFFECTS[kind]
