"""Loops that wait: those in which a thread does nothing but read one location until it likes what it finds there.

Such a loop is found in the text (``polls``). Whether it ends with a value is tried on a copy of the registers
(``Round``), so that it can be asked of any value that the thread may read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from msgspec import Struct

from ptxmm.program.graph import Graph, graph_of, live_at, post_dominators, reach
from ptxmm.ptx import ops
from ptxmm.ptx.isa import definitions, uses
from ptxmm.whole.arrays import Flags, Numbers
from ptxmm.whole.execution.computing import results
from ptxmm.whole.execution.state import State, Stopped
from ptxmm.whole.execution.values import Value, extended, unknown
from ptxmm.whole.order.origins import Words

_STEPS = 10_000


class Vote(Struct, frozen=True):
    """Where threads meet in a loop in which they wait together: the ``bar.red``, the instruction behind the loop
    (``end``), the ``load`` in the loop; the registers that it uses (``names``), those that rounds write, and of these
    those that they hand on (``kept``)."""

    at: int
    end: int
    load: int
    names: frozenset[str]
    written: frozenset[str]
    kept: frozenset[str]


class Poll(Struct, frozen=True):
    """What waits, from the load at ``start`` to the instruction ``end``, behind the loop: the loads that come after one
    that did not end it (``again``); the registers that it begins with (``inputs``), those that it writes, and those of
    them that are needed behind it (``outputs``). ``late``: one of its loads is in no loop, so that nothing behind
    depends on what that finds. ``vote``: the ``end`` is a vote, and the loop ends if the thread says so there."""

    start: int
    end: int
    again: frozenset[int]
    inputs: tuple[str, ...]
    written: frozenset[str]
    outputs: frozenset[str]
    late: bool
    vote: Vote | None = None


def polls(body: Sequence[ops.Op], observed: frozenset[str]) -> dict[int, Poll]:
    """The loops of a kernel that wait, by the strong loads that a thread may come to first; ``observed``: registers
    that are asked for when a thread has ended."""
    loads = [at for at, op in enumerate(body) if looks(op)]
    if not loads:
        return {}
    graph = graph_of(body)
    behind, live = post_dominators(graph), live_at(body, graph, observed)
    found = {}
    for start in loads:
        for end in _chain(behind, start):
            region = reach(graph.after, [start], end)
            if graph.end in region or not all(_pure(body[at], body[start]) for at in region):
                break
            again, late = _again(body, graph, start, region)
            written = frozenset(name for at in region for name, _ in definitions(body[at]))
            if again and _decides(body, region) and not _moves(body[start], written):
                used = {name for at in region for name, _ in uses(body[at])}
                inputs = tuple(sorted(used & live[start]))
                found[start] = Poll(start, end, again, inputs, written, written & live[end], late)
                break
    return found


def looks(op: ops.Op) -> bool:
    """Whether an instruction is a strong load of one number."""
    return isinstance(op, ops.Load) and op.scope is not None and len(op.dst) == 1 and op.type.bytes <= 8


def _pure(op: ops.Op, first: ops.Op) -> bool:
    """Whether an instruction of a loop does nothing but look as the ``first`` one does."""
    if isinstance(op, ops.Load) and isinstance(first, ops.Load):
        return looks(op) and (op.space, op.type, op.address) == (first.space, first.type, first.address)
    return isinstance(op, (*ops.COMPUTING, ops.Branch, ops.Fence)) and not isinstance(op, ops.AddressValue)


def _moves(op: ops.Op, written: frozenset[str]) -> bool:
    """Whether the address of a load changes with what is ``written``."""
    return isinstance(op, ops.Load) and isinstance(op.address.base, ops.Reg) and op.address.base.name in written


def _chain(behind: dict[int, int], at: int) -> Iterator[int]:
    while at in behind:
        at = behind[at]
        yield at


def _again(body: Sequence[ops.Op], graph: Graph, start: int, region: set[int]) -> tuple[frozenset[int], bool]:
    """The loads of ``region`` that come after another one, none where no load is in a loop of it; and whether one is in
    no loop."""
    outside = [at for at in range(graph.end + 1) if at not in region]
    inside = [() if at in outside else targets for at, targets in enumerate(graph.after)]
    after = {at: reach(inside, inside[at]) for at in region if looks(body[at])}
    turning = [at in found for at, found in after.items()]
    return frozenset(after.keys() & after[start]) if any(turning) else frozenset(), not all(turning)


def _decides(body: Sequence[ops.Op], region: set[int]) -> bool:
    """Whether what is read decides where the thread goes."""
    read = {name for at in region if looks(body[at]) for name, _ in definitions(body[at])}
    size = 0
    while size != len(read):
        size = len(read)
        for at in region:
            if read & {name for name, _ in uses(body[at])}:
                read |= {name for name, _ in definitions(body[at])}
    guards = (body[at].guard for at in region if isinstance(body[at], ops.Branch))
    return any(guard is not None and guard.register in read for guard in guards)


class Outcome(Struct, frozen=True):
    """What a round leads to: the end of the loop or another load (``at``), the registers that it gives values, and the
    fences that are executed on the way."""

    at: int
    registers: dict[str, tuple[int, bool]]
    fences: tuple[int, ...]


class Round(State):
    """A thread of ``state`` that goes round a loop which waits, in several ``cases`` at once: what its registers with
    these ``names`` are in each."""

    def __init__(self, state: State, names: Sequence[str], cases: Sequence[Words]) -> None:
        self.kernel, self.body, self.memory = state.kernel, state.body, state.memory
        self._lanes = np.zeros(len(cases), np.int64)
        self._written: dict[str, Value] = {}
        for name, words in zip(names, zip(*cases, strict=True), strict=True):
            known = np.array([word is not None for word in words], np.bool_)
            self._written[name] = Value(np.array([word or 0 for word in words], np.uint64), known)
        self._made: set[str] = set()

    def register(self, name: str, threads: Numbers) -> Value:
        return self._written.get(name) or unknown(len(self._lanes))

    def assign(self, register: ops.Reg | None, threads: Numbers, value: Value) -> None:
        if register is not None:
            self._written[register.name] = value
            self._made.add(register.name)

    def forget(self, registers: Iterable[str]) -> None:
        """Nothing is known of some registers."""
        for name in registers:
            self.assign(ops.Reg(name), self._lanes, unknown(len(self._lanes)))

    def run(self, poll: Poll, at: int, words: Sequence[int]) -> list[Outcome]:
        """What follows in each case when the load at ``at`` gives one of ``words``. Raises ``Stopped`` where that is
        not known."""
        self._give(at, words)
        found: dict[int, Outcome] = {}
        work: list[_Way] = [(self, at + 1, np.arange(len(words)), ())]
        while work:
            part, place, which, fences = work.pop()
            outcomes = part._follow(poll, place, which, fences, work)
            found |= zip(which.tolist(), outcomes, strict=True) if outcomes else ()
        return [found[number] for number in range(len(words))]

    def _follow(
        self, poll: Poll, at: int, which: Numbers, fences: tuple[int, ...], work: list[_Way]
    ) -> list[Outcome] | None:
        """What follows from ``at`` on; None where cases part: then both ways go to ``work``."""
        for _ in range(_STEPS):
            if at == poll.end:
                return [Outcome(at, given, fences) for given in self._given()]
            op = self.body[at]
            if op.guard is not None:
                skips = self._skips(at, op.guard)
                if not (skips.all() or not skips.any()):
                    work += [(self._only(chosen), at, which[chosen], fences) for chosen in (skips, ~skips)]
                    return None
                if skips[0]:
                    at += 1
                    continue
            if looks(op):
                return [Outcome(at, {}, ())] * len(which)
            if isinstance(op, ops.Branch):
                at = op.target
                continue
            if isinstance(op, ops.Fence):
                fences = (*fences, at)
            elif isinstance(op, ops.COMPUTING):
                for register, value in results(self, op, self._lanes):
                    self.assign(register, self._lanes, value)
            at += 1
        raise Stopped("undecided", "a loop in this one has too many rounds", at)

    def _only(self, chosen: Flags) -> Round:
        """The same in the ``chosen`` cases."""
        part = Round(self, (), ())
        part._lanes = self._lanes[chosen]
        part._written = {name: value.at(chosen) for name, value in self._written.items()}
        part._made = set(self._made)
        return part

    def computed(self, op: ops.Op, register: str) -> int | None:
        """What ``op`` gives a register in the first case, if that is known."""
        for written, value in results(self, op, self._lanes):
            if written is not None and written.name == register and value.known[0]:
                return int(value.words[0])
        return None

    def _given(self) -> Iterator[dict[str, tuple[int, bool]]]:
        """The registers that have got values, in each case."""
        names = sorted(self._made)
        values = [self._written[name] for name in names]
        columns = [zip(value.words.tolist(), value.known.tolist(), strict=True) for value in values]
        for row in zip(*columns, strict=True) if names else ((),) * len(self._lanes):
            yield dict(zip(names, row, strict=True))

    def _give(self, at: int, given: Sequence[int]) -> None:
        op = self.body[at]
        assert isinstance(op, ops.Load)
        words = np.array(given, np.uint64)
        if op.dst[0] is not None:
            if op.type.signed:
                words = extended(words, op.type.bits, self.bits(op.dst[0]))
            self.assign(op.dst[0], self._lanes, Value(words, np.ones(len(words), np.bool_)))

    def _skips(self, at: int, guard: ops.Guard) -> Flags:
        """In which cases an instruction is not executed."""
        value = self.register(guard.register, self._lanes)
        if not value.known.all():
            message = "whether this loop ends depends on a value that is not worked out"
            raise Stopped("undecided", message, at)
        skips: Flags = (value.words != 0) == guard.negated
        return skips


_Way = tuple[Round, int, Numbers, tuple[int, ...]]
"""Cases that go on at an instruction: which they are, and the fences before it."""
