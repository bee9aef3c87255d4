"""Runs of all threads through their barriers and mbarriers, in every order that can matter.

What can follow a moment depends on that moment alone, so the facts of all runs from it are found once. Where the next
step of a thread acts on something that no other thread touches from there on, the order of it and the other threads'
steps can't matter and one is taken. A step that has no meaning ends the run where every thread is; where others go on
regardless, only their furthest progress is kept, which admits whatever earlier ends do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.events.symbolic.barriers import facts
from ptxmm.events.symbolic.barriers.ctas import begin, complete, cta_misuse, divergent, left_alone, lost, own_misuse
from ptxmm.events.symbolic.barriers.mbarrier import EPOCH, MOST, Counts, Done, perform, unsound
from ptxmm.events.symbolic.barriers.paths import Node, Object, Step
from ptxmm.events.symbolic.barriers.state import Barrier, Key, Log, Members, State
from ptxmm.events.symbolic.event import Mbarrier
from ptxmm.program.identity import EventId
from ptxmm.program.shared.convergence import divergent as not_together
from ptxmm.relations.closures import bits

RunFacts = dict[int, tuple[int, tuple[EventId, ...]]]
"""The facts of each run, with the loose facts and the order of one run that has them; facts are bits."""

_ARRIVALS = ("mb.arrive", "mb.drop", "mb.expect", "mb.complete")


class _Wrong(Struct, frozen=True):
    """A step that has no meaning.

    ``settled``: nothing that other threads do can change that. ``place``: only what they do to this mbarrier can.
    ``later``: it has to come after an initialisation that another thread may still do.
    """

    why: str
    settled: bool
    place: Mbarrier | None = None
    later: bool = False


_Move = tuple[int | None, Step]
"""A step that may be next: that of a thread, or without one an asynchronous arrival."""


def runs(
    shared: Members,
    starts: list[tuple[Node, ...]],
    initial: dict[Mbarrier, Counts],
    ordered: bool,
    check: Callable[[], None],
) -> Iterator[tuple[list[facts.Fact], tuple[EventId, ...]]]:
    """The facts of every run, and the operations on mbarriers in their order.

    ``starts``: where the paths of each thread begin; ``initial``: live mbarriers. ``ordered``: runs that differ only in
    the arrival that was the last one before an operation are different; else there are no orders.
    """
    search = _Runs(shared, starts, initial, ordered, check)
    found = search.facts()
    names = list(search.table)
    for certain, (loose, order) in found.items():
        yield [names[i] for i in bits(certain | loose)], order


class _Runs:
    def __init__(
        self,
        shared: Members,
        starts: list[tuple[Node, ...]],
        initial: dict[Mbarrier, Counts],
        ordered: bool,
        check: Callable[[], None],
    ) -> None:
        self.shared = shared
        self.starts = starts
        self.ordered = ordered
        self.check = check
        touched = frozenset[Object]().union(*(n.touches for nodes in starts for n in nodes))
        used = {key[1] for key in touched if key[0] in ("mb", "mb wait") and isinstance(key[1], tuple)}
        self.names: list[Mbarrier] = sorted({*initial, *used})
        self.waited = {key[1] for key in touched if key[0] == "mb wait"}
        self.index = {place: i for i, place in enumerate(self.names)}
        self.initial = tuple(initial.get(place, Counts()) for place in self.names)
        self.confluent, self.mixed = self._confluent()
        self.table: dict[facts.Fact, int] = {}
        self.performed: dict[tuple[int, Counts, int | None], Done | str] = {}

    def _confluent(self) -> tuple[set[Object], set[Key]]:
        """The barriers of CTAs where the order of arrivals can't matter, as each needs all warps that ever arrive at
        it, and the CTAs that have others."""
        used: dict[Object, list[tuple[Key, Step]]] = {}
        for t, nodes in enumerate(self.starts):
            seen: dict[int, Node] = {}
            stack = list(nodes)
            while stack:
                node = stack.pop()
                if node.number in seen:
                    continue
                seen[node.number] = node
                stack += [n for following in node.after.values() for n in following]
                if node.step is not None and node.step.kind.startswith("bar."):
                    used.setdefault(self.shared.object_of(t, node.step), []).append((self.shared.warp_of[t], node.step))
        found: set[Object] = set()
        for key, steps in used.items():
            counts, alike = {step.count for _, step in steps}, len({step.operation for _, step in steps}) == 1
            everyone = {32 * len({warp for warp, _ in steps})}
            if alike and counts in ({None}, everyone) and all(step.kind != "bar.arrive" for _, step in steps):
                found.add(key)
        return found, {key[1] for key in used.keys() - found if isinstance(key[1], tuple)}

    # -- the search --

    def facts(self) -> RunFacts:
        """The facts of every run."""
        count = len(self.starts)
        blank = State(
            tuple(nodes[0] for nodes in self.starts if nodes),
            (None,) * count,
            rounds=(0,) * count,
            places=self.initial,
        )
        if len(blank.nodes) < count:
            return {}
        done: dict[State, RunFacts] = {}
        first = [
            moved
            for nodes in product(*self.starts)
            for moved in self._settled(replace(blank, nodes=nodes), range(count), Log(self.table))
        ]
        waiting: dict[State, tuple[RunFacts, list[tuple[State, Log]]]] = {}
        stack = [state for state, _ in first]
        while stack:
            state = stack[-1]
            if state in done:
                stack.pop()
                continue
            if state not in waiting:
                self.check()
                waiting[state] = self._expand(state)
                stack += [s for s, _ in waiting[state][1] if s not in done]
                continue
            found, successors = waiting.pop(state)
            self._gather(found, successors, done)
            done[state] = found
            stack.pop()
        result: RunFacts = {}
        self._gather(result, first, done)
        return result

    def _gather(self, found: RunFacts, successors: list[tuple[State, Log]], done: dict[State, RunFacts]) -> None:
        """Add to ``found`` the facts of runs that go on with one of ``successors``."""
        for state, log in successors:
            for rest, (loose, later) in done[state].items():
                found.setdefault(rest | log.facts, (loose | log.loose, log.order + later))

    def _expand(self, state: State) -> tuple[RunFacts, list[tuple[State, Log]]]:
        """The runs that end at ``state``, and the moments after its next steps."""
        able: list[_Move] = []
        left = self._left(state)
        wrong: list[tuple[int | None, _Wrong]] = []
        stuck = {t for t, _ in left}
        for move in self._moves(state):
            if move[0] in stuck:
                continue
            verdict = self._verdict(state, *move)
            if verdict is not None:
                wrong.append((move[0], verdict))
            elif self._alone(state, *move) and (moments := self._after(state, *move)):
                return {}, moments
            else:
                able.append(move)
        following = [(step, self._after(state, t, step)) for t, step in able]
        wrong += left
        ends = [self._stopped(state, t, v.why) for t, v in wrong if not _further(v, following)]
        if not able and not wrong:
            ends.append(self._over(state))
        return dict.fromkeys(ends, (0, ())), [moment for _, moments in following for moment in moments]

    def _moves(self, state: State) -> Iterator[_Move]:
        """The steps that may be next."""
        for t, (key, node) in enumerate(zip(state.waits, state.nodes, strict=True)):
            if key is None and node.step is not None:
                yield t, node.step
        for flight in sorted(state.flying, key=lambda flight: (flight.id, flight.kind)):
            yield None, flight

    def _left(self, state: State) -> list[tuple[int | None, _Wrong]]:
        """The threads that wait for what others, who have gone on or exited, will not do."""
        alone = ((t, not_together(self.shared.test, t, pc, u)) for t, pc, u in left_alone(self.shared, state))
        return [(t, _Wrong(why, True)) for t, why in (*lost(self.shared, state), *alone)]

    # -- what a step means --

    def _verdict(self, state: State, thread: int | None, step: Step) -> _Wrong | None:
        """Why ``step`` can't be taken now, or None."""
        if step.place is None and thread is not None:
            why = own_misuse(self.shared, state, thread, step)
            if why is None and (other := divergent(self.shared, state, thread, step)) is not None:
                why = not_together(self.shared.test, thread, step.id.instruction, other)
            if why is not None:
                return _Wrong(why, True)
            why = cta_misuse(self.shared, state, thread, step) if step.kind.startswith("bar.") else None
            return None if why is None else _Wrong(why, False)
        if (why := unsound(step)) is not None:
            return _Wrong(why, True)
        assert step.place is not None
        counts = state.places[self.index[step.place]]
        if counts.live or step.kind == "mb.init":
            done = self._done(counts, step, self._token(state, step))
            return _Wrong(done, False, step.place) if isinstance(done, str) else None
        others = [node for t, node in enumerate(state.nodes) if t != thread]
        settled = not any(step.place in node.may_init for node in others)
        later = any(step.place in node.must_init for node in others)
        return _Wrong(f"an operation on mbarrier {step.place[0]}, which is not initialised", settled, later=later)

    def _token(self, state: State, step: Step) -> int | None:
        if step.state_of is not None:
            return dict(state.tokens).get(step.state_of, 0)
        return step.state

    # -- which order can matter --

    def _alone(self, state: State, thread: int | None, step: Step) -> bool:
        """Whether the order of ``step`` and whatever the others do can't matter."""
        if thread is not None:
            if state.nodes[thread].may_exit and self.shared.ctas[thread] in self.mixed:
                return False
            if step.kind.startswith("bar."):
                return self.shared.object_of(thread, step) in self.confluent
            if step.place is None:
                return True
        if any(flight.place == step.place for flight in state.flying if flight != step):
            return False
        keys = {("mb", step.place)} if step.kind == "mb.wait" else {("mb", step.place), ("mb wait", step.place)}
        return all(t == thread or keys.isdisjoint(n.touches) for t, n in enumerate(state.nodes))

    # -- steps --

    def _after(self, state: State, thread: int | None, step: Step) -> list[tuple[State, Log]]:
        """The moments after ``step``."""
        log = Log(self.table)
        if thread is None:
            state, _ = self._perform(state, step, log)
            return [(replace(state, flying=state.flying - {step}), log)]
        if step.place is None:
            if not state.nodes[thread].results:
                log.add(facts.Happens(step))
            state, goes_on = begin(self.shared, state, thread, step, log)
            return list(self._settled(state, (thread,) if goes_on else (), log))
        moved, outcome = self._perform(state, step, log)
        if outcome not in state.nodes[thread].after:
            return []
        log.add(facts.Happens(step if outcome is None else replace(step, outcome=outcome)))
        return list(self._settled(moved, (thread,), log, {thread: outcome}))

    def _perform(self, state: State, step: Step, log: Log) -> tuple[State, bool | None]:
        """An operation on an mbarrier, and what a wait returned."""
        assert step.place is not None
        number = self.index[step.place]
        done = self._done(state.places[number], step, self._token(state, step))
        assert not isinstance(done, str)
        if done.phase is not None:
            phase = facts.InPhase(step.id, done.phase)
            if step.place in self.waited:
                log.add(phase)
            else:
                log.add(facts.Late(step.id, done.phase & MOST > 0))
                log.add_loose(phase)
        counts = self._in_order(state.places[number], step, done, log) if self.ordered else done.counts
        places = (*state.places[:number], counts, *state.places[number + 1 :])
        tokens = state.tokens
        if done.token is not None:
            if step.counted:
                log.add(facts.Returns(step.id, done.token))
            else:
                log.add(facts.PhaseOfToken(step.id, done.token >> EPOCH))
                log.add_loose(facts.Returns(step.id, done.token))
            tokens |= {(step.id, done.token >> EPOCH << EPOCH)}
        return replace(state, places=places, tokens=tokens), done.outcome

    def _in_order(self, before: Counts, step: Step, done: Done, log: Log) -> Counts:
        """Note the latest arrival before an operation, and which one that is from now on."""
        arrives = step.kind in _ARRIVALS
        if before.last is not None and (arrives or done.outcome):
            log.add(facts.Follows(before.last, step.id))
        if step.kind != "mb.increment":  # it is no operation of its own, but the first half of one
            log.order += (step.id,)
        return replace(done.counts, last=step.id) if arrives else done.counts

    def _done(self, counts: Counts, step: Step, token: int | None) -> Done | str:
        key = (id(step), counts, token)  # steps live as long as their nodes, and their hash takes long
        if key not in self.performed:
            self.performed[key] = perform(counts, step, token)
        return self.performed[key]

    def _settled(
        self,
        state: State,
        going: tuple[int, ...] | range,
        log: Log,
        returned: Mapping[int, int | None] = MappingProxyType({}),
    ) -> Iterator[tuple[State, Log]]:
        """The moments when nothing happens by itself any more. ``going``: threads that go on after their step, in which
        they ``returned`` something.

        A thread goes on to each step that may be next; with ``range`` they are at the first one already.
        """
        stack = [(state, tuple(going), log, returned, isinstance(going, range))]
        while stack:
            state, todo, log, returned, first = stack.pop()
            if todo:
                thread, left = todo[0], todo[1:]
                node = state.nodes[thread]
                choices = (node,) if first else node.after[returned.get(thread)]
                for landed, flights in _launched(choices):
                    nodes = (*state.nodes[:thread], landed, *state.nodes[thread + 1 :])
                    after = log.copy()
                    after.add(*(facts.Happens(f) for f in flights))
                    moved = replace(state, nodes=nodes, flying=state.flying.union(flights))
                    stack.append((moved, left, after, returned, first))
                continue
            if state.ctas or state.pending or any(state.waits):
                moved, going_on = complete(self.shared, state, log)
                if going_on or moved != state:
                    for results in _returns(moved, going_on):
                        after = log.copy()
                        after.add(*(facts.Happens(replace(state.step(t), result=v)) for t, v in results.items()))
                        stack.append((moved, going_on, after, results, False))
                    continue
            kept = frozenset(t for t in state.tokens if t[0] in state.nodes[t[0].thread].refers)
            if kept != state.tokens:
                state = replace(state, tokens=kept)
            yield state, log

    # -- ends --

    def _over(self, state: State) -> int:
        """What is so where nothing can happen any more."""
        log = Log(self.table)
        waiting = [state.step(t) for t, key in enumerate(state.waits) if key is not None]
        log.add(*(facts.Waits(step.id) for step in waiting), *(facts.Happens(step) for step in waiting))
        log.add(*(facts.Ends(t, node.ends) for t, node in enumerate(state.nodes) if node.step is None))
        at = dict(state.ctas)
        for t, arrival in state.pending:  # the rest of the warp never comes
            log.add(facts.InPhase(arrival.id, at.get(self.shared.object_of(t, arrival), Barrier()).phase))
        for place, counts in zip(self.names, state.places, strict=True):
            if counts != Counts():  # it was initialised at some time
                log.add(facts.Completed(place, counts.phase))
        return log.facts

    def _stopped(self, state: State, last: int | None, why: str) -> int:
        """All ends at ``state``: thread ``last`` where it is, who waits there too, others at their next step."""
        log = Log(self.table)
        log.add(facts.Misuse(why, last))
        for t, node in enumerate(state.nodes):
            if node.step is None:
                log.add(facts.Ends(t, node.ends))
            else:
                log.add(facts.Waits(node.step.id), facts.Happens(node.step))
        return log.facts


