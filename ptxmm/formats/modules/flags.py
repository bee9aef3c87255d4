"""Flags of loops: registers that only ever get constants, and by which a loop goes on.

``while (!done) { if (try_lock()) { ...; done = true; } }`` goes round without having done anything, or leaves; but
where control joins behind the ``if``, only the register tells which of the two it was, and a compiler leaves it so
where a vote stands between. Here the instructions of a kernel are written out once for each of the values that its
flags may have there, so that control tells: what is left is a spin loop with the work behind it. Every path stays what
it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from ptxmm.formats.modules.flow import live_registers
from ptxmm.formats.modules.lower import Code
from ptxmm.program.graph import Graph, graph_of, makers, natural_loops, reach
from ptxmm.ptx import ops
from ptxmm.ptx.isa import names_read, names_written

_MOST = 4
"""The instructions become so many times as many at most."""

_Values = tuple[int | None, ...]
_State = tuple[int, _Values]


def alone(code: Code) -> Code:
    """``code`` of a warp of one lane: what it votes with itself is what it says (9.7.14.9), and it alone is active."""
    made_by = makers(code.body)
    own = {
        name
        for name, pcs in made_by.items()
        if all(isinstance(op := code.body[pc], ops.WarpExchange) and op.op == "activemask" for pc in pcs)
    }
    return replace(code, body=tuple(_voted(op, own) for op in code.body))


def _voted(op: ops.Op, own: set[str]) -> ops.Op:
    if not isinstance(op, ops.WarpExchange) or (dst := op.dst) is None:
        return op
    word = ops.Type("b", 32)
    if op.op == "activemask" and not op.operands:
        return ops.Alu("mov", word, dst, (ops.Imm(1),), op.source, op.guard)
    if op.op != "vote.ballot" or len(op.operands) != 2:
        return op
    said, mask = op.operands
    named = mask.name in own if isinstance(mask, ops.Reg) else isinstance(mask, ops.Imm) and bool(mask.value & 1)
    if not named or op.negated:
        return op
    if isinstance(said, ops.Imm):
        return ops.Alu("mov", word, dst, (ops.Imm(int(said.value != 0)),), op.source, op.guard)
    if not isinstance(said, ops.Reg):
        return op
    return ops.Select(word, dst, ops.Imm(1), ops.Imm(0), said, op.source, op.guard)


def told_apart(code: Code) -> Code:
    """``code`` with a copy of its instructions for each of the values that the flags of its loops may have there."""
    graph = graph_of(code.body)
    flags = sorted(_flags(code.body, graph))
    if not flags:
        return code
    live = live_registers(code.body, ())
    start: _State = 0, (None,) * len(flags)
    after: dict[_State, list[_State]] = {}
    waiting = [start]
    while waiting:
        state = waiting.pop()
        if state in after:
            continue
        pc, values = state
        left = _left(code.body[pc], flags, values) if pc < graph.end else values
        after[state] = [
            (follower, tuple(v if name in live[follower] else None for name, v in zip(flags, left, strict=True)))
            for follower in (graph.after[pc] if pc < graph.end else ())
        ]
        waiting += after[state]
        if len(after) > _MOST * len(code.body):
            return code
    order = sorted((state for state in after if state[0] < graph.end), key=_key)
    starts = {state: 2 * number for number, state in enumerate(order)}
    body: list[ops.Op] = []
    refused = {}
    for state in order:
        op = code.body[state[0]]
        goes = {pc: starts.get((pc, values), 2 * len(order)) for pc, values in after[state]}
        if state[0] in code.refused:
            refused[len(body)] = code.refused[state[0]]
        body.append(replace(op, target=goes[op.target]) if isinstance(op, ops.Branch) else op)
        # What follows by itself: where control never does, it goes on to the end.
        body.append(ops.Branch(goes.get(state[0] + 1, 2 * len(order)), None, op.source))
    return replace(code, body=tuple(body), refused=refused)


def _key(state: _State) -> tuple[int, tuple[int, ...]]:
    return state[0], tuple(-1 if value is None else value for value in state[1])


def _left(op: ops.Op, flags: Sequence[str], values: _Values) -> _Values:
    """What the flags hold after ``op``."""
    if not isinstance(op, ops.Alu) or op.dst.name not in flags or not isinstance(source := op.sources[0], ops.Imm):
        return values
    number = source.value
    return tuple(
        (number if op.guard is None or value == number else None) if name == op.dst.name else value
        for name, value in zip(flags, values, strict=True)
    )


def _flags(body: Sequence[ops.Op], graph: Graph) -> Iterator[str]:
    """The flags of loops that do more than look."""
    made_by = makers(body)
    constant = {
        name
        for name, pcs in made_by.items()
        if len(pcs) > 1
        and all(
            isinstance(op := body[pc], ops.Alu) and op.op == "mov" and isinstance(op.sources[0], ops.Imm) for pc in pcs
        )
    }
    if not constant:
        return
    given = [[maker for name in names_read(op) for maker in made_by.get(name, ())] for op in body]
    for _, _, loop in natural_loops(graph):
        if not any(isinstance(body[pc], ops.Store | ops.Atomic) for pc in loop):
            continue
        guards = [op.guard.register for pc in loop if isinstance(op := body[pc], ops.Branch) and op.guard]
        deciding = reach(given, [pc for name in guards for pc in made_by.get(name, ())])
        for pc in deciding & loop:
            for name in constant.intersection(names_written(body[pc])):
                constant.discard(name)
                yield name
