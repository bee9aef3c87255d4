"""The threads of a litmus file: columns separated by ``|``, or blocks ``P0 @ cta 0 { ... }``.

Either form becomes one text per thread in which every character keeps its line and column, so that the parser of
PTX reports places of the file.
"""

from __future__ import annotations

import re

from msgspec import Struct

from ptxmm.errors import PtxmmError, Span
from ptxmm.formats.conditions import START, condition_meant
from ptxmm.formats.declarations import parse_registers
from ptxmm.formats.initializers import MAX_ELEMENTS
from ptxmm.formats.text import Text, at, blank, closing_brace
from ptxmm.formats.tokens import Cursor
from ptxmm.program.source import LEVELS, RegisterEntry, ThreadSource
from ptxmm.program.test import Placement
from ptxmm.ptx.parser import parse_statements
from ptxmm.ptx.qualifiers import meant_as_type
from ptxmm.ptx.syntax import Instruction
from ptxmm.words import number_of

MAX_INSTRUCTIONS = 10_000
MAX_THREADS = 1_024

_SEPARATOR = re.compile(r"[{;|]")
_WORD = re.compile(r"\S")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_REG = re.compile(r"(?<![^\s;{}:])\.reg\b[^;]*(;|\Z)")
_ITEM = re.compile(r"([A-Za-z_]+)\s*(.*)", re.DOTALL)
_OVERLAP = re.compile(r"([0-9]{1,9})\s+overlap")
_MEMORY = re.compile(r"(?:ld|st(?!\.bulk)|atom|red|tld|suld|sust|cold|suatom|sured)(?![A-Za-z0-9_$])")
"""Memory instructions that say in which language they are: PTX has no type for ``st.bulk``."""
_INSTRUCTION = re.compile(r"(?:[A-Za-z_$][\w$]*\s*:(?!:)\s*)*(?:@!?\s*%?[\w$]+\s+)?([A-Za-z_][\w.:]*)")
_VECTOR = re.compile(r"v[0-9]+")
_TWO = re.compile(r"\s(?=(?:ld|st|atom|red|fence|membar|bar|barrier|mov|add|cp|mbarrier|setp)\.[a-z])")
_NEXT_HEAD = re.compile(r"\s(?=[A-Za-z_][A-Za-z0-9_]*\s*@)")
_DIALECT_ONLY = re.compile(r"goto|b(?:eq|ne|lt|le|gt|ge)|tld|suld|sust|cold|suatom|sured")


class Part(Struct, frozen=True):
    """``masked[start:end]`` without blanks at its ends: a cell, or the body of a block."""

    start: int
    end: int


class RawThread(Struct, frozen=True):
    """A thread before its instructions are parsed."""

    name: str
    span: Span
    placement: Placement
    parts: tuple[Part, ...]
    block: bool


class RawThreads(Struct, frozen=True):
    """All threads, and the offset of what follows them."""

    threads: tuple[RawThread, ...]
    end: int


def split_threads(text: Text, masked: str, start: int, slashes: list[int]) -> RawThreads:
    """Find the threads after the initial state; ``slashes`` are the offsets of ``//`` comments.

    Raises ``PtxmmError`` for a row with the wrong number of cells or without ``;``, a bad placement, no thread at all.
    """
    first = _WORD.search(masked, start)
    if first is None or START.match(masked, first.start()):
        where = first.start() if first else len(masked.rstrip())
        raise text.error("there are no threads", where, hint="the row ` P0 @ cta 0 | P1 @ cta 1 ;` names them")
    separator = _SEPARATOR.search(masked, first.start())
    if separator is not None and separator.group() == "{":
        found = _blocks(text, masked, first.start())
    else:
        found = _columns(text, masked, start)
        for offset in slashes:
            if first.start() < offset < found.end:
                hint = "use /* */, or write the threads as blocks"
                raise text.error("`//` can't be used between columns", offset, offset + 2, hint=hint)
    if len(found.threads) > MAX_THREADS:
        raise text.error(f"more than {MAX_THREADS} threads", first.start())
    return found


