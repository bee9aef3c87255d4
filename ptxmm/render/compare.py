"""Comparisons as text."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator

from ptxmm.analysis.compare import CompareResult, Difference, Side
from ptxmm.analysis.explain.steps import Edge, Reason
from ptxmm.analysis.result import Expired, Failure
from ptxmm.analysis.separate import SeparateResult
from ptxmm.formats.writer import write
from ptxmm.generate.vocabulary import Vocabulary
from ptxmm.render import Entry, Page
from ptxmm.render.document import recorded, taken
from ptxmm.render.execution import execution_lines
from ptxmm.render.style import Style, clean, section
from ptxmm.render.text import outcome_line, separated, tail
from ptxmm.words import number_of


def text(result: CompareResult, style: Style) -> list[str]:
    """Both sides with their numbers of states, then each state that only one of them has."""
    lines = [f"Test {clean(result.test)}"]
    if result.versions:
        lines.append(f"Model {clean(result.model)}")
    for label, side in zip(("Old", "New") if result.versions else ("Model", "Model"), _sides(result), strict=True):
        lines.append(f"{label} {clean(side.name)}: {_summary(side)}")
    for side, other, word in ((result.first, result.second, "lost"), (result.second, result.first, "added")):
        for number, difference in enumerate(side.only):
            if difference.execution is None:
                rest = len(side.only) - number
                lines.append(f"and {number_of(rest, 'more final state')} {_whose(result, side, word)}")
                break
            lines.append(style.paint(f"Only {_whose(result, side, word)}: {outcome_line(difference.outcome)}", "red"))
            lines += _difference(difference, other, result.versions)
    for side, other in ((result.first, result.second), (result.second, result.first)):
        if side.status == "undefined" and other.status != "undefined":
            lines.append(style.paint(f"Only {clean(side.name)} gives the program no meaning", "red"))
        if "deadlock" in side.flags and "deadlock" not in other.flags:
            lines.append(style.paint(f"Only {clean(side.name)} has an execution that waits for ever", "red"))
    word, colour = {True: ("differ", "red"), False: ("the same", "green"), None: ("unknown", "yellow")}[result.differ]
    lines.append(style.paint(f"Final states {word if result.compared else 'not compared'}", colour))
    return lines + tail(result)


def _sides(result: CompareResult) -> tuple[Side, Side]:
    return result.first, result.second


def _whose(result: CompareResult, side: Side, word: str) -> str:
    return f"in {clean(side.name)} ({word})" if result.versions else f"under {clean(side.name)}"


def _summary(side: Side) -> str:
    words = [number_of(side.states, "final state")]
    if side.observation is not None:
        words.append(side.observation)
    if side.status != "complete":
        words.append(side.status)
    return ", ".join([*words, *side.flags])


def _difference(difference: Difference, other: Side, versions: bool) -> Iterator[str]:
    assert difference.execution is not None
    yield from execution_lines(difference.execution)
    who = clean(other.name)
    if difference.impossible:
        yield f"  {who}: no execution ends so, whatever the axioms say"
    elif difference.reason is not None:
        yield from _reason(difference.reason, who, difference.reasons)
    elif difference.axioms:
        yield f"  forbidden by {who}: it violates {', '.join(map(clean, difference.axioms))}"
    elif not versions:
        yield f"  forbidden by {who}: it has no such execution"


def _reason(reason: Reason, who: str, count: int) -> Iterator[str]:
    yield f"  forbidden by {who}: {clean(reason.axiom)}{section(reason.section)}: {clean(reason.text)}"
    for edge in reason.chain:
        yield f"    {_edge(edge)}"
    for edge in reason.beside:
        yield f"    where also {_edge(edge)}"
    for absent in reason.absent:
        first, second = clean(absent.first.label), clean(absent.second.label) if absent.second is not None else ""
        if absent.text is None:
            yield f"    but {first}{' and ' + second if second else ''} not as the axiom demands"
        else:
            order = "are unrelated in" if absent.unrelated else "are not in this order in"
            yield f"    but {first} and {second} {order} {clean(absent.text)}"
    if count > 1:
        yield f"    ({number_of(count - 1, 'more reason')}: ptxmm explain)"


def _edge(edge: Edge) -> str:
    words = clean(edge.text) + (", morally strong" if edge.strong else "")
    arrow = "<-" if edge.backwards else "->"
    return f"{clean(edge.first.label)} {arrow} {clean(edge.second.label)}: {words}{section(edge.section)}"


def line(result: CompareResult, style: Style, width: int, several: bool) -> str:
    """One comparison on one line; ``width``: of the longest file name; ``several``: its file holds other tests too."""
    word, colour = {True: ("differ", "red"), False: ("same", "green"), None: ("?", "yellow")}[result.differ]
    if not result.compared:
        word, colour = "-", "plain"
    parts = [f"{clean(result.file):{width}}"]
    if several:
        parts.append(f"[{clean(result.test)}]")
    if result.compared:
        for side in _sides(result):
            parts.append(f"{clean(side.name)}: {_summary(side)}" + (f" ({len(side.only)} only)" if side.only else ""))
    else:
        parts += [clean(note.text) for note in result.notes]
    return style.paint(f"{word:6}", colour) + " " + "  ".join(parts)


def listing(entries: Iterable[Entry[CompareResult | Expired]], page: Page) -> Iterator[str]:
    """A line for each comparison, and how many there are of each kind."""
    kinds: Counter[str] = Counter()
    for entry in entries:
        report = entry.report
        if isinstance(report, Failure):
            kinds["error"] += 1
        elif isinstance(report, Expired):
            kinds["inconclusive"] += 1
            yield f"?      {report.file}  {report.notes[0].text}"
        else:
            word = {True: "differ", False: "the same", None: "inconclusive"}[report.differ]
            kinds[word if report.compared else "not covered by both models"] += 1
            yield line(report, page.style, page.width, entry.several)
    words = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    seconds = time.perf_counter() - page.start
    yield f"{kinds.total()} compared in {seconds:.1f} s: {words or 'nothing to do'}"


pages = separated(text)


# -- generated programs --


def words(vocabulary: Vocabulary) -> str:
    """The programs that a claim about a vocabulary is about."""
    kinds: dict[str, list[str]] = {}
    for form in vocabulary.forms:
        orders = kinds.setdefault("fence.proxy.alias" if form.kind == "alias" else form.kind, [])
        if form.order and form.order not in orders:
            orders.append(form.order)
    named = "; ".join(f"{kind} {' '.join(orders)}".strip() for kind, orders in kinds.items())
    parts = [named, f"scopes {' '.join(vocabulary.scopes)}"]
    parts.append("every location accessed at least twice, all writes of a location distinct")
    if vocabulary.threads is not None:
        parts.append(f"at most {number_of(vocabulary.threads, 'thread')}")
    if vocabulary.locations is not None:
        parts.append(f"at most {number_of(vocabulary.locations, 'location')}")
    return "; ".join(parts)


def separation(result: SeparateResult | CompareResult, style: Style) -> list[str]:
    """The outcome of a search with the program that was found; or the comparison of the models on that."""
    if isinstance(result, CompareResult):
        return text(result, style)
    lines = [f"Models {clean(result.model)} and {clean(result.other)}", f"Programs of {words(result.vocabulary)}"]
    if result.program is not None:
        lines.append(style.paint(f"Separated by a program of {result.size} instructions", "red"))
        lines += write(result.program).rstrip("\n").split("\n")
    elif result.finding is False:
        lines.append(style.paint(f"No program of at most {result.most} instructions separates them", "green"))
    if result.searched and (result.finding is not False):
        lines.append(f"No program of at most {result.searched} instructions does")
    notes = [f"Note {clean(note.text)}" for note in result.notes]
    return [*lines, f"Status {result.status}", *notes, f"Time generate {result.seconds:.2f}"]


separations = separated(separation)


class SeparateEntry(SeparateResult, frozen=True):
    """A search for a program that separates ``model`` from ``other``. ``program``: the litmus file of what was found,
    ``size``: its instructions; ``separated``: whether there is one, null where the search was not complete;
    ``searched``: no program of at most so many instructions does; ``compared``: how many programs had to be compared
    one by one."""

    program: str | None  # type: ignore[assignment]


def _record(result: SeparateResult) -> SeparateEntry:
    return taken(SeparateEntry, result, program=None if result.program is None else write(result.program))


separation_entries = recorded(_record)
