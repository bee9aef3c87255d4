"""Why an execution is not forbidden: the cycle that one would expect to be, and which of its steps are no orders.

Program order and communication that go round in a circle are what sequential consistency forbids. The models forbid it
only if the circle is closed by orders: a write that is read has to synchronize, other communication needs Fence-SC
order, what is asynchronous has to be waited for, and other proxies need their fences.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import islice, pairwise
from types import MappingProxyType

from msgspec import Struct

from ptxmm.analysis.explain.events import Views
from ptxmm.analysis.explain.phrases import noun
from ptxmm.analysis.explain.steps import Edge
from ptxmm.analysis.explain.words import AXIOMS, EDGES, Words
from ptxmm.analysis.morally_strong import Condition, conditions, proxy_of

_PHASES = ("barphase", "warpphase", "cluphase", "exitphase", "mbphase", "api", "trigger")
_COMMUNICATION = ("rf", "co", "fr")
_ONE = ("po", "rmw", "aord")
"""Relations that are orders by themselves."""

_COMPLETION = Words("as if it were over before the next instruction", "8.9.1.1")
_WORDS: Mapping[str, Words] = MappingProxyType({**EDGES, "completion": _COMPLETION})

MOST = 3
"""So many races are told of where there is no circle."""

_UNORDERED = {
    "exitphase": "an exit lets the barrier pass, but orders nothing",
    "trigger": "that a dependent grid may start orders nothing by itself",
    "api": "a grid waits for the one before it, not for those further back",
}
_FAR = 8
"""What communication that never synchronizes costs on a path, where another step costs 1."""

Step = tuple[int, int, str]
"""Two events and what relates them."""


class Gap(Struct, frozen=True):
    """That ``first`` does not come before ``second``, in what ``text`` says (``section`` of PTX ISA 8.5), as one would
    expect: the conditions that fail."""

    text: str
    section: str
    first: str
    second: str
    fails: tuple[Condition, ...]


class Link(Struct, frozen=True):
    """A step of a circle, and why it is no order, if it is none."""

    edge: Edge
    gap: Gap | None


class Expected(Struct, frozen=True):
    """A circle of program order and communication that ``axiom`` (``text``, ``section`` of PTX ISA 8.5) would forbid if
    all steps but the first were orders. ``links``: its steps; the first is what would contradict the others. Without
    an axiom there is no circle, and ``links`` are communication that is a data race. ``sentence``: what there is to say
    of either, without its full stop.
    """

    axiom: str | None
    text: str
    section: str | None
    sentence: str
    links: tuple[Link, ...]

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """The steps that are no orders."""
        return tuple(link.gap for link in self.links if link.gap is not None)


def expected(views: Views) -> Expected | None:
    """The shortest circle of an allowed execution, with the fewest gaps; None where the model has no causality
    order. Executions that are sequentially consistent have no circle."""
    if "bc" not in views.execution.evaluator.model.definitions:
        return None
    maker = _Maker(views)
    found = [maker.made(circle) for circle in maker.circles()]
    known = [item for item in found if item is not None]
    if known:
        return min(known, key=lambda item: len(item.gaps))
    races = tuple(islice(maker.races(), MOST))
    text = "nothing goes round in a circle: program order and communication order agree, as where threads take turns"
    return Expected(None, text, None, f"{text}, but no order decides whose turn it is" if races else text, races)


class _Maker:
    def __init__(self, views: Views) -> None:
        self.views = views
        self.rebuilt = views.execution
        self.algebra = self.rebuilt.layout.algebra
        self.model = self.rebuilt.evaluator.model
        self.order = self._base("po")
        self.causality = self.rebuilt.evaluator.value("bc")
        self.kinds = dict(self._kinds())

    def _base(self, name: str) -> int:
        return self.rebuilt.base(name) or 0

    def _defined(self, name: str) -> int:
        return self.rebuilt.evaluator.value(name) if name in self.model.definitions else 0

    def _has(self, value: int, a: int, b: int) -> bool:
        return self.algebra.has(value, a, b)

    # -- circles --

    def _kinds(self) -> Iterator[tuple[tuple[int, int], str]]:
        """What relates two events, the strongest last."""
        algebra, first = self.algebra, self.rebuilt.layout.initial_first
        issue = self._base("issue-all")
        back = algebra.inverse(issue)
        after = algebra.union(self.order, algebra.sequence(self.order, issue))
        rmw = self._base("rmw")
        found = [("completion", algebra.sequence(back, after))]
        found += [(name, self._base(name)) for name in ("fr", "co", "rf", *_PHASES)]
        found += [("rmw", algebra.union(rmw, algebra.inverse(rmw))), ("aord", self._base("aord"))]
        found += [("issue", algebra.union(issue, algebra.sequence(self.order, issue))), ("po", self.order)]
        for name, value in found:
            for a, b in algebra.pairs(value):
                if a < first and b < first and a != b:
                    yield (a, b), name

    def circles(self) -> Iterator[tuple[Step, ...]]:
        """The shortest circles, each begun with one of its steps of communication."""
        near: dict[int, list[tuple[int, int]]] = {}
        for (a, b), kind in self.kinds.items():
            near.setdefault(a, []).append((_FAR if kind in ("co", "fr") else 1, b))
        best: int | None = None
        found: list[tuple[Step, ...]] = []
        for (a, b), kind in self.kinds.items():
            if kind not in _COMMUNICATION:
                continue
            cost, path = _path(near, b, a)
            if not path or (best is not None and cost > best):
                continue
            if best is None or cost < best:
                best, found = cost, []
            found.append(((a, b, kind), *((x, y, self.kinds[x, y]) for x, y in pairwise(path))))
        yield from found

    def races(self) -> Iterator[Link]:
        """Communication between operations that race (8.7.1)."""
        race = self._defined("race")
        for (a, b), kind in self.kinds.items():
            if kind in _COMMUNICATION and (self._has(race, a, b) or self._has(race, b, a)):
                fails = tuple(conditions(self.views.test, self.rebuilt, a, b))
                yield self._link(a, b, kind, self._gap("causality order", "8.9.5", a, b, fails))

    # -- what is missing --

    def made(self, circle: Sequence[Step]) -> Expected | None:
        """``circle`` with its gaps; None if it has none."""
        links = list(self._of_location(circle)) if self._one_location(circle) else []
        # Of accesses through different addresses only causality order can speak.
        local = any(fail.name != "overlap" for link in links if link.gap is not None for fail in link.gap.fails)
        links = links if local else list(self._of_causality(circle))
        if all(link.gap is None for link in links):
            return None
        u, v, kind = circle[0]
        one, other = noun(self.views.event(u)), noun(self.views.event(v))
        if local:
            axiom = "Atomicity-RMW" if any(step[2] == "rmw" for step in circle) else "SC-per-Location"
            axiom = axiom if axiom in {a.name for a in self.model.axioms} else "Atomicity"
            condition = "if all of these were morally strong"
        else:
            axiom = "Coherence" if kind == "co" else "Causality"
            condition = f"if causality order led from {other} to {one}"
        words = AXIOMS.get(axiom, Words("", None))
        clause = {"rf": " (1)", "fr": " (2)"}.get(kind, "") if axiom == "Causality" else ""
        section = None if words.section is None else words.section + clause
        told = {"rf": "{v} reads from {u}", "fr": "{u} reads a value from before {v}"}
        fact = told.get(kind, "{u} comes before {v} in coherence order").format(u=one, v=other)
        return Expected(axiom, words.text, section, f"{axiom} would forbid it {condition}, for {fact}", tuple(links))

    def _one_location(self, circle: Sequence[Step]) -> bool:
        events = dict.fromkeys(a for a, _, _ in circle)
        overlap = self._base("ovl")
        return all(self._has(overlap, a, b) for a in events for b in events if a < b) and all(
            kind in (*_COMMUNICATION, *_ONE) for _, _, kind in circle
        )

    def _of_location(self, circle: Sequence[Step]) -> Iterator[Link]:
        for a, b, kind in circle:
            fails = () if kind in _ONE else self._fails(a, b)
            gap = self._gap("moral strength", "8.7", a, b, fails) if fails else None
            yield self._link(a, b, kind, gap)

    def _of_causality(self, circle: Sequence[Step]) -> Iterator[Link]:
        yield self._link(*circle[0], None)
        path = circle[1:]
        gaps = []
        for number, (a, b, kind) in enumerate(path):
            before = path[number - 1] if number else None
            after = path[number + 1] if number + 1 < len(path) else None
            start = before[0] if before is not None and before[2] in _ONE else a
            end = after[1] if after is not None and after[2] in _ONE else b
            gaps.append(None if kind in (*_ONE, "issue") else self._missing(a, b, kind, start, end))
        if not any(gaps) and path:
            gaps[-1] = self._proxy(path[0][0], path[-1][1])
        for (a, b, kind), gap in zip(path, gaps, strict=True):
            yield self._link(a, b, kind, gap)

    def _missing(self, a: int, b: int, kind: str, start: int, end: int) -> Gap | None:
        """Why the step from ``a`` to ``b`` does not make base causality order lead from ``start`` to ``end``."""
        if self._has(self.causality, start, end):
            return None
        if kind == "rf":
            return self._gap("synchronization", "8.9.4 (4)", a, b, tuple(self._unsynchronized(a, b, start, end)))
        if kind in ("co", "fr"):
            return self._gap("Fence-SC order", "8.9.3", a, b, tuple(self._unfenced(a, b, start, end)))
        if kind == "completion":
            text = f"{self._name(a)} is asynchronous, and no wait for its completion comes before {self._name(b)}"
            return self._gap("completion", "8.9.1.1", a, b, (Condition("wait", "8.9.1.1", text),))
        where = EDGES[kind].section or "8.9.4"
        fails = (Condition("order", where, _UNORDERED[kind]),) if kind in _UNORDERED else tuple(self._passed(a, b))
        return self._gap("synchronization", where, a, b, fails)

    def _unsynchronized(self, a: int, b: int, start: int, end: int) -> Iterator[Condition]:
        """What keeps patterns with the write ``a`` and the read ``b`` from synchronizing (8.9.4)."""
        unobserved = self._fails(a, b)
        if unobserved and not self._has(self._defined("obs"), a, b):
            yield from unobserved
        releases = [x for x in self._sources("release-pattern", a) if x == start or self._has(self.order, start, x)]
        acquires = [y for y in self._targets("acquire-pattern", b) if y == end or self._has(self.order, y, end)]
        if not releases:
            text = f"{self._name(a)} is no release operation"
            text += "" if start == a else f", and no memory fence is between {self._name(start)} and it"
            yield Condition("release pattern", "8.8", text)
        if not acquires:
            text = f"{self._name(b)} is no acquire operation"
            text += "" if end == b else f", and no memory fence is between it and {self._name(end)}"
            yield Condition("acquire pattern", "8.8", text)
        if releases and acquires:
            weak = self._fails(releases[-1], acquires[0])
            yield from weak
            if not weak and not unobserved:
                names = (
                    f"{self._name(releases[-1])} is a release pattern, and {self._name(acquires[0])} an acquire pattern"
                )
                yield Condition("model", "8.9.4 (4)", f"{names}, but this model does not let them synchronize")

    def _unfenced(self, a: int, b: int, start: int, end: int) -> Iterator[Condition]:
        """What keeps two ``fence.sc`` around from-reads or coherence from being ordered (8.9.3)."""
        fences = self._base("FSC")
        sides = []
        for one, other in ((start, a), (b, end)):
            between = self.algebra.members(fences & self._span(one, other))
            sides.append(list(between))
            if not sides[-1]:
                names = f"{self._name(one)} and {self._name(other)}"
                text = "no order goes on from it" if one == other else f"no fence.sc between {names}"
                yield Condition("fence.sc", "8.9.3", text)
        if all(sides):
            yield from self._fails(sides[0][-1], sides[1][0])

    def _passed(self, a: int, b: int) -> Iterator[Condition]:
        """What keeps an arrival ``a`` and a wait ``b`` of its phase from synchronizing."""
        for number, name, word in ((a, "REL", "release"), (b, "ACQ", "acquire")):
            if not self._base(name) >> number & 1:
                text = f"{self._name(number)} is relaxed, and no fence makes it {word}"
                yield Condition(f"{word} pattern", "8.8", text)
        yield from self._fails(a, b)

    def _proxy(self, a: int, b: int) -> Gap:
        """What causality order through other proxies, or other addresses, lacks (8.6)."""
        proxies = [proxy_of(self.rebuilt, number) for number in (a, b)]
        names = [self._name(number) for number in (a, b)]
        if proxies[0] != proxies[1]:
            text = (
                f"{names[0]} uses the {proxies[0]} proxy, {names[1]} the {proxies[1]} proxy: no proxy fence is between"
            )
        elif not self._has(self._base("vloc"), a, b) and self._has(self._base("loc"), a, b):
            text = f"{names[0]} and {names[1]} use different virtual addresses: no alias proxy fence is between"
        elif proxies[0] != "generic":
            text = f"{names[0]} and {names[1]} use the {proxies[0]} proxy in different CTAs: no proxy fence is between"
        else:
            text = f"base causality order leads from {names[0]} to {names[1]}, but not through the proxies they use"
        return self._gap("causality order", "8.9.5", a, b, (Condition("proxy fence", "8.6", text),))

    # -- parts --

    def _fails(self, a: int, b: int) -> tuple[Condition, ...]:
        if self._has(self._defined("ms"), a, b):
            return ()
        return tuple(conditions(self.views.test, self.rebuilt, a, b))

    def _sources(self, name: str, b: int) -> list[int]:
        return list(self.algebra.members(self.algebra.successors(self.algebra.inverse(self._defined(name)), b)))

    def _targets(self, name: str, a: int) -> list[int]:
        return list(self.algebra.members(self.algebra.successors(self._defined(name), a)))

    def _span(self, a: int, b: int) -> int:
        """What is between two events in program order."""
        before = self.algebra.successors(self.algebra.inverse(self.order), b)
        return self.algebra.successors(self.order, a) & before

    def _name(self, number: int) -> str:
        return self.views.event(number).label

    def _gap(self, text: str, section: str, a: int, b: int, fails: tuple[Condition, ...]) -> Gap:
        return Gap(text, section, self._name(a), self._name(b), tuple(dict.fromkeys(fails)))

    def _link(self, a: int, b: int, kind: str, gap: Gap | None) -> Link:
        words = _WORDS[kind]
        return Link(Edge(kind, words.text, words.section, self.views.event(a), self.views.event(b)), gap)


def _path(near: Mapping[int, Sequence[tuple[int, int]]], start: int, end: int) -> tuple[int, list[int]]:
    """The cost and the events of a cheapest path; no events if there is none."""
    came: dict[int, tuple[int, int]] = {start: (0, start)}
    heap = [(0, start)]
    while heap:
        cost, event = heappop(heap)
        if event == end:
            break
        if cost > came[event][0]:
            continue
        for more, after in near.get(event, ()):
            if after not in came or cost + more < came[after][0]:
                came[after] = cost + more, event
                heappush(heap, (cost + more, after))
    if end not in came:
        return 0, []
    path = [end]
    while path[-1] != start:
        path.append(came[path[-1]][1])
    return came[end][0], path[::-1]
