"""The resolved form of a model: a graph of operations in which equal sub-expressions are one node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from msgspec import Struct, field

from ptxmm.errors import Span


class Node(Struct, frozen=True, eq=False):
    """One set or relation.

    ``operator``: ``base`` (``name``), ``universe``, ``empty_set``, ``empty_relation``, ``set_union``,
    ``set_intersection``, ``set_difference``, ``domain``, ``range`` (these are sets), ``union``, ``intersection``,
    ``difference``, ``sequence``, ``plus``, ``star``, ``optional``, ``inverse``, ``identity``, ``product``, ``restrict``
    (left set, relation, right set; None: unrestricted), ``variable`` (of a recursive definition) or ``fixpoint``
    (variables, then their bodies; ``name`` is the number of the variable). Operands have smaller indices.
    ``depends`` are the base names it is built from, ``reach`` the indices of the nodes it needs as a bitset (itself
    and all below, except what is ``open``). ``open``: contains a variable whose fixpoint is not taken in it.
    """

    index: int
    operator: str
    operands: tuple[Node | None, ...]
    is_set: bool
    name: str
    depends: frozenset[str]
    reach: int
    open: bool

    def is_base(self, name: str) -> bool:
        """Whether it is the base set or relation ``name``."""
        return self.operator == "base" and self.name == name

    def __repr__(self) -> str:
        return f"Node({self.index}, {self.operator}{f' {self.name}' if self.name else ''})"


def open_below(nodes: Iterable[Node]) -> set[int]:
    """The indices of the open nodes that ``nodes`` are made of, themselves included."""
    found: set[int] = set()
    stack = [node for node in nodes if node.open]
    while stack:
        node = stack.pop()
        if node.index not in found:
            found.add(node.index)
            stack.extend(o for o in node.operands if o is not None and o.open)
    return found


class Axiom(Struct, frozen=True, eq=False):
    """One check: ``kind`` (``acyclic``, ``irreflexive``, ``empty``) of ``body``, ``negated`` for its ``~`` form.

    ``flag``: reported when it holds, constrains nothing. ``file`` and ``span`` are the place of the check.
    """

    name: str
    kind: str
    negated: bool
    flag: bool
    body: Node
    file: str
    span: Span


class Coverage(Struct, frozen=True):
    """What a model speaks about: PTX ISA version (None: no limit), scopes, proxies, virtual aliases, the kinds of
    instructions beyond accesses, fences and barriers of CTAs and warps (None: all); a summary."""

    isa: str | None
    scopes: tuple[str, ...]
    proxies: tuple[str, ...]
    aliases: bool
    summary: str
    instructions: tuple[str, ...] | None = None


class Written(Struct, frozen=True):
    """A statement of a model as it is written, on one line, without comments: ``line`` of ``file``."""

    file: str
    line: int
    text: str


class Model(Struct, frozen=True, eq=False):
    """A loaded model.

    ``definitions`` gives the last definition of each name (a base name that is not redefined is not in it).
    ``readings`` gives every reading key its value; ``reading_keys`` are those that the text itself asks about.
    ``defaults``: the value of each where none is chosen.
    ``left_out``: the checks and disjuncts that its text has and the model has not. ``warnings``: what a text of the
    user's own defines in vain, each a message with its place. ``written``: the statements that define its names and
    make its named checks.
    """

    name: str
    title: str
    path: str
    definitions: Mapping[str, Node]
    axioms: tuple[Axiom, ...]
    nodes: tuple[Node, ...]
    readings: Mapping[str, str]
    reading_keys: frozenset[str]
    coverage: Coverage
    defaults: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    written: Mapping[str, Written] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Model({self.name!r})"  # its graph has far more paths than nodes

    @lru_cache(maxsize=64)  # noqa: B019 (so many models may stay)
    def names(self) -> frozenset[str]:
        """The base names that the axioms depend on, flags left out."""
        return frozenset().union(*(axiom.body.depends for axiom in self.axioms if not axiom.flag))


_SETS = frozenset(("universe", "empty_set", "set_union", "set_intersection", "set_difference", "domain", "range"))


class Graph(Struct):
    """Makes nodes, each distinct operation once, with the rewrites that make evaluation cheap."""

    nodes: list[Node] = field(default_factory=list)
    _known: dict[tuple[str, tuple[int, ...], str], Node] = field(default_factory=dict)
    _names: dict[frozenset[str], frozenset[str]] = field(default_factory=dict)
    """What nodes depend on, each set of names once: many nodes depend on the same."""

    def base(self, name: str, is_set: bool) -> Node:
        """A base set or relation."""
        return self._node("base", (), name, is_set, frozenset((name,)))

    def constant(self, operator: str) -> Node:
        """``universe``, ``empty_set`` or ``empty_relation``."""
        return self._node(operator, ())

    def union(self, a: Node, b: Node) -> Node:
        """``a | b``."""
        if a is b or b.operator in ("empty_set", "empty_relation"):
            return a
        if a.operator in ("empty_set", "empty_relation"):
            return b
        return self._node("set_union" if a.is_set else "union", (a, b))

    def intersection(self, a: Node, b: Node) -> Node:
        """``a & b``; with a product it is a restriction."""
        if a is b:
            return a
        if a.is_set:
            if a.operator == "universe":
                return b
            return a if b.operator == "universe" else self._node("set_intersection", (a, b))
        if b.operator == "product":
            return self.restrict(b.operands[0], a, b.operands[1])
        if a.operator == "product":
            return self.restrict(a.operands[0], b, a.operands[1])
        return self._node("intersection", (a, b))

    def difference(self, a: Node, b: Node) -> Node:
        """``a \\ b``; ``id`` among the operands of a union ``b`` is taken away first, on its own."""
        if a.is_set:
            return self._node("set_difference", (a, b))
        others: Node | None = None
        for part in self.flatten(b, "union") if b.operator == "union" else ():
            if part.operator == "identity" and part.operands[0] is self.constant("universe"):
                a = self.difference(a, part)
            else:
                others = part if others is None else self.union(others, part)
        return self._node("difference", (a, b if others is None else others))

    @staticmethod
    def flatten(node: Node, operator: str) -> list[Node]:
        """The operands of nested applications of one associative operator, in order."""
        result: list[Node] = []
        stack = [node]
        while stack:
            top = stack.pop()
            if top.operator == operator:
                stack.extend(operand for operand in reversed(top.operands) if operand is not None)
            else:
                result.append(top)
        return result

    def complement(self, a: Node) -> Node:
        """``~a``."""
        universe = self.constant("universe")
        return self.difference(universe if a.is_set else self.product(universe, universe), a)

    def product(self, a: Node, b: Node) -> Node:
        """``a * b``."""
        return self._node("product", (a, b))

    def unary(self, operator: str, a: Node) -> Node:
        """``plus``, ``star``, ``optional``, ``inverse``, ``identity``, ``domain`` or ``range`` of ``a``."""
        if operator == "inverse" and a.operator == "inverse" and a.operands[0] is not None:
            return a.operands[0]
        if operator == "plus" and a.operator == "plus":
            return a
        return self._node(operator, (a,))

    def sequence(self, parts: list[Node]) -> Node:
        """``p1; p2; ...``: identities on sets become restrictions of their neighbours."""
        first: Node | None = None
        steps: list[tuple[Node, Node | None]] = []
        for part in parts:
            if part.operator != "identity":
                steps.append((part, None))
            elif steps:
                relation, right = steps[-1]
                steps[-1] = relation, self._both(right, part.operands[0])
            else:
                first = self._both(first, part.operands[0])
        if not steps:
            return self.unary("identity", first or self.constant("universe"))
        result = self.restrict(first, *steps[0])
        for relation, right in steps[1:]:
            result = self._node("sequence", (result, self.restrict(None, relation, right)))
        return result

    def restrict(self, left: Node | None, a: Node, right: Node | None) -> Node:
        """``[left]; a; [right]``."""
        if left is not None and left.operator == "universe":
            left = None
        if right is not None and right.operator == "universe":
            right = None
        if left is None and right is None:
            return a
        if a.operator == "restrict":
            inner_left, inner, inner_right = a.operands
            assert inner is not None
            a, left, right = inner, self._both(left, inner_left), self._both(inner_right, right)
        return self._node("restrict", (left, a, right))

    def _both(self, a: Node | None, b: Node | None) -> Node | None:
        return b if a is None else a if b is None else self.intersection(a, b)

    def variable(self, number: int) -> Node:
        """A fresh variable of a recursive definition."""
        return self._node("variable", (), f"{number}.{len(self.nodes)}", open_=True)

    def fixpoint(self, variables: list[Node], bodies: list[Node]) -> list[Node]:
        """The least solution of ``variables = bodies``, one node for each."""
        operands = (*variables, *bodies)
        depends = frozenset().union(*(body.depends for body in bodies))
        reach = 0
        for body in bodies:
            reach |= body.reach
        return [
            self._node("fixpoint", operands, str(number), depends=depends, reach=reach)
            for number in range(len(variables))
        ]

    def _node(
        self,
        operator: str,
        operands: tuple[Node | None, ...],
        name: str = "",
        is_set: bool | None = None,
        depends: frozenset[str] | None = None,
        *,
        reach: int | None = None,
        open_: bool = False,
    ) -> Node:
        key = (operator, tuple(-1 if operand is None else operand.index for operand in operands), name)
        known = self._known.get(key)
        if known is not None:
            return known
        index = len(self.nodes)
        closed_here = operator == "fixpoint"
        total = 0 if reach is None else reach
        for operand in operands:
            if operand is None:
                continue
            if depends is None:
                depends = operand.depends
            elif not closed_here and not operand.depends <= depends:
                depends = depends | operand.depends
            if not closed_here:
                total |= operand.reach
                open_ = open_ or operand.open
        if not open_:
            total |= 1 << index
        depends = depends or frozenset()
        node = Node(
            index,
            operator,
            operands,
            operator in _SETS if is_set is None else is_set,
            name,
            self._names.setdefault(depends, depends),
            total,
            open_,
        )
        self.nodes.append(node)
        self._known[key] = node
        return node
