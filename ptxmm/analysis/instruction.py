"""How instructions are named to the user: thread, line of the file, text as written."""

from __future__ import annotations

from collections.abc import Iterable

from ptxmm.analysis.result import Instruction
from ptxmm.program.graph import graph_of, natural_loops
from ptxmm.program.test import Test
from ptxmm.ptx.ops import Op, WarpExchange


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
    text = f"a loop goes on after {unroll} backward branches{named}; --unroll takes a higher bound"
    wanted = {*loops}
    for number, thread in enumerate(test.threads):
        found = () if thread.placement.warp is None else natural_loops(graph_of(thread.body))
        for back, _, inside in found:
            if (not wanted or (number, back) in wanted) and any(_exchanges(thread.body[pc]) for pc in inside):
                return (
                    f"{text}, which need not be enough: lanes tell each other in its rounds whether they go on, and "
                    "one may try again as often as it likes; launch one lane of each warp (block = 1) to leave that out"
                )
    return text


def _exchanges(op: Op) -> bool:
    return isinstance(op, WarpExchange) and op.op.partition(".")[0] in ("vote", "match", "redux", "shfl")
