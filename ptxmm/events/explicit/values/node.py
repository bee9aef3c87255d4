"""One expression over the values of the reads of a thread, and its value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from ptxmm.events.explicit.values.arithmetic import compute, convert
from ptxmm.ptx.ops import Type


class Undecidable(Exception):
    """Whether a value makes a difference to an expression takes too much work to tell."""


class Node:
    """An expression. ``op``: ``constant``, ``leaf`` (``number`` counts the reads of the thread), ``select`` (of
    predicate, a, b), ``cvt`` (``modes``: from, saturate, rounding, flush), ``joined`` (one operand, with more reads),
    ``fields`` (bits of its operands put together; ``fields`` gives for each its lowest bit there, how many, and its
    lowest bit in the result) or an operation.

    ``absent`` is what an instruction would have given that was not executed. ``bits``: the width of a ``leaf``,
    ``joined`` or ``absent`` expression and of the result of a floating-point operation.

    ``reads``: a bit for each read (by number) that occurs in it. ``value``: its value where it is known without the
    values of open reads, else None. ``constant``: no read occurs in it and no join went into it.
    """

    __slots__ = ("args", "bits", "constant", "fields", "modes", "number", "op", "reads", "type", "value")

    def __init__(self, op: str, type_: Type | None, args: tuple[Node, ...], reads: int, value: int | None) -> None:
        self.op = op
        self.type = type_
        self.args = args
        self.reads = reads
        self.value = value
        self.constant = False
        self.number = -1
        self.bits = 64
        self.modes: tuple[Type, bool, str | None, bool] | None = None
        self.fields: tuple[tuple[int, int, int], ...] = ()


def joined_fields(fields: Sequence[tuple[int, int, int]], values: Sequence[int]) -> int:
    """The bits of ``values`` put together: for each its lowest bit, how many, and their place in the result."""
    result = 0
    for (first, bits, position), value in zip(fields, values, strict=True):
        result |= (value >> first & ((1 << bits) - 1)) << position
    return result


def apply(node: Node, values: Sequence[int | None]) -> int | None:
    """The value of ``node`` where its operands have ``values``, or None if one that matters is open."""
    if node.op == "select":
        return None if values[0] is None else values[1] if values[0] else values[2]
    if None in values:
        return None
    known = cast("Sequence[int]", values)
    if node.op == "joined":
        return known[0]
    if node.op == "fields":
        return joined_fields(node.fields, known)
    assert node.type is not None
    if node.op == "cvt":
        assert node.modes is not None
        return convert(known[0], node.type, *node.modes)
    return compute(node.op, node.type, *known)


def evaluate(node: Node, leaves: Sequence[int | None]) -> int | None:
    """The value of ``node`` where the read with number i returned ``leaves[i]``; None if one it needs is open."""
    if node.value is not None:
        return node.value
    if node.op == "leaf":
        return leaves[node.number]
    values: list[int | None] = []
    for a in node.args:
        if a.value is None and a.op != "leaf":
            break
        values.append(leaves[a.number] if a.value is None else a.value)
    else:
        return apply(node, values)
    done: dict[int, int | None] = {}
    stack = [node]
    while stack:  # no recursion: a long straight-line thread makes deep expressions
        top = stack[-1]
        if id(top) in done:
            stack.pop()
            continue
        waiting = False
        values = []
        for a in top.args:
            if a.value is not None:
                values.append(a.value)
            elif a.op == "leaf":
                values.append(leaves[a.number])
            elif id(a) in done:
                values.append(done[id(a)])
            else:
                stack.append(a)
                waiting = True
        if not waiting:
            done[id(top)] = apply(top, values)
            stack.pop()
    return done[id(node)]


def leaves_of(node: Node) -> list[int]:
    """The numbers of the reads whose values ``node`` needs, ascending."""
    found: set[int] = set()
    seen: set[int] = set()
    stack = [node]
    while stack:
        top = stack.pop()
        if top.value is not None or id(top) in seen:
            continue
        seen.add(id(top))
        if top.op == "leaf":
            found.add(top.number)
        stack.extend(top.args)
    return sorted(found)
