"""Barriers and mbarriers: their events and their steps in the simulation (PTX ISA 9.7.14.1 to .3, 9.7.14.15)."""

from __future__ import annotations

from ptxmm.events.symbolic.event import Event, Mbarrier, SyncEvent
from ptxmm.events.symbolic.executor import ADDRESS, AMOUNT, PREDICATE, Executor
from ptxmm.events.symbolic.machine import State
from ptxmm.events.symbolic.values.domain import Domain, Reads, Value, merge, only
from ptxmm.program.identity import EventId
from ptxmm.ptx.isa import uses
from ptxmm.ptx.ops import (
    Address,
    Barrier,
    BarrierReduction,
    ClusterBarrier,
    Imm,
    MbarrierArrive,
    MbarrierInit,
    MbarrierTx,
    MbarrierWait,
    Op,
    Operand,
    Reg,
    Type,
    WarpBarrier,
)
from ptxmm.relations.formula import TRUE, Formula

SIZE = 8
"""The bytes of an mbarrier object."""


def barrier(run: Executor, op: Barrier, here: EventId, state: State, presence: Formula, control: Reads) -> None:
    """A barrier of a CTA: it arrives and, but for ``arrive``, waits."""
    type_ = ADDRESS if run.machine.test.dialect else AMOUNT
    identifier, count = _barrier_operands(run, op, type_, state)
    _arrives(run, op, here, presence, control, identifier, count)
    kind = "bar.sync" if op.kind == "sync" else "bar.arrive"
    number = run.machine.new_step()
    step = run.sync(SyncEvent(here, kind, op, presence, number, identifier.domain, _of(count), op.instance))
    step.aligned = run.aligned.get(here.instruction)
    presence = run.passes(state, step)
    if op.kind == "sync":
        run.event("BW", op, here, presence, control)


def _barrier_operands(
    run: Executor, op: Barrier | BarrierReduction, type_: Type, state: State
) -> tuple[Value, Value | None]:
    """Which barrier, and how many threads it is for (None: all of the CTA)."""
    return run.operand(state, op.barrier, type_), None if op.count is None else run.operand(state, op.count, type_)


def _of(count: Value | None) -> Domain | None:
    return None if count is None else count.domain


def _arrives(
    run: Executor, op: Op, here: EventId, presence: Formula, control: Reads, identifier: Value, count: Value | None
) -> None:
    """The arrival at a barrier of a CTA or a warp, which depends on what decides which barrier that is."""
    event = run.event("BA", op, here, presence, control)
    event.address = identifier.reads
    if count is not None:
        event.data = count.reads


def barrier_reduction(
    run: Executor,
    op: BarrierReduction,
    here: EventId,
    state: State,
    presence: Formula,
    condition: Formula,
    control: Reads,
) -> None:
    """``barrier.red``: a barrier whose threads get the reduction of what each gives."""
    identifier, count = _barrier_operands(run, op, AMOUNT, state)
    source = state.registers[op.predicate.name]
    if op.negated:
        source = run.operation("xor", PREDICATE, [source, run.operand(state, Imm(1), PREDICATE)])
    _arrives(run, op, here, presence, control, identifier, count)
    step = SyncEvent(here, "bar.red", op, presence, run.machine.new_step(), identifier.domain, _of(count))
    step.operation, step.source = op.op, source
    step.aligned = run.aligned.get(here.instruction)
    result = run.exchanged(step, [], run.width(op.dst.name))
    run.event("BW", op, here, run.passes(state, run.sync(step)), control)
    run.assign(state, op.dst.name, result, condition, op)


def warp_barrier(
    run: Executor, op: WarpBarrier, here: EventId, state: State, presence: Formula, control: Reads
) -> None:
    """``bar.warp.sync``: a barrier of the lanes in a mask."""
    mask = run.operand(state, op.mask, AMOUNT)
    _arrives(run, op, here, presence, control, mask, None)
    step = run.sync(SyncEvent(here, "warp.sync", op, presence, run.machine.new_step(), mask=mask.domain))
    run.event("BW", op, here, run.passes(state, step), control)


