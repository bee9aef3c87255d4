"""The litmus format: a title, an initial state, threads in columns or blocks, and a final condition.

The grammar is ``litmus.lark``; each reader names its rules of it. Columns hold PTX, or the untyped dialect of public
litmus files; a file is in the dialect iff its first memory instruction has no type.
"""

from __future__ import annotations

from ptxmm.errors import PtxmmError, together
from ptxmm.formats.conditions import parse_final
from ptxmm.formats.declarations import parse_initial
from ptxmm.formats.header import parse_header
from ptxmm.formats.text import Text, closing_brace, mask_comments, open_text
from ptxmm.formats.threads import check_one_language, is_dialect, parse_thread, split_threads
from ptxmm.program.build import build
from ptxmm.program.source import TestSource, Variable
from ptxmm.program.test import Test
from ptxmm.ptx.qualifiers import DEFAULT_ISA


def parse(text: str, file: str = "<text>", isa: tuple[int, int] | None = None) -> list[Test]:
    """The test in ``text`` (always exactly one), in PTX of version ``isa`` (None: that of its ``ISA=`` line, or 8.5).

    Raises ``PtxmmError`` with the place of the mistake in ``file``; ``more`` are the other mistakes.
    """
    opened = open_text(text, file)
    try:
        return [build(_source(opened, text, isa))]
    except PtxmmError as error:
        from ptxmm.formats.further import further

        raise together([opened.fill(error), *further(opened, isa, error)]) from None


def write(test: Test) -> str:
    """``test`` in the litmus format: see ``writer.write``, which only what writes needs to import."""
    from ptxmm.formats import writer

    return writer.write(test)


def same(left: Test, right: Test) -> bool:
    """Whether two tests are equal up to the places and texts of their sources: see ``writer.same``."""
    from ptxmm.formats import writer

    return writer.same(left, right)


def _source(text: Text, original: str, isa: tuple[int, int] | None) -> TestSource:
    header = parse_header(text)
    masked, slashes = mask_comments(text, header.end)
    closing = closing_brace(text, masked, header.end)
    initial = parse_initial(text, masked, header.end + 1, closing)
    raw = split_threads(text, masked, closing + 1, slashes)
    final = parse_final(text, masked, raw.end)
    herd = any(isinstance(d, Variable) and d.type is None for d in initial.declarations)
    dialect = is_dialect(masked, raw, herd)
    threads = [parse_thread(text, masked, thread, dialect) for thread in raw.threads]
    check_one_language(threads)
    return TestSource(
        name=header.name,
        threads=tuple(threads),
        declarations=initial.declarations,
        registers=initial.registers,
        condition=final.condition,
        locations=final.locations,
        filter=final.filter,
        description=header.description,
        info=header.info,
        dialect=dialect,
        file=text.file,
        text=original,
        isa=isa or header.isa or DEFAULT_ISA,
    )
