"""Explanations as text that reads like a proof."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from msgspec import Struct, field

from ptxmm.analysis.examples import Derivation
from ptxmm.analysis.explain import ExplainResult
from ptxmm.analysis.explain.cases import Case
from ptxmm.analysis.explain.clauses import Definition
from ptxmm.analysis.explain.expected import Expected
from ptxmm.analysis.explain.miss import Miss, Move
from ptxmm.analysis.explain.steps import Absence, Edge, Reason, chain
from ptxmm.analysis.explain.synchronization import Synchronization
from ptxmm.analysis.result import EventView, Expired
from ptxmm.analysis.strength.changes import ChangeEntry
from ptxmm.render import Entry, Page
from ptxmm.render.document import recorded, taken
from ptxmm.render.execution import execution_lines
from ptxmm.render.style import Style, clean, section
from ptxmm.render.text import head, separated, tail
from ptxmm.words import number_of

MOST = 4
"""Of more reasons than this only one of each group is shown."""


def text(result: ExplainResult, style: Style, definitions: bool = False) -> list[str]:
    """The verdict on the state, then the execution or the reasons, and the nearest misses. ``definitions``: every step
    of a reason with those that it stands for, and, where it is first met, what it means."""
    lines = [*head(result), f"State {clean(result.state)}"]
    match result.verdict:
        case "allowed":
            lines += _allowed(result, style)
        case "forbidden":
            lines += _forbidden(result, style, definitions)
        case "impossible":
            lines += _impossible(result, style)
        case "unknown":
            lines.append(style.paint("Unknown", "yellow"))
            if result.execution is not None:
                lines += ["The program has no meaning in this execution:", *execution_lines(result.execution)]
    if result.groups or result.synchronization or (result.expected is not None and result.expected.links):
        lines.append("Sections of PTX ISA 8.5")
    return lines + tail(result)


def _allowed(result: ExplainResult, style: Style) -> Iterator[str]:
    """What is missing, then the execution that rests on it."""
    yield style.paint("Allowed", "green") + ": an execution ends so"
    if result.expected is not None:
        yield from _expected(result.expected, style)
    yield from _repairs(result, style)
    if result.execution is not None:
        yield style.paint("The execution", "bold")
        yield from execution_lines(result.execution)
    yield from _synchronization(result.synchronization)


def _synchronization(found: Iterable[Synchronization]) -> Iterator[str]:
    for item in found:
        yield f"  {clean(item.first.name)}"
        yield f"    {clean(item.text)}{section(item.section)} with {clean(item.second.name)}"


def _expected(found: Expected, style: Style) -> Iterator[str]:
    """The circle, and under each step that is no order what it lacks."""
    yield f"{style.paint('Why not forbidden', 'bold')}: {clean(found.sentence)}"
    following = [*(link.edge.first for link in found.links[1:]), None]
    for link, after in zip(found.links, following, strict=False):
        yield f"  {_event(link.edge.first)}"
        yield f"    {'->' if link.gap is None else '-?'} {words(link.edge)}"
        if link.gap is not None:
            ends = f"{clean(link.gap.first)} and {clean(link.gap.second)}"
            missing = f"{clean(link.gap.text)}{section(link.gap.section)}"
            yield f"      {style.paint('missing', 'red')} between {ends}: {missing}"
            yield from (f"        {fail.name}{section(fail.section)}: {clean(fail.text)}" for fail in link.gap.fails)
        if after is None or after.same != link.edge.second.same:
            yield f"  {_event(link.edge.second)}"


def _repairs(result: ExplainResult, style: Style) -> Iterator[str]:
    if not result.searched or not result.repairs:
        return
    many = "any of these changes" if len(result.repairs) > 1 else "this change"
    yield f"{style.paint('Forbidden', 'bold')} with {many} (ptxmm fences has more)"
    for repair in result.repairs:
        yield from _miss(repair)


def _forbidden(result: ExplainResult, style: Style, definitions: bool) -> list[str]:
    meanings = _Meanings({(d.relation, d.section): d for d in result.definitions}) if definitions else None
    count = sum(len(group.reasons) for group in result.groups)
    told = f"{'at least ' if result.status == 'timeout' else ''}{number_of(count, 'reason')}"
    lines = [f"{style.paint('Forbidden', 'red')}: every execution that ends so violates an axiom ({told})"]
    if result.cases:
        lines += _Tree(result, style, meanings).lines(result.cases, "")
    else:
        lines += _listed(result, count, style, meanings)
    for item in result.assumed:
        lines.append(f"Taken for granted: {clean(item.axiom)}{section(item.section)}: {clean(item.text)}")
    return lines + _misses(result, style)


def _listed(result: ExplainResult, count: int, style: Style, meanings: _Meanings | None) -> Iterator[str]:
    """The reasons one after the other: if they are many, one of each kind."""
    number = 0
    for group in result.groups:
        shown = group.reasons if count <= MOST else group.reasons[:1]
        for reason in shown:
            number += 1
            yield from _reason(reason, number, style, meanings)
        if len(group.reasons) > len(shown):
            yield f"  and {len(group.reasons) - len(shown)} more of this kind, between other instructions"


class _Tree:
    """Cases with their reasons: each reason once, and if they are many, in full only the first of each kind."""

    def __init__(self, result: ExplainResult, style: Style, meanings: _Meanings | None) -> None:
        self.reasons = [reason for group in result.groups for reason in group.reasons]
        self.style, self.meanings = style, meanings
        self.numbers: dict[int, int] = {}
        self.shapes: set[object] = set()

    def lines(self, cases: Iterable[Case], indent: str) -> Iterator[str]:
        for number, case in enumerate(cases):
            lead = self.style.paint("Or" if number else "Either", "bold")
            yield f"{indent}{lead} {clean(case.text)}{', and' if case.cases else ':'}"
            if case.reason is not None:
                yield from (f"{indent}  {line}" for line in self._reason(case.reason))
            yield from self.lines(case.cases, indent + "  ")

    def _reason(self, which: int) -> Iterator[str]:
        reason = self.reasons[which - 1]
        if which in self.numbers:
            yield f"Reason {self.numbers[which]}, as above"
            return
        number = self.numbers[which] = len(self.numbers) + 1
        if len(self.reasons) > MOST and reason.shape in self.shapes:
            yield f"{self.style.paint(f'Reason {number}', 'bold')}: {clean(reason.sentence)}"
        else:
            self.shapes.add(reason.shape)
            yield from _reason(reason, number, self.style, self.meanings)


def _reason(reason: Reason, number: int, style: Style, meanings: _Meanings | None) -> list[str]:
    title = style.paint(f"Reason {number}", "bold")
    lines = [f"{title}: {clean(reason.axiom)}{section(reason.section)}: {clean(reason.text)}"]
    lines.append(f"  {clean(reason.sentence)}.")
    if reason.member is not None:
        lines.append(f"  {_event(reason.member)}")
    return [*lines, *(_grounds(reason) if meanings is None else meanings.grounds(reason))]


class _Meanings(Struct):
    """Tells what the steps of reasons mean, each meaning once."""

    known: dict[tuple[str, str | None], Definition]
    told: set[tuple[str, str | None]] = field(default_factory=set)

    def grounds(self, found: Reason) -> Iterator[str]:
        """The steps as a tree, and what is absent."""
        yield from self._meaning(found.axiom, found.section, "  ")
        yield from self._tree(found.edges, "  ")
        if found.beside:
            yield "  where also"
            yield from self._tree(found.beside, "    ")
        for absence in found.absent:
            yield from _absence(absence)

    def _tree(self, edges: Iterable[Edge], indent: str) -> Iterator[str]:
        for edge in edges:
            yield f"{indent}{ends(edge)}: {words(edge)}"
            yield from self._meaning(edge.relation, edge.section, indent + "    ")
            yield from self._tree((*edge.inner, *edge.also), indent + "  ")

    def _meaning(self, relation: str, clause: str | None, indent: str) -> Iterator[str]:
        found = self.known.get((relation, clause))
        if found is None or (relation, clause) in self.told:
            return
        self.told.add((relation, clause))
        if found.written is not None:
            yield f"{indent}{clean(found.written)}  ({clean(found.place or '')})"
        if found.sentence is not None:
            yield f'{indent}"{found.sentence}"'


def _grounds(found: Reason | Derivation) -> Iterator[str]:
    """The chain, what is beside it, and what is absent."""
    yield from _chain(found.edges, "  ", closing=True)
    if found.beside:
        yield "  where also"
        for edge in found.beside:
            yield from _chain((edge,), "    ", closing=True)
    for absence in found.absent:
        yield from _absence(absence)


def derivation_lines(found: Derivation, style: Style) -> list[str]:
    """Why a relation has a pair of events, or that it has not."""
    pair = f"{clean(found.first.label)} -> {clean(found.second.label)}"
    if not found.holds:
        return [style.paint(f"{pair} is not in {clean(found.relation)}", "red")]
    return [f"{style.paint(pair, 'bold')} is in {clean(found.relation)}", *_grounds(found)]


def _absence(absence: Absence) -> Iterator[str]:
    first, second = clean(absence.first.label), clean(absence.second.label) if absence.second is not None else ""
    if absence.text is None:
        yield f"  but {first}{' and ' + second if second else ''} {'are' if second else 'is'} not as the axiom demands"
    elif absence.unrelated:
        yield f"  but {first} and {second} are unrelated in {clean(absence.text)}{section(absence.section)}"
    elif absence.second is None:
        yield f"  but {first} has no place in {clean(absence.text)}{section(absence.section)}"
    else:
        yield f"  but {first} does not come before {second} in {clean(absence.text)}{section(absence.section)}"


def _chain(edges: tuple[Edge, ...], indent: str, closing: bool) -> Iterator[str]:
    """The events of a chain, with the edges between them; ``closing``: the first and the last event too."""
    steps = list(chain(edges))
    for number, edge in enumerate(steps):
        if number or closing:
            yield f"{indent}{_event(edge.first)}"
        yield f"{indent}  {'<-' if edge.backwards else '->'} {words(edge)}"
        yield from _inner(edge, indent)
    if steps and closing:
        yield f"{indent}{_event(steps[-1].second)}"


def words(edge: Edge) -> str:
    """What a step is, with its clause."""
    text = clean(edge.text) + (", morally strong" if edge.strong else "")
    return text + section(edge.section) + clean(f": {edge.detail}" if edge.detail else "")


def ends(edge: Edge) -> str:
    """The instructions of a step, in its direction."""
    first, second = (edge.second, edge.first) if edge.backwards else (edge.first, edge.second)
    one, two = clean(first.label), clean(second.label)
    return one if one == two else f"{one} -> {two}"


def _inner(edge: Edge, indent: str) -> Iterator[str]:
    if edge.relation != "obs":
        yield from _chain(edge.inner, indent + "    ", closing=False)


def _event(event: EventView) -> str:
    return clean(str(event))


def _impossible(result: ExplainResult, style: Style) -> list[str]:
    filtered = " that the filter lets through" if any(item.filtered for item in result.impossible) else ""
    lines = [f"{style.paint('Forbidden', 'red')}: no execution{filtered} ends so, whatever the axioms say"]
    for item in result.impossible:
        if item.state == "true":
            lines.append("  no execution reaches its end")
        elif item.values:
            lines.append(f"  {clean(item.state)} holds at the end of none")
            for name, values in item.values.items():
                lines.append(f"    {clean(name)} may be {clean(', '.join(map(str, values))) or 'nothing'}")
            if item.unwritten is not None:
                lines.append(f"    no write ever writes {item.unwritten}, and no memory holds it at the start")
        else:
            lines.append("  its parts may hold one by one, but not together")
    if any(item.values for item in result.impossible):
        lines.append("  (an execution in which a value is made of itself is none: 8.10.4)")
    return lines


def _misses(result: ExplainResult, style: Style) -> list[str]:
    if not result.searched:
        return []
    if not result.misses:
        return ["Nearest miss: none; no single order, scope, fence, barrier or placement is what forbids it"]
    many = "any of these changes" if len(result.misses) > 1 else "this change"
    lines = [f"{style.paint('Nearest miss', 'bold')}: allowed with {many}"]
    for miss in result.misses:
        lines += _miss(miss)
    return lines


def _miss(miss: Miss) -> Iterator[str]:
    if miss.move is not None:
        before = clean(miss.move.before) or "a CTA of its own"
        yield f"  {clean(miss.move.thread)} @ {before} -> {clean(miss.move.after) or 'a CTA of its own'}"
    for number, change in enumerate(miss.changes):
        lead = "  " if not number else "  and "
        new = "nothing" if change.new is None else clean(change.new)
        where = f"{clean(change.thread)}:{change.line}"
        place = f"{'after' if change.after else 'before'} {where}"
        yield f"{lead}{where}: {clean(change.old)} -> {new}" if change.old else f"{lead}{place}: {new}"


class MissEntry(Struct, frozen=True):
    """A change that makes the state allowed. ``distance``: how many levels it is away."""

    kind: str
    distance: int
    changes: tuple[ChangeEntry, ...]
    move: Move | None


class ExplainEntry(ExplainResult, frozen=True, tag_field="analysis", tag="explain"):
    """An explanation whose nearest misses and repairs are data."""

    misses: tuple[MissEntry, ...] = ()  # type: ignore[assignment]
    repairs: tuple[MissEntry, ...] = ()  # type: ignore[assignment]


def _record(result: ExplainResult) -> ExplainEntry:
    misses, repairs = (tuple(map(_entry, found)) for found in (result.misses, result.repairs))
    return taken(ExplainEntry, result, misses=misses, repairs=repairs)


def _entry(miss: Miss) -> MissEntry:
    return taken(MissEntry, miss, changes=tuple(taken(ChangeEntry, change) for change in miss.changes))


entries = recorded(_record)


def pages(entries: Iterable[Entry[ExplainResult | Expired]], page: Page) -> Iterator[str]:
    """Explanations as text."""
    return separated(partial(text, definitions=page.definitions))(entries, page)