def cluster_barrier(
    run: Executor, op: ClusterBarrier, here: EventId, state: State, presence: Formula, control: Reads
) -> None:
    """``barrier.cluster.arrive``, which goes on, or ``.wait``."""
    step = run.sync(SyncEvent(here, f"cluster.{op.kind}", op, presence, run.machine.new_step()))
    step.aligned = run.aligned.get(here.instruction)
    passes = run.passes(state, step)
    if op.kind == "arrive":
        run.event("CA", op, here, presence, control)
    else:
        run.event("CW", op, here, passes, control)


def gather(run: Executor, op: Op, here: EventId, state: State, presence: Formula) -> None:
    """An ``.aligned`` instruction that is no barrier: its thread waits until all of the warp execute it."""
    everyone = run.constant((1 << len(run.machine.members.lanes(run.index))) - 1)
    step = SyncEvent(here, "warp.exchange", op, presence, run.machine.new_step(), mask=everyone.domain)
    step.operation, step.aligned = "aligned", run.aligned[here.instruction]
    run.passes(state, run.sync(step))


def mbarriers(
    run: Executor, op: Op, state: State, address: Address, presence: Formula, space: str | None
) -> tuple[dict[Mbarrier, Formula], Formula, Value]:
    """The mbarriers that ``address`` may be of, when it is one of them, and the address."""
    value = run.address(state, address, space)
    where, wrong = run.located(op, value, SIZE, presence, role="mbarrier", mbarrier=True)
    found: dict[Mbarrier, Formula] = {}
    for when, item, offset in where:
        key = item.physical, offset
        found[key] = run.formulas.either(found[key], when) if key in found else when
    return found, run.formulas.both(presence, -wrong), value


def mbarrier_init(
    run: Executor, op: MbarrierInit, here: EventId, state: State, presence: Formula, control: Reads
) -> None:
    """``mbarrier.init`` or ``mbarrier.inval``."""
    place, presence, address = mbarriers(run, op, state, op.address, presence, op.space)
    step = run.sync(SyncEvent(here, "mb.inval", op, presence, run.machine.new_step(), place=place))
    event = run.event("MBV" if op.count is None else "MBI", op, here, presence, control)
    event.mbarriers, event.address = place, address.reads
    if op.count is not None:
        step.kind = "mb.init"
        count = run.operand(state, op.count, AMOUNT)
        step.count, event.data = count.domain, count.reads
    run.passes(state, step)


def mbarrier_arrive(
    run: Executor,
    op: MbarrierArrive,
    here: EventId,
    state: State,
    presence: Formula,
    condition: Formula,
    control: Reads,
) -> None:
    """``mbarrier.arrive`` and ``arrive_drop``; the state they return is a token that the simulation decides."""
    place, inside, address = mbarriers(run, op, state, op.address, presence, op.space)
    count = run.constant(1) if op.count is None else run.operand(state, op.count, AMOUNT)
    kind = "mb.drop" if op.drop else "mb.arrive"
    step = SyncEvent(here, kind, op, inside, run.machine.new_step(), count=count.domain, place=place)
    step.no_complete = op.no_complete
    decided = count.reads
    if op.expect is not None:
        expected = run.operand(state, op.expect, AMOUNT)
        step.amount, decided = expected.domain, run.machine.union(decided, expected.reads)
    run.sync(step)
    run.passes(state, step)
    event = run.event("MBA", op, here, inside, control)
    _acts(event, place, address, decided)
    if op.dst is None:
        return
    choice = run.machine.new_choice()
    known = run.machine.tokens.get(here) or (0,)  # the simulation needs some token for what comes after
    step.tokens = only(known[0]) if len(known) == 1 else Domain({v: run.formulas.variable(choice) for v in known})
    step.counted = (run.index, op.dst.name) in run.machine.shown or _looked_at(run, op.dst.name)
    leaf = run.machine.expressions.leaf(64, "token", here)
    returned = _where(run, inside, presence, step.tokens)
    run.assign(state, op.dst.name, Value(returned, leaf, {event.number: TRUE}), condition, op)


