"""``lint``: what is wrong with the inline PTX of a CUDA source, without compiling it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct

from ptxmm.analysis.lint import (
    addresses,
    asynchronous,
    clobbers,
    effects,
    operands,
    orders,
    plain,
    templates,
    versions,
    wrappers,
)
from ptxmm.analysis.lint.finding import Edit, Facts, Finding, Rule, Site
from ptxmm.analysis.lint.names import words
from ptxmm.cuda import Body, Reader, Unit, scan
from ptxmm.errors import PtxmmError
from ptxmm.files import read_bytes

_MODULES = (clobbers, templates, operands, orders, wrappers, versions, asynchronous, addresses)
RULES: tuple[Rule, ...] = tuple(
    sorted((rule for module in (*_MODULES, plain) for rule in module.RULES), key=lambda rule: rule.id)
)
"""All rules, by id."""

_IGNORE = re.compile(r"//[^\n]*?\bptxmm:[ \t]*ignore(?:\[([^\]\n]*)\])?")


class Options(Struct, frozen=True):
    """What to look for: rules by id (``PTX102``), by name, by the beginning of an id (``PTX1``), or ``ALL``.

    ``select``: if not empty, no other rules than these; ``enable``: these too; ``disable``: not these. ``isa`` and
    ``arch`` (90 for sm_90): what the source is compiled for.
    """

    select: tuple[str, ...] = ()
    enable: tuple[str, ...] = ()
    disable: tuple[str, ...] = ()
    isa: tuple[int, int] | None = None
    arch: int | None = None


class Report(Struct, frozen=True):
    """A finding with its place: ``line`` and ``column`` from 1, ``end_line`` and ``end_column`` after its last
    character; ``source`` is the line."""

    file: str
    rule: Rule
    line: int
    column: int
    end_line: int
    end_column: int
    message: str
    hint: str | None
    edits: tuple[Edit, ...]
    source: str


class LintResult(Struct, frozen=True, tag_field="analysis", tag="lint"):
    """What ``lint`` found in one source. ``statements``: the ``asm`` statements; ``unchecked``: the lines of those
    that macros are part of; ``suppressed``: the findings that comments in the source turn off."""

    file: str
    findings: tuple[Report, ...]
    statements: int
    unchecked: tuple[int, ...]
    suppressed: int

    @property
    def finding(self) -> bool:
        """Whether anything was found."""
        return bool(self.findings)


@cache
def rules_by_id() -> MappingProxyType[str, Rule]:
    """The rules by their ids and by their names."""
    return MappingProxyType({key: rule for rule in RULES for key in (rule.id, rule.name)})


def chosen(options: Options) -> frozenset[str]:
    """The ids of the rules to look for. Raises ``PtxmmError`` (kind ``usage``) for a rule that there is not."""
    on = {rule.id for rule in RULES if rule.default}
    if options.select:
        on = rule_ids(options.select)
    on |= rule_ids(options.enable)
    return frozenset(on - rule_ids(options.disable))


def rule_ids(names: Iterable[str]) -> set[str]:
    """The ids of the rules that ``names`` name: by id, by name, by the beginning of an id, or ``ALL``. Raises
    ``PtxmmError`` (kind ``usage``) for a name that is none."""
    found: set[str] = set()
    for name in names:
        matching = [rule.id for rule in RULES if name in (rule.id, rule.name) or name == "ALL"]
        if not matching and re.fullmatch(r"PTX[0-9]{1,2}", name):
            matching = [rule.id for rule in RULES if rule.id.startswith(name)]  # a family: PTX4
        if not matching:
            from difflib import get_close_matches

            close = get_close_matches(name, [key for rule in RULES for key in (rule.id, rule.name)], 1)
            hint = f"did you mean {close[0]}?" if close else "the rules are those of `ptxmm lint --list-rules`"
            raise PtxmmError(f"no rule is called {name}", kind="usage", hint=hint)
        found.update(matching)
    return found


def lint_text(text: str, file: str = "<text>", options: Options | None = None) -> LintResult:
    """Look at the C++ source ``text``, called ``file``. Raises ``PtxmmError`` (kind ``usage``) for wrong options."""
    options = options or Options()
    on = chosen(options)
    unit = scan(file, text)
    found = [finding for finding in _findings(unit, options) if finding.rule in on]
    ignored = _ignored(text)
    starts = sorted((s.keyword.start, s.close) for s in unit.statements)
    reports: dict[tuple[str, int, int], Report] = {}
    suppressed = 0
    for finding in found:
        report = _report(unit, finding)
        if _is_ignored(ignored, report, unit, starts):
            suppressed += 1
            continue
        reports.setdefault((finding.rule, finding.start, finding.end), report)
    ordered = tuple(sorted(reports.values(), key=lambda r: (r.line, r.column, r.rule.id)))
    unchecked = tuple(sorted({unit.source.place(s.keyword.start)[0] for s in unit.statements if s.template is None}))
    return LintResult(file, ordered, len({s.keyword.start for s in unit.statements}), unchecked, suppressed)


def lint(path_or_text: Path | str, options: Options | None = None, *, file: str = "<text>") -> LintResult:
    """Look at the inline PTX of a CUDA source: a ``Path`` is read, a ``str`` is the source itself, called ``file``.

    Raises ``PtxmmError`` (kinds ``io``, ``usage``).
    """
    if isinstance(path_or_text, Path):
        return lint_text(read_source(path_or_text), str(path_or_text), options)
    return lint_text(path_or_text, file, options)


def read_source(path: Path) -> str:
    """The text of a C++ source; bytes that are no UTF-8 are replaced. Raises ``PtxmmError`` (kind ``io``)."""
    return read_bytes(path).decode("utf-8", "replace")


def _findings(unit: Unit, options: Options) -> Iterator[Finding]:
    reader = Reader()
    bodies: list[Body | None] = [reader.read(statement) for statement in unit.statements]
    # A register of one statement is one of others too unless { } end it.
    shared = [body for body in bodies if body is not None]
    registers = frozenset(d.name for body in shared for d in body.declarations if d.depth <= 0 or body.balance > 0)
    facts = _facts(unit, bodies)
    for statement, body in zip(unit.statements, bodies, strict=True):
        if body is None:
            continue
        own = facts[statement.function] if statement.function is not None else Facts(bodies=(body,))
        site = Site(unit, statement, body, options.isa, options.arch, registers, own)
        yield from clobbers.check_empty(site)
        if body.is_ptx or templates.misspelt(body):
            for module in _MODULES:
                yield from module.check(site)
    yield from plain.check_functions(unit)


def _facts(unit: Unit, bodies: Sequence[Body | None]) -> dict[int, Facts]:
    """Those of each function with PTX, by its number."""
    of_function: dict[int, list[Body]] = defaultdict(list)
    ends: dict[int, dict[int, str]] = defaultdict(dict)
    for statement, body in zip(unit.statements, bodies, strict=True):
        if body is not None and statement.function is not None:
            of_function[statement.function].append(body)
            last = next((i for i in reversed(body.instructions) if effects.order(i) or effects.fences(i)), None)
            if last is not None and effects.fences(last):
                ends[statement.function][statement.after + 1] = last.mnemonic
    return {number: _of_function(unit, number, found, ends[number]) for number, found in of_function.items()}


def _of_function(unit: Unit, number: int, bodies: list[Body], fences: dict[int, str]) -> Facts:
    function = unit.functions[number]
    inside = unit.tokens[function.first : function.last]
    assigned = frozenset(token.text for token, after in pairwise(inside) if after.text == "=" and token.kind == "name")
    names = frozenset(token.text for token in inside if token.kind == "name")
    head = frozenset(word for text in function.words(unit) for word in words(text))
    return Facts(names, assigned, head, tuple(bodies), fences)


def _report(unit: Unit, finding: Finding) -> Report:
    line, column = unit.source.place(finding.start)
    end_line, end_column = unit.source.place(max(finding.start, finding.end - 1))
    return Report(
        unit.source.name,
        rules_by_id()[finding.rule],
        line,
        column,
        end_line,
        end_column + 1,
        finding.message,
        finding.hint,
        finding.edits,
        unit.source.line(line),
    )


def _ignored(text: str) -> dict[int, frozenset[str]]:
    """The rules that a comment turns off, by the line of the comment; the empty set stands for all of them."""
    found: dict[int, frozenset[str]] = {}
    if "ptxmm:" not in text:
        return found
    for number, line in enumerate(text.split("\n"), 1):
        hit = _IGNORE.search(line)
        if hit is not None:
            found[number] = frozenset(name.strip() for name in (hit[1] or "").split(",") if name.strip())
    return found


def _is_ignored(
    ignored: dict[int, frozenset[str]], report: Report, unit: Unit, statements: list[tuple[int, int]]
) -> bool:
    """Whether a comment on the line of the finding, on the line before it, or at its statement turns it off."""
    if not ignored:
        return False
    lines = {report.line, report.line - 1}
    offset = unit.source.starts[report.line - 1] + report.column - 1
    number = bisect_right(statements, (offset, 1 << 62)) - 1
    if number >= 0 and offset < statements[number][1]:
        first = unit.source.place(statements[number][0])[0]
        lines |= {first, first - 1}
    for line in lines & ignored.keys():
        names = ignored[line]
        if not names or report.rule.id in names or report.rule.name in names:
            return True
    return False


def mended(text: str, reports: Iterable[Report]) -> tuple[str, int]:
    """``text`` with the edits of ``reports``, and how many of these are mended. Edits that two findings share are made
    once; of edits that overlap, only the first."""
    made: set[Edit] = set()
    count = 0
    for report in reports:
        if not report.edits:
            continue
        new = [edit for edit in report.edits if edit not in made]
        if any(edit.start < other.end and other.start < edit.end for edit in new for other in made):
            continue
        made.update(new)
        count += 1
    for edit in sorted(made, key=lambda e: (e.start, e.end), reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text, count
