"""The branches of a thread in the reference: where they join, what they decide, which loops spin. By paths alone."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from ptxmm.program.shared.control import control_flow  # what two ways have alike, under dep=value only
from ptxmm.program.test import Thread
from ptxmm.ptx import ops
from ptxmm.ptx.isa import definitions, uses

BARRIERS = (ops.Barrier, ops.BarrierReduction, ops.WarpBarrier, ops.ClusterBarrier)
LOOKS = (
    *ops.COMPUTING, ops.Load, ops.Fence, ops.ProxyFence, ops.TensormapFence, ops.GenericToAsyncFence,
    ops.MbarrierInitFence, ops.MbarrierWait, ops.Branch, ops.Exit,
)  # fmt: skip


class Flow:
    """What the branches of ``thread`` decide. ``values``: a branch decides only what is not alike both ways."""

    def __init__(self, thread: Thread, values: bool = False) -> None:
        self.thread, self.body, self.end, self.values = thread, thread.body, len(thread.body), values
        self.after = [self.next(pc) for pc in range(self.end)] + [set[int]()]
        self.written = [{name for name, _ in definitions(op)} for op in self.body] + [set[str]()]
        self.join = {pc: self.meets(pc) for pc in range(self.end) if len(self.ways(pc)) > 1}
        inside = {pc: self.reach(self.after[pc], join) for pc, join in self.join.items()}
        self.assigned = {pc: frozenset(set[str]().union(*(self.written[i] for i in inside[pc]))) for pc in self.join}
        self.leaving = {pc for pc in self.join if pc in inside[pc]}
        self.skipping = {pc for pc in self.join if any(isinstance(op, BARRIERS) for op in self.of(inside[pc]))}
        self.backward = {pc for pc, op in enumerate(self.body) if isinstance(op, ops.Branch) and op.target <= pc}
        self.spin = {pc: header for pc in self.backward if (header := self.spins(pc)) is not None}

    def of(self, pcs: Iterable[int]) -> list[ops.Op]:
        return [self.body[pc] for pc in sorted(pcs) if pc < self.end]

    def ways(self, pc: int) -> list[int]:
        """Where control goes after ``pc``, in which order it is told: taken or not."""
        op = self.body[pc]
        if not isinstance(op, ops.Branch | ops.Exit):
            return [pc + 1]
        taken = op.target if isinstance(op, ops.Branch) else self.end
        may_fall = op.guard is not None or (isinstance(op, ops.Branch) and op.condition is not None)
        return [taken, pc + 1] if may_fall else [taken]

    def next(self, pc: int) -> set[int]:
        return set(self.ways(pc))

    def reach(self, starts: Iterable[int], without: int | None = None) -> set[int]:
        """What control comes to from ``starts``, these too, without passing ``without``."""
        found: set[int] = set()
        todo = [pc for pc in starts if pc != without]
        while todo:
            pc = todo.pop()
            if pc not in found:
                found.add(pc)
                todo += [other for other in self.after[pc] if other != without]
        return found

    def meets(self, pc: int) -> int:
        """The first place that every path from ``pc`` to the end comes to. What never ends counts as if it might."""

        def comes(without: int) -> set[int]:
            here = self.reach(self.after[pc], without)
            ends = any(self.end not in self.reach([i]) for i in (*here, pc))
            return here | ({self.end} if ends else set())

        always = [q for q in range(self.end) if q != pc and self.end not in comes(q)] + [self.end]
        return next(q for q in always if not (set(always) - {q}) & self.reach(self.after[pc], q))

    def spins(self, pc: int) -> int | None:
        """The header of the loop that ``pc`` closes if a round of it leaves no trace: it only looks, or may fail to
        exchange, and nothing that it gives a register is there for anyone who comes to the header again."""
        op = self.body[pc]
        assert isinstance(op, ops.Branch)
        header = op.target
        if pc not in self.reach([0]) or (pc != header and pc in self.reach([0], header)):
            return None  # there is a way into the loop that does not pass its header
        loop = {i for i in range(self.end) if i != header and pc in self.reach([i], header)} | {header}
        if not all(looks(inner) for inner in self.of(loop)):
            return None
        given = set[str]().union(*(self.written[i] for i in loop))
        return None if any(self.live(name, header) for name in given) else header

    def live(self, name: str, pc: int) -> bool:
        """Whether someone from ``pc`` on may see what the register holds there; at the end all are seen."""
        seen: set[int] = set()
        todo = [pc]
        while todo:
            here = todo.pop()
            if here in seen:
                continue
            seen.add(here)
            if here == self.end or name in {used for used, _ in uses(self.body[here])}:
                return True
            if name not in self.written[here] or self.body[here].guard is not None:
                todo += self.after[here]
        return False

    @cached_property
    def alike(self) -> dict[int, frozenset[str]]:
        """For each branch the registers that hold the same value where it joins, whichever way it goes."""
        return dict(control_flow(self.thread, values=True).same) if self.values else {}

    @cached_property
    def twins(self) -> dict[int, int]:
        """The instructions that are made whichever way a branch or their own guard goes, with that branch."""
        return dict(control_flow(self.thread, values=True).twins) if self.values else {}

    def decided(self, pc: int) -> frozenset[str]:
        """The registers that depend, from the join on, on the way taken at ``pc``."""
        return self.assigned[pc] - self.alike.get(pc, frozenset())


def looks(op: ops.Op) -> bool:
    """Whether nobody need notice that ``op`` has been executed."""
    if isinstance(op, ops.Multimem):
        return op.kind == "ld_reduce"
    return isinstance(op, LOOKS) or (isinstance(op, ops.Atomic) and op.op == "cas")
