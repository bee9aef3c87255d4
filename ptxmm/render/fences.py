"""What ``ptxmm fences`` says: a verdict on each instruction that orders, and the smallest changes of the program."""

from __future__ import annotations

from typing import Any

from ptxmm.analysis.fences import FencesResult, Item, Variant
from ptxmm.analysis.instruction import written
from ptxmm.analysis.result import Outcome
from ptxmm.analysis.strength.changes import Change
from ptxmm.formats.patch import Rewrite, diff, patched
from ptxmm.render.document import listed, values
from ptxmm.render.style import Style, clean
from ptxmm.render.text import head, separated, tail

_COLOURS = {"needed": "bold", "removable": "yellow", "weaker": "yellow", "unknown": "red", "+": "green", "-": "red"}


def text(result: FencesResult, style: Style) -> list[str]:
    """The lines of a report."""
    open_ = "undefined" if result.status == "undefined" else "not decided"
    verdict = {True: "holds", False: "fails", None: open_}[result.holds]
    colour = {True: "green", False: "red", None: "yellow"}[result.holds]
    lines = [*head(result), f"Property {clean(result.required)}: {style.paint(verdict, colour)}"]
    if result.bad is not None:
        lines.append(f"Allowed {_state(result.bad)}")
    width = max((len(_place(item)) for item in result.items), default=0)
    lines += [line for item in result.items for line in _item(item, width, style)]
    if result.variants:
        lines.append(_headline(result))
    for number, variant in enumerate(result.variants, 1):
        lines += _variant(result, number, variant, style)
    if result.more and result.status != "timeout":
        lines.append("  there are more: --most takes a higher number, 0 lists all")
    return [*lines, *tail(result)]


def document(result: FencesResult) -> dict[str, Any]:
    """The entry of a JSON document."""
    return {
        "property": result.required,
        "holds": result.holds,
        "bad": _values(result.bad),
        "items": [
            {
                "thread": item.thread,
                "line": item.line,
                "column": item.column,
                "text": item.text,
                "verdict": item.verdict,
                "weaker": list(item.weaker),
                "without": _values(item.without),
                "why": item.why or None,
            }
            for item in result.items
        ],
        "reductions" if result.holds else "repairs": [
            {
                "cost": variant.cost,
                "engines": list(variant.engines),
                "keeps": variant.keeps,
                "changes": [
                    {
                        "kind": change.kind,
                        "thread": change.name,
                        "line": change.line,
                        "column": change.column,
                        "old": change.old,
                        "new": change.new,
                        "after": change.after,
                    }
                    for change in variant.changes
                ],
                "diff": _diff(result, variant),
            }
            for variant in result.variants
        ],
        "complete": result.listed and result.status == "complete",
    }


def _headline(result: FencesResult) -> str:
    if not result.holds:
        return "Repairs"
    if len(result.variants) == 1 and not result.variants[0].changes:
        return "No order and no scope can go"
    return "Smallest programs"


def _item(item: Item, width: int, style: Style) -> list[str]:
    verdict = {"weaker": "can be weaker", "unknown": "not decided"}.get(item.verdict, item.verdict)
    line = f"  {_place(item).ljust(width)}  {style.paint(verdict, _COLOURS[item.verdict])}"
    if item.weaker:
        line += f": {' or '.join(item.weaker)}"
    if item.without is not None:
        line += f"  (without it: {_state(item.without)})"
    elif item.why and item.verdict == "unknown":
        line += f"  ({item.why})"
    elif item.why:
        line += f"  (without it: {item.why})"
    return [line]


def _place(item: Item) -> str:
    return f"{item.thread}:{item.line}: {item.text}"


def _variant(result: FencesResult, number: int, variant: Variant, style: Style) -> list[str]:
    if not variant.changes:
        return []
    by = f"confirmed by {' and '.join(variant.engines)}" if variant.engines else "not decided by either engine"
    less = "" if variant.keeps else "; prevents outcomes that are wanted"
    lines = [f" {number}. cost {variant.cost}, {by}{less}"]
    shown = _diff(result, variant)
    if shown is not None:
        return lines + [f"    {style.paint(clean(line), _COLOURS.get(line[:1], ''))}" for line in shown[2:]]
    return lines + [f"    {clean(_change(result, change))}" for change in variant.changes]


def _diff(result: FencesResult, variant: Variant) -> list[str] | None:
    """The changes as a unified diff of the file; None where its text can't be changed like that."""
    rewrites = [Rewrite(c.thread, c.index + c.after, c.kind == "insert", c.op) for c in variant.changes]
    text = patched(result.source, rewrites, variant.program)
    return None if text is None else diff(result.source.text, text, result.file)


def _change(result: FencesResult, change: Change) -> str:
    where = f"{change.name}:{change.line}:"
    match change.kind:
        case "insert":
            body = result.source.threads[change.thread].body
            side = "after" if change.after else "before"
            place = f"{side} {written(body[change.index])}" if change.index < len(body) else "at the end"
            return f"{where} add {change.new} {place}"
        case "remove":
            return f"{where} take away: {change.old}"
    return f"{where} {change.old} -> {change.new}"


def _state(outcome: Outcome) -> str:
    return " ".join(f"{name}={value}" for name, value in {**outcome.registers, **outcome.memory}.items())


def _values(outcome: Outcome | None) -> dict[str, Any] | None:
    return None if outcome is None else {"registers": values(outcome.registers), "memory": values(outcome.memory)}


pages = separated(text)
entries = listed("fences", document)
