"""Placements and scopes as text and in JSON."""

from __future__ import annotations

from typing import Any

from ptxmm.analysis.scopes import Row, ScopesResult
from ptxmm.render.document import listed
from ptxmm.render.execution import instruction_document
from ptxmm.render.style import Style, clean
from ptxmm.render.text import head, separated, tail


def text(result: ScopesResult, style: Style) -> list[str]:
    """The table of placements, then the narrowest scopes."""
    lines = [*head(result), f"Property {clean(result.wanted)}"]
    width = max((len(row.words) for row in result.rows), default=0)
    for row in result.rows:
        lines.append(f"  {row.words:{width}}  {_verdict(row, style)}")
        lines += [f"  {'':{width}}  {', '.join(names)} together: {clean(reason)}" for names, reason in row.together]
    if result.narrowings:
        lines.append("Narrowest scope of each instruction alone")
        for found in result.narrowings:
            known = "?" if found.alone is None else f".{found.alone}"
            word = known if found.alone != found.given else f"{known}, as written"
            lines.append(f"  {clean(str(found.instruction))}  {style.paint(word, _colour(found.alone == found.given))}")
    for number, scopes in enumerate(result.joint, 1):
        which = f" {number}" if len(result.joint) > 1 else ""
        lines.append(f"Narrowest scopes together{which}")
        changed = [(n, s) for n, s in zip(result.narrowings, scopes, strict=True) if n.given != s]
        lines += [f"  {n.instruction.place}: .{n.given} becomes .{s}" for n, s in changed] or ["  all as written"]
    return lines + tail(result)


def document(result: ScopesResult) -> dict[str, Any]:
    """The part of the JSON entry that is about placements and scopes."""
    return {
        "property": result.wanted,
        "placements": [_row(row) for row in result.rows],
        "scopes": [
            {"instruction": instruction_document(n.instruction), "scope": n.given, "narrowest": n.alone}
            for n in result.narrowings
        ],
        "together": [list(scopes) for scopes in result.joint],
        "together_complete": result.listed,
    }


def _colour(written: bool) -> str:
    return "plain" if written else "yellow"


def _verdict(row: Row, style: Style) -> str:
    if row.impossible is not None:
        return f"impossible: {clean(row.impossible)}"
    word, colour = {True: ("holds", "green"), False: ("fails", "red"), None: ("unknown", "yellow")}[row.holds]
    parts = [style.paint(word, colour)] if row.holds is not None or row.status != "undefined" else []
    if row.status not in (None, "complete"):
        parts.append(str(row.status))
    return "  ".join([*parts, *row.flags])


def _row(row: Row) -> dict[str, Any]:
    if row.impossible is not None:
        return {"placement": row.placement, "possible": False, "reason": row.impossible}
    return {
        "placement": row.placement,
        "possible": True,
        "holds": row.holds,
        "status": row.status,
        "flags": list(row.flags),
        "together": [{"threads": list(names), "reason": reason} for names, reason in row.together],
    }


pages = separated(text)
entries = listed("scopes", document)
