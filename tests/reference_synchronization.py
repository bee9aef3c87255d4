"""Fences, barriers and mbarriers of the reference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ptxmm.ptx import ops
from ptxmm.ptx.ops import Type
from tests import reference_exchanges
from tests.reference_accesses import PROXIES, TENSORMAP
from tests.reference_events import Event, Run, Step
from tests.reference_expressions import Expr, const, reads

if TYPE_CHECKING:
    from tests.reference_threads import Walker

U32 = Type("u", 32)
B64 = Type("b", 64)
PRED = Type("pred", 1)
FENCES = {"sc": "FSC", "acq_rel": "FAR", "acquire": "FA", "release": "FL"}


def perform(walker: Walker, run: Run, op: ops.Op, taken: Expr, common: Event) -> Iterator[Run]:
    strong = replace(common, proxy="GEN")
    match op:
        case ops.Fence(sem=sem, scope=scope, restrict=None):
            yield done(run, replace(strong, kind=FENCES[sem], scope=scope))
        case ops.Fence(sem=sem, scope=scope, restrict=space):
            yield done(run, replace(strong, kind={"release": "FRR", "acquire": "FRA"}[sem], scope=scope, space=space))
        case ops.GenericToAsyncFence(sem=sem, restrict=space):
            kind = {"release": "ASREL", "acquire": "ASACQ"}[sem]
            yield done(run, replace(strong, kind=kind, scope="cluster", space=space))
        case ops.ProxyFence(kind="alias"):
            yield done(run, replace(common, kind="AF"))
        case ops.ProxyFence(kind="async", space=space):
            yield done(run, replace(common, kind="PF", fences="ASY", space=space))
        case ops.ProxyFence(kind="generic"):
            yield done(run, replace(common, kind="X"))
        case ops.ProxyFence(kind=kind):
            yield done(run, replace(common, kind="PF", fences=PROXIES[kind]))
        case ops.TensormapFence(sem="release", scope=scope):
            yield done(run, replace(strong, kind="TMREL", scope=scope))
        case ops.TensormapFence(scope=scope) if op.address is not None:
            for fork, item, offset, _ in walker.places(run, op.address, TENSORMAP, 64):
                covers = (item.physical, offset, TENSORMAP)
                yield done(fork, replace(strong, kind="TMACQ", scope=scope, covers=covers))
        case ops.MbarrierInitFence():
            yield done(run, replace(strong, kind="FMBI", scope="cluster"))
        case ops.GridControl(kind="wait"):
            yield done(run, replace(common, kind="API"))
        case ops.GridControl():
            yield done(run, *([replace(common, kind="GD")] if walker.test.isa >= (9, 2) else []))
        case ops.Barrier():
            wide = B64 if walker.test.dialect else U32
            count = None if op.count is None else walker.operand(run, op.count, wide)
            yield meet(walker, run, op, "bar", common, (walker.operand(run, op.barrier, wide), count))
        case ops.BarrierReduction():
            count = None if op.count is None else walker.operand(run, op.count, U32)
            args = (walker.operand(run, op.barrier, U32), count)
            operand = walker.operand(run, op.predicate, PRED)
            operand = walker.apply("not", PRED, operand) if op.negated else operand
            number = (walker.index, len(run.steps), 0)
            new = meet(walker, run, op, "bar", common, args, operand)
            result = U32 if op.op == "popc" else PRED
            yield replace(new, registers=walker.assign(run, op.dst, ("given", number), result, taken))
        case ops.WarpExchange():
            yield from reference_exchanges.exchange(walker, run, op, taken)
        case ops.WarpBarrier(mask=mask):
            yield meet(walker, run, op, "warp", common, (walker.operand(run, mask, U32),))
        case ops.ClusterBarrier(kind=kind, sem=sem):
            half = replace(
                strong,
                kind="CA" if kind == "arrive" else "CW",
                scope="cluster",
                rel=sem == "release",
                acq=sem == "acquire",
            )
            n = len(run.events)
            step = Step(
                walker.index,
                f"cluster.{kind}",
                op,
                event=n if kind == "arrive" else None,
                wait=n if kind == "wait" else None,
            )
            yield replace(done(run, half), steps=(*run.steps, step))
        case ops.MbarrierInit() | ops.MbarrierArrive() | ops.MbarrierTx() | ops.MbarrierWait():
            for fork, item, offset, address in walker.places(run, op.address, 8, 8):
                event = replace(strong, place=(item.physical, offset), addr=reads(address))
                yield from mbarrier(walker, fork, op, taken, event)
        case _:
            raise NotImplementedError(op)


def done(run: Run, *events: Event) -> Run:
    return replace(run, pc=run.pc + 1, events=(*run.events, *events))


def meet(
    walker: Walker,
    run: Run,
    op: ops.Barrier | ops.BarrierReduction | ops.WarpBarrier,
    kind: str,
    common: Event,
    args: tuple[Expr | None, ...],
    gives: Expr | None = None,
) -> Run:
    """A barrier: its arrive half, and its wait half unless it is ``bar.arrive``."""
    n = len(run.events)
    waits = not (isinstance(op, ops.Barrier) and op.kind == "arrive")
    which, count = (*args, None)[:2]
    arrival = replace(common, kind="BA", addr=reads(which or const(0)), data=reads(count or const(0)))
    halves = [arrival, replace(common, kind="BW")][: 1 + waits]
    step = Step(walker.index, kind, op, event=n, wait=n + 1 if waits else None, args=args, gives=gives)
    return replace(done(run, *halves), steps=(*run.steps, step))


def mbarrier(
    walker: Walker,
    run: Run,
    op: ops.MbarrierInit | ops.MbarrierArrive | ops.MbarrierTx | ops.MbarrierWait,
    taken: Expr,
    common: Event,
) -> Iterator[Run]:
    n, place = len(run.events), common.place

    def step(kind: str, *args: Expr | None, event: int | None = n, result: bool = False) -> tuple[Step, ...]:
        return (*run.steps, Step(walker.index, kind, op, event, None, place, args, result))

    def value(operand: ops.Operand, kind: Type = U32) -> Expr:
        return walker.operand(run, operand, kind)

    match op:
        case ops.MbarrierInit(count=None):
            yield replace(done(run, replace(common, kind="MBV", proxy=None)), steps=step("inval", event=None))
        case ops.MbarrierInit(count=count) if count is not None:
            event = replace(common, kind="MBI", data=reads(value(count)))
            yield replace(done(run, event), steps=step("init", value(count)))
        case ops.MbarrierArrive():
            arrivals = const(1) if op.count is None else value(op.count)
            expect = const(0) if op.expect is None else value(op.expect)
            decided = reads(arrivals) | reads(expect)
            event = replace(common, kind="MBA", scope=op.scope, rel=op.sem == "release", data=decided)
            registers = walker.assign(run, op.dst, ("token", (walker.index, n)), B64, taken)
            yield replace(done(run, event), registers=registers, steps=step("arrive", arrivals, expect))
        case ops.MbarrierTx(amount=amount, scope=scope):
            event = replace(common, kind="MBA", scope=scope, data=reads(value(amount)))
            yield replace(done(run, event), steps=step("tx", value(amount)))
        case ops.MbarrierWait():
            state = None if op.state is None else value(op.state, B64)
            parity = None if op.parity is None else value(op.parity)
            asked = reads(state or const(0)) | reads(parity or const(0))
            event = replace(common, kind="MBW", scope=op.scope, acq=op.sem == "acquire", data=asked)
            for result in (True, False):
                # a value that depends on the wait
                returned = ("joined", const(int(result)), frozenset({(walker.index, n)}), ("wait", n))
                registers = walker.assign(run, op.dst, returned, Type("pred", 1), taken)
                steps = step("wait", state, parity, event=n if result else None, result=result)
                after = event if result else replace(common, kind="MBP", proxy=None, data=asked)
                yield replace(done(run, after), registers=registers, steps=steps)
