"""A test with its instructions as results name them, as text and as data."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ptxmm.analysis.instruction import instruction, label
from ptxmm.formats.writer import declarations, placement_text
from ptxmm.program.test import Test, Thread
from ptxmm.ptx.ops import Branch
from ptxmm.render.style import Style, clean
from ptxmm.render.text import separated


class Labelled(Struct, frozen=True):
    """An instruction by its ``label``, such as ``P0:36``; ``target``: that of the instruction that a branch goes to, or
    ``end``."""

    label: str
    line: int
    column: int
    text: str
    target: str | None


class ThreadListing(Struct, frozen=True):
    """A thread with its ``placement`` (empty: a CTA of its own) and its instructions in program order."""

    thread: str
    placement: str
    instructions: tuple[Labelled, ...]


class Listing(Struct, frozen=True, tag_field="analysis", tag="show"):
    """A test: its memory and initial values as ``declarations``, its ``threads``, and what is asked of it."""

    file: str
    test: str
    description: str
    declarations: tuple[str, ...]
    threads: tuple[ThreadListing, ...]
    condition: str | None

    @property
    def finding(self) -> bool:
        """There is nothing to warn of."""
        return False


def listing(test: Test) -> Listing:
    """``test`` by its labels."""
    return Listing(
        test.file,
        test.name,
        test.description,
        tuple(declarations(test)),
        tuple(_thread(test, number, thread) for number, thread in enumerate(test.threads)),
        None if test.condition is None else str(test.condition),
    )


def _thread(test: Test, number: int, thread: Thread) -> ThreadListing:
    found = []
    for index, op in enumerate(thread.body):
        what = instruction(test, number, index)
        target = None
        if isinstance(op, Branch):
            target = label(test, number, op.target) if op.target < len(thread.body) else "end"
        found.append(Labelled(label(test, number, index), what.line, what.column, what.text, target))
    return ThreadListing(thread.name, placement_text(thread.placement), tuple(found))


def text(found: Listing, style: Style) -> Iterator[str]:
    """The test, thread by thread."""
    yield f"Test {clean(found.test)}"
    yield from (f"  {clean(row)}" for row in found.description.splitlines())
    yield from (f"  {clean(row)}" for row in found.declarations)
    for thread in found.threads:
        yield style.paint(clean(f"{thread.thread} @ {thread.placement}" if thread.placement else thread.thread), "bold")
        width = max((len(item.label) for item in thread.instructions), default=0)
        for item in thread.instructions:
            target = f"  -> {item.target}" if item.target else ""
            yield f"  {clean(item.label):{width}}  {clean(item.text)}{clean(target)}"
    if found.condition is not None:
        yield clean(found.condition)


pages = separated(text)
