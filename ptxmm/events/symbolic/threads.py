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
from ptxmm.events.symbolic.values.domain import Reads, Value, joined, merge, only
from ptxmm.program.identity import EventId
from ptxmm.program.shared.control import BARRIERS, SPINS, ControlFlow, around, components, control_flow, live_operands
from ptxmm.program.shared.convergence import gathers
from ptxmm.program.shared.products import registers
from ptxmm.program.shared.refusals import placed
from ptxmm.program.test import Thread
from ptxmm.ptx.ops import AsyncCommit, AsyncWait, Branch, Exit, MbarrierWait, Op, Source
from ptxmm.relations.formula import FALSE, TRUE, Formula


class Outline(Struct, frozen=True):
    """What the control flow of a thread gives to every execution of it; see ``program.control``.

    ``idle``: the branches of spin loops that only wait at mbarriers. A round of theirs in which the wait fails has no
    event but a poll, and neither has the round in which it succeeds, so that none need be taken to see more.
    """

    flow: ControlFlow
    around: list[tuple[int, ...]]
    component: list[int]
    operands: list[list[str]]
    idle: frozenset[int]


def outline(thread: Thread, idempotent: frozenset[int], values: bool) -> Outline:
    """The outline of ``thread``; ``idempotent`` and ``values`` as in ``control_flow``."""
    flow = control_flow(thread, idempotent, values)
    splits = any(isinstance(op, AsyncCommit) and op.guard is not None for op in thread.body)
    operands = live_operands(thread) if flow.join or flow.backward or splits else []
    idle = frozenset(pc for pc, header in flow.spin.items() if _idle(thread, header, pc))
    return Outline(flow, around(thread), components(thread), operands, idle)


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

_Node = tuple[int, int, int, tuple[int, ...]]
"""Component of control, number of backward branches taken in it, pc, how often each backward branch was taken."""


