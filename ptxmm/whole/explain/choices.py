"""What of a launch depends on the schedule where one execution does not tell of all, in the words of the field.

The value at which an execution stops is followed back, through registers and through memory, to an atomic operation or
to a load. What kind of choice that is tells the form of the kernel: whether it is tried again in a loop, what it is
compared with, whether it picks an address. It explains an answer, and no answer rests on it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping

import numpy as np

from ptxmm.formats.modules.special import CLOCKS
from ptxmm.program.graph import conditional, graph_of, reach, strong_components
from ptxmm.ptx import ops
from ptxmm.ptx.isa import names_written, uses
from ptxmm.whole.execution.machine import Machine
from ptxmm.whole.execution.state import Stopped
from ptxmm.whole.order.trace import READ
from ptxmm.whole.result import Choice, ChoiceKind
from ptxmm.whole.spots import spot_of

_WORDS: Mapping[ChoiceKind, str] = {
    "lock": "a lock: which thread has it next",
    "ticket": "a ticket: which number a thread draws, and so what it works on,",
    "arrivals": "a counter of arrivals: who comes last, or in which round a thread comes,",
    "claim": "a claim that one thread wins: which one it is",
    "list": "the head of a list or stack: what a thread finds there",
    "semaphore": "a semaphore with a count: who gets in",
    "update": "a compare-and-swap loop: what it changes, and how often it is tried,",
    "sequence-lock": "a sequence lock: what is read, and how often it is read again,",
    "look-back": "a look-back over tiles: how far a CTA looks back",
    "hazard": "a store and a look at what the other side stores, as of hazard pointers: who sees whom",
    "vote": "a loop in which threads wait together: in which round it ends",
    "look": "a look at what others write, which does not wait for it: whether it is there already",
    "active-lanes": "the lanes that are active together: which ones these are",
    "clock": "a clock or a timer: what a thread reads there",
}
_CLOCKS = frozenset(f"sreg {name}" for name in CLOCKS)
_FEW, _PLACES = 8, 64
"""So many threads are few; so many places of one instruction are looked at."""


def choice(machine: Machine, stop: Stopped, file: str) -> Choice | None:
    """What depends on the schedule where ``machine`` stopped; None where it is something else that is not known.
    ``file``: where the launch is read from."""
    if stop.word != "undecided" or stop.at is None or stop.at >= len(machine.body) or stop.refutes is not None:
        return None
    found = _Search(machine, stop.at, machine.copies.thread(stop.thread or 0)).found()
    if found is None:
        return None
    (kind, at), rows = found, machine.trace.columns()
    agents = rows["agent"][rows["instruction"] == at].tolist()
    spot = spot_of(machine, at, agents[0] if agents and stop.thread not in agents else stop.thread or 0)
    return Choice(kind, f"{_WORDS[kind]} depends on the schedule", spot, _advice(machine, kind, file))


def _advice(machine: Machine, kind: str, file: str) -> str:
    """How all executions of a few threads are listed."""
    parts = [part for part in machine.launch.parts if part.host is None]
    chosen, command = sum(len(part.kernel.grid.threads) for part in parts), f"`ptxmm check {file}`"
    if kind == "active-lanes" and (chosen or machine.launch.threads > _FEW):
        return f"make the block a few threads and name no lanes: {command} lists all executions of whole warps only"
    if chosen:
        return f"{command} lists all executions of the {chosen} threads that the launch names"
    if machine.launch.threads <= _FEW:
        return f"{command} lists all executions of its threads"
    some = '`threads = ["cta 0 thread 0", "cta 1 thread 0"]`' if machine.launch.ctas > 1 else '`threads = "lane 0"`'
    return f"name a few threads in the launch, as {some}: {command} lists all executions of these"


class _Search:
    """Looks for what decides the instruction ``at`` of a ``thread``."""

    def __init__(self, machine: Machine, at: int, thread: int) -> None:
        self.machine, self.body, self.at, self.thread = machine, machine.body, at, thread
        self.graph = graph_of(self.body)
        self._component = strong_components(self.graph)
        self._rows = machine.trace.columns()
        self._uses = [frozenset(name for name, _ in uses(op)) for op in self.body]
        self._gives = [frozenset(names_written(op)) for op in self.body]
        self._written: dict[int, list[int]] = {}
        self._accessed: dict[int, set[tuple[int, int]]] = {}
        columns = (self._rows[name] for name in ("instruction", "place", "size"))
        for pc, place, size in np.unique(np.stack([*columns]), axis=1).T.tolist():
            if len(here := self._accessed.setdefault(pc, set())) < _PLACES:
                here.add((place, size))

    def found(self) -> tuple[ChoiceKind, int] | None:
        """The kind of what decides, and the instruction."""
        sources = self._sources()
        for kind, at in ((_special(self.body[at]), at) for at in sources):
            if kind is not None:
                return kind, at
        atomics = [at for at in sources if isinstance(self.body[at], ops.Atomic)]
        if atomics:
            at = next((at for at in atomics if self._gives[at]), atomics[0])
            return self._atomic(at), at
        loads = [at for at in sources if isinstance(op := self.body[at], ops.Load) and op.scope is not None]
        loads = loads or sorted({at for _, at, _ in self.machine.plan.chosen})
        if not loads:
            return None
        together = any(isinstance(self.body[at], ops.BarrierReduction | ops.WarpExchange) for at in sources)
        return self._load(loads, together)

    # -- back from the instruction --

    def _sources(self) -> list[int]:
        """The instructions whose results decide, the nearest ones first."""
        op = self.body[self.at]
        names = [op.guard.register] if op.guard is not None else sorted(self._uses[self.at])
        one = np.array([self.thread])
        unsure = [name for name in names if not self.machine.register(name, one).known[0]]
        found: dict[int, None] = {}
        work = deque((name, self.at) for name in unsure)
        for poll in self.machine.waiting.values():
            # It is what a loop finds, or a register that is tried there.
            last = poll.end if poll.vote is not None else poll.end - 1
            if poll.start < self.at <= last or (poll.start == self.at and not unsure):
                self._enter(poll.start, found, work)
        seen: set[tuple[str, int]] = set()
        while work:
            item = work.popleft()
            if item not in seen:
                seen.add(item)
                for at in self._definitions(*item):
                    self._enter(at, found, work)
        return list(found)

    def _enter(self, at: int, found: dict[int, None], work: deque[tuple[str, int]]) -> None:
        """One more instruction decides: what it computes with comes next."""
        if at in found:
            return
        found[at] = None
        op = self.body[at]
        if isinstance(op, ops.Load):
            for writer in self._writers(at):
                found.setdefault(writer, None)
                other = self.body[writer]
                if isinstance(other, ops.Store):
                    work.extend((value.name, writer) for value in other.values if isinstance(value, ops.Reg))
        elif not isinstance(op, ops.Atomic):
            work.extend((name, at) for name in sorted(self._uses[at]))

    def _definitions(self, name: str, at: int) -> Iterator[int]:
        """The instructions that may give a register the value that it has at ``at``."""
        seen: set[int] = set()
        stack = [*self.graph.before[at]]
        while stack:
            pc = stack.pop()
            if pc in seen:
                continue
            seen.add(pc)
            defines = name in self._gives[pc]
            if defines:
                yield pc
            if not defines or self.body[pc].guard is not None:
                stack += self.graph.before[pc]

    def _places(self, at: int) -> set[tuple[int, int]]:
        """Where an instruction has accessed memory, or would now."""
        found = set(self._accessed.get(at, ()))
        op = self.body[at]
        if (at == self.at or at in self.machine.waiting) and isinstance(op, ops.Load):
            try:
                place = self.machine.places(op.address, op.space, op.type.bytes, at, np.array([self.thread]))
                found.add((int(place[0]), op.type.bytes))
            except Stopped:
                pass
        return found

    def _writers(self, at: int) -> list[int]:
        """The instructions that have written what one reads."""
        if at in self._written:
            return self._written[at]
        rows, found = self._rows, set[int]()
        for place, size in self._places(at):
            overlap = (rows["place"] < place + size) & (rows["place"] + rows["size"] > place) & (rows["kind"] != READ)
            found.update(np.unique(rows["instruction"][overlap]).tolist())
        alike = (
            pc for pc, op in enumerate(self.body) if isinstance(op, ops.Atomic) and op.address == self._address(at)
        )
        self._written[at] = sorted({*found, *alike} - {at})
        return self._written[at]

    # -- on from what was found --

    def _forward(self, at: int) -> set[str]:
        """The registers that get what the instruction ``at`` gives, or what is computed from that."""
        names, size, handed = set(self._gives[at]), -1, set[int]()
        while size != len(names):
            size = len(names)
            for pc, op in enumerate(self.body):
                if not names & self._uses[pc] or isinstance(op, ops.Load | ops.Atomic):
                    continue
                names |= self._gives[pc]
                if isinstance(op, ops.Store) and pc not in handed and self._stores(op, names):
                    handed.add(pc)
                    loads = (other for other, one in enumerate(self.body) if isinstance(one, ops.Load))
                    names = names.union(*(self._gives[load] for load in loads if pc in self._writers(load)))
        return names

    def _stores(self, op: ops.Store, names: set[str]) -> bool:
        return any(isinstance(value, ops.Reg) and value.name in names for value in op.values)

    def _loop(self, at: int) -> list[int]:
        """The instructions of the outermost loop that has an instruction; none where it is in no loop."""
        number = self._component[at]
        found = [pc for pc in range(len(self.body)) if self._component[pc] == number]
        return found if len(found) > 1 or at in self.graph.after[at] else []

    def _tried_again(self, at: int) -> bool:
        """Whether a loop with an instruction ends or not by what that gives."""
        loop, names = set(self._loop(at)), self._forward(at)
        ends = (pc for pc in loop if conditional(self.body[pc]) and not loop.issuperset(self.graph.after[pc]))
        return any((guard := self.body[pc].guard) is not None and guard.register in names for pc in ends)

    def _picks(self, names: set[str]) -> bool:
        """Whether a register of ``names`` is the address of an access."""
        return any(
            isinstance(touch.address.base, ops.Reg) and touch.address.base.name in names
            for op in self.body
            for touch in ops.touched(op)
        )

    def _atomic(self, at: int) -> ChoiceKind:
        op = self.body[at]
        assert isinstance(op, ops.Atomic)
        alike = [pc for pc in self._same(at) if isinstance(one := self.body[pc], ops.Atomic) and one.op == op.op]
        again = next(filter(self._tried_again, alike), None)
        if op.op == "cas":
            return "claim" if again is None else self._swap(again)
        if op.op not in ("add", "sub", "inc", "dec"):
            return "claim" if again is None else "lock"
        names = self._forward(at)
        for poll in self.machine.waiting.values():
            first = self.body[poll.start]
            assert isinstance(first, ops.Load)
            base = first.address.base
            if names.intersection(poll.inputs) - ({base.name} if isinstance(base, ops.Reg) else set()):
                return "arrivals" if poll.start in self._same(at) else "lock"
        return "ticket" if self._picks(names) or again is not None else "arrivals"

    def _same(self, at: int) -> list[int]:
        """The loads and atomic operations of the location of one."""
        here = self._places(at)
        reads = ((pc, op) for pc, op in enumerate(self.body) if isinstance(op, ops.Load | ops.Atomic))
        return [pc for pc, op in reads if pc == at or op.address == self._address(at) or self._places(pc) & here]

    def _address(self, at: int) -> ops.Address | None:
        op = self.body[at]
        return op.address if isinstance(op, ops.Load | ops.Atomic) else None

    def _swap(self, at: int) -> ChoiceKind:
        """What a ``cas`` is that is tried again until it succeeds."""
        op, loop = self.body[at], self._loop(at)
        assert isinstance(op, ops.Atomic)
        compared = op.operands[0][0]
        reads = [pc for pc in self._same(at) if isinstance(compared, ops.Reg) and compared.name in self._forward(pc)]
        if not reads:
            return "lock"
        names = set[str]().union(*map(self._forward, reads))
        for pc in loop:
            other = self.body[pc]
            if isinstance(other, ops.Store) and self._stores(other, names):
                return "list"
            if isinstance(other, ops.Load) and isinstance(base := other.address.base, ops.Reg) and base.name in names:
                return "list"
        inside = [tuple(n for n in self.graph.after[pc] if n in loop and n != at) for pc in range(self.graph.end + 1)]
        waits = any(pc in reach(inside, inside[pc]) for pc in reads if pc in loop and pc != at)
        return "semaphore" if waits else "update"

    def _load(self, loads: list[int], together: bool) -> tuple[ChoiceKind, int]:
        """The kind of what is decided by strong loads alone, and the load."""
        at = loads[0]
        op = self.body[at]
        assert isinstance(op, ops.Load)
        loop = set(self._loop(at))
        if self._tried_again(at):
            if together:
                return "vote", at
            moves = any(isinstance(op.address.base, ops.Reg) and op.address.base.name in self._gives[pc] for pc in loop)
            if moves:
                return "look-back", at
            if sum(pc in loop and self._address(pc) == op.address for pc in loads) > 1:
                return "sequence-lock", at
        kind: ChoiceKind = "hazard" if any(map(self._after_fence, (*loads, self.at))) else "look"
        return kind, at

    def _after_fence(self, at: int) -> bool:
        """Whether strong stores, and then a ``fence.sc``, come before a load."""
        before = reach(self.graph.before, self.graph.before[at])
        fences = [pc for pc in before if isinstance(op := self.body[pc], ops.Fence) and op.sem == "sc"]
        earlier = reach(self.graph.before, fences)
        return any(isinstance(op := self.body[pc], ops.Store) and op.scope is not None for pc in earlier)


def _special(op: ops.Op) -> ChoiceKind | None:
    """What an instruction reads that is no memory."""
    if isinstance(op, ops.WarpExchange) and op.op == "activemask":
        return "active-lanes"
    return "clock" if any(name in _CLOCKS for name, _ in uses(op)) else None
