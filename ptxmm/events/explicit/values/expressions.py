"""What registers hold while a thread runs: expressions over the values of its reads, which may still be open.

Equal expressions are one object, so syntactic equality is identity. ``reads`` of an expression are the reads that
occur in it after the rewrites of decision A21; they make the dependencies. Where these are of values (dep=value),
``Expressions.settled`` first takes out what makes no difference (see ``essence``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxmm.events.explicit.values.arithmetic import COMPARISONS, compute, convert, result_bits
from ptxmm.events.explicit.values.node import Node, apply, joined_fields
from ptxmm.ptx.ops import Type


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
            known = self._settled[id(node)] = node, self._reduced(node)
        return known[1]

    def _reduced(self, node: Node) -> Node:
        """``node`` with a constant in the place of every source that makes no difference to it."""
        from ptxmm.events.explicit.values.essence import inessential  # only dep=value asks

        order, sources = inessential(node)
        if not sources:
            return node
        known = dict.fromkeys(map(id, sources), self.constant(0))
        for part in order:
            known[id(part)] = self.again(part, [known.get(id(a), a) for a in part.args])
        return known[id(node)]

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
            return self.constant(joined_fields([p[1:] for p in parts], [p[0].value or 0 for p in parts]))
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
