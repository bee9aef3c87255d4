"""Barriers and mbarriers: their events and their steps in the simulation (PTX ISA 9.7.14.1 to .3, 9.7.14.15)."""

from __future__ import annotations

from ptxmm.events.symbolic.barriers.warps import exchange
from ptxmm.events.symbolic.event import Event, Mbarrier, SyncEvent
from ptxmm.events.symbolic.executor import ADDRESS, AMOUNT, Effects, Executor
from ptxmm.events.symbolic.values.domain import Domain, Reads, Value, merge, only
from ptxmm.ptx import ops
from ptxmm.ptx.isa import names_read
from ptxmm.ptx.ops import Address, Reg
from ptxmm.relations.formula import TRUE, Formula

SIZE = 8
"""The bytes of an mbarrier object."""


def barrier(run: Executor, op: ops.Barrier) -> None:
    """A barrier of a CTA: it arrives and, but for ``arrive``, waits."""
    step = _arrives(run, op, "bar.sync" if op.kind == "sync" else "bar.arrive")
    step.instance = op.instance
    presence = run.passes(step)
    if op.kind == "sync":
        run.event("BW", presence)


def _arrives(run: Executor, op: ops.Barrier | ops.BarrierReduction, kind: str) -> SyncEvent:
    """The arrival at a barrier of a CTA, which depends on what decides which barrier that is, and its step."""
    type_ = ADDRESS if run.machine.test.dialect else AMOUNT
    identifier = run.operand(op.barrier, type_)
    count = None if op.count is None else run.operand(op.count, type_)
    event = run.event("BA")
    event.address, event.data = identifier.reads, {} if count is None else count.reads
    step = run.step(kind)
    step.barrier, step.count = run.listed(identifier), None if count is None else run.listed(count)
    step.aligned = run.aligned.get(run.here.instruction)
    return step


def barrier_reduction(run: Executor, op: ops.BarrierReduction) -> None:
    """``barrier.red``: a barrier whose threads get the reduction of what each gives."""
    source = run.predicate(op.predicate, op.negated)
    step = _arrives(run, op, "bar.red")
    step.operation, step.source = op.op, source
    result = run.exchanged(step, [], run.width(op.dst.name))
    run.event("BW", run.passes(step))
    run.assign(op.dst.name, result)


def warp_barrier(run: Executor, op: ops.WarpBarrier) -> None:
    """``bar.warp.sync``: a barrier of the lanes in a mask."""
    mask = run.operand(op.mask, AMOUNT)
    run.event("BA").address = mask.reads
    step = run.step("warp.sync")
    step.mask = run.listed(mask)
    run.event("BW", run.passes(step))


def cluster_barrier(run: Executor, op: ops.ClusterBarrier) -> None:
    """``barrier.cluster.arrive``, which goes on, or ``.wait``."""
    step = run.step(f"cluster.{op.kind}")
    step.aligned = run.aligned.get(run.here.instruction)
    passes = run.passes(step)
    if op.kind == "arrive":
        run.event("CA")
    else:
        run.event("CW", passes)


def gather(run: Executor, presence: Formula) -> None:
    """An ``.aligned`` instruction that is no barrier: its thread waits until all of the warp execute it."""
    step = run.step("warp.exchange", presence)
    step.mask = only((1 << len(run.machine.setting.members.lanes(run.index))) - 1)
    step.operation, step.aligned = "aligned", run.aligned[run.here.instruction]
    run.passes(step)


def mbarriers(run: Executor, address: Address, space: str | None) -> tuple[dict[Mbarrier, Formula], Formula, Value]:
    """The mbarriers that ``address`` may be of, when it is one of them, and the address."""
    value = run.address(address, space)
    where, wrong = run.located(value, SIZE, role="mbarrier", mbarrier=True)
    found: dict[Mbarrier, Formula] = {}
    for when, item, offset in where:
        key = item.physical, offset
        found[key] = run.formulas.either(found[key], when) if key in found else when
    return found, run.formulas.both(run.presence, -wrong), value


def mbarrier_init(run: Executor, op: ops.MbarrierInit) -> None:
    """``mbarrier.init`` or ``mbarrier.inval``."""
    place, presence, address = mbarriers(run, op.address, op.space)
    step = run.step("mb.inval" if op.count is None else "mb.init", presence)
    step.place = place
    data: Reads = {}
    if op.count is not None:
        count = run.operand(op.count, AMOUNT)
        step.count, data = run.listed(count), count.reads
    _acts(run.event("MBV" if op.count is None else "MBI", presence), place, address, data)
    run.passes(step)