def _returns(state: State, threads: tuple[int, ...]) -> Iterator[dict[int, int]]:
    """What those of ``threads`` get who go different ways by the result of the step in which all of them meet: the
    same, where it is known of all what they may get."""
    nodes = {t: state.nodes[t] for t in threads if state.nodes[t].results}
    ways = [[way for way in node.after if way is not None] for node in nodes.values()]
    alike = len({node.results for node in nodes.values()}) < 2
    for results in product(*ways):
        if not alike or len({*results}) < 2:
            yield dict(zip(nodes, results, strict=True))


def _further(verdict: _Wrong, following: list[tuple[Step, list[tuple[State, Log]]]]) -> bool:
    """Whether a step without meaning is still there after one of the steps that others can take."""
    if verdict.later:  # where nothing follows, whoever would initialise the mbarrier waits for ever
        return bool(following)
    if verdict.settled:
        return any(moments for _, moments in following)
    return verdict.place is not None and any(
        moments and (step.place != verdict.place or step.kind == "mb.wait") for step, moments in following
    )


def _launched(choices: tuple[Node, ...]) -> Iterator[tuple[Node, tuple[Step, ...]]]:
    """The nodes of ``choices`` with asynchronous ones left behind, and those that are under way then."""
    stack: list[tuple[Node, tuple[Step, ...]]] = [(node, ()) for node in reversed(choices)]
    while stack:
        node, flights = stack.pop()
        if node.step is not None and node.step.asynchronous:
            stack += [(n, (*flights, node.step)) for n in reversed(node.after[None])]
        else:
            yield node, flights
