"""Loops that wait: those in which a thread does nothing but read some locations until it likes what it finds there.

Such a loop is found in the text (``polls``). Where one goes on behind a load is tried on a copy of the registers
(``Round``), so that it can be asked of any values that the thread may read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import copy
from typing import TypeGuard

import numpy as np
from msgspec import Struct

from ptxmm.program.graph import Graph, graph_of, live_at, post_dominators, reach
from ptxmm.ptx import ops
from ptxmm.ptx.isa import names_written, uses
from ptxmm.whole.arrays import Flags, Numbers
from ptxmm.whole.execution.computing import results
from ptxmm.whole.execution.state import State, Stopped
from ptxmm.whole.execution.values import Value, extended, mask, unknown
from ptxmm.whole.order.origins import Words

_STEPS = 10_000
_MOST_WAYS = 2_000
OPAQUE = -1
"""What is found where that is not known."""


class Vote(Struct, frozen=True):
    """Where threads meet in a loop in which they wait together: the ``bar.red``, the instruction behind the loop
    (``end``), the first ``load`` in the loop; the registers that it uses (``names``), those that rounds write, of these
    those that they hand on (``kept``), and those that are made of themselves (``counted``)."""

    at: int
    end: int
    load: int
    names: frozenset[str]
    written: frozenset[str]
    kept: frozenset[str]
    counted: frozenset[str]


class Poll(Struct, frozen=True):
    """What waits, from the load at ``start`` to the instruction ``end``, behind the loop; its ``loads``; the registers
    that are ``needed`` at each of them and at the end, of those that the loop uses or leaves; what comes ``after`` each
    of its instructions. ``late``: one of its loads is in no loop, so that nothing behind depends on what that finds.
    ``kept``: registers that it may leave as they were. ``fixed``: instructions of it that give the same in every round
    if nobody writes what they load, done before the first one. ``vote``: the ``end`` is a vote, and the loop ends if
    the thread says so there. ``divided``: a fence is between two loads of a round."""

    start: int
    end: int
    loads: frozenset[int]
    needed: Mapping[int, tuple[str, ...]]
    after: Mapping[int, tuple[int, ...]]
    late: bool
    kept: frozenset[str]
    vote: Vote | None = None
    fixed: tuple[int, ...] = ()
    divided: bool = False

    @property
    def inputs(self) -> tuple[str, ...]:
        """The registers that it begins with."""
        return self.needed[self.start]

    @property
    def outputs(self) -> tuple[str, ...]:
        """The registers that it leaves."""
        return self.needed[self.end]

    def passes(self, at: int, loads: frozenset[int]) -> bool:
        """Whether a thread may come from a load to the end without any of some ``loads``, this one too."""
        inside = {pc: () if pc in loads else targets for pc, targets in self.after.items()}
        seen, stack = {at}, [at]
        while stack:
            for step in inside.get(stack.pop(), ()):
                if step not in seen:
                    seen.add(step)
                    stack.append(step)
        return self.end in seen


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
            fixed = constant_loads(body, region, live[start])
            if graph.end in region or not all(at in fixed or _pure(body[at]) for at in region):
                break
            written = frozenset(name for at in region for name in names_written(body[at]))
            given = frozenset(name for at in fixed for name in names_written(body[at]))
            here = frozenset(at for at in region if looks(body[at]))
            if any(_moves(body[at], written - given) for at in here):
                break
            turning = _turning(graph, region) & here
            if any(_address(body[at]) not in {_address(body[load]) for load in turning} for at in here):
                if turning:
                    break
                continue
            if _decides(body, region):
                left = written & live[end]
                used = frozenset[str]().union(*(turned_by(body[at], at in fixed) for at in region)) | left
                needed = {at: tuple(sorted(used & (live[at] | given))) for at in here} | {end: tuple(sorted(left))}
                after = {at: graph.after[at] for at in region}
                parted = divided(body, [after.get(at, ()) for at in range(graph.end + 1)], region, (start, end), here)
                found[start] = Poll(
                    start, end, here, needed, after, here != turning, left & live[start], None, fixed, parted
                )  # fmt: skip
                break
    return found


def looks(op: ops.Op) -> TypeGuard[ops.Load]:
    """Whether an instruction is a strong load of numbers."""
    return isinstance(op, ops.Load) and op.scope is not None and op.type.bytes <= 8


def _pure(op: ops.Op) -> bool:
    """Whether an instruction of a loop does nothing but look."""
    other = isinstance(op, (*ops.COMPUTING, ops.Branch, ops.Fence)) and not isinstance(op, ops.AddressValue)
    return other or looks(op)


def constant_loads(body: Sequence[ops.Op], region: set[int], live: frozenset[str]) -> tuple[int, ...]:
    """The weak loads of a loop, and what their addresses and those of strong loads are made of by them, that give the
    same in every round as long as nobody writes what they load, in an order in which they may be done before; ``live``:
    registers that are needed where it begins."""
    if not any(_weak(body[at]) for at in region):
        return ()
    writers = Counter(name for at in region for name in names_written(body[at]))
    found: dict[int, None] = {}
    given: set[str] = set()
    for at in sorted(region):
        op, names = body[at], frozenset(names_written(body[at]))
        once = all(writers[name] == 1 for name in names) and not names & live
        same = all(name in given or not writers[name] for name, _ in uses(op))
        if op.guard is None and once and same and (_weak(op) or (isinstance(op, ops.COMPUTING) and _pure(op))):
            found[at] = None
            given |= names
    return tuple(found)


def turned_by(op: ops.Op, fixed: bool) -> frozenset[str]:
    """The registers that decide what a round does at an instruction: of a load those of its address do not, nor do
    those of what is ``fixed``, which is done before."""
    if fixed or looks(op):
        return frozenset() if op.guard is None else frozenset({op.guard.register})
    return frozenset(name for name, _ in uses(op))


def divided(
    body: Sequence[ops.Op], after: Sequence[tuple[int, ...]], region: set[int], ends: tuple[int, int],
    loads: Collection[int],
) -> bool:  # fmt: skip
    """Whether a fence is between two loads of a round from one of its ``ends`` to the other one, so that it orders
    behind what the first one finds alone."""
    if len(loads) < 2 or not any(isinstance(body[at], ops.Fence) for at in region):
        return False
    turn = [() if at == ends[1] else nodes for at, nodes in enumerate(after)]
    fences = [at for at in reach(turn, loads) & region if isinstance(body[at], ops.Fence)]
    return bool(reach(turn, fences, ends[0]) & {*loads})


def _weak(op: ops.Op) -> bool:
    return isinstance(op, ops.Load) and op.scope is None and op.type.bytes <= 8


def _address(op: ops.Op) -> object:
    """Where a load reads."""
    assert isinstance(op, ops.Load)
    return op.space, op.type, op.address, len(op.dst)


def _moves(op: ops.Op, written: frozenset[str]) -> bool:
    """Whether the address of a load changes with what is ``written``."""
    return isinstance(op, ops.Load) and isinstance(op.address.base, ops.Reg) and op.address.base.name in written


def _chain(behind: dict[int, int], at: int) -> Iterator[int]:
    while at in behind:
        at = behind[at]
        yield at


def _turning(graph: Graph, region: set[int]) -> frozenset[int]:
    """What of a ``region`` is in a loop of it."""
    inside = [targets if at in region else () for at, targets in enumerate(graph.after)]
    return frozenset(at for at in region if at in reach(inside, inside[at]))


def _decides(body: Sequence[ops.Op], region: set[int]) -> bool:
    """Whether what is read decides where the thread goes."""
    read = {name for at in region if looks(body[at]) for name in names_written(body[at])}
    size = 0
    while size != len(read):
        size = len(read)
        for at in region:
            if read & {name for name, _ in uses(body[at])}:
                read |= set(names_written(body[at]))
    guards = (body[at].guard for at in region if isinstance(body[at], ops.Branch))
    return any(guard is not None and guard.register in read for guard in guards)


def found(state: State, op: ops.Load, given: Sequence[Sequence[int]]) -> dict[str, Value]:
    """The registers of a load that finds what is ``given`` in its elements, or in the pieces of its vector."""
    items, bits = len(op.dst) // len(given[0]), op.type.bits
    values = {}
    for number, register in enumerate(op.dst):
        if register is not None:
            column = [row[number // items] for row in given]
            words = np.array([word >> number % items * bits & mask(bits) for word in column], np.uint64)
            if op.type.signed:
                words = extended(words, bits, state.bits(register))
            values[register.name] = Value(words, np.array([word != OPAQUE for word in column], np.bool_))
    return values


class Outcome(Struct, frozen=True):
    """Where a thread comes to behind a load: the end of the loop or another load (``at``), what the registers are that
    are needed there (None: not known), and the fences on the way if it is the end."""

    at: int
    words: Words
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

    def register(self, name: str, threads: Numbers) -> Value:
        return self._written.get(name) or unknown(len(self._lanes))

    def assign(self, register: ops.Reg | None, threads: Numbers, value: Value) -> None:
        if register is not None:
            self._written[register.name] = value

    def run(self, poll: Poll, at: int, given: Sequence[Sequence[int]]) -> list[frozenset[Outcome]]:
        """What may follow in each case when what the load at ``at`` finds, in each element or each piece of its vector,
        is what is ``given``: several ways where a branch depends on what is not known. Raises ``Stopped`` where there
        are too many."""
        self._give(at, given)
        outcomes: list[set[Outcome]] = [set() for _ in given]
        work = [_Way(self, at + 1, np.arange(len(given)), (), False)]
        for _ in range(_MOST_WAYS):
            if not work:
                return [frozenset(each) for each in outcomes]
            way = work.pop()
            way.part._follow(poll, way, work, outcomes)
        raise Stopped("undecided", "this loop goes too many ways", at)

    def _follow(self, poll: Poll, way: _Way, work: list[_Way], found: list[set[Outcome]]) -> None:
        """Go on with what is in ``way``; where cases part both ways go to ``work``."""
        at, fences, passed = way.at, way.fences, way.passed
        for _ in range(_STEPS):
            if at == poll.end:
                self._end(poll, way.which, fences, found)
                return
            op = self.body[at]
            if at in poll.fixed:
                at += 1
                continue
            if op.guard is not None and not passed:
                value = self.register(op.guard.register, self._lanes)
                skips = (value.words != 0) == op.guard.negated
                skip, go = skips | ~value.known, ~skips | ~value.known
                if go.any() and skip.any():
                    work.append(_Way(self._only(skip), at + 1, way.which[skip], fences, False))
                    work.append(_Way(self._only(go), at, way.which[go], fences, True))
                    return
                if skip.any():
                    at += 1
                    continue
            passed = False
            if looks(op):
                self._come(at, poll, way.which, (), found)
                return
            if isinstance(op, ops.Branch):
                at = op.target
                continue
            if isinstance(op, ops.Fence):
                fences = (*fences, at)
            elif isinstance(op, ops.COMPUTING):
                for register, value in results(self, op, self._lanes):
                    self.assign(register, self._lanes, value)
            else:
                raise Stopped("undecided", "in this loop, which waits, this may be executed as well", at)
            at += 1
        raise Stopped("undecided", "a loop in this one has too many rounds", at)

    def _end(self, poll: Poll, which: Numbers, fences: tuple[int, ...], found: list[set[Outcome]]) -> None:
        """The cases ``which`` come to the end."""
        self._come(poll.end, poll, which, fences, found)

    def _come(self, at: int, poll: Poll, which: Numbers, fences: tuple[int, ...], found: list[set[Outcome]]) -> None:
        """The cases ``which`` come to a load or to the end."""
        values = [self.register(name, self._lanes) for name in poll.needed[at]]
        columns = [
            [word if known else None for word, known in zip(value.words.tolist(), value.known.tolist(), strict=True)]
            for value in values
        ]
        rows = zip(*columns, strict=True) if columns else ((),) * len(which)
        for number, words in zip(which.tolist(), rows, strict=True):
            found[number].add(Outcome(at, tuple(words), fences))

    def _only(self, chosen: Flags) -> Round:
        """The same in the ``chosen`` cases."""
        part = copy(self)
        part._lanes = self._lanes[chosen]
        part._written = {name: value.at(chosen) for name, value in self._written.items()}
        return part

    def computed(self, op: ops.Op, register: str) -> int | None:
        """What ``op`` gives a register in the first case, if that is known."""
        for written, value in results(self, op, self._lanes):
            if written is not None and written.name == register and value.known[0]:
                return int(value.words[0])
        return None

    def _give(self, at: int, given: Sequence[Sequence[int]]) -> None:
        op = self.body[at]
        assert isinstance(op, ops.Load)
        self._written.update(found(self, op, given))


class _Way(Struct):
    """The cases ``which`` go on at an instruction with what is in ``part``; the fences before it; ``passed``: whether
    its guard holds in all of them."""

    part: Round
    at: int
    which: Numbers
    fences: tuple[int, ...]
    passed: bool