def _where(run: Executor, inside: Formula, presence: Formula, returned: Domain) -> Domain:
    """What an operation returns that is ``inside`` of an mbarrier: 0 where it is executed elsewhere."""
    if inside == presence:
        return returned
    return merge(run.formulas, [(inside, returned), (-inside, only(0))])


def _looked_at(run: Executor, register: str) -> bool:
    """Whether an instruction uses ``register`` otherwise than to wait for the phase of the token in it."""
    for op in run.thread.body:
        waits = isinstance(op, MbarrierWait) and isinstance(op.state, Reg) and op.state.name == register
        if not waits and any(name == register for name, _ in uses(op)):
            return True
    return False


def mbarrier_tx(run: Executor, op: MbarrierTx, here: EventId, state: State, presence: Formula, control: Reads) -> None:
    """``mbarrier.expect_tx`` and ``.complete_tx``."""
    place, presence, address = mbarriers(run, op, state, op.address, presence, op.space)
    amount = run.operand(state, op.amount, AMOUNT)
    kind = "mb.expect" if op.kind == "expect_tx" else "mb.complete"
    step = run.sync(SyncEvent(here, kind, op, presence, run.machine.new_step(), place=place, amount=amount.domain))
    run.passes(state, step)
    _acts(run.event("MBA", op, here, presence, control), place, address, amount.reads)


def mbarrier_wait(
    run: Executor,
    op: MbarrierWait,
    here: EventId,
    state: State,
    presence: Formula,
    condition: Formula,
    control: Reads,
) -> None:
    """``mbarrier.test_wait`` and ``try_wait``: the simulation decides whether the phase is complete; where it is not,
    it is a poll (``MBP``), which synchronizes with nothing."""
    place, inside, address = mbarriers(run, op, state, op.address, presence, op.space)
    outcome = run.formulas.variable()
    step = run.sync(SyncEvent(here, "mb.wait", op, inside, run.machine.new_step(), place=place, outcome=outcome))
    operand = _waited(run, op.state, op.parity, state, step)
    run.passes(state, step)
    reads: Reads = {}
    for kind, result in (("MBW", outcome), ("MBP", -outcome)):
        event = run.event(kind, op, here, run.formulas.both(inside, result), control)
        _acts(event, place, address, operand.reads)
        reads[event.number] = TRUE
    leaf = run.machine.expressions.leaf(1, "outcome", here)
    domain = _where(run, inside, presence, Domain({1: outcome, 0: -outcome}))
    run.assign(state, op.dst.name, Value(domain, leaf, reads), condition, op)


def _waited(run: Executor, token: Operand | None, parity: Operand | None, state: State, step: SyncEvent) -> Value:
    """Note in ``step`` which phase is waited for."""
    if token is None:
        assert parity is not None
        value = run.operand(state, parity, AMOUNT)
        step.parity = value.domain
        return value
    value = run.operand(state, token, ADDRESS)
    step.state = value.domain
    for earlier in run.barriers:
        if earlier.tokens is not None and value.expression == run.machine.expressions.number("token", earlier.id):
            step.state_of = earlier.id
    return value


def _acts(event: Event, place: dict[Mbarrier, Formula], address: Value, data: Reads) -> None:
    event.mbarriers, event.address, event.data = place, address.reads, data


__all__ = [
    "barrier",
    "barrier_reduction",
    "cluster_barrier",
    "gather",
    "mbarrier_arrive",
    "mbarrier_init",
    "mbarrier_tx",
    "mbarrier_wait",
    "mbarriers",
    "warp_barrier",
]
