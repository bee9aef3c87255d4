"""Placements and scopes as text."""

from __future__ import annotations

from ptxmm.analysis.scopes import Row, ScopesResult
from ptxmm.render.style import Style, clean
from ptxmm.render.text import head, separated, tail


def text(result: ScopesResult, style: Style) -> list[str]:
    """The table of placements, then the narrowest scopes."""
    lines = [*head(result), f"Property {clean(result.required)}"]
    width = max((len(row.words) for row in result.placements), default=0)
    for row in result.placements:
        lines.append(f"  {row.words:{width}}  {_verdict(row, style)}")
        lines += [f"  {'':{width}}  {', '.join(tie.threads)} together: {clean(tie.reason)}" for tie in row.together]
    if result.narrowings:
        lines.append("Narrowest scope of each instruction alone")
        for found in result.narrowings:
            known = "?" if found.alone is None else f".{found.alone}"
            word = known if found.alone != found.given else f"{known}, as written"
            colour = "plain" if found.alone == found.given else "yellow"
            lines.append(f"  {clean(str(found.instruction))}  {style.paint(word, colour)}")
    for number, scopes in enumerate(result.joint, 1):
        which = f" {number}" if len(result.joint) > 1 else ""
        lines.append(f"Narrowest scopes together{which}")
        changed = [(n, s) for n, s in zip(result.narrowings, scopes, strict=True) if n.given != s]
        lines += [f"  {n.instruction.place}: .{n.given} becomes .{s}" for n, s in changed] or ["  all as written"]
    return lines + tail(result)


def _verdict(row: Row, style: Style) -> str:
    if row.impossible is not None:
        return f"impossible: {clean(row.impossible)}"
    word, colour = {True: ("holds", "green"), False: ("fails", "red"), None: ("unknown", "yellow")}[row.holds]
    parts = [style.paint(word, colour)] if row.holds is not None or row.status != "undefined" else []
    if row.status not in (None, "complete") and row.refuted is None:
        parts.append(str(row.status))
    return "  ".join([*parts, *row.flags, *([] if row.refuted is None else [row.refuted])])


pages = separated(text)
