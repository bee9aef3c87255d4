"""Explanations as text that reads like a proof, and in JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ptxmm.analysis.explain import ExplainResult
from ptxmm.analysis.explain.chains import Absence, Edge, Reason
from ptxmm.analysis.explain.events import EventView
from ptxmm.analysis.explain.miss import Miss
from ptxmm.analysis.explain.synchronization import Synchronization
from ptxmm.analysis.result import Value
from ptxmm.analysis.strength.changes import Change
from ptxmm.render.document import listed
from ptxmm.render.execution import execution_document, execution_lines, instruction_document
from ptxmm.render.style import Style, clean
from ptxmm.render.text import head, separated, tail

MOST = 4
"""Of more reasons than this only one of each group is shown."""


def text(result: ExplainResult, style: Style) -> list[str]:
    """The verdict on the state, then the execution or the reasons, and the nearest misses."""
    lines = [*head(result), f"State {clean(result.state)}"]
    match result.verdict:
        case "allowed":
            lines.append(style.paint("Allowed", "green") + ": this execution ends so")
            if result.execution is not None:
                lines += execution_lines(result.execution)
            lines += _synchronization(result.synchronization)
        case "forbidden":
            lines += _forbidden(result, style)
        case "impossible":
            lines += _impossible(result, style)
        case "unknown":
            lines.append(style.paint("Unknown", "yellow"))
            if result.execution is not None:
                lines += ["The program has no meaning in this execution:", *execution_lines(result.execution)]
    if result.groups or result.synchronization:
        lines.append("Sections of PTX ISA 8.5")
    return lines + tail(result)


def _synchronization(found: Iterable[Synchronization]) -> Iterator[str]:
    for item in found:
        section = f" ({item.section})" if item.section else ""
        yield f"  {clean(item.first.name)}"
        yield f"    {clean(item.text)}{section} with {clean(item.second.name)}"


def _forbidden(result: ExplainResult, style: Style) -> list[str]:
    count = sum(len(group.reasons) for group in result.groups)
    plural = "s" if count != 1 else ""
    told = f"{'at least ' if result.status == 'timeout' else ''}{count} reason{plural}"
    lines = [f"{style.paint('Forbidden', 'red')}: every execution that ends so violates an axiom ({told})"]
    number = 0
    for group in result.groups:
        shown = group.reasons if count <= MOST else group.reasons[:1]
        for reason in shown:
            number += 1
            lines += _reason(reason, number, style)
        if len(group.reasons) > len(shown):
            lines.append(f"  and {len(group.reasons) - len(shown)} more of this kind, between other instructions")
    for item in result.assumed:
        section = f" ({item.section})" if item.section else ""
        lines.append(f"Taken for granted: {clean(item.axiom)}{section}: {clean(item.text)}")
    return lines + _misses(result, style)


def _reason(reason: Reason, number: int, style: Style) -> list[str]:
    section = f" ({reason.section})" if reason.section else ""
    lines = [style.paint(f"Reason {number}", "bold") + f": {clean(reason.axiom)}{section}: {clean(reason.text)}"]
    if reason.member is not None:
        lines.append(f"  {_event(reason.member)}")
    lines += _chain(reason.edges, "  ", closing=True)
    if reason.beside:
        lines.append("  where also")
        for edge in reason.beside:
            lines += _chain((edge,), "    ", closing=True)
    for absence in reason.absent:
        lines += _absence(absence)
    return lines


def _absence(absence: Absence) -> Iterator[str]:
    first, second = clean(absence.first.label), clean(absence.second.label) if absence.second is not None else ""
    section = f" ({absence.section})" if absence.section else ""
    if absence.text is None:
        yield f"  but {first}{' and ' + second if second else ''} {'are' if second else 'is'} not as the axiom demands"
    elif absence.unrelated:
        yield f"  but {first} and {second} are unrelated in {clean(absence.text)}{section}"
    elif absence.second is None:
        yield f"  but {first} has no place in {clean(absence.text)}{section}"
    else:
        yield f"  but {first} does not come before {second} in {clean(absence.text)}{section}"


def _chain(edges: tuple[Edge, ...], indent: str, closing: bool) -> Iterator[str]:
    """The events of a chain, with the edges between them; ``closing``: the first and the last event too."""
    for number, edge in enumerate(edges):
        if number or closing:
            yield f"{indent}{_event(edge.first)}"
        section = f" ({edge.section})" if edge.section else ""
        detail = f": {edge.detail}" if edge.detail else ""
        words = clean(edge.text) + (", morally strong" if edge.strong else "")
        yield f"{indent}  {'<-' if edge.backwards else '->'} {words}{section}{clean(detail)}"
        yield from _inner(edge, indent)
    if edges and closing:
        yield f"{indent}{_event(edges[-1].second)}"


def _inner(edge: Edge, indent: str) -> Iterator[str]:
    yield from _chain(edge.inner, indent + "    ", closing=False)


def _event(event: EventView) -> str:
    return clean(event.name + (f"  ({event.action})" if event.action else ""))


def _impossible(result: ExplainResult, style: Style) -> list[str]:
    filtered = " that the filter lets through" if any(item.filtered for item in result.impossible) else ""
    lines = [f"{style.paint('Forbidden', 'red')}: no execution{filtered} ends so, whatever the axioms say"]
    for item in result.impossible:
        if item.state == "true":
            lines.append("  no execution reaches its end")
        elif item.values:
            lines.append(f"  {clean(item.state)} holds at the end of none")
            for name, values in item.values:
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
        yield f"{lead}{clean(change.name)}:{change.line}: {clean(change.old or '')} -> {new}"


def document(result: ExplainResult) -> dict[str, Any]:
    """The part of the JSON entry that is about the explanation."""
    entry: dict[str, Any] = {"state": result.state, "verdict": result.verdict}
    if result.execution is not None:
        entry["execution"] = execution_document(result.execution)
        entry["synchronization"] = [
            {
                "relation": item.relation,
                "text": item.text,
                "section": item.section,
                "first": _event_document(item.first),
                "second": _event_document(item.second),
            }
            for item in result.synchronization
        ]
    if result.verdict == "forbidden":
        entry["assumed"] = [{"axiom": a.axiom, "text": a.text, "section": a.section} for a in result.assumed]
        entry["groups"] = [[_reason_document(reason) for reason in group.reasons] for group in result.groups]
        entry["nearest_misses"] = [_miss_document(m) for m in result.misses] if result.searched else None
    if result.verdict == "impossible":
        entry["impossible"] = [
            {
                "state": item.state,
                "values": {name: [_value(v) for v in values] for name, values in item.values},
                "unwritten": None if item.unwritten is None else _value(item.unwritten),
                "filtered": item.filtered,
            }
            for item in result.impossible
        ]
    return entry


def _value(value: Value) -> int | str:
    return value if isinstance(value, int) else str(value)


def _event_document(event: EventView) -> dict[str, Any]:
    if event.instruction is None:
        return {"instruction": None, "text": event.text, "action": event.action}
    return {"instruction": instruction_document(event.instruction), "round": event.round, "action": event.action}


def _reason_document(reason: Reason) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "axiom": reason.axiom,
        "text": reason.text,
        "section": reason.section,
        "length": reason.length,
        "cycle": reason.closed,
        "edges": [_edge_document(edge) for edge in reason.edges],
        "beside": [_edge_document(edge) for edge in reason.beside],
        "absent": [
            {
                "text": absence.text,
                "section": absence.section,
                "unrelated": absence.unrelated,
                "first": _event_document(absence.first),
                "second": None if absence.second is None else _event_document(absence.second),
            }
            for absence in reason.absent
        ],
    }
    if reason.member is not None:
        entry["member"] = _event_document(reason.member)
    return entry


def _edge_document(edge: Edge) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "relation": edge.relation,
        "text": edge.text,
        "section": edge.section,
        "first": _event_document(edge.first),
        "second": _event_document(edge.second),
        "backwards": edge.backwards,
        "morally_strong": edge.strong,
    }
    if edge.detail is not None:
        entry["detail"] = edge.detail
    if edge.inner:
        entry["inner"] = [_edge_document(inner) for inner in edge.inner]
    return entry


def _miss_document(miss: Miss) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "kind": miss.kind,
        "distance": miss.distance,
        "changes": [_change_document(change) for change in miss.changes],
    }
    if miss.move is not None:
        entry["move"] = {"thread": miss.move.thread, "before": miss.move.before, "after": miss.move.after}
    return entry


def _change_document(change: Change) -> dict[str, Any]:
    return {"thread": change.name, "line": change.line, "column": change.column, "old": change.old, "new": change.new}


pages = separated(text)
entries = listed("explain", document)