def is_dialect(masked: str, raw: RawThreads, herd: bool) -> bool:
    """Whether the first memory instruction has no type; without one, whether any instruction is the dialect's.

    ``herd`` decides for tests in which no instruction tells: whether the initial state has declarations of that form.
    """
    first: tuple[int, str] | None = None
    typed = untyped = False
    for thread in raw.threads:
        for part in thread.parts:
            pieces = masked[part.start : part.end].split(";") if thread.block else [masked[part.start : part.end]]
            offset = part.start
            for piece in pieces:
                match = _INSTRUCTION.match(piece, len(piece) - len(piece.lstrip()))
                if match is not None:
                    opcode, *qualifiers = re.split(r"\.", match[1])
                    if _MEMORY.match(match[1]):
                        if first is None or offset < first[0]:
                            first = (offset, match[1])
                    elif any(_is_type(q) for q in qualifiers):
                        typed = True
                    untyped = untyped or _DIALECT_ONLY.fullmatch(opcode) is not None
                offset += len(piece) + 1
    if first is not None:
        return not any(_is_type(q) for q in first[1].split(".")[1:])
    return untyped or (herd and not typed)


def parse_thread(text: Text, masked: str, raw: RawThread, dialect: bool) -> ThreadSource:
    """Parse the instructions of a thread and take out its ``.reg`` declarations."""
    registers: list[RegisterEntry] = []
    pieces: list[str] = []
    line, column = (text.place(raw.parts[0].start)) if raw.parts else (1, 1)
    position: tuple[int, int] = (line, 1)
    for part in raw.parts:
        code = masked[part.start : part.end]
        if raw.block:
            code = _without_registers(text, masked, part, raw.name, registers)
        row, column = text.place(part.start)
        pieces.append("\n" * (row - position[0]))
        # Two rows on one line of the file: the second stands further right.
        here = position[1] if row == position[0] else 1
        pieces.append(" " * max(0, column - here))
        pieces.append(code)
        here = column + len(code)
        if not raw.block and not code.endswith(":"):
            pieces.append(";")
            here += 1
        position = (row, here)
    statements = parse_statements("".join(pieces), line, 1, dialect=dialect)
    return ThreadSource(raw.name, raw.span, raw.placement, tuple(statements), tuple(registers))


def check_one_language(threads: list[ThreadSource]) -> None:
    """Refuse a file in which some memory instructions have a type and some have none, naming both lines."""
    memory = [
        s for thread in threads for s in thread.statements if isinstance(s, Instruction) and _MEMORY.match(s.mnemonic)
    ]
    memory.sort(key=lambda s: (s.span.line, s.span.column))
    if not memory:
        return
    first = memory[0]
    typed = _has_type(first)
    for other in memory[1:]:
        if _has_type(other) != typed:
            has, lacks = ("has a type", "has none") if not typed else ("has no type", "has one")
            message = f"`{other.mnemonic}` {has} but `{first.mnemonic}` on line {first.span.line} {lacks}"
            hint = "a file is either in PTX (ld.weak.u32 r0, [x]) or in the untyped dialect (ld.weak r0, x)"
            raise at(message, other.opcode_span, kind="isa", hint=hint)


def _has_type(instruction: Instruction) -> bool:
    return any(_is_type(q) for q, _ in instruction.qualifiers)


def _is_type(qualifier: str) -> bool:
    return qualifier == "pred" or (meant_as_type(qualifier) and not _VECTOR.fullmatch(qualifier))


# -- columns -------------------------------------------------------------------------------------------------------


def _columns(text: Text, masked: str, start: int) -> RawThreads:
    threads: list[tuple[str, Span, Placement]] = []
    cells: list[list[Part]] = []
    rows = 0
    position = start
    while True:
        begin = _WORD.search(masked, position)
        if begin is None or (threads and START.match(masked, begin.start())):
            end = begin.start() if begin else len(masked)
            raw = tuple(RawThread(*head, tuple(c), False) for head, c in zip(threads, cells, strict=True))
            return RawThreads(raw, end)
        row_start = begin.start()
        newline = masked.find("\n", row_start)
        line_end = newline if newline >= 0 else len(masked)
        row_end = masked.find(";", row_start, line_end)
        if row_end < 0:
            at_end = row_start + len(masked[row_start:line_end].rstrip())
            if threads and (found := condition_meant(masked[row_start:line_end])) is not None:
                raise text.error(found[0], row_start, row_start + found[1], hint=found[2])
            what = "the row that names the threads" if not threads else "this row of instructions"
            raise text.error(f"{what} does not end in `;`", at_end, hint="every row ends in `;`")
        parts = _cells(masked, row_start, row_end)
        if not threads:
            threads = [_head(text, masked, part.start, part.end) for part in parts]
            cells = [[] for _ in threads]
        else:
            rows += 1
            _check_row(text, parts, len(threads), rows * len(threads))
            for column, part in zip(cells, parts, strict=True):
                if part.start < part.end:
                    column.append(part)
        position = row_end + 1


