"""Which objects no read ever finds torn, by the axioms of the model (PTX ISA 8.10.3 (1); decision A11).

To divide accesses into bytes is costly where many values differ. It is needless at an object where each write is
related to every read and write that it overlaps as the model's axioms on single-copy atomicity and on coherence order
require: a read that took bytes from two writes would take one from a write and another from one that is before it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import combinations

from msgspec import Struct

from ptxmm.cat.evaluate import Evaluator
from ptxmm.cat.ir import Model, Node
from ptxmm.errors import PtxmmError
from ptxmm.events.symbolic.event import Event
from ptxmm.events.symbolic.program import Program
from ptxmm.events.symbolic.relations.base import Base
from ptxmm.relations.formula import FALSE, TRUE
from ptxmm.relations.symbolic import EventSet, Relation

_STATIC = frozenset(
    (
        "po", "M", "R", "W", "F", "FSC", "FAR", "STRONG", "GEN", "ASY", "STA", "TMP", "SUR", "TEX", "CON", "AMO",
        "inscope", "scta", "vloc", "loc", "vovl", "ovl", "int", "ext",
    )
)  # fmt: skip
"""Base names whose value does not depend on what reads return."""


class Rule(Struct, frozen=True):
    """``single``: no read takes a byte from a write it is so related to and another from one before that write.
    ``ordered``: writes that are so related are ordered by coherence."""

    single: tuple[Node, ...]
    ordered: Node


def rule(model: Model) -> Rule | None:
    """What the axioms of ``model`` say, or None if they do not say it.

    They are ``empty rf^-1 & fr & S`` and ``empty O \\ (co | co^-1)`` with S and O that do not depend on choices.
    """
    single: tuple[Node, ...] | None = None
    ordered: Node | None = None
    for axiom in model.axioms:
        body = axiom.body
        if axiom.kind != "empty" or axiom.negated or axiom.flag:
            continue
        factors = list(_factors(body))
        others = tuple(f for f in factors if not f.is_base("fr") and not _is_inverse(f, "rf"))
        if len(others) == len(factors) - 2 and others and all(f.depends <= _STATIC for f in others):
            single = others
        if body.operator == "difference":
            left, right = body.operands[:2]
            if left is not None and right is not None and left.depends <= _STATIC and _either_way(right):
                ordered = left
    return None if single is None or ordered is None else Rule(single, ordered)


def never_torn(
    program: Program, base: Base, evaluator: Evaluator[EventSet, Relation], found: Rule, keys: Collection[str]
) -> frozenset[str]:
    """Those of the objects ``keys`` at which no execution that the model allows has a torn read."""
    single = [_relation(evaluator, node) for node in found.single]
    ordered = [_relation(evaluator, found.ordered)]
    overlap = base.relation("ovl")
    get, either = program.algebra.get, program.formulas.either

    def holds(relations: list[Relation], a: Event, b: Event) -> bool:
        both = get(overlap, a.number, b.number)
        return both == FALSE or all(either(-both, get(r, a.number, b.number)) == TRUE for r in relations)

    result = set()
    for key in keys:
        accesses = [e for e in program.events if e.kind in ("R", "W") and any(p.physical == key for p in e.places)]
        reads = [e for e in accesses if e.kind == "R"]
        writes = [e for e in accesses if e.kind == "W"]
        if all(r.id == w.id or holds(single, r, w) for r in reads for w in writes) and all(
            holds(ordered, a, b) or holds(ordered, b, a) for a, b in combinations(writes, 2)
        ):
            result.add(key)
    return frozenset(result)


def _relation(evaluator: Evaluator[EventSet, Relation], node: Node) -> Relation:
    value = evaluator.value(node)
    if not isinstance(value, Relation):
        raise PtxmmError("an axiom on relations is about a set", kind="internal")
    return value


def _factors(node: Node) -> Iterator[Node]:
    """What ``node`` is the intersection of."""
    if node.operator != "intersection":
        yield node
        return
    for operand in node.operands:
        if operand is not None:
            yield from _factors(operand)


def _is_inverse(node: Node, name: str) -> bool:
    inner = node.operands[0] if node.operator == "inverse" else None
    return inner is not None and inner.is_base(name)


def _either_way(node: Node) -> bool:
    """Whether ``node`` is coherence order in either direction."""
    operands = [o for o in node.operands if o is not None] if node.operator == "union" else []
    return len(operands) == 2 and any(
        a.is_base("co") and _is_inverse(b, "co") for a, b in (operands, reversed(operands))
    )
