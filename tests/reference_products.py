"""The rules on registers of ``wgmma.mma_async`` for the reference: what a path has executed says it all (9.7.16.7)."""

from __future__ import annotations

from itertools import product

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


def misused(executed: Executed, copies: bool) -> bool:
    """``copies``: wgmma-mov=free, a copy of a register is no access, and what it gives has been used as its source."""
    at = range(len(executed))
    done = [op for op, _ in executed]
    products = [i for i in at if isinstance(done[i], ops.Wgmma)]
    fences = [i for i in at if isinstance(done[i], ops.WgmmaFence)]
    same = {(i, j) for i in products for j in products if shape(done[i]) == shape(done[j])}
    unordered = {(i, j) for j in products for i in at if i < j and not any(i < f < j for f in fences)}
    clashes = {
        (i, j)
        for i, j in unordered
        if (not copies and registers(done[i], "any") & (registers(done[j], "D") | registers(done[j], "A")))
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
    # A product that goes on while another one takes a register of it for something else.
    overlap = {
        (i, j)
        for i in products
        for j in products
        if i < j and not any(waits(executed, w, i) for w in at if i < w < j)
        if registers(done[i], "D") & registers(done[j], "A")
        or registers(done[i], "A") & registers(done[j], "D")
        or (registers(done[i], "D") & registers(done[j], "D") and (i, j) not in same)
    }
    taken = {
        (j, name)
        for j in products
        if copies
        for role in "DA"
        for name in registers(done[j], role)
        if history(done, name, j) - {(role, shape(done[j]) if role == "D" else None)}
    }
    return bool(first or clashes or early or overlap or taken)


def history(done: list[ops.Op], name: str, end: int) -> set[tuple[str, object]]:
    """How a register has been used before a place since the last fence; a copy has been used as what it copies."""
    named = set[str]().union(*(registers(op, role) for op in done for role in "DA"))
    uses: set[tuple[str, object]] = set()
    for i in range(end - 1, -1, -1):
        op = done[i]
        if isinstance(op, ops.WgmmaFence):
            break
        if isinstance(op, ops.Wgmma):
            uses |= {(role, shape(op) if role == "D" else None) for role in "DA" if name in registers(op, role)}
        elif isinstance(op, ops.Alu) and op.op == "mov" and isinstance(op.sources[0], ops.Reg | ops.Imm):
            if name == op.dst.name and isinstance(op.sources[0], ops.Reg):
                uses |= history(done, op.sources[0].name, i)
        elif name in {n for n, _ in isa.definitions(op)} or (name in named and name in registers(op, "any")):
            uses.add(("thread", None))
    return uses


def shape(op: ops.Op) -> object:
    return (op.shape, op.type) if isinstance(op, ops.Wgmma) else None


def waits(executed: Executed, w: int, product: int) -> bool:
    """Whether ``executed[w]`` is a wait for the group of a product."""
    steps = {e.step for e in executed[product][1]}
    op, events = executed[w]
    return isinstance(op, ops.AsyncWait) and op.kind == "wgmma" and any(steps <= e.done for e in events)


def clash(events: tuple[Event, ...], steps: frozenset[int]) -> bool:
    """Whether two ``cp.async`` of a group, whose steps are given, write a byte both (9.7.10.24.4)."""
    written = [(e.step, e.cell) for e in events if e.kind == "W" and e.step in steps and e.cell]
    return any(
        m != n and a[0] == b[0] and a[1] < b[1] + b[2] and b[1] < a[1] + a[2]
        for (m, a), (n, b) in product(written, repeat=2)
    )
