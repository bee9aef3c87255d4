"""Tests with other instructions in the place of some, more of them, or fewer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from ptxmm.program.identity import Site
from ptxmm.program.test import Test, Thread
from ptxmm.ptx.ops import Branch, Op
from ptxmm.ptx.printer import instruction_text

Edits = Mapping[Site, Sequence[Op]]
"""For (thread index, index in the body) the instructions that take the place of the one there; at the length of the
body, instructions at the end of the thread."""


def retarget(chunks: Sequence[Sequence[Op]]) -> tuple[Op, ...]:
    """The body whose instructions became ``chunks``, in one piece; branches go to what their target became."""
    starts = [0]
    for chunk in chunks:
        starts.append(starts[-1] + len(chunk))
    return tuple(
        replace(op, target=starts[op.target]) if isinstance(op, Branch) else op for chunk in chunks for op in chunk
    )


def edited(test: Test, edits: Edits) -> Test:
    """``test`` with ``edits``; a branch to an instruction goes to the first of those in its place."""
    return replace(test, threads=tuple(_thread(number, thread, edits) for number, thread in enumerate(test.threads)))


def _thread(number: int, thread: Thread, edits: Edits) -> Thread:
    if not any(where[0] == number for where in edits):
        return thread
    chunks = [edits.get(Site(number, index), (op,)) for index, op in enumerate(thread.body)]
    return replace(thread, body=retarget([*chunks, edits.get(Site(number, len(thread.body)), ())]))


def canonical(test: Test, op: Op) -> str:
    """``op`` as it would be written in the file of ``test``, on one line; labels get the index of their target.

    Raises ``PtxmmError`` (kind ``unsupported``) for what the language of the file cannot say.
    """
    return instruction_text(op, not test.dialect, lambda index: f"L{index}", lambda key: test.objects[key].name)
