"""Waits that give up: where a loop that waits for memory traps after so many rounds, or so much time.

Whether that happens is up to no memory model, and a kernel in which it does has failed. What is claimed of such a
kernel is meant of the executions in which no wait gives up; the launch says so, ``assume = ["no-timeout"]``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.formats.modules.lower import Code
from ptxmm.formats.modules.special import CLOCKS
from ptxmm.program.graph import Graph, graph_of, makers, natural_loops, reach
from ptxmm.ptx.isa import names_read
from ptxmm.ptx.ops import COMPUTING, Branch, Exit, Nothing, Op

_TRAPS = re.compile(r"(?:@\S+\s+)?(?:trap|call)\b")
_CLOCKS = frozenset(f"sreg {name}" for name in CLOCKS)


class Timeout(Struct, frozen=True):
    """The conditional branch or exit at ``pc`` by which a wait gives up, if its guard holds (``taken``) or if not."""

    pc: int
    taken: bool


def timeouts(code: Code) -> list[Timeout]:
    """The places of ``code`` at which a wait gives up.

    That is a conditional branch in a loop of which one side comes to nothing but ``trap``, and is decided by a clock,
    or a register that counts, and by nothing that comes from memory; the loop has a branch that what is read decides.
    """
    body = code.body
    if not any(_ends(op) for op in body):
        return []
    graph = graph_of(body)
    made_by = makers(body)
    loops = [loop for back, header, loop in natural_loops(graph) if header <= back]
    found = []
    for pc, taken in _ways_to_trap(body, graph):
        guard = body[pc].guard
        assert guard is not None
        decided = _behind(guard.register, body, made_by)
        if decided.memory or not (decided.counts or decided.registers & _CLOCKS):
            continue
        around = [loop for loop in loops if pc in loop]
        others = (body[at].guard for loop in around for at in loop if at != pc)
        if any(_behind(other.register, body, made_by).memory for other in others if other is not None):
            found.append(Timeout(pc, taken))
    return found


def without_timeouts(code: Code, gone: Collection[Timeout]) -> Code:
    """``code`` where no wait gives up at ``gone``."""
    body = list(code.body)
    for item in gone:
        op = body[item.pc]
        if isinstance(op, Branch) and not item.taken:
            body[item.pc] = Branch(op.target, None, op.source)
        else:
            body[item.pc] = Nothing(None, None, op.source)
    return replace(code, body=tuple(body))


def _ends(op: Op) -> bool:
    """Whether an instruction is the end of a thread that traps, or fails an assertion."""
    return isinstance(op, Exit) and _TRAPS.match(op.source.text) is not None


def _ways_to_trap(body: Sequence[Op], graph: Graph) -> Iterator[tuple[int, bool]]:
    """The conditional branches and exits of which one side only traps, and whether that is the one of the guard."""
    for pc, op in enumerate(body):
        if not isinstance(op, Branch | Exit) or op.guard is None:
            continue
        if isinstance(op, Exit):
            if _ends(op):
                yield pc, True
            continue
        sides = [taken for taken, start in ((True, op.target), (False, pc + 1)) if _only_traps(start, pc, body, graph)]
        if len(sides) == 1:
            yield pc, sides[0]


def _only_traps(start: int, branch: int, body: Sequence[Op], graph: Graph) -> bool:
    reached = reach(graph.after, [start])
    ending = [pc for pc in graph.before[graph.end] if pc in reached]
    return start < graph.end and branch not in reached and bool(ending) and all(_ends(body[pc]) for pc in ending)


class _Behind(Struct, frozen=True):
    """What decides a register: the ``registers`` it is computed from; whether some come from ``memory`` or other
    threads; whether some depend on themselves: they count."""

    registers: frozenset[str]
    memory: bool
    counts: bool


def _behind(register: str, body: Sequence[Op], made_by: Mapping[str, Sequence[int]]) -> _Behind:
    after: dict[str, set[str]] = {}
    waiting, memory = [register], False
    while waiting:
        name = waiting.pop()
        if name in after:
            continue
        made = [body[pc] for pc in made_by.get(name, ())]
        memory = memory or not all(isinstance(op, COMPUTING) for op in made)
        after[name] = {used for op in made if isinstance(op, COMPUTING) for used in names_read(op)}
        waiting += after[name]
    counts = any(name in _reached(after, name) for name in after)
    return _Behind(frozenset(after), memory, counts)


def _reached(after: Mapping[str, Collection[str]], start: str) -> set[str]:
    found: set[str] = set()
    waiting = list(after[start])
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += after[name]
    return found
