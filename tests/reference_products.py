"""The rules on registers of ``wgmma.mma_async`` for the reference: what a path has executed says it all (9.7.16.7)."""

from __future__ import annotations

from ptxmm.ptx import isa, ops
from tests.reference_events import Event

Executed = tuple[tuple[ops.Op, tuple[Event, ...]], ...]
"""The instructions of a path in order, each with its events."""


def registers(op: ops.Op, role: str) -> set[str]:
    """Those that hold D or A of a product; ``any``: those that any other instruction reads or writes."""
    if isinstance(op, ops.Wgmma):
        a = {r.name for r in op.a} if isinstance(op.a, tuple) else set()
        return {"D": {r.name for r in op.dst}, "A": a, "any": set()}[role]
    return {name for name, _ in (*isa.uses(op), *isa.definitions(op))} if role == "any" else set()


def misused(executed: Executed) -> bool:
    at = range(len(executed))
    done = [op for op, _ in executed]
    products = [i for i in at if isinstance(done[i], ops.Wgmma)]
    fences = [i for i in at if isinstance(done[i], ops.WgmmaFence)]
    same = {(i, j) for i in products for j in products if shape(done[i]) == shape(done[j])}
    unordered = {(i, j) for j in products for i in at if i < j and not any(i < f < j for f in fences)}
    clashes = {
        (i, j)
        for i, j in unordered
        if registers(done[i], "any") & (registers(done[j], "D") | registers(done[j], "A"))
        or registers(done[i], "D") & registers(done[j], "A")
        or registers(done[i], "A") & registers(done[j], "D")
        or (registers(done[i], "D") & registers(done[j], "D") and (i, j) not in same)
    }
    early = {
        (j, i)
        for j in products
        for i in at
        if j < i and registers(done[i], "any") & (registers(done[j], "D") | registers(done[j], "A"))
        if not any(waits(executed, w, j) for w in at if j < w < i)
    }
    first = {j for j in products if not any(f < j for f in fences)}
    return bool(first or clashes or early)


def shape(op: ops.Op) -> object:
    return (op.shape, op.type) if isinstance(op, ops.Wgmma) else None


def waits(executed: Executed, w: int, product: int) -> bool:
    """Whether ``executed[w]`` is a wait for the group of a product."""
    steps = {e.step for e in executed[product][1]}
    op, events = executed[w]
    return isinstance(op, ops.AsyncWait) and op.kind == "wgmma" and any(steps <= e.done for e in events)


def same_group(new: list[Event], before: tuple[Event, ...], loose: tuple[tuple[str, int], ...]) -> bool:
    """Whether a ``cp.async`` writes bytes that another one of its group writes (9.7.10.24.4)."""
    steps = {step for kind, step in loose if kind == "cp.async"}
    cells = [e.cell for e in before if e.kind == "W" and e.step in steps and e.cell]
    written = [e.cell for e in new if e.kind == "W" and e.cell]
    return any(a[0] == b[0] and a[1] < b[1] + b[2] and b[1] < a[1] + a[2] for a in cells for b in written)
