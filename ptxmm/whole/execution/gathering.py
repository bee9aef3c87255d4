"""Loops in which the threads of a CTA, or the lanes of a warp, wait together: each looks, and a barrier or a vote tells
all whether they have found it.

In a round some threads read one location, all meet at a ``bar.red`` or a ``vote.sync``, and what that gives decides
whether there is another round. A round that does not end the loop does nothing else, so that the last one stands
for all: a thread waits at its load until what it finds is for the end of the loop (docs/whole.md). ``Gathering``
checks when they meet that the other threads have no say in it, and would do the same in each round.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct

from ptxmm.program.graph import (
    Graph,
    dominates,
    dominators,
    graph_of,
    live_at,
    makers,
    post_dominators,
    reach,
)
from ptxmm.ptx import ops
from ptxmm.ptx.isa import names_written, uses
from ptxmm.whole.arrays import Flags, Numbers
from ptxmm.whole.execution.computing import results
from ptxmm.whole.execution.polls import Outcome, Poll, Round, Vote, constant_loads, divided, looks, turned_by
from ptxmm.whole.execution.state import WAITS, State, Stopped
from ptxmm.whole.execution.values import Value, constant, unknown
from ptxmm.whole.order.origins import Words

_STEPS = 10_000
_ROUND = "in which round this loop ends depends on the schedule"
Registers = dict[str, Value]


def gathers(body: Sequence[ops.Op], observed: frozenset[str], polls: Mapping[int, Poll]) -> dict[int, Poll]:
    """The loads by which a thread waits in such a loop, of those that are not in ``polls``; ``observed``: registers
    that are asked for when a thread has ended."""
    votes = [at for at, op in enumerate(body) if _votes(body, op)]
    if not votes or any(isinstance(op, ops.WarpExchange) and op.op == "elect" for op in body):
        return {}
    graph = graph_of(body)
    behind, live, dominator = post_dominators(graph), live_at(body, graph, observed), dominators(graph)
    waits: dict[int, Poll] = {}
    for vote in votes:
        end = _left_at(graph, behind, vote)
        if end is None:
            continue
        every = reach(graph.after, graph.after[vote], end)
        for start, op in enumerate(body):
            if not looks(op) or op.guard is not None or start in polls or start in waits:
                continue
            fixed = constant_loads(body, every, live[start]) if start in every else ()
            more = {at for at in every.difference(fixed, {vote}) if not _pure(body[at], body[vote])}
            inside = [() if at in more else nodes for at, nodes in enumerate(graph.after)]
            region = reach(inside, inside[vote], end) - more
            loads = [at for at in sorted(region) if looks(body[at])]
            if vote not in region or not loads or not _first(body, dominator, start, loads):
                continue
            again = reach([() if at == vote else nodes for at, nodes in enumerate(graph.after)], inside[vote], loads[0])
            if again & {*more, *fixed, *loads} or divided(body, inside, region, (loads[0], vote), loads):
                continue
            onward = inside if start in every else _onward(body, graph, dominator, start, vote)
            way = reach(onward, [start], vote) - more
            if graph.end in way:
                continue
            if start not in every:
                fixed = _parameters(body, onward, way, start, live[start])
                if loads[0] in way or not all(_pure(body[at], body[vote]) for at in way.difference(fixed)):
                    continue
            given = frozenset(name for at in fixed for name in names_written(body[at]))
            done = (way | region).difference(fixed)
            written = frozenset(name for at in done for name in names_written(body[at]))
            used = frozenset[str]().union(*(turned_by(body[at], at in fixed) for at in way | region))
            if any(looks(load) and written & _fixed(load, body[vote]) for load in map(body.__getitem__, loads)):
                continue
            turned = frozenset(name for at in region.difference(fixed) for name in names_written(body[at]))
            counted = _counted(body, region.difference(fixed))
            kept = Vote(vote, end, loads[0], used | written, turned, turned & live[vote], counted)
            left = written & live[vote]
            here = frozenset({start, *loads})
            needed = {at: tuple(sorted((used | left) & (live[at] | given))) for at in here}
            waits[start] = Poll(
                start, vote, here, needed | {vote: tuple(sorted(left))}, {at: onward[at] for at in way | region}, False,
                left & live[start], kept, fixed,
            )  # fmt: skip
    return waits


def _left_at(graph: Graph, behind: Mapping[int, int], vote: int) -> int | None:
    """Where the innermost loop around a vote ends; None if it is in none."""
    end = behind.get(vote)
    while end is not None and vote not in reach(graph.after, graph.after[vote], end):
        end = behind.get(end)
    return end


def _first(body: Sequence[ops.Op], dominator: dict[int, int], start: int, loads: Sequence[int]) -> bool:
    """Whether a thread that comes to the ``loads`` of a round has come to ``start``: to the first of them, or where
    there is one, to another load of the same location before the loop."""
    if len(loads) == 1:
        return _alike(body[start], body[loads[0]])
    return start == loads[0] and all(body[at].guard is None and dominates(dominator, start, at) for at in loads)


def _counted(body: Sequence[ops.Op], region: Iterable[int]) -> frozenset[str]:
    """The registers that rounds make of what they have been before."""
    made: dict[str, set[str]] = {}
    for at in region:
        for name in names_written(body[at]):
            made.setdefault(name, set()).update(turned_by(body[at], fixed=False))
    found = set()
    for name in made:
        seen, work = set[str](), [*made[name]]
        while work:
            if (each := work.pop()) not in seen:
                seen.add(each)
                work += made.get(each, ())
        if name in seen:
            found.add(name)
    return frozenset(found)


def _onward(
    body: Sequence[ops.Op], graph: Graph, dominator: dict[int, int], start: int, vote: int
) -> list[tuple[int, ...]]:
    """What comes after each instruction on the way from ``start`` to a vote: a branch on a predicate that has not
    changed since another branch before goes as that one has gone."""
    after, inside, made_by = [tuple(nodes) for nodes in graph.after], reach(graph.after, [start], vote), makers(body)
    gone: dict[str, bool] = {}
    pc = start
    while pc in dominator:
        pc = dominator[pc]
        op = body[pc]
        if not isinstance(op, ops.Branch) or op.guard is None or op.condition is not None or op.target == pc + 1:
            continue
        name = op.guard.register
        if len(made_by.get(name, ())) != 1 or inside.union(reach(graph.after, [pc], start)) & {*made_by[name]}:
            continue
        for node, taken in ((op.target, True), (pc + 1, False)):
            if [*graph.before[node]] == [pc] and dominates(dominator, node, start):
                gone[name] = taken != op.guard.negated
    for at in inside - {graph.end}:
        op = body[at]
        if isinstance(op, ops.Branch) and op.guard is not None and op.guard.register in gone:
            after[at] = (op.target if gone[op.guard.register] != op.guard.negated else at + 1,)
    return after


def _parameters(
    body: Sequence[ops.Op], onward: Sequence[tuple[int, ...]], way: set[int], start: int, live: frozenset[str]
) -> tuple[int, ...]:
    """The loads of parameters on a way, and what their addresses are made of, that may be done before it; ``live``:
    registers that are needed there."""
    found: list[int] = []
    given: set[str] = set()
    for at in sorted(way):
        op, names = body[at], frozenset(names_written(body[at]))
        parameter = isinstance(op, ops.Load) and op.space == "param" and op.type.bytes <= 8
        if op.guard is not None or not (parameter or isinstance(op, ops.COMPUTING)) or names & (live | given):
            continue
        before = reach(onward, [start], at) & way
        written = {name for pc in before.difference(found) for name in names_written(body[pc])}
        if not written & {*names, *(name for name, _ in uses(op))} and at not in reach(onward, onward[at]) & way:
            found.append(at)
            given |= names
    return tuple(found) if any(isinstance(body[at], ops.Load) for at in found) else ()


def _fixed(load: ops.Load, vote: ops.Op) -> set[str]:
    """The registers of the address of a load, and of the number of a barrier."""
    barrier = vote.barrier if isinstance(vote, ops.BarrierReduction) else None
    return {operand.name for operand in (load.address.base, barrier) if isinstance(operand, ops.Reg)}


def _votes(body: Sequence[ops.Op], op: ops.Op) -> bool:
    """Whether threads that meet at an instruction learn there what all or one of them say."""
    if isinstance(op, ops.WarpExchange):
        return op.op in ("vote.all", "vote.any") and op.guard is None and op.dst is not None and _constant(body, op)
    return isinstance(op, ops.BarrierReduction) and op.op != "popc" and op.count is None and op.guard is None


def _constant(body: Sequence[ops.Op], op: ops.WarpExchange) -> bool:
    """Whether the mask of a vote is the same whenever it is executed."""
    mask = op.operands[-1]
    if not isinstance(mask, ops.Reg):
        return isinstance(mask, ops.Imm)
    writers = [other for other in body if mask.name in names_written(other)]
    given = {other.sources for other in writers if isinstance(other, ops.Alu) and other.op == "mov"}
    moved = all(isinstance(other, ops.Alu) and other.op == "mov" and other.guard is None for other in writers)
    return moved and len(given) == 1 and isinstance(given.pop()[0], ops.Imm)


class _Ballot(Struct, frozen=True):
    """What a vote gives (``dst``), what a thread says in it, and whether it tells that all say so, or one."""

    dst: ops.Reg
    says: ops.Operand
    negated: bool
    every: bool


def _ballot(op: ops.Op) -> _Ballot:
    if isinstance(op, ops.WarpExchange):
        assert op.dst is not None
        return _Ballot(op.dst, op.operands[0], op.negated, op.op == "vote.all")
    assert isinstance(op, ops.BarrierReduction)
    return _Ballot(op.dst, op.predicate, op.negated, op.op == "and")


def _alike(one: ops.Op, other: ops.Op) -> bool:
    """Whether two loads read the same location, and order the same."""
    if not (isinstance(one, ops.Load) and isinstance(other, ops.Load)):
        return False
    same = (one.space, one.type, one.address, one.sem, one.scope, len(one.dst)) == (
        other.space, other.type, other.address, other.sem, other.scope, len(other.dst),
    )  # fmt: skip
    return same and one.guard is None and other.guard is None


def _pure(op: ops.Op, vote: ops.Op) -> bool:
    """Whether an instruction of such a loop does nothing else. A fence between two looks orders no less if it is there:
    a thread may come so late that it looks once."""
    if isinstance(op, ops.Fence):
        return isinstance(vote, ops.WarpExchange)
    return looks(op) or (isinstance(op, (*ops.COMPUTING, ops.Branch)) and not isinstance(op, ops.AddressValue))


class _Guess(State):
    """``count`` threads with these ``values`` in registers."""

    def __init__(self, state: State, values: Registers, count: int) -> None:
        self.kernel, self.body, self.memory = state.kernel, state.body, state.memory
        self.values, self._count = values, count

    def register(self, name: str, threads: Numbers) -> Value:
        return self.values.get(name) or unknown(self._count)


def _walked(
    state: State, values: Registers, count: int, at: int, stops: frozenset[int], fixed: Collection[int] = ()
) -> list[tuple[int, Registers]]:
    """Where each of ``count`` threads comes to from ``at`` on, of ``stops``, with its registers there; what is
    ``fixed`` is done already. Raises ``Stopped`` where that is not known."""
    ends: dict[int, tuple[int, Registers]] = {}
    work = [(values, at, np.arange(count))]
    steps = 0
    while work:
        values, at, which = work.pop()
        while at not in stops:
            steps += 1
            if steps > _STEPS:
                raise Stopped("undecided", "a loop in this one has too many rounds", at)
            op = state.body[at]
            if at in fixed:
                at += 1
                continue
            guess = _Guess(state, values, len(which))
            if op.guard is not None:
                value = guess.register(op.guard.register, which)
                if not value.known.all():
                    message = "whether threads that wait together go on depends on a value that is not worked out"
                    raise Stopped("undecided", message, at)
                goes = (value.words != 0) ^ op.guard.negated
                if goes.any() and not goes.all():
                    work.append((_only(values, ~goes), at, which[~goes]))
                    values, which = _only(values, goes), which[goes]
                    continue
                if not goes.any():
                    at += 1
                    continue
            if isinstance(op, ops.Branch):
                at = op.target
                continue
            made = {register.name: value for register, value in results(guess, op, which) if register is not None}
            values, at = {**values, **made}, at + 1
        for number, thread in enumerate(which.tolist()):
            ends[thread] = at, _only(values, np.arange(len(which)) == number)
    return [ends[number] for number in range(count)]


def _only(values: Registers, chosen: Flags) -> Registers:
    return {name: value.at(chosen) for name, value in values.items()}


def voted(
    state: State, poll: Poll, at: int, cases: Sequence[Words], given: Sequence[tuple[int, ...]], others: bool,
    last: bool,
) -> list[frozenset[Outcome]]:  # fmt: skip
    """Where the load at ``at`` of a loop leads in each case, what its registers are and what the load finds: to the
    vote with what ends the loop, or to another load; ``others``: to that also where others do not say what ends it.
    ``last``: of a round before the last one nothing is known. Raises ``Stopped`` where that is not known."""
    return _Turn(state, poll.needed[at], cases, others, last).run(poll, at, given)


class _Turn(Round):
    """A thread that goes round such a loop; ``others``: whether somebody else does not say what ends it; ``last``:
    nothing is known of what earlier rounds have written, else of what they count."""

    def __init__(self, state: State, names: Sequence[str], cases: Sequence[Words], others: bool, last: bool) -> None:
        super().__init__(state, names, cases)
        self._others, self._last = others, last

    def _end(self, poll: Poll, which: Numbers, fences: tuple[int, ...], found: list[set[Outcome]]) -> None:
        """The cases ``which`` come to the vote: those that do not say what ends it come to the first load again."""
        vote, count = poll.vote, len(which)
        assert vote is not None
        ends = _ends(self, vote, self._written, count)
        mine, known = _contributed(self, vote, self._written, count)
        if not known.all():
            message = "what a thread says in a vote depends on a value that is not worked out"
            raise Stopped("undecided", message, vote.at)
        leaves = (mine == ends) & (not self._others)
        if leaves.any():
            self._only(leaves)._come(vote.at, poll, which[leaves], fences, found)
        for number in np.flatnonzero(~leaves).tolist():
            values = _only(self._written, np.arange(count) == number)
            ((place, registers),) = _after(self, vote, values, 1, 1 - int(ends[number]))
            if place != vote.load:
                raise Stopped("undecided", "a thread that waits with others looks once only", vote.at)
            registers |= {name: unknown(1) for name in (vote.written if self._last else vote.counted)}
            here = [registers.get(name, unknown(1)) for name in poll.needed[vote.load]]
            words = tuple(int(value.words[0]) if value.known[0] else None for value in here)
            found[int(which[number])].add(Outcome(vote.load, words, ()))


def _after(state: State, vote: Vote, before: Registers, count: int, result: int) -> list[tuple[int, Registers]]:
    """Where threads come to behind a vote with this result."""
    values = {**before, _ballot(state.body[vote.at]).dst.name: constant(result, 32, count)}
    return _walked(state, values, count, vote.at + 1, frozenset({vote.at, vote.end, vote.load}))


def _ends(state: State, vote: Vote, before: Registers, count: int) -> Numbers:
    """The result of a vote with which each thread leaves the loop. Raises ``Stopped`` where that is not one of two."""
    leave = [[at == vote.end for at, _ in _after(state, vote, before, count, result)] for result in (0, 1)]
    if any(one == other for one, other in zip(*leave, strict=True)):
        raise Stopped("undecided", "whether this loop ends depends on more than the vote", vote.at)
    return np.array(leave[1], np.int64)


def _contributed(state: State, vote: Vote, before: Registers, count: int) -> tuple[Numbers, Flags]:
    """What each thread says in a vote, and whether that is known."""
    ballot = _ballot(state.body[vote.at])
    value = _Guess(state, before, count).operand(ballot.says, ops.PREDICATE, np.arange(count))
    return ((value.words != 0) ^ ballot.negated).astype(np.int64), value.known


class Gathering:
    """The threads of ``state`` that have waited in such a loop and not met the others yet (``looked``)."""

    def __init__(self, state: State, waiting: Mapping[int, Poll]) -> None:
        self.state = state
        self.looked: set[int] = set()
        self._votes = {poll.vote.at: poll.vote for poll in waiting.values() if poll.vote is not None}

    def meet(self, places: Mapping[int, list[int]]) -> None:
        """Threads meet at barriers, by the instructions by which they do. Raises ``Stopped`` where the last round of
        their loop need not stand for all."""
        every = [thread for threads in places.values() for thread in threads]
        looked = self.looked & set(every)
        self.looked -= looked
        if not looked:
            return
        if len(places) > 1:
            raise Stopped("undecided", "threads wait together at several places of the text", min(places), every[0])
        vote, threads = self._votes[min(places)], np.array(every)
        said, end = self._said(vote, threads)
        mine = np.isin(threads, sorted(looked))
        needs_all = end == _ballot(self.state.body[vote.at]).every
        if self.state.exact and (said[mine] == end).all() and (not needs_all or (said == end).all()):
            return  # whatever other executions do
        if not (said[mine] == end).all() or not (needs_all or len(looked) == 1):
            raise Stopped("undecided", _ROUND, vote.at, every[0])
        before = {name: self.state.register(name, threads[mine]) for name in vote.names}
        for place, _ in _after(self.state, vote, before, len(looked), 1 - end):
            if place != vote.load:
                raise Stopped("undecided", "a thread that waits with others looks once only", vote.at, every[0])
        self._check_others(vote, threads[~mine], needs_all)

    def stuck(self, thread: int, vote: Vote) -> None:
        """A thread waits in such a loop for ever. Raises ``Stopped`` where those that wait for it may end the loop."""
        first, op = thread // self.state.size * self.state.size, self.state.body[vote.at]
        every = np.arange(first, first + self.state.size)
        if isinstance(op, ops.WarpExchange):
            every = np.array(self.state.members(self.state.warp(thread)))
        others = every[(self.state.mode[every] == WAITS) & (self.state.pc[every] == vote.at + 1)]
        if len(others):
            self._check_others(vote, others, self._said(vote, others)[1] == _ballot(op).every)

    def _said(self, vote: Vote, threads: Numbers) -> tuple[Numbers, int]:
        """What threads say at a vote, and what ends the loop. Raises ``Stopped`` where that is not known."""
        before = {name: self.state.register(name, threads) for name in vote.names}
        said, known = _contributed(self.state, vote, before, len(threads))
        ends = set(_ends(self.state, vote, before, len(threads)).tolist())
        if not known.all() or len(ends) > 1:
            raise Stopped("undecided", _ROUND, vote.at, int(threads[0]))
        return said, ends.pop()

    def _check_others(self, vote: Vote, threads: Numbers, needs_all: bool) -> None:
        """Raise ``Stopped`` where threads that do not look have a say in when the loop ends."""
        if not len(threads):
            return
        said, end = self._said(vote, threads)
        before = {name: self.state.register(name, threads) for name in vote.names}
        for number, (place, after) in enumerate(_after(self.state, vote, before, len(threads), 1 - end)):
            thread = int(threads[number])
            if place != vote.at or said[number] != (end if needs_all else 1 - end):
                raise Stopped("undecided", _ROUND, vote.at, thread)
            for name in sorted(vote.kept):
                value, held = after.get(name, unknown(1)), before[name]
                if not (value.known[0] and held.known[number] and value.words[0] == held.words[number]):
                    message = f"{name} changes from round to round of this loop, in which others wait"
                    raise Stopped("undecided", message, vote.at, thread)
