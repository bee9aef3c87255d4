"""Barriers with a reduction, and exchanges of a warp: what a thread gives and gets (PTX ISA 9.7.14.1, 9.7.10.6,
9.7.14.9 to 9.7.14.12, 9.7.14.14). What it gets is made of what others give: see ``exchanges``.
"""

from __future__ import annotations

from ptxmm.events.explicit.barriers.synchronization import barrier_operands, together
from ptxmm.events.explicit.machine import PRED, U32, Effects, Machine
from ptxmm.events.explicit.values.node import Node
from ptxmm.ptx.ops import BarrierReduction, Operand, WarpExchange

_LANE = 31


def barrier_reduction(machine: Machine, op: BarrierReduction) -> None:
    """``barrier.red``: a barrier of the CTA that gives a reduction of the predicates of all its threads."""
    number, addr, count, data = barrier_operands(machine, op)
    operand = _predicate(machine, op.predicate, op.negated)
    name = f"red.{op.op}"
    aligned = together(machine, number, count)
    machine.step("bar.red", number=number, count=count, operation=name, aligned=aligned)
    mates = machine.program.mates
    value, _ = machine.exchange(
        (True, False),
        name=name,
        type=PRED,
        key=(name, number, mates),
        operand=operand,
        threads=mates,
        lane=dict(mates)[machine.program.thread],
    )
    machine.add("BA", barrier=(number, count), addr=addr, data=data)
    machine.add("BW", barrier=(number, count), stage=1)
    machine.assign(op.dst, value)


def exchange(machine: Machine, op: WarpExchange) -> None:
    """``shfl``, ``vote``, ``match``, ``redux``, ``elect``: all lanes of the mask meet; ``activemask`` does not wait."""
    if op.op == "activemask":
        _activemask(machine, op)
        return
    lanes, expressions = machine.program.lanes, machine.expressions
    mask_node = machine.stored(op.operands[-1], U32)
    mask = machine.decide(mask_node, None, "membermask of this instruction")
    selectors = mask_node.reads
    own = lanes.index(machine.program.thread)
    source, in_range = -1, True
    shuffle = op.op.startswith("shfl.")
    if shuffle:
        b, b_reads = machine.number(op.operands[1], U32, "source lane of this shuffle")
        c, c_reads = machine.number(op.operands[2], U32, "clamp value of this shuffle")
        selectors |= b_reads | c_reads
        source, in_range = _source(op.op, own, b, c)
    operand = _predicate(machine, op.operands[0], op.negated) if op.op.startswith("vote.") else _first(machine, op)
    name = f"{op.op}.{op.type.name}"
    taken = source if source < len(lanes) and mask >> max(source, 0) & 1 else -1
    giver = lanes[taken] if shuffle and taken >= 0 else -1
    machine.step("warp.exchange", number=mask, operation=name, source=(source, giver) if shuffle else None)
    results = machine.exchange(
        (
            op.op != "elect" and (not shuffle or taken not in (own, -1)),
            op.op == "match.all" and op.predicate is not None,
        ),
        name=op.op,
        type=op.type,
        key=(name, mask, lanes),
        operand=operand,
        threads=tuple((t, lane) for lane, t in enumerate(lanes) if mask >> lane & 1),
        lane=own,
        source=giver,
        source_lane=source,
    )
    if op.op == "elect":
        leader = dict(op.leaders).get(mask, max((mask & -mask).bit_length() - 1, 0))
        results = [expressions.constant(leader), expressions.constant(int(leader == own))]
    elif shuffle:
        results = [operand if taken == own else results[0], expressions.constant(int(in_range))]
    for register, node in zip((op.dst, op.predicate), results, strict=True):
        if register is not None:
            machine.assign(
                register, expressions.joined(node, selectors, machine.width(register.name)) if selectors else node
            )


def _activemask(machine: Machine, op: WarpExchange) -> None:
    named = machine.thread.placement.warp is not None
    shown = (1 << len(machine.program.lanes)) - 1 if named else (1 << _LANE + 1) - 1
    shown = machine.number(op.operands[0], U32, "mask")[0] if op.operands else shown
    if op.dst is not None:
        machine.assign(op.dst, machine.expressions.constant(shown))


def _source(mode: str, lane: int, b: int, c: int) -> tuple[int, bool]:
    """The lane that a shuffle takes its value from, and whether the lane asked for is in range (9.7.10.6)."""
    shift, clamp, segment = b & _LANE, c & _LANE, c >> 8 & _LANE
    low = lane & segment
    high = low | (clamp & ~segment)
    if mode == "shfl.up":
        wanted = lane - shift
        in_range = wanted >= high
    else:
        wanted = {"shfl.down": lane + shift, "shfl.bfly": lane ^ shift}.get(mode, low | (shift & ~segment))
        in_range = wanted <= high
    return (wanted if in_range else lane), in_range


def _first(machine: Machine, op: WarpExchange) -> Node:
    """What a lane gives; elect has no operand but the mask."""
    return machine.stored(op.operands[0], op.type if op.op != "elect" else U32)


def _predicate(machine: Machine, operand: Operand, negated: bool) -> Node:
    node = machine.operand(operand, PRED)
    return machine.expressions.operation("not", PRED, node) if negated else node


EFFECTS: Effects = {BarrierReduction: barrier_reduction, WarpExchange: exchange}
