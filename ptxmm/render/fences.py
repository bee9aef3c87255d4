"""What ``ptxmm fences`` says: a verdict on each instruction that orders, and the smallest changes of the program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from ptxmm.analysis.fences import FencesResult, Item, Progress, Repair
from ptxmm.analysis.instruction import written
from ptxmm.analysis.result import Expired, Failure
from ptxmm.analysis.strength.changes import Change, ChangeEntry
from ptxmm.formats.patch import Rewrite, diff, patched
from ptxmm.program.test import Test
from ptxmm.render import Entry, Page
from ptxmm.render.document import recorded, taken
from ptxmm.render.style import Style, clean
from ptxmm.render.text import head, separated, tail

_COLOURS = {"needed": "bold", "removable": "yellow", "weaker": "yellow", "unknown": "red", "+": "green", "-": "red"}


def text(result: FencesResult, style: Style) -> list[str]:
    """The lines of a report."""
    open_ = "undefined" if result.status == "undefined" else "not decided"
    verdict = {True: "holds", False: "fails", None: open_}[result.holds]
    colour = {True: "green", False: "red", None: "yellow"}[result.holds]
    refuted = "" if result.refuted is None else f"  {result.refuted}"
    lines = [*head(result), f"Property {clean(result.required)}: {style.paint(verdict, colour)}{refuted}"]
    if result.bad is not None:
        lines.append(f"Allowed {result.bad}")
    width = max((len(_place(item)) for item in result.items), default=0)
    lines += [line for item in result.items for line in _item(item, width, style)]
    if result.repairs:
        lines.append(_headline(result))
    for number, repair in enumerate(result.repairs, 1):
        lines += _repair(result.file, number, repair, style)
    if result.more and result.status != "timeout":
        lines.append("  there are more: --most takes a higher number, 0 lists all")
    return [*lines, *tail(result)]


def _headline(result: FencesResult) -> str:
    if not result.holds:
        return "Repairs"
    if len(result.repairs) == 1 and not result.repairs[0].changes:
        return "No order and no scope can go"
    return "Smallest programs"


def _item(item: Item, width: int, style: Style) -> list[str]:
    verdict = {"weaker": "can be weaker", "unknown": "not decided"}.get(item.verdict, item.verdict)
    line = f"  {_place(item).ljust(width)}  {style.paint(verdict, _COLOURS[item.verdict])}"
    if item.weaker:
        line += f": {' or '.join(item.weaker)}"
    if item.without is not None:
        line += f"  (without it: {item.without})"
    elif item.why and item.verdict == "unknown":
        line += f"  ({item.why})"
    elif item.why:
        line += f"  (without it: {item.why})"
    return [line]


def _place(item: Item) -> str:
    return f"{item.thread}:{item.line}: {item.text}"


def _repair(file: str, number: int, repair: Repair, style: Style) -> list[str]:
    if not repair.changes:
        return []
    by = f"confirmed by {' and '.join(repair.engines)}" if repair.engines else "not decided by either engine"
    less = "" if repair.keeps else "; prevents outcomes that are wanted"
    lines = [f" {number}. cost {repair.cost}, {by}{less}"]
    shown = _diff(file, repair)
    if shown is not None:
        return lines + [f"    {style.paint(clean(line), _COLOURS.get(line[:1], ''))}" for line in shown[2:]]
    return lines + [f"    {clean(_change(repair.source, change))}" for change in repair.changes]


def _diff(file: str, repair: Repair) -> list[str] | None:
    """The changes as a unified diff of the file; None where its text can't be changed like that."""
    rewrites = [Rewrite(c.number, c.index + c.after, c.kind == "insert", c.op) for c in repair.changes]
    text = patched(repair.source, rewrites, repair.program)
    return None if text is None else diff(repair.source.text, text, file)


def _change(source: Test, change: Change) -> str:
    where = f"{change.thread}:{change.line}:"
    match change.kind:
        case "insert":
            body = source.threads[change.number].body
            side = "after" if change.after else "before"
            place = f"{side} {written(body[change.index])}" if change.index < len(body) else "at the end"
            return f"{where} add {change.new} {place}"
        case "remove":
            return f"{where} take away: {change.old}"
    return f"{where} {change.old} -> {change.new}"


class RepairEntry(Struct, frozen=True):
    """A changed program that meets the property: ``changes`` with their ``cost``, the ``engines`` that decided it,
    whether it ``keeps`` every wanted outcome, and the lines of a ``diff``, or null for a file whose text can't be
    changed like that."""

    cost: int
    engines: tuple[str, ...]
    keeps: bool
    changes: tuple[ChangeEntry, ...]
    diff: tuple[str, ...] | None


class FencesEntry(FencesResult, frozen=True):
    """Whether the property ``required`` ``holds``, what each instruction that orders is for it, and the ``repairs``:
    the smallest programs that have the property. ``listed``: there are no others; ``bad``: a final state that must not
    be."""

    repairs: tuple[RepairEntry, ...]  # type: ignore[assignment]


def _record(result: FencesResult) -> FencesEntry:
    repairs = []
    for repair in result.repairs:
        shown = _diff(result.file, repair)
        changes = tuple(taken(ChangeEntry, change) for change in repair.changes)
        repairs.append(taken(RepairEntry, repair, changes=changes, diff=None if shown is None else tuple(shown)))
    return taken(FencesEntry, result, repairs=tuple(repairs))


def _found(progress: Progress) -> str:
    """A repair of a kernel on one line."""
    repair = progress.found
    what = "; ".join(clean(_change(repair.source, change)) for change in repair.changes)
    return f"Found after {progress.so_far.seconds:.1f} s, cost {repair.cost}: {what}"


def pages(entries: Iterable[Entry[FencesResult | Progress | Expired]], page: Page) -> Iterator[str]:
    """Each repair of a kernel as it is found, and then the report of each test."""
    first = True
    for entry in entries:
        report = entry.report
        if isinstance(report, Progress):
            yield from page.style.fit(_found(report))
            continue
        if not (first or isinstance(report, Failure)):
            yield ""
        first = first and isinstance(report, Failure)
        yield from _reports([entry], page)


def entries(entries: Iterable[Entry[FencesResult | Progress | Expired]], page: Page) -> Iterator[str]:
    """The document of the results, which hold what was found on the way."""
    yield from _document((entry for entry in entries if not isinstance(entry.report, Progress)), page)


_reports = separated(text)
_document = recorded(_record)