def _cells(masked: str, start: int, end: int) -> list[Part]:
    """The cells of one row."""
    parts: list[Part] = []
    position = start
    while True:
        bar = masked.find("|", position, end)
        stop = end if bar < 0 else bar
        cell = masked[position:stop]
        begin = position + len(cell) - len(cell.lstrip())
        parts.append(Part(begin, max(begin, position + len(cell.rstrip()))) if cell.strip() else Part(stop, stop))
        if bar < 0:
            return parts
        position = bar + 1


def _check_row(text: Text, parts: list[Part], columns: int, total: int) -> None:
    if len(parts) != columns:
        extra = parts[columns] if len(parts) > columns else parts[-1]
        cells, threads = number_of(len(parts), "cell"), number_of(columns, "thread")
        verb = "are" if columns != 1 else "is"
        hint = None
        if len(parts) == columns + 1:
            hint = "`setp p|q` needs the block form `P0 @ cta 0 { ... }`"
        elif len(parts) < columns:
            hint = "an empty cell is written with its `|`"
            for part in parts:
                second = _TWO.search(text.characters, part.start, part.end)
                if second is not None:
                    word = re.match(r"[^\s,;|]+", text.characters[second.end() :])
                    shown = word[0] if word else ""
                    message = f"a `|` is missing before `{shown}`"
                    end = second.end() + max(1, len(shown))
                    raise text.error(message, second.end(), end, hint="it separates the threads")
        end = max(extra.start + 1, extra.end)
        raise text.error(f"this row has {cells}, but there {verb} {threads}", extra.start, end, hint=hint)
    if total > MAX_INSTRUCTIONS * 4:
        raise text.error(f"more than {MAX_INSTRUCTIONS * 4} cells", parts[0].start)


# -- blocks --------------------------------------------------------------------------------------------------------


def _blocks(text: Text, masked: str, start: int) -> RawThreads:
    threads: list[RawThread] = []
    position = start
    while True:
        begin = _WORD.search(masked, position)
        if begin is None or (threads and START.match(masked, begin.start())):
            return RawThreads(tuple(threads), begin.start() if begin else len(masked))
        opening = masked.find("{", begin.start())
        if opening < 0:
            line_end = masked.find("\n", begin.start())
            end = line_end if line_end >= 0 else len(masked)
            end = begin.start() + len(masked[begin.start() : end].rstrip())
            if threads and (found := condition_meant(masked[begin.start() : end])) is not None:
                raise text.error(found[0], begin.start(), begin.start() + found[1], hint=found[2])
            hint = "a thread is written `P0 @ cta 0 { ... }`"
            raise text.error("expected a thread or a final condition", begin.start(), end, hint=hint)
        closing = closing_brace(text, masked, opening)
        head_end = begin.start() + len(masked[begin.start() : opening].rstrip())
        name, span, placement = _head(text, masked, begin.start(), head_end)
        body = masked[opening + 1 : closing]
        first = opening + 1 + len(body) - len(body.lstrip())
        parts = (Part(first, opening + 1 + len(body.rstrip())),) if body.strip() else ()
        threads.append(RawThread(name, span, placement, parts, True))
        position = closing + 1


