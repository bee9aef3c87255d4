"""How instructions are named to the user: thread, line of the file, text as written."""

from __future__ import annotations

from collections.abc import Iterable

from ptxmm.analysis.result import Instruction
from ptxmm.program.test import Test
from ptxmm.ptx.ops import Op


def written(op: Op) -> str:
    """An instruction as it is written, on one line."""
    return " ".join(op.source.text.split())


def instruction(test: Test, thread: int, index: int) -> Instruction:
    """The instruction ``index`` of a thread of ``test``."""
    op = test.at((thread, index))
    source = op.source
    return Instruction(test.threads[thread].name, index, source.span.line, source.span.column, written(op))


def crowded(test: Test, thread: int, index: int) -> bool:
    """Whether a thread has other instructions in the line of this one."""
    line = test.at((thread, index)).source.span.line
    return any(i != index and op.source.span.line == line for i, op in enumerate(test.threads[thread].body))


def label(test: Test, thread: int, index: int) -> str:
    """``P0:36``, with the column where the thread has other instructions in the line: ``P0:36:14``."""
    found = instruction(test, thread, index)
    return f"{found.place}:{found.column}" if crowded(test, thread, index) else found.place


def bound_reached(test: Test, unroll: int, loops: Iterable[tuple[int, int]] = ()) -> str:
    """That ``loops``, backward branches as (thread, index in its body), went on beyond the bound."""
    places = dict.fromkeys(str(instruction(test, thread, pc)) for thread, pc in sorted(loops))
    named = f" ({', '.join(places)})" if places else ""
    return f"a loop goes on after {unroll} backward branches{named}; --unroll takes a higher bound"