class _Run:
    def __init__(self, machine: Machine, index: int, known: Outline) -> None:
        self.machine = machine
        self.formulas = machine.formulas
        self.index = index
        self.thread = machine.test.threads[index]
        self.flow = known.flow
        self.ends: list[State] = []
        self.cut: dict[int, Formula] = {}
        self.spun: list[Formula] = []
        self.backward = {pc: i for i, pc in enumerate(sorted(self.flow.backward))}
        self.spins = {pc: len(self.backward) + i for i, pc in enumerate(sorted(self.flow.spin))}
        self.around = known.around
        self.component = known.component
        self.headers = set(self.flow.spin.values())
        self.executor = Executor(machine, index, self.thread, self.headers, self.flow.idempotent)
        self.operands = known.operands
        self.idle = known.idle
        self.products = registers(self.thread.body)

    def run(self) -> ThreadEvents:
        zero = self.machine.zero
        registers = dict.fromkeys(self.thread.registers, zero)
        for name, initial in self.thread.initial.items():
            registers[name] = Value(only(initial), self.machine.expressions.constant(initial), {})
        waiting: dict[_Node, list[State]] = {}
        queue: list[_Node] = []

        def arrive(pc: int, counts: tuple[int, ...], state: State) -> None:
            node = self._node(pc, counts)
            if node not in waiting:
                waiting[node] = []
                heappush(queue, node)
            waiting[node].append(state)

        if self.machine.api:
            self._boundary("API", -1, TRUE)
        arrive(0, (0,) * (len(self.backward) + len(self.spins)), State(TRUE, registers))
        while queue:
            self.machine.check()
            node = heappop(queue)
            _, _, pc, counts = node
            states = waiting.pop(node)
            if pc >= len(self.thread.body):
                self.ends += self._merged(pc, counts, states)
                continue
            try:
                for state in self._merged(pc, counts, states):
                    for target, taken, successor in self._step(pc, counts, state):
                        if successor.guard != FALSE:
                            arrive(target, taken, successor)
            except PtxmmError as error:
                raise placed(error, self.machine.test, self.thread.body[pc]) from None
        # Under a filter those where it stops too: what is written only before is as it will be in the end.
        ends = [(s.guard, s.registers) for s in self.ends] + self.executor.stopped
        registers_at_end = {
            name: merge(self.formulas, [(when, values[name].domain) for when, values in ends])
            if len(ends) > 1
            else ends[0][1][name].domain
            for name in (registers if ends else ())
        }
        completed = self.formulas.any([s.guard for s in self.ends])
        self.executor.left = self._under([(s.guard, s.left) for s in self.ends])
        if self.machine.exits and completed != FALSE:
            missed = self._under([(s.guard, s.missed) for s in self.ends])
            self._boundary("EX", len(self.thread.body), completed, missed)
        if self.machine.api and completed != FALSE:  # after all that the asynchronous operations do
            performed = [e.number for e in self.machine.events if e.thread == self.index and e.asynchronous]
            self._boundary("API", len(self.thread.body), completed).after = performed
        return ThreadEvents(
            self.executor.barriers,
            completed,
            self.formulas.any(list(self.cut.values())),
            registers_at_end,
            self.cut,
            self.formulas.any(self.spun),
        )

    def _boundary(self, kind: str, pc: int, presence: Formula, control: Reads | None = None) -> Event:
        """An event at the start or the end of the thread."""
        run = self.executor
        run.op, run.here, run.control = _BOUNDARY, EventId(self.index, pc), control or {}
        return run.event(kind, presence)

    def _node(self, pc: int, counts: tuple[int, ...]) -> _Node:
        """The node of a thread's unrolled control flow; nodes come in topological order.

        A branch that can't be reached any more from ``pc`` does not count, so that paths meet behind a loop.
        """
        component = self.component[pc]
        kept = [0] * len(counts)
        for numbers in (self.backward, self.spins):
            for branch, i in numbers.items():
                if self.component[branch] >= component:
                    kept[i] = counts[i]
        return component, sum(kept), pc, tuple(kept)

    def _round(self, pc: int, counts: tuple[int, ...]) -> int:
        return sum(
            counts[self.backward[b]] + (counts[self.spins[b]] if b in self.spins else 0) for b in self.around[pc]
        )

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
                tuple(state.registers[name].expression for name in self.operands[pc]),
                tuple(sorted(state.queues.items())),
            )
            groups.setdefault(key, []).append(state)
        return [self._merge(group) if len(group) > 1 else group[0] for group in groups.values()]

    def _merge(self, states: list[State]) -> State:
        formulas = self.formulas
        registers: dict[str, Value] = {}
        first = states[0]
        for name, value in first.registers.items():
            values = [s.registers[name] for s in states]
            if all(v is value for v in values):
                registers[name] = value
                continue
            domain = merge(formulas, [(s.guard, v.domain) for s, v in zip(states, values, strict=True)])
            arms = [(s.guard, v) for s, v in zip(states, values, strict=True)]
            if self.machine.expressions.transparent(value.expression):
                leaves = dict.fromkeys(leaf for v in values for leaf in v.sources)
                sources = {n: self._under([(when, v.sources.get(n, {})) for when, v in arms]) for n in leaves}
                registers[name] = self.executor.made_of(domain, value.expression, sources)
            else:
                reads = self._under([(when, v.reads) for when, v in arms])
                registers[name] = Value(domain, value.expression, reads)
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

    def _merge_products(self, states: list[State]) -> Products | None:
        if not self.products:
            return None
        from ptxmm.events.symbolic.matrices.products import merged

        return merged(self.formulas, [(s.guard, s.products or Products()) for s in states])

    def _decided(self, arms: list[tuple[Formula, Mapping[int, Reads]]]) -> dict[int, Reads]:
        branches = dict.fromkeys(branch for _, reads in arms for branch in reads)
        return {b: self._under([(when, reads.get(b, {})) for when, reads in arms]) for b in branches}

    def _under(self, arms: list[tuple[Formula, Reads]]) -> Reads:
        both = self.formulas.both
        return joined(self.formulas, ((r, both(guard, when)) for guard, reads in arms for r, when in reads.items()))

    def _step(self, pc: int, counts: tuple[int, ...], state: State) -> list[tuple[int, tuple[int, ...], State]]:
        op = self.thread.body[pc]
        if pc in self.headers:
            state.wrote = {**state.wrote, pc: FALSE}
        condition: Formula = TRUE
        reads: Reads = {}
        known = True
        if op.guard is not None:
            predicate = state.registers[op.guard.register]
            condition = predicate.domain.get(0 if op.guard.negated else 1, FALSE)
            known = self.machine.expressions.value_of(predicate.expression) is not None
            reads = {} if known else predicate.reads
            condition = self.machine.either_way(condition, reads)
        run = self.executor
        run.op, run.state, run.condition, run.left, run.twin = op, state, condition, state.left, self.flow.twins.get(pc)
        run.here = EventId(self.index, pc, self._round(pc, counts))
        if run.twin == pc:
            reads = {}
        if isinstance(op, Branch):
            if (compare := op.condition) is not None:
                operands = [run.operand(operand, compare.type) for operand in (compare.a, compare.b)]
                compared = run.operation(compare.cmp, compare.type, operands)
                condition = self.formulas.both(condition, compared.domain.get(1, FALSE))
                if self.machine.expressions.value_of(compared.expression) is None:
                    reads, known = self.machine.union(reads, compared.reads), False
                    condition = self.machine.either_way(condition, reads)
            return self._branch(pc, op, condition, reads, known, counts, state)
        if isinstance(op, Exit):
            ends = replace(state, guard=self.formulas.both(state.guard, condition))
            if ends.guard != FALSE:
                self.ends.append(self._open(pc, ends, reads, known))
            left = self.formulas.both(state.guard, -condition)
            stays = replace(state, guard=left, registers=dict(state.registers))
            return [(pc + 1, counts, self._open(pc, stays, reads, known))]
        if pc in run.aligned and gathers(op):
            self._gather(state, condition)
        if isinstance(op, AsyncCommit):
            return [(pc + 1, counts, s) for s in self._commit(op, state, condition)]
        if self.products:
            self._use_products(op, state, condition)
        if isinstance(op, BARRIERS):
            state.missed = self.machine.union(state.missed, reads)
        execute(run, op, reads)
        return [(pc + 1, counts, state)]

    def _gather(self, state: State, condition: Formula) -> None:
        from ptxmm.events.symbolic.barriers.synchronization import gather  # with all that barriers need

        presence = self.formulas.both(state.guard, condition)
        if presence != FALSE:
            gather(self.executor, presence)

    def _use_products(self, op: Op, state: State, condition: Formula) -> None:
        from ptxmm.events.symbolic.asynchronous.groups import waited
        from ptxmm.events.symbolic.matrices import products

        presence = self.formulas.both(state.guard, condition)
        now = products.execute(self.executor, op, state.products or Products(), presence, self.products)
        if isinstance(op, AsyncWait) and op.kind == "wgmma":
            now = products.finished(self.formulas, now, waited(op, state), presence)
        state.products = now

    def _commit(self, op: AsyncCommit, state: State, condition: Formula) -> list[State]:
        """Where a commit is predicated, the paths with it and without it go on apart."""
        from ptxmm.events.symbolic.asynchronous.groups import commit  # with all that copies need

        states = []
        left = self.formulas.both(state.guard, -condition)
        if left != FALSE:
            states.append(replace(state, guard=left, registers=dict(state.registers)))
        state.guard = self.formulas.both(state.guard, condition)
        if state.guard != FALSE:
            commit(op, state)
            states.append(state)
        return states

    def _open(self, pc: int, state: State, reads: Reads, known: bool) -> State:
        """``state`` after the conditional branch at ``pc``, inside its region of control."""
        if pc not in self.flow.join or known or not reads:
            return state
        join, assigned = self.flow.join[pc], self.flow.decided(pc)
        left = self.machine.union(state.left, reads) if pc in self.flow.leaving else state.left
        missed = self.machine.union(state.missed, reads) if pc in self.flow.skipping else state.missed
        decided: dict[int, Reads] = {pc: reads}
        if (already := state.controls.get(join)) is not None:
            assigned = assigned | already.assigned
            decided = {**already.reads, pc: self.machine.union(already.reads.get(pc, {}), reads)}
        return replace(state, controls={**state.controls, join: Control(assigned, decided)}, left=left, missed=missed)

    def _branch(
        self,
        pc: int,
        op: Branch,
        condition: Formula,
        reads: Reads,
        known: bool,
        counts: tuple[int, ...],
        state: State,
    ) -> list[tuple[int, tuple[int, ...], State]]:
        formulas = self.formulas
        jump = replace(state, guard=formulas.both(state.guard, condition), registers=dict(state.registers))
        stay = replace(state, guard=formulas.both(state.guard, -condition), registers=dict(state.registers))
        jump, stay = (self._open(pc, s, reads, known) for s in (jump, stay))
        result = [(pc + 1, counts, stay)]
        if pc not in self.backward:
            return [*result, (op.target, counts, jump)]
        header = self.flow.spin.get(pc)
        if header is not None:
            wrote = state.wrote.get(header, FALSE)
            spins = replace(jump, guard=formulas.both(jump.guard, -wrote), registers=dict(jump.registers))
            jump.guard = formulas.both(jump.guard, wrote)
            if counts[self.spins[pc]] < SPINS and pc not in self.idle:
                result.append((op.target, _increased(counts, self.spins[pc]), spins))
            else:
                self.spun.append(spins.guard)
                self._stops(spins)
        if jump.guard == FALSE:
            return result
        if counts[self.backward[pc]] >= self.machine.unroll:
            self.cut[pc] = self.formulas.either(self.cut.get(pc, FALSE), jump.guard)
            self._stops(jump)
            return result
        return [*result, (op.target, _increased(counts, self.backward[pc]), jump)]

    def _stops(self, state: State) -> None:
        if self.machine.test.filter is not None:
            self.executor.stopped.append((state.guard, state.registers))


def _increased(counts: tuple[int, ...], which: int) -> tuple[int, ...]:
    return (*counts[:which], counts[which] + 1, *counts[which + 1 :])
