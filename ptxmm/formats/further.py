"""All that is wrong with a litmus file, and not only what was found first.

Each statement of a thread is read by itself, and so are the declarations and the condition: what one of them gets
wrong makes no error in another. Names that nothing declares are told of once, by what was found first, as a single
wrong declaration may be behind all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from ptxmm.errors import PtxmmError
from ptxmm.formats.conditions import parse_final
from ptxmm.formats.declarations import parse_initial
from ptxmm.formats.header import parse_header
from ptxmm.formats.text import Text, closing_brace, mask_comments
from ptxmm.formats.threads import Part, RawThreads, is_dialect, split_threads
from ptxmm.program.source import Variable
from ptxmm.ptx.isa import resolve
from ptxmm.ptx.parser import parse_statements
from ptxmm.ptx.qualifiers import DEFAULT_ISA
from ptxmm.ptx.syntax import Instruction

MOST = 20
"""At most so many errors of a file are told."""

_STATEMENTS = 1_000
_CHARACTERS = 100_000
"""In what is larger, only the first error is looked for."""
_LABEL = re.compile(r"([A-Za-z_$%][\w$]*)\s*:(?!:)")
_KINDS = frozenset(("syntax", "isa", "type", "unsupported"))


def further(text: Text, isa: tuple[int, int] | None, first: PtxmmError) -> list[PtxmmError]:
    """What is wrong beside ``first``, at most ``MOST - 1`` errors in the order of the text."""
    found: dict[tuple[int | None, int | None], PtxmmError] = {}
    if len(text.characters) > _CHARACTERS:
        return []
    lines = {first.line}
    for error in _all(text, isa):
        # One line, one error: what follows a wrong word on its line is most often its doing.
        if error.line not in lines and error.line is not None:
            lines.add(error.line)
            found[error.line, error.column] = text.fill(error)
        if len(found) >= MOST:
            break
    return sorted(found.values(), key=lambda error: (error.line or 0, error.column or 0))[: MOST - 1]


def _all(text: Text, isa: tuple[int, int] | None) -> Iterator[PtxmmError]:
    try:
        header = parse_header(text)
        masked, slashes = mask_comments(text, header.end)
        closing = closing_brace(text, masked, header.end)
    except PtxmmError:
        return  # where the parts begin is not known
    names: set[str] | None = None
    herd = False
    try:
        initial = parse_initial(text, masked, header.end + 1, closing)
        names = {d.name for d in initial.declarations}
        herd = any(isinstance(d, Variable) and d.type is None for d in initial.declarations)
    except PtxmmError as error:
        yield error
    try:
        raw = split_threads(text, masked, closing + 1, slashes)
    except PtxmmError as error:
        yield error
        return
    yield from _of_threads(text, masked, raw, names, herd, isa or header.isa or DEFAULT_ISA)
    yield from _of(lambda: parse_final(text, masked, raw.end))


def _of(function: Callable[[], object]) -> Iterator[PtxmmError]:
    try:
        function()
    except PtxmmError as error:
        yield error


def _of_threads(
    text: Text, masked: str, raw: RawThreads, names: set[str] | None, herd: bool, isa: tuple[int, int]
) -> Iterator[PtxmmError]:
    dialect = is_dialect(masked, raw, herd)
    budget, wrong = _STATEMENTS, 0  # the line of the last error: nothing else is told of it
    for thread in raw.threads:
        labels = {m[1]: 0 for part in thread.parts for m in _LABEL.finditer(masked, part.start, part.end)}
        for part in thread.parts:
            for piece in _pieces(masked, part) if thread.block else [part]:
                code = masked[piece.start : piece.end]
                budget -= 1
                line, column = text.place(piece.start)
                if budget < 0 or line == wrong or code.startswith("."):
                    continue
                try:
                    for statement in parse_statements(code, line, column, dialect=dialect):
                        if isinstance(statement, Instruction) and names is not None and not dialect:
                            resolve(statement, dialect=False, variables=names, labels=labels, isa=isa)
                except PtxmmError as error:
                    # Whether an operand of cp.async is a predicate, only the whole thread says.
                    wrong = error.line or 0
                    if error.kind in _KINDS and not code.startswith(("cp.async", "@")):
                        yield error


def _pieces(masked: str, part: Part) -> Iterator[Part]:
    """The statements of a block, without the blanks around them."""
    start = part.start
    for piece in masked[part.start : part.end].split(";"):
        begin = start + len(piece) - len(piece.lstrip())
        if piece.strip():
            yield Part(begin, start + len(piece.rstrip()))
        start += len(piece) + 1
