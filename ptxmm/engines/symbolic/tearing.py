"""Which objects no read ever finds torn, by the axioms of the model (PTX ISA 8.10.3 (1); decision A11).

To divide accesses into bytes is costly where many values differ. It is needless at an object where each write is
related to every read and write that it overlaps as the model's axioms on single-copy atomicity and on coherence order
require: a read that took bytes from two writes would take one from a write and another from one that is before it.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from itertools import combinations

from msgspec import Struct

from ptxmm.cat.evaluate import Evaluator
from ptxmm.cat.ir import Graph, Model, Node
from ptxmm.cat.polarity import lower_bounds
from ptxmm.errors import PtxmmError
from ptxmm.events.symbolic.event import Event
from ptxmm.events.symbolic.program import Program
from ptxmm.events.symbolic.relations.base import Base
from ptxmm.relations.formula import FALSE, TRUE
from ptxmm.relations.symbolic import EventSet, Relation

STATIC = frozenset(
    (
        "po", "M", "R", "W", "F", "FSC", "FAR", "STRONG", "GEN", "ASY", "STA", "TMP", "SUR", "TEX", "CON", "AMO",
        "inscope", "scta", "vloc", "loc", "vovl", "ovl", "int", "ext",
    )
)  # fmt: skip
"""Base names whose value does not depend on what reads return."""


class Rule(Struct, frozen=True):
    """``single``: no read takes a byte from a write it is so related to and another from one before that write.
    ``ordered``: writes that are related in one of these ways are ordered by coherence."""

    single: tuple[Node, ...]
    ordered: tuple[Node, ...]


@lru_cache(maxsize=64)
def rule(model: Model) -> Rule | None:
    """What the axioms of ``model`` say, or None if they do not say it.

    They are ``empty rf^-1 & fr & S`` and ``empty O \\ (co | co^-1)`` with S and O that do not depend on choices.
    """
    single: tuple[Node, ...] | None = None
    for axiom in model.axioms:
        if axiom.kind != "empty" or axiom.negated or axiom.flag:
            continue
        factors = Graph.flatten(axiom.body, "intersection")
        others = tuple(f for f in factors if not f.is_base("fr") and not _is_inverse(f, "rf"))
        if len(others) == len(factors) - 2 and others and all(f.depends <= STATIC for f in others):
            single = others
    bounds = lower_bounds(model, "co")
    ordered = tuple(node for _, node, symmetric in bounds if symmetric and node.depends <= STATIC)
    return None if single is None or not ordered else Rule(single, ordered)


def never_torn(
    program: Program, base: Base, evaluator: Evaluator[EventSet, Relation], found: Rule, keys: Collection[str]
) -> frozenset[str]:
    """Those of the objects ``keys`` at which no execution that the model allows has a torn read."""
    single = [_relation(evaluator, node) for node in found.single]
    ordered = [[_relation(evaluator, node)] for node in found.ordered]
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
            any(holds(r, a, b) or holds(r, b, a) for r in ordered) for a, b in combinations(writes, 2)
        ):
            result.add(key)
    return frozenset(result)


def _relation(evaluator: Evaluator[EventSet, Relation], node: Node) -> Relation:
    value = evaluator.value(node)
    if not isinstance(value, Relation):
        raise PtxmmError("an axiom on relations is about a set", kind="internal")
    return value


def _is_inverse(node: Node, name: str) -> bool:
    inner = node.operands[0] if node.operator == "inverse" else None
    return inner is not None and inner.is_base(name)
