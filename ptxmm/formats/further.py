"""All that is wrong with a litmus file, and not only what was found first.

What is wrong is told, taken out, and the rest is read again: first each part of the frame by itself (header,
declarations, heads and rows of the threads, statements, condition), then the test that the right parts make. Errors
about a name that stands in what was taken out are not told: it may be declared there, or written.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence

from msgspec.structs import replace

from ptxmm.errors import MOST, PtxmmError
from ptxmm.formats.conditions import Final, parse_final
from ptxmm.formats.declarations import parse_initial, parse_registers
from ptxmm.formats.header import Header, parse_header
from ptxmm.formats.text import Text, blank, closing_brace, mask_comments
from ptxmm.formats.threads import Part, RawThread, RawThreads, check_one_language, is_dialect, split_threads
from ptxmm.formats.tokens import Cursor
from ptxmm.program.build import build
from ptxmm.program.condition import Comparison, Conjunction, mapped
from ptxmm.program.source import (
    Declaration,
    NameTerm,
    RawProposition,
    RawTerm,
    RegisterEntry,
    TestSource,
    ThreadSource,
    Variable,
)
from ptxmm.ptx.parser import parse_statements
from ptxmm.ptx.qualifiers import DEFAULT_ISA
from ptxmm.ptx.syntax import Label, Statement

_STATEMENTS = 1_000
_ELEMENTS = 1_000
_CHARACTERS = 100_000
"""In what is larger, only the first error is looked for."""
_TRIES = 3 * MOST
_NAME = re.compile(r"[A-Za-z_$][\w$]*")
_QUOTED = re.compile(r"`[%&]?([A-Za-z_$][\w$]*)[^`]*`")
_PLACEMENT = re.compile(r"@[^|;{\n]*")
_KINDS = frozenset(("syntax", "isa", "type", "name", "condition", "unsupported"))


def further(text: Text, isa: tuple[int, int] | None, first: PtxmmError) -> list[PtxmmError]:
    """What is wrong beside ``first``, as many errors as are told of a file, in the order in which they are found."""
    found: dict[tuple[int | None, int | None], PtxmmError] = {}
    if len(text.characters) > _CHARACTERS:
        return []
    names = {first.message}
    for error in _Reading(text, isa).errors():
        place = error.line, error.column
        if place == (first.line, first.column) or (error.kind == "name" and error.message in names):
            continue  # an unknown name is told of once
        names.add(error.message)
        found.setdefault(place, text.fill(error))
        if len(found) >= MOST - 1:
            break
    return list(found.values())


class _Reading:
    """Reads a file part by part. ``doubtful``: the names that stand in what is wrong; ``moved``: some placement is."""

    def __init__(self, text: Text, isa: tuple[int, int] | None) -> None:
        self.text, self.isa = text, isa
        self.doubtful: set[str] = set()
        self.moved = False
        self.statements = _STATEMENTS

    def errors(self) -> Iterator[PtxmmError]:
        """The errors, in the order in which they are found."""
        header: Header | None = None
        text = self.text
        for _ in range(MOST):
            try:
                header = parse_header(text)
                break
            except PtxmmError as error:
                yield error
                mended = _without_line(text, error)
                if mended is None:
                    return  # where the parts begin is not known
                text = mended
        if header is None:
            return
        try:
            masked, slashes = mask_comments(text, header.end)
            closing = closing_brace(text, masked, header.end)
        except PtxmmError as error:
            yield error
            return
        declarations: list[Declaration] = []
        registers: list[RegisterEntry] = []
        for piece in _pieces(masked, Part(header.end + 1, closing)):
            try:
                initial = parse_initial(text, masked, piece.start, piece.end)
                declarations += initial.declarations
                registers += initial.registers
            except PtxmmError as error:
                yield error
                self._doubt(masked[piece.start : piece.end])
        raw, masked = yield from self._split(text, masked, closing + 1, slashes)
        if raw is None:
            return
        herd = any(isinstance(d, Variable) and d.type is None for d in declarations)
        dialect = is_dialect(masked, raw, herd)
        threads = []
        for thread in raw.threads:
            threads.append((yield from self._thread(text, masked, thread, dialect)))
        final = Final()
        try:
            final = parse_final(text, masked, raw.end)
        except PtxmmError as error:
            yield error
        try:
            check_one_language(threads)
        except PtxmmError as error:
            yield error
            return
        yield from self._built(
            TestSource(
                name=header.name, threads=tuple(threads), declarations=tuple(declarations), registers=tuple(registers),
                condition=final.condition, locations=final.locations, filter=final.filter, dialect=dialect,
                file=text.file, text=text.characters, isa=self.isa or header.isa or DEFAULT_ISA,
            )
        )  # fmt: skip

    def _doubt(self, characters: str) -> None:
        self.doubtful.update(_NAME.findall(characters))

    def _split(
        self, text: Text, masked: str, start: int, slashes: list[int]
    ) -> Generator[PtxmmError, None, tuple[RawThreads | None, str]]:
        """The threads, and ``masked`` without the rows, placements and lines that are wrong."""
        last = 0
        for _ in range(MOST):
            try:
                return split_threads(text, masked, start, slashes), masked
            except PtxmmError as error:
                if error.line is None or error.line <= last:
                    break  # it is there only because of what was taken out
                yield error
                if text.starts[error.line - 1] < start:
                    break
                last = error.line
                begin = text.starts[error.line - 1]
                end = masked.find("\n", begin)
                end = len(masked) if end < 0 else end
                line = masked[begin:end]
                if "begins no condition" in error.message:  # nor is what follows to be read as instructions
                    end = len(masked)
                    self._doubt(masked[begin:end])
                    line = blank(masked[begin:end])
                elif "can't be used between columns" in error.message:
                    slashes = []
                elif "@" in line:
                    self.moved = True
                    line = _PLACEMENT.sub(lambda match: blank(match[0]), line)
                else:
                    if not masked[start:begin].strip():
                        break  # without the row that names the threads there are none
                    self._doubt(line)
                    line = blank(line)
                masked = masked[:begin] + line + masked[end:]
        return None, masked

    def _thread(
        self, text: Text, masked: str, raw: RawThread, dialect: bool
    ) -> Generator[PtxmmError, None, ThreadSource]:
        """What is right of a thread."""
        statements: list[Statement] = []
        registers: list[RegisterEntry] = []
        wrong = 0  # the line of the last error: nothing else is told of it
        for piece in (p for part in raw.parts for p in (_pieces(masked, part) if raw.block else [part])):
            code = masked[piece.start : piece.end]
            line, column = text.place(piece.start)
            self.statements -= 1
            if self.statements < 0:
                break
            try:
                if code.startswith(".reg") and raw.block:
                    cursor = Cursor(text, masked, piece.start, piece.end)
                    registers += parse_registers(cursor, raw.name)
                    if cursor.peek().kind != "end":
                        raise cursor.unexpected("`,` or `;`")
                else:
                    statements += parse_statements(code, line, column, dialect=dialect)
            except PtxmmError as error:
                self._doubt(code)
                if line != wrong:
                    yield error
                wrong = error.line or 0
        return ThreadSource(raw.name, raw.span, raw.placement, tuple(statements), tuple(registers))

    def _built(self, source: TestSource) -> Iterator[PtxmmError]:
        """What is wrong with the test that the right parts make."""
        elements = sum(d.count or 1 for d in source.declarations if isinstance(d, Variable)) + len(source.registers)
        for _ in range(_TRIES if self.statements >= 0 and elements <= _ELEMENTS else 0):
            try:
                build(source)
                return
            except PtxmmError as error:
                # Whether a declaration is used, and where, depends on all that is not there.
                placed = (error.line or 0) >= source.threads[0].span.line and not self.moved
                known = placed or not (self.doubtful or self.moved) or _of_statements(source, error)
                if known and error.kind in _KINDS and self.doubtful.isdisjoint(_QUOTED.findall(error.message)):
                    yield error
                smaller = self._without(source, error)
                if smaller is None:
                    return
                source = smaller

    def _without(self, source: TestSource, error: PtxmmError) -> TestSource | None:
        """``source`` without the part that ``error`` is about."""
        for index, thread in enumerate(source.threads):
            smaller = self._without_line_of(thread, error)
            if smaller is not None:
                return replace(source, threads=(*source.threads[:index], smaller, *source.threads[index + 1 :]))
        for name in ("declarations", "registers", "locations"):
            items: Sequence[Declaration | RegisterEntry | NameTerm] = getattr(source, name)
            rest = tuple(item for item in items if not _at(item.span.line, item.span.column, error))
            if len(rest) < len(items):
                if name != "locations":
                    self.doubtful.update(item.name for item in items if item not in rest)
                return replace(source, **{name: rest})
        condition, restriction = source.condition, source.filter
        without = replace(
            source,
            condition=condition and replace(condition, proposition=_other(condition.proposition, error)),
            filter=restriction and _other(restriction, error),
        )
        return without if without != source else None

    def _without_line_of(self, thread: ThreadSource, error: PtxmmError) -> ThreadSource | None:
        """``thread`` without the statement or register that ``error`` is about, None if it is about none."""
        kept = [s for s in thread.statements if isinstance(s, Label) or not _covers(s, thread.statements, error)]
        entries = [e for e in thread.registers if not _at(e.span.line, e.span.column, error)]
        if len(kept) + len(entries) == len(thread.statements) + len(thread.registers):
            return None
        for statement in thread.statements:
            if statement not in kept and not isinstance(statement, Label):
                self._doubt(statement.text)
        self.doubtful.update(e.name for e in thread.registers if e not in entries)
        return replace(thread, statements=tuple(kept), registers=tuple(entries))


def _without_line(text: Text, error: PtxmmError) -> Text | None:
    """``text`` without the line of an error of its header; None where that would leave no header."""
    if error.line is None or not re.match(r"\s*\w+=", text.characters[text.starts[error.line - 1] :]):
        return None
    begin = text.starts[error.line - 1]
    end = text.characters.find("\n", begin)
    characters = text.characters[:begin] + blank(text.characters[begin:end]) + text.characters[end:]
    return None if end < 0 else replace(text, characters=characters)


def _at(line: int, column: int, error: PtxmmError) -> bool:
    return (line, column) == (error.line, error.column)


def _covers(statement: Statement, statements: Sequence[Statement], error: PtxmmError) -> bool:
    """Whether ``error`` is in ``statement``: it is the last of ``statements`` that begins before that on its line."""
    if statement.span.line != error.line:
        return False
    column = error.column or 0
    before = [s.span.column for s in statements if s.span.line == error.line and s.span.column <= column]
    end = statement.span.end_column
    return bool(before) and statement.span.column == max(before) and column <= end


def _of_statements(source: TestSource, error: PtxmmError) -> bool:
    """Whether ``error`` is in an instruction, or in what follows the threads."""
    statements = [s for thread in source.threads for s in thread.statements]
    if any(_covers(s, statements, error) for s in statements):
        return True
    return (error.line or 0) > max((t.span.line for t in source.threads), default=0) and not any(
        s.span.line >= (error.line or 0) for s in statements
    )


def _other(item: RawProposition, error: PtxmmError) -> RawProposition:
    """``item`` with ``true`` for the comparisons that ``error`` is about; equal to ``item`` where it is about none."""

    def other(found: Comparison[RawTerm]) -> RawProposition:
        here = any(_at(term.span.line, term.span.column, error) for term in (found.left, found.right))
        return Conjunction(()) if here else found

    return mapped(item, other)


def _pieces(masked: str, part: Part) -> Iterator[Part]:
    """What ``;`` separates, without the blanks around it."""
    start = part.start
    for piece in masked[part.start : part.end].split(";"):
        begin = start + len(piece) - len(piece.lstrip())
        if piece.strip():
            yield Part(begin, start + len(piece.rstrip()))
        start += len(piece) + 1
