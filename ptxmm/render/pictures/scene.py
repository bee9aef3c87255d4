"""From an execution graph, and the reason that forbids it, to the boxes and links of a picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType

from msgspec import Struct, field
from msgspec.structs import replace

from ptxmm.analysis.explain.expected import Expected
from ptxmm.analysis.explain.steps import Edge, Reason
from ptxmm.analysis.result import EventView, ExecutionGraph, Instruction
from ptxmm.render.pictures.boxes import Box, Column, Link, Relation, Scene
from ptxmm.render.pictures.words import AMISS, KINDS, absent, effects, lacking, short, wrapped
from ptxmm.render.style import clean, section

MOST_THREADS = 12
MOST_ROWS = 30
MOST_LINKS = 100
MOST_INITIAL = 8
"""More threads, boxes in a column, links, or initial writes that nothing reads are not shown."""

_STEP = Relation("po", "po", "program order (8.9.1)")
_STEPS = frozenset(("sync", "fsc", "phase", "asynchronous"))
"""Kinds of links that base causality order is made of, with program order."""
_AS_PROGRAM_ORDER = ("co", "fr", "fsc", "sync_fence")
"""Relations that in one thread are as program order."""
Remarks = Mapping[tuple[str, int], Sequence[str]]
"""What else is said of an instruction, by its thread and its index."""
_MUTUAL = ("barphase", "warpphase", "syncbar", "sync_barrier")
"""Relations that hold both ways between all that come together."""


class _Group(Struct, eq=False):
    """The events of one box. ``step``: it is in program order."""

    column: Column | None
    view: EventView
    events: list[int] = field(default_factory=list)
    linked: bool = False
    marked: bool = False


class _Pair(Struct):
    """What relates two groups: relations by their short names."""

    relations: dict[str, Relation] = field(default_factory=dict)
    weight: int = 0
    both: bool = False


def scene(
    graph: ExecutionGraph,
    reason: Reason | None = None,
    race: tuple[Instruction, Instruction] | None = None,
    expected: Expected | None = None,
    remarks: Remarks = MappingProxyType({}),
) -> Scene:
    """What a picture of ``graph`` shows, with the ``reason`` that forbids it, a ``race`` in it, or the circle that one
    would have ``expected`` to be forbidden, and ``remarks`` on its instructions. What is too much for a picture is left
    out, and ``Scene.notes`` says so."""
    maker = _Maker(graph, reason, remarks)
    if race is not None:
        maker.race(*race)
    if expected is not None and expected.axiom is not None:
        maker.circle(expected)
    return maker.made()


class _Maker:
    def __init__(self, graph: ExecutionGraph, reason: Reason | None, remarks: Remarks) -> None:
        self.graph = graph
        self.remarks = remarks
        self.usual = 1 if reason is None else 0
        self.groups: list[_Group] = []
        self.of: list[int] = []
        self.views: dict[EventView, int] = {}
        self.pairs: dict[tuple[int, int, str], _Pair] = {}
        self.orders: dict[tuple[int, int], int] = {}
        self.causal: set[tuple[int, int]] = set()
        self.strong: set[frozenset[int]] = set()
        self.notes: list[str] = []
        self._group()
        self._relate()
        if reason is not None:
            self._mark(reason)

    def _group(self) -> None:
        known: dict[object, int] = {}
        for number, event in enumerate(self.graph.events):
            column = None if event.thread is None else Column(event.thread, event.asynchronous)
            key = (column, number if column is None else event.view.same)
            if key not in known:
                known[key] = len(self.groups)
                self.groups.append(_Group(column, event.view))
            self.groups[known[key]].events.append(number)
            self.of.append(known[key])
            self.views.setdefault(event.view, known[key])

    def _relate(self) -> None:
        for item in self.graph.relations:
            pairs = {(self.of[a], self.of[b]) for a, b in item.pairs if self.of[a] != self.of[b]}
            if item.relation == "bc":
                self.causal = pairs
                continue
            if item.relation in ("po", "cause"):
                continue
            if item.relation in _MUTUAL:
                pairs = self._neighbours(pairs)
            for a, b in sorted(pairs):
                if not self._plain(a, b, item.relation):
                    self._add(a, b, item.relation, item.text, item.section, self.usual)

        for found in self.graph.conflicts:
            if not found.fails:
                self.strong.add(frozenset((self.of[found.first], self.of[found.second])))

    def _plain(self, a: int, b: int, relation: str) -> bool:
        """Whether this needs no line: initial writes come first in coherence order, and what follows in program order
        does in the others."""
        column = self.groups[a].column
        if column is None:
            return relation != "rf"
        return relation in _AS_PROGRAM_ORDER and column == self.groups[b].column and not column.asynchronous and a < b

    def _neighbours(self, pairs: set[tuple[int, int]]) -> set[tuple[int, int]]:
        """Without those pairs, related both ways, between which others are that are related to both."""
        mutual = {(a, b) for a, b in pairs if (b, a) in pairs}
        near: dict[int, list[int]] = {}
        for a, b in mutual:
            near.setdefault(a, []).append(b)
        return {
            (a, b)
            for a, b in pairs
            if (a, b) not in mutual or not any((c, b) in mutual for c in near[a] if min(a, b) < c < max(a, b))
        }

    def _add(self, a: int, b: int, relation: str, text: str, where: str | None, weight: int) -> _Pair:
        label, kind = short(relation)
        return self._say(a, b, Relation(label, kind, text + section(where)), weight)

    def _say(self, a: int, b: int, item: Relation, weight: int) -> _Pair:
        """Relate two groups; what is amiss has a line of its own."""
        pair = self.pairs.setdefault((a, b, item.kind if item.kind in AMISS else ""), _Pair())
        pair.relations.setdefault(item.label, item)
        pair.weight = max(pair.weight, weight)
        self.groups[a].linked = self.groups[b].linked = True
        return pair

    # -- what breaks an axiom --

    def _mark(self, reason: Reason) -> None:
        for edge in reason.edges:
            self._edge(edge, 2)
        for edge in reason.beside:
            self._edge(edge, 1)
        for item in reason.absent:
            a = self.views.get(item.first)
            b = a if item.second is None else self.views.get(item.second)
            if a is None or b is None:
                continue
            self.groups[a].marked = self.groups[b].marked = True
            if a != b:
                text = f"not in {item.text or 'what the axiom demands'}{section(item.section)}"
                self._say(a, b, Relation(absent(item.text), "absent", text), 2).both = item.unrelated
        if reason.member is not None and reason.member in self.views:
            self.groups[self.views[reason.member]].marked = True

    def _edge(self, edge: Edge, weight: int) -> None:
        if edge.inner and not edge.relation.startswith("sync-"):
            for inner in edge.inner:
                self._edge(inner, weight)
            return
        first, second = (edge.second, edge.first) if edge.backwards else (edge.first, edge.second)
        a, b = self.views.get(first), self.views.get(second)
        if a is None or b is None:
            return
        if weight == 2:
            self.groups[a].marked = self.groups[b].marked = True
        if a == b:
            return
        if edge.relation in ("po", "po-loc"):
            self.orders[a, b] = max(weight, self.orders.get((a, b), 0))
            self.groups[a].linked = self.groups[b].linked = True
        elif weight == 1 and (a, b, "") in self.pairs:
            self.pairs[a, b, ""].weight = max(1, self.pairs[a, b, ""].weight)
        else:
            self._add(a, b, edge.relation, edge.text, edge.section, weight)
        for inner in edge.inner:
            self._edge(inner, 1)

    def race(self, first: Instruction, second: Instruction) -> None:
        """Mark the accesses of two instructions, where they are executed last."""
        ends = {group.view.instruction: n for n, group in enumerate(self.groups)}
        a, b = ends.get(first), ends.get(second)
        if a is not None and b is not None:
            self.groups[a].marked = self.groups[b].marked = True
            if a != b:
                self._say(a, b, Relation("race", "race", "data race (8.7.1)"), 2).both = True

    def circle(self, found: Expected) -> None:
        """Mark the steps of a circle, and draw what those lack that are no orders."""
        labels = {view.label: n for view, n in self.views.items()}
        for link in found.links:
            if link.edge.relation == "issue":
                self._started(link.edge)
            elif link.edge.relation != "completion":
                self._edge(link.edge, 2)
            if link.gap is None:
                continue
            a, b = labels[link.gap.first], labels[link.gap.second]
            if (link.gap.first, link.gap.second) == (link.edge.first.label, link.edge.second.label):
                a, b = self.views[link.edge.first], self.views[link.edge.second]
            self.groups[a].marked = self.groups[b].marked = True
            if a != b:
                text = f"missing {link.gap.text}{section(link.gap.section)}"
                self._say(a, b, Relation(lacking(link.gap), "absent", text), 2)

    def _started(self, edge: Edge) -> None:
        """Mark the way to an asynchronous operation: through the instruction that starts it."""
        late = self.groups[self.views[edge.second]]
        starts = [view for view, n in self.views.items() if self._starts(self.groups[n], late)]
        for start in starts[:1]:
            if start.same != edge.first.same:
                self._edge(Edge("po", "", None, edge.first, start), 2)
            self._edge(replace(edge, first=start), 2)

    def _starts(self, group: _Group, late: _Group) -> bool:
        column = None if late.column is None else replace(late.column, asynchronous=False)
        return group.column == column and group.view.same == late.view.same

    # -- what is shown --

    def made(self) -> Scene:
        threads = self._threads()
        order, paths = self._columns(threads)
        shown: dict[int, int] = {}
        boxes: list[Box] = []
        rows: dict[tuple[int, object], int] = {}
        for column in order:
            self._stack(column, boxes, shown, rows)
        self._initial(boxes, shown)
        used = [c for c in order if any(box.column == c for box in boxes) or not c.asynchronous]
        links = self._links(shown)
        names = [self.graph.threads[c.thread].thread + (" async" if c.asynchronous else "") for c in used]
        return Scene(
            tuple(used),
            tuple(map(clean, names)),
            tuple(paths[c.thread] for c in used),
            tuple(boxes),
            tuple(links),
            tuple(self._steps(boxes, shown)),
            tuple(self.notes),
        )

    def _threads(self) -> list[int]:
        """Those that are shown: if they are many, those that matter most."""
        every = list(range(len(self.graph.threads)))
        if len(every) <= MOST_THREADS:
            return every
        worth: Counter[int] = Counter()
        for group in self.groups:
            if group.column is not None:
                worth[group.column.thread] += 1 + 10 * group.linked + 1000 * group.marked
        kept = sorted(sorted(every, key=lambda t: (-worth[t], t))[:MOST_THREADS])
        self.notes.append(f"{len(every) - len(kept)} of {len(every)} threads are left out")
        return kept

    def _columns(self, threads: list[int]) -> tuple[list[Column], dict[int, tuple[str, ...]]]:
        """The columns, those of one CTA side by side."""
        paths = {t: tuple(map(clean, self.graph.threads[t].path)) for t in threads}
        first: dict[tuple[str, ...], int] = {}
        for t in threads:
            for size in range(len(paths[t]) + 1):
                first.setdefault(paths[t][:size], t)

        def key(t: int) -> tuple[int, ...]:
            return (*(first[paths[t][:size]] for size in range(1, len(paths[t]) + 1)), t)

        return [Column(t, late) for t in sorted(threads, key=key) for late in (False, True)], paths

    def _stack(
        self, column: Column, boxes: list[Box], shown: dict[int, int], rows: dict[tuple[int, object], int]
    ) -> None:
        """Add the boxes of ``column``, which come one below the other, an asynchronous one not above its start."""
        own = [
            n
            for n, group in enumerate(self.groups)
            if group.column == column and (group.view.instruction is not None or group.linked)
        ]
        row = 0
        for n in self._chosen(own):
            if isinstance(n, int):
                group = self.groups[n]
                row = max(row, rows.get((column.thread, group.view.same), 0))
                if not column.asynchronous:
                    rows[column.thread, group.view.same] = row
                shown[n] = len(boxes)
                boxes.append(self._box(group, row))
            else:
                text = f"{len(n)} more instructions"
                boxes.append(Box(column, row, "", (f"... {text}",), (), text, left_out=len(n)))
            row += 1

    def _chosen(self, own: list[int]) -> Iterator[int | list[int]]:
        """The groups of a column: if they are many, runs of those that matter least together."""
        if len(own) <= MOST_ROWS:
            yield from own
            return
        worth = {n: (self.groups[n].marked, self.groups[n].linked) for n in own}
        kept = set(sorted(own, key=lambda n: worth[n], reverse=True)[:MOST_ROWS])
        run: list[int] = []
        for n in own:
            if n in kept:
                if run:
                    yield run
                run = []
                yield n
            else:
                run.append(n)
        if run:
            yield run

    def _box(self, group: _Group, row: int) -> Box:
        view, events = group.view, [self.graph.events[n] for n in group.events]
        whole = list(effects(events))
        if view.instruction is not None and not (group.column is not None and group.column.asynchronous):
            whole += self.remarks.get((view.instruction.thread, view.instruction.index), ())
        name = clean("; ".join((view.name, *whole)))
        told = tuple(part for line in whole for part in wrapped(line, "  "))
        if view.instruction is None:
            return Box(group.column, row, "", (clean(view.text),), told, name, group.marked)
        asynchronous = group.column is not None and group.column.asynchronous
        lines = ("asynchronously",) if asynchronous else wrapped(view.instruction.text, "  ")
        if view.round:
            lines = (*lines, f"(round {view.round + 1})")
        name += ", asynchronously" if asynchronous else ""
        return Box(group.column, row, str(view.instruction.line), lines, told, name, group.marked)

    def _initial(self, boxes: list[Box], shown: dict[int, int]) -> None:
        own = [n for n, group in enumerate(self.groups) if group.column is None]
        used = {end for a, b, _ in self.pairs for end in (a, b)}
        kept = [n for n in own if n in used]
        kept = (own if len(own) <= MOST_INITIAL else kept)[: 2 * MOST_INITIAL]
        for n in kept:
            event = self.graph.events[self.groups[n].events[0]]
            value = "" if event.value is None else f" = {event.value}"
            lines = wrapped(clean(f"{event.location}{value}"), "  ", 24)
            shown[n] = len(boxes)
            name = clean(f"initially {event.location}{value}")
            boxes.append(Box(None, 0, "", lines, (), name, self.groups[n].marked))
        if len(kept) < len(own):
            self.notes.append(f"{len(own) - len(kept)} of {len(own)} initial writes are left out")

    def _links(self, shown: Mapping[int, int]) -> list[Link]:
        found: list[Link] = []
        for (a, b, amiss), pair in self.pairs.items():
            back = self.pairs.get((b, a, amiss))
            both = pair.both or (back is not None and back.relations.keys() == pair.relations.keys())
            if a not in shown or b not in shown or (both and back is not None and a > b):
                continue
            weight = max(pair.weight, back.weight if both and back is not None else 0)
            relations = tuple(sorted(pair.relations.values(), key=lambda item: KINDS.index(item.kind)))
            causal = (a, b) in self.causal and any(item.kind in _STEPS for item in relations)
            strong = not amiss and {a, b} in self.strong
            found.append(Link(shown[a], shown[b], relations, both, causal, weight, strong))
        if len(found) > MOST_LINKS:
            order = sorted(range(len(found)), key=lambda i: (-found[i].weight, KINDS.index(found[i].kind), i))
            self.notes.append(f"{len(found) - MOST_LINKS} of {len(found)} relations between instructions are left out")
            found = [found[i] for i in sorted(order[:MOST_LINKS])]
        return found

    def _steps(self, boxes: list[Box], shown: Mapping[int, int]) -> Iterator[Link]:
        weights: dict[tuple[int, int], int] = {}
        for (a, b), weight in self.orders.items():
            if a in shown and b in shown:
                for i in range(shown[a], shown[b]):
                    weights[i, i + 1] = max(weight, weights.get((i, i + 1), 0))
        causal = {(shown[a], shown[b]) for a, b in self.causal if a in shown and b in shown}
        for a, b in pairwise(range(len(boxes))):
            column = boxes[a].column
            if column is not None and not column.asynchronous and boxes[b].column == column:
                near = (a, b) in causal or (bool(causal) and bool(boxes[a].left_out or boxes[b].left_out))
                yield Link(a, b, (_STEP,), False, near, max(self.usual, weights.get((a, b), 0)))
