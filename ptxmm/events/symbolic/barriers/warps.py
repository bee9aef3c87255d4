"""Exchanges between the lanes of a warp: shfl, vote, match, redux, elect, activemask.

Sources: PTX ISA 9.7.10.6, 9.7.14.9 to .12, .14. They have no events and order nothing. The lanes of the mask wait for
each other in the simulation of barriers, which tells who gives values to whom.
"""

from __future__ import annotations

from ptxmm.events.symbolic.barriers.lanes import source_lane
from ptxmm.events.symbolic.event import SyncEvent
from ptxmm.events.symbolic.executor import AMOUNT, PREDICATE, Executor
from ptxmm.events.symbolic.machine import State
from ptxmm.events.symbolic.values.domain import Value
from ptxmm.program.identity import EventId
from ptxmm.ptx.ops import Imm, WarpExchange
from ptxmm.relations.formula import Formula

_EVERYONE = 0xFFFFFFFF


def exchange(
    run: Executor, op: WarpExchange, here: EventId, state: State, presence: Formula, condition: Formula
) -> None:
    """An exchange between the lanes of a warp."""
    lanes = run.machine.members.lanes(run.index)
    lane = lanes.index(run.index)
    name, _, mode = op.op.partition(".")
    if name == "activemask":
        shown = (1 << len(lanes)) - 1 if run.machine.members.named(run.index) else _EVERYONE
        active = run.operand(state, op.operands[0], AMOUNT) if op.operands else run.constant(shown)
        _assign(run, op, state, condition, active, None)
        return
    mask = run.operand(state, op.operands[-1], AMOUNT)
    step = SyncEvent(here, "warp.exchange", op, presence, run.machine.new_step(), mask=mask.domain)
    step.operation = f"{name}.{mode}.{op.type.name}"
    given = [run.operand(state, operand, AMOUNT) for operand in op.operands[1:-1]]
    step.operands = tuple(value.domain for value in given)
    predicate: Value | None = None
    if name == "elect":
        result = run.function(("elect", op.leaders), lambda m: _leader(op, m), [mask])
        chosen = ("elected", lane, op.leaders)
        predicate = run.function(chosen, lambda m: int(_leader(op, m) == lane), [mask], "", PREDICATE)
    else:
        step.source = _source(run, op, state)
        result = run.exchanged(step, [*given, mask], 1 if name == "vote" and mode != "ballot" else 32)
    if name == "shfl":
        name_, in_range = ("in range", mode, lane), lambda b, c: int(source_lane(mode, lane, b, c)[1])
        predicate = run.function(name_, in_range, given, "", PREDICATE)
    elif name == "match":
        predicate = run.function(("matched",), lambda v: int(v != 0), [result], "", PREDICATE)
    run.passes(state, run.sync(step))
    _assign(run, op, state, condition, result, predicate)


def _leader(op: WarpExchange, mask: int) -> int:
    """The lane that is elected of ``mask``."""
    for known, leader in op.leaders:
        if known == mask:
            return leader
    return (mask & -mask).bit_length() - 1 if mask else 0


def _source(run: Executor, op: WarpExchange, state: State) -> Value:
    """What the lane gives."""
    if not op.op.startswith("vote."):
        return run.operand(state, op.operands[0], op.type)
    value = run.operand(state, op.operands[0], PREDICATE)
    return run.operation("xor", PREDICATE, [value, run.operand(state, Imm(1), PREDICATE)]) if op.negated else value


def _assign(
    run: Executor, op: WarpExchange, state: State, condition: Formula, result: Value, predicate: Value | None
) -> None:
    if op.dst is not None:
        run.assign(state, op.dst.name, result, condition, op)
    if op.predicate is not None and predicate is not None:
        run.assign(state, op.predicate.name, predicate, condition, op)
