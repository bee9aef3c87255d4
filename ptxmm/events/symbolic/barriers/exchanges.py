"""What barriers with a reduction and exchanges in a warp return (PTX ISA 9.7.14.1, 9.7.10.6, 9.7.14.9 to .12).

Each result is a function of what the threads that meet give. A scenario tells who meets whom, so that results are
functions of the possible values that the threads give, and depend on the reads that occur in these.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import reduce
from operator import add, and_, or_

from msgspec import Struct

from ptxmm.events.symbolic.barriers.lanes import LANES, source_lane
from ptxmm.events.symbolic.barriers.scenarios import Scenario, Step, matches
from ptxmm.events.symbolic.barriers.state import Members
from ptxmm.events.symbolic.event import SyncEvent, ThreadEvents
from ptxmm.events.symbolic.values.arithmetic import compute
from ptxmm.events.symbolic.values.domain import Domain, Reads, apply, joined, merge, only
from ptxmm.ptx.ops import Type
from ptxmm.relations.formula import FALSE, TRUE, Formula, Formulas

_MIXED = -1
"""Stands for values that are not all the same."""


class Returned(Struct, frozen=True):
    """What ``event`` returns in a scenario when it is executed as ``when`` says.

    ``givers``: the steps whose sources occur in the result, and when each is the one of its thread.
    """

    event: SyncEvent
    when: Formula
    domain: Domain
    givers: tuple[tuple[SyncEvent, Formula], ...]


class Exchanges:
    """Works out what the steps of ``threads`` return in one scenario after the other."""

    def __init__(self, shared: Members, formulas: Formulas, threads: list[ThreadEvents]) -> None:
        self.shared = shared
        self.formulas = formulas
        self.steps: dict[tuple[object, str], list[SyncEvent]] = {}
        for thread in threads:
            for event in thread.barriers:
                if event.source is not None:
                    self.steps.setdefault((event.id, event.kind), []).append(event)
        self._known: dict[tuple[Step, frozenset[Step]], tuple[Returned, ...]] = {}

    def returned(self, scenario: Scenario) -> Iterator[Returned]:
        """What every step returns that meets others in ``scenario``."""
        if not self.steps:
            return
        phases = dict(scenario.phases)
        groups: dict[object, set[Step]] = {}
        for arrival in scenario.steps:
            phase = phases.get(arrival.id)
            if phase is not None and (arrival.id, arrival.kind) in self.steps:
                groups.setdefault((self.shared.object_of(arrival.id.thread, arrival), phase), set()).add(arrival)
        for found in groups.values():
            group = frozenset(found)
            for arrival in group:
                if (arrival, group) not in self._known:
                    self._known[arrival, group] = tuple(self._of(arrival, group))
                yield from self._known[arrival, group]

    def _matching(self, arrival: Step) -> list[tuple[SyncEvent, Formula]]:
        """The steps that ``arrival`` may be; a single one surely is, in a scenario with it."""
        events = self.steps[arrival.id, arrival.kind]
        if len(events) == 1:
            return [(events[0], TRUE)]
        return [(e, f) for e in events if (f := matches(self.formulas, e, arrival)) != FALSE]

    def _of(self, arrival: Step, group: Collection[Step]) -> Iterator[Returned]:
        by_thread = {a.id.thread: a for a in group}
        givers = self._givers(arrival, by_thread)
        if givers is None:
            return
        sources: dict[int, Domain] = {}
        steps: list[tuple[SyncEvent, Formula]] = []
        for thread in givers:
            matching = self._matching(by_thread[thread])
            steps += matching
            arms = [(when, e.source.domain) for e, when in matching if e.source is not None]
            sources[thread] = merge(self.formulas, arms)
        domain = self._result(arrival, sources)
        for event, when in self._matching(arrival):
            yield Returned(event, when, domain, tuple(steps))

    def _givers(self, arrival: Step, group: Mapping[int, Step]) -> list[int] | None:
        """The threads whose sources occur in what ``arrival`` returns; None if one of them is not there."""
        if not arrival.operation.startswith("shfl."):
            return sorted(group)
        lanes = self.shared.lanes(arrival.id.thread)
        source, _ = source_lane(arrival.operation.split(".")[1], lanes.index(arrival.id.thread), *arrival.operands)
        if source >= len(lanes) or lanes[source] not in group:
            return None
        return [lanes[source]]

    def _result(self, arrival: Step, sources: dict[int, Domain]) -> Domain:
        """The value of what ``arrival`` returns, by what threads give."""
        thread, domains = arrival.id.thread, list(sources.values())
        if arrival.kind == "bar.red":
            return self._reduced(arrival.operation, sources)
        name, mode, type_ = arrival.operation.split(".")
        match name, mode:
            case "shfl", _:
                return domains[0]
            case "redux", _:
                typ = Type(type_[0], 32)
                return self._fold(lambda a, b: compute(mode, typ, [a, b]), domains)
            case "match", _:
                return self._match(mode, thread, sources)
            case "vote", "all" | "any":
                return self._fold(and_ if mode == "all" else or_, domains)
            case "vote", "uni":
                return self._map(lambda v: int(v != _MIXED), self._fold(_agreed, domains))
        bits = self._lane_bits(thread, sources)
        return self._fold(or_, [self._scaled(d, bits[t]) for t, d in sources.items()])

    def _reduced(self, name: str, sources: dict[int, Domain]) -> Domain:
        """Of a barrier: a thread that is in no named warp stands for a whole one."""
        if name in ("and", "or"):
            return self._fold(and_ if name == "and" else or_, list(sources.values()))
        return self._fold(add, [self._scaled(d, 1 if self.shared.named(t) else LANES) for t, d in sources.items()])

    def _match(self, mode: str, thread: int, sources: dict[int, Domain]) -> Domain:
        bits = self._lane_bits(thread, sources)
        if mode == "all":
            everyone = sum(bits.values())
            agreed = self._fold(_agreed, list(sources.values()))
            return self._map(lambda v: 0 if v == _MIXED else everyone, agreed)
        mine, result = sources[thread], only(bits[thread])
        for other, domain in sources.items():
            if other != thread:
                same = apply(self.formulas, lambda a, b: int(a == b), mine, domain)
                result = self._fold(or_, [result, self._scaled(same, bits[other])])
        return result

    def _lane_bits(self, thread: int, mates: Collection[int]) -> dict[int, int]:
        lanes = self.shared.lanes(thread)
        return {t: 1 << lanes.index(t) for t in mates}

    def _scaled(self, domain: Domain, factor: int) -> Domain:
        return self._map(lambda v: factor * v, domain)

    def _fold(self, function: Callable[[int, int], int], domains: list[Domain]) -> Domain:
        return reduce(lambda a, b: apply(self.formulas, function, a, b), domains)

    def _map(self, function: Callable[[int], int], domain: Domain) -> Domain:
        return apply(self.formulas, function, domain)


def _agreed(a: int, b: int) -> int:
    return a if a == b else _MIXED


def depends(formulas: Formulas, found: list[tuple[Formula, list[Returned]]]) -> dict[int, Reads]:
    """For each step, by number, the reads that occur in what it returns; ``found``: for each scenario its selector."""
    result: dict[int, list[tuple[int, Formula]]] = {}
    for selector, returned in found:
        givers: dict[int, list[tuple[SyncEvent, Formula]]] = {}
        for item in returned:
            givers.setdefault(item.event.number, []).extend(item.givers)
        known: dict[int, Reads] = {}
        for number in givers:
            reads = _reads(formulas, number, givers, known).items()
            result.setdefault(number, []).extend((read, formulas.both(selector, when)) for read, when in reads)
    return {number: joined(formulas, reads) for number, reads in result.items()}


def _reads(
    formulas: Formulas, number: int, givers: Mapping[int, list[tuple[SyncEvent, Formula]]], known: dict[int, Reads]
) -> Reads:
    """The reads in what step ``number`` returns in one scenario, where earlier results may be given on."""
    if number in known:
        return known[number]
    found: list[tuple[int, Formula]] = []
    known[number] = {}
    for event, when in givers.get(number, ()):
        assert event.source is not None
        for read, inner in event.source.reads.items():
            both = formulas.both(when, inner)
            further = {read: TRUE} if read >= 0 else _reads(formulas, -read, givers, known)
            found += [(r, formulas.both(both, condition)) for r, condition in further.items()]
    known[number] = joined(formulas, found)
    return known[number]


def resolved(formulas: Formulas, reads: Reads, results: Mapping[int, Reads]) -> Reads:
    """``reads`` with the reads in the results of steps in place of the steps, which are below 0."""
    if all(read >= 0 for read in reads):
        return reads
    return joined(
        formulas,
        (
            (further, formulas.both(when, condition))
            for read, when in reads.items()
            for further, condition in ({read: TRUE} if read >= 0 else results.get(-read, {})).items()
        ),
    )
