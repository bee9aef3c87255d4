"""Loops in which the threads of a CTA, or the lanes of a warp, wait together: each looks, and a barrier or a vote tells
all whether they have found it.

In a round some threads read one location, all meet at a ``bar.red`` or a ``vote.sync``, and what that gives decides
whether there is another round. A round that does not end the loop does nothing else, so that the last one stands
for all: a thread waits at its load until what it finds is for the end of the loop (docs/whole.md). ``Gathering``
checks when they meet that the other threads have no say in it, and would do the same in each round.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

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
    strong_components,
)
from ptxmm.ptx import ops
from ptxmm.ptx.isa import names_written, uses
from ptxmm.whole.arrays import Flags, Numbers
from ptxmm.whole.execution.computing import results
from ptxmm.whole.execution.polls import Outcome, Poll, Vote, found, looks
from ptxmm.whole.execution.state import WAITS, State, Stopped
from ptxmm.whole.execution.values import Value, constant, unknown
from ptxmm.whole.order.origins import Words

_STEPS = 10_000
_AGAIN = ""
"""What stands for a register that tells whether a place of a thread is that of a later round; the registers there are
those with which the loop began."""
_ROUND = "in which round this loop ends depends on the schedule"
Registers = dict[str, Value]
_Walk = tuple[int, Registers, tuple[int, ...]]
"""Where a thread comes to, its registers there, and the fences on the way."""


def gathers(body: Sequence[ops.Op], observed: frozenset[str], polls: Mapping[int, Poll]) -> dict[int, Poll]:
    """The loads by which a thread waits in such a loop, of those that are not in ``polls``; ``observed``: registers
    that are asked for when a thread has ended."""
    votes = [at for at, op in enumerate(body) if _votes(body, op)]
    if not votes or any(isinstance(op, ops.WarpExchange) and op.op == "elect" for op in body):
        return {}
    graph = graph_of(body)
    behind, live, component = post_dominators(graph), live_at(body, graph, observed), strong_components(graph)
    dominator = dominators(graph)
    waits: dict[int, Poll] = {}
    for vote in votes:
        end = behind.get(vote)
        while end is not None and component[end] == component[vote]:
            end = behind.get(end)
        region = reach(graph.after, graph.after[vote], end)
        loads = [at for at in region if looks(body[at])]
        if (
            end is None
            or vote not in region
            or len(loads) != 1
            or not all(_pure(body[at], at == vote, body[vote]) for at in region)
        ):
            continue
        load = body[loads[0]]
        for start, op in enumerate(body):
            if not looks(op) or start in polls:
                continue
            onward = _onward(body, graph, dominator, start, vote)
            way = reach(onward, [start], vote)
            if not _alike(op, load) or graph.end in way:
                continue
            fixed = _parameters(body, onward, way, start, live[start])
            if not all(_pure(body[at], False, body[vote]) for at in way.difference(fixed)) or (
                len(way & set(loads)) != (start == loads[0])
            ):
                continue
            given = frozenset(name for at in fixed for name in names_written(body[at]))
            inside = way.difference(fixed) | region
            written = frozenset(name for at in inside for name in names_written(body[at]))
            used = {name for at in inside for name, _ in uses(body[at])}
            if not written & _fixed(op, body[vote]):
                turned = frozenset(name for at in region for name in names_written(body[at]))
                kept = Vote(vote, end, loads[0], frozenset(used | written), turned, turned & live[vote])
                left = written & live[vote]
                inputs = (*sorted((used | left) & (live[start] | given)), _AGAIN)
                needed = {start: inputs, loads[0]: inputs, vote: tuple(sorted(left))}
                after = dict.fromkeys((start, loads[0]), (loads[0], vote))
                waits[start] = Poll(
                    start, vote, frozenset({start, *loads}), needed, after, False, left & live[start], kept, fixed
                )  # fmt: skip
    return waits


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


def _pure(op: ops.Op, here: bool, vote: ops.Op) -> bool:
    """Whether an instruction of such a loop does nothing else. A fence behind a look that does not end the loop orders
    no less if it is there: a thread may come so late that it looks once."""
    if isinstance(op, ops.Fence):
        return isinstance(vote, ops.WarpExchange)
    return here or looks(op) or (isinstance(op, (*ops.COMPUTING, ops.Branch)) and not isinstance(op, ops.AddressValue))


class _Guess(State):
    """``count`` threads with these ``values`` in registers."""

    def __init__(self, state: State, values: Registers, count: int) -> None:
        self.kernel, self.body, self.memory = state.kernel, state.body, state.memory
        self.values, self._count = values, count

    def register(self, name: str, threads: Numbers) -> Value:
        return self.values.get(name) or unknown(self._count)


def _walked(
    state: State, values: Registers, count: int, at: int, stops: frozenset[int], fixed: Collection[int] = ()
) -> list[_Walk]:
    """Where each of ``count`` threads comes to from ``at`` on, of ``stops``, with its registers there and the fences on
    the way; what is ``fixed`` is done already. Raises ``Stopped`` where that is not known."""
    ends: dict[int, _Walk] = {}
    work: list[tuple[Registers, int, Numbers, tuple[int, ...]]] = [(values, at, np.arange(count), ())]
    steps = 0
    while work:
        values, at, which, fences = work.pop()
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
                    work.append((_only(values, ~goes), at, which[~goes], fences))
                    values, which = _only(values, goes), which[goes]
                    continue
                if not goes.any():
                    at += 1
                    continue
            if isinstance(op, ops.Branch):
                at = op.target
                continue
            if isinstance(op, ops.Fence):
                fences = (*fences, at)
            made = {register.name: value for register, value in results(guess, op, which) if register is not None}
            values, at = {**values, **made}, at + 1
        for number, thread in enumerate(which.tolist()):
            ends[thread] = at, _only(values, np.arange(len(which)) == number), fences
    return [ends[number] for number in range(count)]


def _only(values: Registers, chosen: Flags) -> Registers:
    return {name: value.at(chosen) for name, value in values.items()}


def _joined(each: Sequence[Registers]) -> Registers:
    """The registers of threads side by side."""
    names = sorted({name for values in each for name in values})
    columns = {name: [values.get(name, unknown(1)) for values in each] for name in names}
    return {
        name: Value(np.concatenate([v.words for v in column]), np.concatenate([v.known for v in column]))
        for name, column in columns.items()
    }


def voted(
    state: State, poll: Poll, at: int, cases: Sequence[Words], given: Sequence[tuple[int, ...]]
) -> list[frozenset[Outcome]]:
    """Where the load at ``at`` of a loop leads in each case, what its registers are and what the load finds: to the
    vote with what ends the loop, or to the load again. Raises ``Stopped`` where that is not known."""
    outcomes: list[frozenset[Outcome]] = [frozenset()] * len(cases)
    for again in (None, 1):
        chosen = [number for number, words in enumerate(cases) if words[-1] == again]
        if chosen:
            each = [(cases[number][:-1], given[number]) for number in chosen]
            for number, outcome in zip(chosen, _led(state, poll, at, each, bool(again)), strict=True):
                outcomes[number] = frozenset({outcome})
    return outcomes


def _led(
    state: State, poll: Poll, at: int, cases: Sequence[tuple[Words, tuple[int, ...]]], again: bool
) -> list[Outcome]:
    """The same of cases of which all are in a later round, or none."""
    vote, op = poll.vote, state.body[at]
    assert vote is not None and isinstance(op, ops.Load)
    count, lanes = len(cases), np.arange(len(cases))
    stops = frozenset({vote.at, vote.end, vote.load})
    values: Registers = {}
    for name, words in zip(poll.inputs[:-1], zip(*(words for words, _ in cases), strict=True), strict=True):
        known = np.array([word is not None for word in words], np.bool_)
        values[name] = Value(np.array([word or 0 for word in words], np.uint64), known)
    if again:  # what comes before the loop is as it was
        first = state.body[poll.start]
        assert isinstance(first, ops.Load)
        values |= {register.name: unknown(count) for register in first.dst if register is not None}
        walked = _walked(state, values, count, poll.start + 1, stops, poll.fixed)
        before = _joined([registers for _, registers, _ in walked])
        values = before | {name: unknown(count) for name in vote.written}
    values |= found(state, op, [given for _, given in cases])
    there = _walked(state, values, count, at + 1, stops, poll.fixed)
    if any(place != vote.at for place, _, _ in there):
        raise Stopped("undecided", "this loop ends without a vote", at)
    before = _joined([registers for _, registers, _ in there])
    ends = _ends(state, vote, before, count)
    mine, known = _contributed(state, vote, before, count)
    if not known.all():
        raise Stopped("undecided", "what a thread says in a vote depends on a value that is not worked out", vote.at)
    outcomes = []
    for number in lanes.tolist():
        _, registers, fences = there[number]
        if mine[number] == ends[number]:
            values = {name: registers.get(name, unknown(1)) for name in poll.outputs}
            words = tuple(int(v.words[0]) if v.known[0] else None for v in values.values())
            outcomes.append(Outcome(vote.at, words, fences))
            continue
        ((place, _, _),) = _after(state, vote, registers, 1, 1 - int(ends[number]))
        if place != vote.load:
            raise Stopped("undecided", "a thread that waits with others looks once only", at)
        outcomes.append(Outcome(vote.load, (*cases[number][0], 1), ()))
    return outcomes


def _after(state: State, vote: Vote, before: Registers, count: int, result: int) -> list[_Walk]:
    """Where threads come to behind a vote with this result."""
    values = {**before, _ballot(state.body[vote.at]).dst.name: constant(result, 32, count)}
    return _walked(state, values, count, vote.at + 1, frozenset({vote.at, vote.end, vote.load}))


def _ends(state: State, vote: Vote, before: Registers, count: int) -> Numbers:
    """The result of a vote with which each thread leaves the loop. Raises ``Stopped`` where that is not one of two."""
    leave = [[at == vote.end for at, _, _ in _after(state, vote, before, count, result)] for result in (0, 1)]
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
        for place, _, _ in _after(self.state, vote, before, len(looked), 1 - end):
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
        for number, (place, after, _) in enumerate(_after(self.state, vote, before, len(threads), 1 - end)):
            thread = int(threads[number])
            if place != vote.at or said[number] != (end if needs_all else 1 - end):
                raise Stopped("undecided", _ROUND, vote.at, thread)
            for name in sorted(vote.kept):
                value, held = after.get(name, unknown(1)), before[name]
                if not (value.known[0] and held.known[number] and value.words[0] == held.words[number]):
                    message = f"{name} changes from round to round of this loop, in which others wait"
                    raise Stopped("undecided", message, vote.at, thread)