def _without_registers(text: Text, masked: str, part: Part, thread: str, registers: list[RegisterEntry]) -> str:
    """The body of a block with its ``.reg`` declarations added to ``registers`` and blanked."""

    def take(match: re.Match[str]) -> str:
        offset = part.start + match.start()
        stop = part.start + match.end() - len(match[1])
        if not match[1]:
            raise text.error("`.reg` declarations end in `;`", offset, offset + 4)
        cursor = Cursor(text, masked, offset, stop)
        registers.extend(parse_registers(cursor, thread))
        if cursor.peek().kind != "end":
            raise cursor.unexpected("`,` or `;`")
        if len(registers) > MAX_ELEMENTS:
            raise text.error(f"more than {MAX_ELEMENTS} registers are declared", offset, offset + 4)
        return blank(match.group())

    return _REG.sub(take, masked[part.start : part.end])


# -- placements ----------------------------------------------------------------------------------------------------


def _head(text: Text, masked: str, start: int, end: int) -> tuple[str, Span, Placement]:
    """``P0@cta 0,gpu 0``: the name of a thread and its place in the scope tree.

    head: THREAD ("@" _place ("," _place)*)?
    """
    if start >= end:
        raise text.error("this column has no thread name", start, hint="the row ` P0 | P1 ;` names the threads")
    name = _NAME.match(masked, start, end)
    if name is None:
        raise text.error("expected the name of a thread", start, end, hint="threads are called P0, P1, ...")
    span = text.span(start, name.end())
    rest = _WORD.search(masked, name.end(), end)
    if rest is None:
        return name.group(), span, Placement()
    if rest.group() != "@":
        hint = "a thread is written ` P0 @ cta 0, gpu 0`"
        raise text.error("expected `@` and a placement after the name of the thread", rest.start(), end, hint=hint)
    return name.group(), span, _placement(text, masked, rest.end(), end)


def _placement(text: Text, masked: str, start: int, end: int) -> Placement:
    """_place: HOST | place
    place: PLACE DIGITS | GRID DIGITS OVERLAP?
    """
    found: dict[str, int] = {}
    host: Part | None = None
    overlap = False
    position = start
    for piece in masked[start:end].split(","):
        begin = position + len(piece) - len(piece.lstrip())
        stop = max(begin + 1, position + len(piece.rstrip()))
        position += len(piece) + 1
        following = _NEXT_HEAD.search(piece)
        if following is not None:
            at_ = position - len(piece) - 1 + following.end()
            name = _NAME.match(masked, at_)
            width = len(name[0]) if name else 1
            raise text.error(f"a `|` is missing before `{masked[at_ : at_ + width]}`", at_, at_ + width)
        item = _ITEM.fullmatch(piece.strip())
        level, number = (item[1], item[2].strip()) if item else ("", "")
        if level == "host" and not number:
            host = Part(begin, stop)
            continue
        if level in found:
            raise text.error(f"a second `{level}`", begin, stop)
        if (launch := _OVERLAP.fullmatch(number)) is not None:
            if level != "grid":
                raise text.error("only a grid is launched with `overlap`", begin, stop, hint="write `grid 1 overlap`")
            number, overlap = launch[1], True
        if level not in LEVELS or not re.fullmatch(r"[0-9]{1,9}", number):
            raise _bad_level(text, begin, stop, level, number)
        found[level] = int(number)
    if host is not None and found:
        raise text.error("a host thread has no place in the GPU", host.start, host.end, hint="write `P0 @ host`")
    return Placement(
        found.get("gpu", 0),
        found.get("grid", 0),
        found.get("cluster"),
        found.get("cta"),
        found.get("warp"),
        host is not None,
        overlap,
    )


def _bad_level(text: Text, begin: int, stop: int, level: str, number: str) -> PtxmmError:
    if level in LEVELS:
        if number.isdecimal():
            return text.error(f"the number of a {level} has at most 9 digits", stop - len(number), stop)
        return text.error(f"`{level}` needs a number", begin, stop, hint=f"write `{level} 0`")
    aliases = {"block": "cta", "device": "gpu", "dev": "gpu", "thread": "warp", "tb": "cta", "sys": "gpu"}
    hint = f"write `{aliases[level]}`" if level in aliases else None
    levels = "`warp`, `cta`, `cluster`, `grid`, `gpu` (each with a number) or `host`"
    return text.error(f"expected {levels}", begin, stop, hint=hint)
