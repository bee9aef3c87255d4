"""What ``ptxmm fences --whole`` says: each verdict or repair as it is found, and what there is to say of the launch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ptxmm.analysis.result import Failure
from ptxmm.analysis.strength.changes import ChangeEntry
from ptxmm.render import Entry, Page, document
from ptxmm.render.style import Style, clean
from ptxmm.render.text import head, tail
from ptxmm.whole.fences.search import Found, Judged, WholeFences, WholeRepair

_COLOURS = {"needed": "bold", "removable": "yellow", "weaker": "yellow", "unknown": "red"}
_WORDS = {"weaker": "can be weaker", "unknown": "not decided"}
_VERDICTS = {True: ("holds", "green"), False: ("fails", "red"), None: ("not decided", "yellow")}


def pages(entries: Iterable[Entry[Found | WholeFences]], page: Page) -> Iterator[str]:
    """The verdicts as they are found, each on a line, and the answer behind them."""
    for entry in entries:
        report = entry.report
        if isinstance(report, Failure):
            continue
        lines = _found(report, page.style) if isinstance(report, Found) else _result(report, page.style)
        for line in lines:
            yield from page.style.fit(line)


def entries(entries: Iterable[Entry[Found | WholeFences]], page: Page) -> Iterator[str]:
    """The document of the results, which hold what was found on the way."""
    yield document.document(entry.report for entry in entries if not isinstance(entry.report, Found))


def _found(found: Found, style: Style) -> list[str]:
    if isinstance(found.what, Judged):
        return [_item(found.what, style)]
    return [f"Found after {found.seconds:.1f} s, cost {found.what.cost}: {_changes(found.what)}"]


def _item(item: Judged, style: Style) -> str:
    verdict = style.paint(_WORDS.get(item.verdict, item.verdict), _COLOURS[item.verdict])
    line = f"line {item.line}: {clean(item.text)}  {verdict}"
    if item.weaker:
        line += f": {clean(' or '.join(item.weaker))}"
    if item.why:
        line += f"  ({'' if item.verdict == 'unknown' else 'without it: '}{clean(item.why)})"
    return line


def _changes(repair: WholeRepair) -> str:
    return "; ".join(clean(_change(change)) for change in repair.changes)


def _change(change: ChangeEntry) -> str:
    if change.kind == "insert":
        return f"line {change.line}: add {change.new} {'after' if change.after else 'before'} {change.old}"
    return f"line {change.line}: {change.old} -> {change.new}"


def _result(result: WholeFences, style: Style) -> list[str]:
    verdict, colour = _VERDICTS[result.holds]
    lines = [*head(result), f"Property {result.required}: {style.paint(verdict, colour)}"]
    if result.holds is None and result.reason is not None:
        lines.append(f"  {clean(result.reason)}")
    if result.repairs:
        lines.append(f"Repairs, of {result.tried} changes that were tried")
    for number, repair in enumerate(result.repairs, 1):
        lines += [f" {number}. cost {repair.cost}", *(f"    {clean(_change(change))}" for change in repair.changes)]
    return lines + tail(result)