def mbarrier_arrive(run: Executor, op: ops.MbarrierArrive) -> None:
    """``mbarrier.arrive`` and ``arrive_drop``; the state they return is a token that the simulation decides."""
    place, inside, address = mbarriers(run, op.address, op.space)
    count = run.constant(1) if op.count is None else run.operand(op.count, AMOUNT)
    step = run.step("mb.drop" if op.drop else "mb.arrive", inside)
    step.count, step.place, step.no_complete = run.listed(count), place, op.no_complete
    decided = count.reads
    if op.expect is not None:
        expected = run.operand(op.expect, AMOUNT)
        step.amount, decided = run.listed(expected), run.machine.union(decided, expected.reads)
    run.passes(step)
    event = run.event("MBA", inside)
    _acts(event, place, address, decided)
    if op.dst is None:
        return
    known = run.machine.assumed.tokens.get(run.here) or (0,)  # the simulation needs some token for what comes after
    step.tokens = run.machine.one_of(dict.fromkeys(known, 0))
    step.counted = (run.index, op.dst.name) in run.machine.setting.shown or _looked_at(run, op.dst.name)
    leaf = run.machine.expressions.leaf(64, "token", run.here)
    run.assign(op.dst.name, Value(_where(run, inside, step.tokens), leaf, {event.number: TRUE}))


def _where(run: Executor, inside: Formula, returned: Domain) -> Domain:
    """What an operation returns that is ``inside`` of an mbarrier: 0 where it is executed elsewhere."""
    if inside == run.presence:
        return returned
    return merge(run.formulas, [(inside, returned), (-inside, only(0))])


def _looked_at(run: Executor, register: str) -> bool:
    """Whether an instruction uses ``register`` otherwise than to wait for the phase of the token in it."""
    for op in run.thread.body:
        waits = isinstance(op, ops.MbarrierWait) and isinstance(op.state, Reg) and op.state.name == register
        if not waits and any(name == register for name in names_read(op)):
            return True
    return False


def mbarrier_tx(run: Executor, op: ops.MbarrierTx) -> None:
    """``mbarrier.expect_tx`` and ``.complete_tx``."""
    place, presence, address = mbarriers(run, op.address, op.space)
    amount = run.operand(op.amount, AMOUNT)
    step = run.step("mb.expect" if op.kind == "expect_tx" else "mb.complete", presence)
    step.place, step.amount = place, run.listed(amount)
    run.passes(step)
    _acts(run.event("MBA", presence), place, address, amount.reads)


def mbarrier_wait(run: Executor, op: ops.MbarrierWait) -> None:
    """``mbarrier.test_wait`` and ``try_wait``: the simulation decides whether the phase is complete; where it is not,
    it is a poll (``MBP``), which synchronizes with nothing."""
    place, inside, address = mbarriers(run, op.address, op.space)
    outcome = run.formulas.variable()
    step = run.step("mb.wait", inside)
    step.place, step.outcome = place, outcome
    data = _waited(run, op, step)
    run.passes(step)
    reads: Reads = {}
    for kind, result in (("MBW", outcome), ("MBP", -outcome)):
        event = run.event(kind, run.formulas.both(inside, result))
        _acts(event, place, address, data)
        reads[event.number] = TRUE
    leaf = run.machine.expressions.leaf(1, "outcome", run.here)
    run.assign(op.dst.name, Value(_where(run, inside, Domain({1: outcome, 0: -outcome})), leaf, reads))


def _waited(run: Executor, op: ops.MbarrierWait, step: SyncEvent) -> Reads:
    """Note in ``step`` which phase is waited for; the reads that this depends on."""
    if op.state is None:
        assert op.parity is not None
        value = run.operand(op.parity, AMOUNT)
        step.parity = run.listed(value)
        return value.reads
    value = run.operand(op.state, ADDRESS)
    step.state = run.listed(value)
    for earlier in run.barriers:
        if earlier.tokens is not None and value.expression == run.machine.expressions.number(64, "token", earlier.id):
            step.state_of = earlier.id
    return value.reads


def _acts(event: Event, place: dict[Mbarrier, Formula], address: Value, data: Reads) -> None:
    event.mbarriers, event.address, event.data = place, address.reads, data


EFFECTS: Effects = {
    ops.Barrier: barrier,
    ops.BarrierReduction: barrier_reduction,
    ops.WarpBarrier: warp_barrier,
    ops.WarpExchange: exchange,
    ops.ClusterBarrier: cluster_barrier,
    ops.MbarrierInit: mbarrier_init,
    ops.MbarrierArrive: mbarrier_arrive,
    ops.MbarrierTx: mbarrier_tx,
    ops.MbarrierWait: mbarrier_wait,
}
