"""What registers hold while a thread runs: expressions over the values of its reads, which may still be open.

Equal expressions are one object, so syntactic equality is identity. ``reads`` of an expression are the reads that
occur in it after the rewrites of decision A21; they make the dependencies. Where these are of values (dep=value),
``Expressions.settled`` first takes out what makes no difference (see ``essence``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from ptxmm.events.explicit.values.arithmetic import COMPARISONS, compute, convert, result_bits
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


class Expressions:
    """The expressions of one run of a thread. ``simplify``: apply the rewrites that break dependencies (not dep=syn).
    ``essential``: leave out what makes no difference (dep=value)."""

    __slots__ = ("_constants", "_nodes", "_settled", "essential", "simplify")

    def __init__(self, simplify: bool = True, essential: bool = False) -> None:
        self.simplify = simplify
        self.essential = essential
        self._settled: dict[int, tuple[Node, Node]] = {}
        self._constants: dict[int, Node] = {}
        self._nodes: dict[tuple[object, ...], Node] = {}

    def constant(self, value: int) -> Node:
        """The constant ``value`` (unsigned)."""
        node = self._constants.get(value)
        if node is None:
            node = self._constants[value] = Node("constant", None, (), 0, value)
            node.constant = True
        return node

    def leaf(self, number: int, value: int | None, bits: int) -> Node:
        """What the read with ``number`` returns, of ``bits`` bits; ``value`` None leaves it open."""
        node = Node("leaf", None, (), 1 << number, value)
        node.number, node.bits = number, bits
        return node

    def absent(self, bits: int) -> Node:
        """What an instruction that was not executed would have given: nothing is known of it, nor looks at it."""
        node = Node("absent", None, (), 0, 0)
        node.bits = bits
        return node

    def settled(self, node: Node) -> Node:
        """``node``, of which only those reads are left that the dependencies are to have.

        Raises ``Undecidable``.
        """
        if not self.essential or node.constant or node.op in ("leaf", "joined"):
            return node
        known = self._settled.get(id(node))
        if known is None:
            from ptxmm.events.explicit.values.essence import reduced

            known = self._settled[id(node)] = node, reduced(self, node)
        return known[1]

    def again(self, node: Node, args: Sequence[Node]) -> Node:
        """The operation of ``node`` on other operands."""
        if all(a is b for a, b in zip(node.args, args, strict=True)):
            return node
        if node.op == "select":
            return self.select(*args)
        if node.op == "fields":
            return self.fields([(a, *field) for a, field in zip(args, node.fields, strict=True)])
        assert node.type is not None
        if node.op == "cvt":
            assert node.modes is not None
            return self.convert(args[0], node.type, *node.modes)
        return self.operation(node.op, node.type, *args)

    def fields(self, parts: Sequence[tuple[Node, int, int, int]]) -> Node:
        """Bits of expressions put together: (expression, its lowest bit, how many bits, lowest bit in the result)."""
        if all(node.constant for node, _, _, _ in parts):
            return self.constant(_joined_fields([p[1:] for p in parts], [p[0].value or 0 for p in parts]))
        key = ("fields", *((id(node), *field) for node, *field in parts))
        result = self._nodes.get(key)
        if result is None:
            reads = 0
            for node, _, _, _ in parts:
                reads |= node.reads
            result = self._nodes[key] = Node("fields", None, tuple(p[0] for p in parts), reads, None)
            result.fields = tuple(p[1:] for p in parts)
            result.value = apply(result, [p[0].value for p in parts])
        return result

    def joined(self, node: Node, reads: int, bits: int) -> Node:
        """The value of ``node``, which control flow made depend on ``reads`` too; equal only to itself."""
        node = self.settled(node)
        joined = Node("joined", None, (node,), node.reads | reads, node.value)
        joined.bits = bits
        return joined

    def operation(self, op: str, type_: Type, *args: Node) -> Node:
        """``op`` (see ``arithmetic.compute``) in ``type_``, after the rewrites of A21."""
        if self.essential and type_.kind in ("f", "bf"):
            args = tuple(map(self.settled, args))
        if all(a.constant for a in args):
            return self.constant(compute(op, type_, *(a.value or 0 for a in args)))
        if self.simplify:
            simple = self._rewrite(op, type_, args)
            if simple is not None:
                return self.constant(simple)
        key = (op, type_, *map(id, args))
        node = self._nodes.get(key)
        if node is None:
            reads = 0
            for a in args:
                reads |= a.reads
            node = self._nodes[key] = Node(op, type_, args, reads, None)
            node.bits = result_bits(op, type_)
            node.value = apply(node, [a.value for a in args])
        return node

    def select(self, predicate: Node, a: Node, b: Node) -> Node:
        """``a`` if ``predicate`` else ``b``."""
        if predicate.constant and (self.simplify or not (a.reads | b.reads)):
            return a if predicate.value else b
        if a is b and self.simplify:
            return a
        key = ("select", id(predicate), id(a), id(b))
        node = self._nodes.get(key)
        if node is None:
            args = (predicate, a, b)
            node = self._nodes[key] = Node("select", None, args, predicate.reads | a.reads | b.reads, None)
            node.value = apply(node, [x.value for x in args])
        return node

    def convert(
        self, node: Node, to: Type, frm: Type, saturate: bool = False, rounding: str | None = None, flush: bool = False
    ) -> Node:
        """``cvt`` of ``node`` (see ``arithmetic.convert``)."""
        if self.essential and (to.kind in ("f", "bf") or frm.kind in ("f", "bf")):
            node = self.settled(node)
        modes = (frm, saturate, rounding, flush)
        if node.constant:
            return self.constant(convert(node.value or 0, to, *modes))
        key = ("cvt", to, *modes, id(node))
        result = self._nodes.get(key)
        if result is None:
            result = self._nodes[key] = Node("cvt", to, (node,), node.reads, None)
            result.modes, result.bits = modes, to.bits
            result.value = apply(result, [node.value])
        return result

    def _rewrite(self, op: str, type_: Type, args: tuple[Node, ...]) -> int | None:
        """The constant that A21 makes of the operation, or None."""
        if len(args) != 2 or type_.kind in ("f", "bf"):
            return None  # a floating-point number may differ from itself
        a, b = args
        ones = (1 << type_.bits) - 1
        if a is b:
            if op in ("xor", "sub"):
                return 0
            if op in COMPARISONS:
                return int(op in ("eq", "le", "ge"))
        constants = [x.value & ones for x in args if x.constant and x.value is not None]
        if 0 in constants and op in ("and", "mul.lo", "mul.hi", "mul.wide"):
            return 0
        if ones in constants and op == "or":
            return ones
        shifted_out = op == "shl" or (op == "shr" and not type_.signed)
        if shifted_out and b.constant and b.value is not None and b.value & 0xFFFFFFFF >= type_.bits:
            return 0
        return None


def _joined_fields(fields: Sequence[tuple[int, int, int]], values: Sequence[int]) -> int:
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
        return _joined_fields(node.fields, known)
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
