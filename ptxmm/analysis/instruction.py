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


def bound_reached(test: Test, unroll: int, loops: Iterable[tuple[int, int]] = ()) -> str:
    """That ``loops``, backward branches as (thread, index in its body), went on beyond the bound."""
    places = dict.fromkeys(str(instruction(test, thread, pc)) for thread, pc in sorted(loops))
    named = f" ({', '.join(places)})" if places else ""
    return f"a loop goes on after {unroll} backward branches{named}; --unroll takes a higher bound"
