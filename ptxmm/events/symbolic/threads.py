"""Symbolic execution of a thread: every path up to the unrolling bound, merged where paths join.

A thread becomes numbered events, each with the formula under which it is executed. What reads return is left open
as variables over the possible values of their locations; ``choices`` ties them to writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heappop, heappush

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.errors import PtxmmError, Span
from ptxmm.events.symbolic.event import Event, ThreadEvents
from ptxmm.events.symbolic.executor import Executor
from ptxmm.events.symbolic.instructions import execute
from ptxmm.events.symbolic.machine import Control, Machine, Products, State
from ptxmm.events.symbolic.values.domain import Reads, Value, joined, merge
from ptxmm.program.identity import EventId
from ptxmm.program.shared.control import BARRIERS, ControlFlow, around, components, control_flow, live_operands
from ptxmm.program.shared.convergence import gathers
from ptxmm.program.shared.products import feeding, registers
from ptxmm.program.shared.refusals import placed
from ptxmm.program.test import Thread
from ptxmm.ptx.ops import AsyncCommit, AsyncWait, Branch, Exit, MbarrierWait, Op, Source, WholeOnly
from ptxmm.relations.formula import FALSE, TRUE, Formula


class Outline(Struct, frozen=True):
    """What the control flow of a thread gives to every execution of it; see ``shared.control``.

    ``idle``: the branches of spin loops that only wait at mbarriers. A round of theirs in which the wait fails has no
    event but a poll, and neither has the round in which it succeeds, so that none need be taken to see more.
    ``backward``, ``spins``: the numbers under which it is counted how often a backward branch, or one of a spin loop
    without a write, was taken. ``products``: the registers of products of its warpgroup;
    ``feeding``: these, and all that is copied to them.
    """

    flow: ControlFlow
    around: list[tuple[int, ...]]
    component: list[int]
    operands: list[list[str]]
    idle: frozenset[int]
    backward: dict[int, int]
    spins: dict[int, int]
    products: frozenset[str]
    feeding: frozenset[str]


def outline(thread: Thread, idempotent: frozenset[int], values: bool, together: Mapping[int, int]) -> Outline:
    """The outline of ``thread``; ``idempotent``, ``values`` and ``together`` as in ``control_flow``."""
    flow = control_flow(thread, idempotent, values, together)
    splits = any(_commits(op) and op.guard is not None for op in thread.body)
    operands = live_operands(thread) if flow.join or flow.backward or splits else []
    idle = frozenset(pc for pc, header in flow.spin.items() if _idle(thread, header, pc))
    backward = {pc: i for i, pc in enumerate(sorted(flow.backward))}
    spins = {pc: i for i, pc in enumerate(sorted(flow.spin), len(backward))}
    parts = around(thread), components(thread), operands, idle, backward, spins
    named = registers(thread.body)
    return Outline(flow, *parts, named, feeding(thread.body, named))


def _commits(op: Op) -> bool:
    """Whether ``op`` makes a group of asynchronous operations."""
    return isinstance(op, AsyncCommit) or (isinstance(op, AsyncWait) and op.pending is None)


def _idle(thread: Thread, header: int, end: int) -> bool:
    """Whether the loop from ``header`` to the branch at ``end`` has only waits at mbarriers and its own branch."""
    if any(isinstance(op, Branch) and header < op.target <= end for op in thread.body):
        return False
    return all(isinstance(op, MbarrierWait) for op in thread.body[header:end])


def run(machine: Machine, index: int, known: Outline) -> ThreadEvents:
    """Execute the thread with ``index`` and its outline; its events are added to those of ``machine``."""
    return _Run(machine, index, known).run()


_BOUNDARY = Exit(Source(Span(0, 0, 0), ""))
"""Stands for the instruction of the events at the start and the end of a thread."""

_Counts = tuple[int, ...]
"""How often each backward branch was taken, as ``Outline`` numbers them."""

_Node = tuple[int, int, int, _Counts]
"""Component of control, number of backward branches taken in it, pc, how often each backward branch was taken."""

_Move = tuple[int, _Counts, State]
"""Where a path goes on: the pc, how often each backward branch was taken, the state."""


class _Run:
    def __init__(self, machine: Machine, index: int, known: Outline) -> None:
        self.machine = machine
        self.formulas = machine.formulas
        self.index = index
        self.thread = machine.test.threads[index]
        self.known = known
        self.flow = known.flow
        self.ends: list[State] = []
        self.cut: dict[int, Formula] = {}
        self.spun: list[Formula] = []
        self.headers = set(self.flow.spin.values())
        self.executor = Executor(machine, index, self.thread, self.headers, self.flow.idempotent)

    def run(self) -> ThreadEvents:
        """Execute the thread: what it may do, and how it may end."""
        formulas, body = self.formulas, self.thread.body
        registers = dict.fromkeys(self.thread.registers, self.machine.zero)
        for name, initial in self.thread.initial.items():
            registers[name] = self.executor.constant(initial)
        if self.machine.setting.api:
            self._boundary("API", -1, TRUE)
        self._follow(State(TRUE, registers))
        # Under a filter those where it stops too: what is written only before is as it will be in the end.
        ends = [(s.guard, s.registers) for s in self.ends] + self.executor.stopped
        last = {
            name: merge(formulas, [(when, values[name].domain) for when, values in ends])
            for name in (registers if ends else ())
        }
        completed = formulas.any([s.guard for s in self.ends])
        self.executor.left = self._under([(s.guard, s.left) for s in self.ends])
        if self.machine.setting.exits and completed != FALSE:
            missed = self._under([(s.guard, s.missed) for s in self.ends])
            self._boundary("EX", len(body), completed, missed)
        if self.machine.setting.api and completed != FALSE:  # after all that the asynchronous operations do
            performed = [e.number for e in self.machine.events if e.thread == self.index and e.asynchronous]
            self._boundary("API", len(body), completed).after = performed
        cut, spun = formulas.any(list(self.cut.values())), formulas.any(self.spun)
        return ThreadEvents(self.executor.barriers, completed, cut, last, self.cut, spun)

    def _follow(self, start: State) -> None:
        """Execute every path from ``start`` on, nodes in topological order."""
        body = self.thread.body
        first = self._node(0, (0,) * (len(self.known.backward) + len(self.known.spins)))
        waiting = {first: [start]}
        queue = [first]
        while queue:
            self.machine.setting.check()
            node = heappop(queue)
            _, _, pc, counts = node
            states = waiting.pop(node)
            if pc >= len(body):
                self.ends += self._merged(pc, counts, states)
                continue
            try:
                moves = [move for state in self._merged(pc, counts, states) for move in self._step(pc, counts, state)]
            except PtxmmError as error:
                raise placed(error, self.machine.test, body[pc]) from None
            for target, taken, state in moves:
                if state.guard != FALSE:
                    following = self._node(target, taken)
                    if following not in waiting:
                        waiting[following] = []
                        heappush(queue, following)
                    waiting[following].append(state)

    def _boundary(self, kind: str, pc: int, presence: Formula, control: Reads | None = None) -> Event:
        """An event at the start or the end of the thread."""
        run = self.executor
        run.op, run.here, run.control = _BOUNDARY, EventId(self.index, pc), control or {}
        return run.event(kind, presence)

    def _node(self, pc: int, counts: _Counts) -> _Node:
        """The node of a thread's unrolled control flow; nodes come in topological order.

        A branch that can't be reached any more from ``pc`` does not count, so that paths meet behind a loop.
        """
        component = self.known.component
        if not counts:
            return component[pc], 0, pc, counts
        branches = (*self.known.backward, *self.known.spins)
        kept = tuple(n if component[b] >= component[pc] else 0 for b, n in zip(branches, counts, strict=True))
        return component[pc], sum(kept), pc, kept

    def _round(self, pc: int, counts: _Counts) -> int:
        numbers = (self.known.backward, self.known.spins)
        return sum(counts[number[b]] for b in self.known.around[pc] for number in numbers if b in number)

    def _merged(self, pc: int, counts: tuple[int, ...], states: list[State]) -> list[State]:
        """Close the branches that join at ``pc``, then merge the states that no later rewrite can tell apart."""
        for state in states:
            closing = state.controls.get(pc)
            if closing is None:
                continue
            state.controls = {join: c for join, c in state.controls.items() if join != pc}
            for name in closing.assigned:
                value = state.registers[name]
                reads = self.machine.all_reads([r for b, r in closing.reads.items() if name in self.flow.decided(b)])
                leaf = self.machine.expressions.leaf(self.executor.width(name), "join", pc, counts, name)
                state.registers[name] = Value(value.domain, leaf, self.machine.union(value.reads, reads))
        if len(states) == 1:
            return states
        groups: dict[object, list[State]] = {}
        for state in states:
            key = (
                frozenset((join, c.assigned) for join, c in state.controls.items()),
                tuple(state.registers[name].expression for name in self.known.operands[pc]),
                tuple(sorted(state.queues.items())),
            )
            groups.setdefault(key, []).append(state)
        return [self._merge(group) if len(group) > 1 else group[0] for group in groups.values()]

    def _merge(self, states: list[State]) -> State:
        formulas, first = self.formulas, states[0]
        registers = dict(first.registers)
        for name, value in first.registers.items():
            arms = [(s.guard, s.registers[name]) for s in states]
            if any(v is not value for _, v in arms):
                registers[name] = self._one_of(arms)
        controls = {
            join: Control(c.assigned, self._decided([(s.guard, s.controls[join].reads) for s in states]))
            for join, c in first.controls.items()
        }
        wrote = {
            header: formulas.any([formulas.both(s.guard, s.wrote.get(header, FALSE)) for s in states])
            for header in self.headers
        }
        left = self._under([(s.guard, s.left) for s in states])
        missed = self._under([(s.guard, s.missed) for s in states])
        guard = formulas.any([s.guard for s in states])
        return State(guard, registers, controls, wrote, first.queues, left, missed, self._merge_products(states))

    def _one_of(self, arms: list[tuple[Formula, Value]]) -> Value:
        """The value that is that of each arm where the arm's formula holds; all have one expression."""
        domain = merge(self.formulas, [(when, value.domain) for when, value in arms])
        expression = arms[0][1].expression
        if not self.machine.expressions.transparent(expression):
            return Value(domain, expression, self._under([(when, value.reads) for when, value in arms]))
        leaves = dict.fromkeys(leaf for _, value in arms for leaf in value.sources)
        sources = {n: self._under([(when, value.sources.get(n, {})) for when, value in arms]) for n in leaves}
        return self.executor.made_of(domain, expression, sources)

    def _merge_products(self, states: list[State]) -> Products | None:
        if not self.known.products:
            return None
        from ptxmm.events.symbolic.matrices.products import merged

        return merged(self.formulas, [(s.guard, s.products or Products()) for s in states])

    def _decided(self, arms: list[tuple[Formula, Mapping[int, Reads]]]) -> dict[int, Reads]:
        branches = dict.fromkeys(branch for _, reads in arms for branch in reads)
        return {b: self._under([(when, reads.get(b, {})) for when, reads in arms]) for b in branches}

    def _under(self, arms: list[tuple[Formula, Reads]]) -> Reads:
        both = self.formulas.both
        return joined(self.formulas, ((r, both(guard, when)) for guard, reads in arms for r, when in reads.items()))

    def _step(self, pc: int, counts: _Counts, state: State) -> list[_Move]:
        op, run = self.thread.body[pc], self.executor
        if pc in self.headers:
            state.wrote = {**state.wrote, pc: FALSE}
        condition: Formula = TRUE
        reads: Reads = {}
        if op.guard is not None:
            condition, reads = self._is(state.registers[op.guard.register], 0 if op.guard.negated else 1)
        run.op, run.state, run.condition, run.left, run.twin = op, state, condition, state.left, self.flow.twins.get(pc)
        run.here, run.blind = EventId(self.index, pc, self._round(pc, counts)), False
        if run.twin == pc:
            reads = {}
        if isinstance(op, Branch):
            if (compare := op.condition) is not None:
                operands = [run.operand(operand, compare.type) for operand in (compare.a, compare.b)]
                holds, decided = self._is(run.operation(compare.cmp, compare.type, operands), 1)
                condition, reads = self.formulas.both(condition, holds), self.machine.union(reads, decided)
            jump, stay = (self._open(pc, self._where(state, when), reads) for when in (condition, -condition))
            return [(pc + 1, counts, stay), *self._jump(pc, op, counts, jump)]
        if isinstance(op, Exit):
            ends = self._where(state, condition)
            if ends.guard != FALSE:
                self.ends.append(self._open(pc, ends, reads))
            return [(pc + 1, counts, self._open(pc, self._where(state, -condition), reads))]
        if pc in run.aligned and gathers(op):
            self._gather(state, condition)
        apart: list[State] = []
        if _commits(op) and condition != TRUE:
            # The paths with a commit and without it go on apart: other groups are waited for.
            apart, state = [self._where(state, -condition)], self._where(state, condition)
            run.state = state
        if self.known.products:
            self._use_products(op, state, condition)
        if isinstance(op, BARRIERS):
            state.missed = self.machine.union(state.missed, reads)
        assert not isinstance(op, WholeOnly)
        execute(run, op, reads)
        return [(pc + 1, counts, s) for s in (*apart, state) if not apart or s.guard != FALSE]

    def _is(self, predicate: Value, truth: int) -> tuple[Formula, Reads]:
        """When ``predicate`` is ``truth``, and the reads that decide it."""
        constant = self.machine.expressions.value_of(predicate.expression) is not None
        reads = {} if constant else predicate.reads
        when, other = (predicate.domain.get(value, FALSE) for value in (truth, 1 - truth))
        arguments = self.formulas.arguments
        if other != FALSE != when and arguments[abs(other)] is None is not arguments[abs(when)]:
            when = -other  # shorter
        return self.machine.either_way(when, reads), reads

    def _where(self, state: State, condition: Formula) -> State:
        """The part of ``state`` where ``condition`` holds."""
        return replace(state, guard=self.formulas.both(state.guard, condition), registers=dict(state.registers))

    def _gather(self, state: State, condition: Formula) -> None:
        from ptxmm.events.symbolic.barriers.synchronization import gather  # with all that barriers need

        presence = self.formulas.both(state.guard, condition)
        if presence != FALSE:
            gather(self.executor, presence)

    def _use_products(self, op: Op, state: State, condition: Formula) -> None:
        from ptxmm.events.symbolic.asynchronous.groups import waited
        from ptxmm.events.symbolic.matrices import products

        presence = self.formulas.both(state.guard, condition)
        fed = self.known.feeding if self.machine.reading.copies else frozenset[str]()
        now = products.execute(self.executor, op, state.products or Products(), presence, self.known.products, fed)
        if isinstance(op, AsyncWait) and op.kind == "wgmma":
            now = products.finished(self.formulas, now, waited(op, state), presence)
        state.products = now

    def _open(self, pc: int, state: State, reads: Reads) -> State:
        """``state`` after the conditional branch at ``pc``, which ``reads`` decide, inside its region of control."""
        if pc not in self.flow.join or not reads:
            return state
        join, assigned = self.flow.join[pc], self.flow.decided(pc)
        left = self.machine.union(state.left, reads) if pc in self.flow.leaving else state.left
        missed = self.machine.union(state.missed, reads) if pc in self.flow.skipping else state.missed
        decided: dict[int, Reads] = {pc: reads}
        if (already := state.controls.get(join)) is not None:
            assigned = assigned | already.assigned
            decided = {**already.reads, pc: self.machine.union(already.reads.get(pc, {}), reads)}
        return replace(state, controls={**state.controls, join: Control(assigned, decided)}, left=left, missed=missed)

    def _jump(self, pc: int, op: Branch, counts: _Counts, jump: State) -> list[_Move]:
        """Where the path that takes a branch goes on."""
        known = self.known
        if pc not in known.backward:
            return [(op.target, counts, jump)]
        result: list[_Move] = []
        if pc in self.flow.spin:
            failed = pc in self.flow.silent and not self.machine.reading.cas_writes
            idle = failed or pc in self.flow.rounds
            wrote = FALSE if idle else jump.wrote.get(self.flow.spin[pc], FALSE)
            spins = self._where(jump, -wrote)
            jump.guard = self.formulas.both(jump.guard, wrote)
            if counts[known.spins[pc]] < self.flow.allowed(pc) and pc not in known.idle:
                result.append((op.target, _increased(counts, known.spins[pc]), spins))
            else:
                self.spun.append(spins.guard)
                self._stops(spins)
        if jump.guard != FALSE and counts[known.backward[pc]] < self.machine.reading.unroll:
            result.append((op.target, _increased(counts, known.backward[pc]), jump))
        elif jump.guard != FALSE:
            self.cut[pc] = self.formulas.either(self.cut.get(pc, FALSE), jump.guard)
            self._stops(jump)
        return result

    def _stops(self, state: State) -> None:
        if self.machine.test.filter is not None:
            self.executor.stopped.append((state.guard, state.registers))


def _increased(counts: _Counts, which: int) -> _Counts:
    return (*counts[:which], counts[which] + 1, *counts[which + 1 :])
