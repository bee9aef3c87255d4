"""Exchanges between the lanes of a warp: shfl, vote, match, redux, elect, activemask.

Sources: PTX ISA 9.7.10.6, 9.7.14.9 to .12, .14. They have no events and order nothing. The lanes of the mask wait for
each other in the simulation of barriers, which tells who gives values to whom.
"""

from __future__ import annotations

from ptxmm.events.symbolic.barriers.lanes import source_lane
from ptxmm.events.symbolic.executor import AMOUNT, PREDICATE, Executor
from ptxmm.events.symbolic.values.domain import Value
from ptxmm.ptx.ops import WarpExchange

_EVERYONE = 0xFFFFFFFF


def exchange(run: Executor, op: WarpExchange) -> None:
    """An exchange between the lanes of a warp."""
    lanes = run.machine.setting.members.lanes(run.index)
    lane = lanes.index(run.index)
    name, _, mode = op.op.partition(".")
    if name == "activemask":
        shown = (1 << len(lanes)) - 1 if run.machine.setting.members.named(run.index) else _EVERYONE
        _assign(run, op, run.operand(op.operands[0], AMOUNT) if op.operands else run.constant(shown), None)
        return
    mask = run.operand(op.operands[-1], AMOUNT)
    given = [run.operand(operand, AMOUNT) for operand in op.operands[1:-1]]
    step = run.step("warp.exchange")
    step.mask, step.operation = run.listed(mask), f"{name}.{mode}.{op.type.name}"
    step.operands = tuple(map(run.listed, given))
    predicate: Value | None = None
    if name == "elect":
        result = run.function(("elect", op.leaders), lambda m: _leader(op, m), [mask])
        chosen = ("elected", lane, op.leaders)
        predicate = run.function(chosen, lambda m: int(_leader(op, m) == lane), [mask], "", PREDICATE)
    else:
        step.source = _source(run, op)
        result = run.exchanged(step, [*given, mask], 1 if name == "vote" and mode != "ballot" else 32)
    if name == "shfl":
        name_, in_range = ("in range", mode, lane), lambda b, c: int(source_lane(mode, lane, b, c)[1])
        predicate = run.function(name_, in_range, given, "", PREDICATE)
    elif name == "match":
        predicate = run.function(("matched",), lambda v: int(v != 0), [result], "", PREDICATE)
    run.passes(step)
    _assign(run, op, result, predicate)


def _leader(op: WarpExchange, mask: int) -> int:
    """The lane that is elected of ``mask``."""
    for known, leader in op.leaders:
        if known == mask:
            return leader
    return (mask & -mask).bit_length() - 1 if mask else 0


def _source(run: Executor, op: WarpExchange) -> Value:
    """What the lane gives."""
    if not op.op.startswith("vote."):
        return run.operand(op.operands[0], op.type)
    value = run.operand(op.operands[0], PREDICATE)
    return run.negated(value) if op.negated else value


def _assign(run: Executor, op: WarpExchange, result: Value, predicate: Value | None) -> None:
    if op.dst is not None:
        run.assign(op.dst.name, result)
    if op.predicate is not None and predicate is not None:
        run.assign(op.predicate.name, predicate)
