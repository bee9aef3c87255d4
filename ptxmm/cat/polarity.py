"""In which direction each check of a model depends on each base relation, and which checks bound a witness below.

A check is *violated* more easily the larger its relation is (``acyclic``, ``irreflexive``, ``empty``; the reverse for
the negated forms). A base name is monotone in a check if more pairs can only turn it from satisfied to violated.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum
from functools import lru_cache

from ptxmm.cat.ir import Axiom, Graph, Model, Node


class Polarity(Enum):
    """How the violation of a check depends on a base set or relation."""

    ABSENT = "absent"
    MONOTONE = "monotone"
    ANTITONE = "antitone"
    BOTH = "both"


_Occurrences = tuple[frozenset[str], frozenset[str]]


@lru_cache(maxsize=64)
def _occurrences(model: Model) -> tuple[_Occurrences, ...]:
    """For each node the base names in which it is (monotone or mixed), (antitone or mixed)."""
    result: list[_Occurrences] = []
    nothing: frozenset[str] = frozenset()
    for node in model.nodes:
        if node.operator == "base":
            result.append((frozenset((node.name,)), nothing))
            continue
        up = down = nothing
        for number, operand in enumerate(node.operands):
            if operand is None:
                continue
            grows, shrinks = result[operand.index]
            if number == 1 and node.operator in ("difference", "set_difference"):
                grows, shrinks = shrinks, grows
            up |= grows
            down |= shrinks
        result.append((up, down))
    return tuple(result)


def polarity(model: Model, axiom: Axiom, name: str) -> Polarity:
    """How the violation of ``axiom`` depends on the base name ``name``."""
    up, down = _occurrences(model)[axiom.body.index]
    if axiom.negated:
        up, down = down, up
    if name in up:
        return Polarity.BOTH if name in down else Polarity.MONOTONE
    return Polarity.ANTITONE if name in down else Polarity.ABSENT


def antitone(model: Model, axiom: Axiom, names: Collection[str]) -> bool:
    """Whether more pairs in the base relations ``names`` can only turn ``axiom`` from true to false."""
    return all(polarity(model, axiom, name) in (Polarity.ABSENT, Polarity.MONOTONE) for name in names)


def acyclic_orders(model: Model) -> list[Axiom]:
    """The checks that say of a base relation that it has no cycle."""
    checks = (a for a in model.axioms if a.kind == "acyclic" and not (a.negated or a.flag))
    return [axiom for axiom in checks if axiom.body.operator == "base"]


def lower_bounds(model: Model, witness: str, *, dependent: bool = False) -> list[tuple[Axiom, Node, bool]]:
    """The checks that say ``X`` is contained in ``witness``, or in ``witness | witness^-1``.

    Recognised: ``empty X \\ w`` and ``empty X \\ (w | w^-1)``, where w is the base relation ``witness`` or its
    transitive closure and X does not depend on it (or, where ``dependent``, only has more pairs the more it has: then
    its value for the empty relation is a bound). Gives the check, the node of X (``X \\ id`` if the text has
    ``| id`` on the right) and whether the bound is the symmetric one.
    """
    result = []
    for axiom in model.axioms:
        node = axiom.body
        if axiom.kind != "empty" or axiom.negated or axiom.flag or node.operator != "difference":
            continue
        bounded, bound = node.operands
        if bounded is None or bound is None:
            continue
        if witness in (_occurrences(model)[bounded.index][1] if dependent else bounded.depends):
            continue
        symmetric = _bound(bound, witness)
        if symmetric is not None:
            result.append((axiom, bounded, symmetric))
    return result


def _bound(node: Node, witness: str) -> bool | None:
    """True for ``w | w^-1``, False for ``w``, None for anything else."""
    found = {_direction(part, witness) for part in Graph.flatten(node, "union")}
    if None in found or "forward" not in found:
        return None
    return "backward" in found


def _direction(node: Node, witness: str) -> str | None:
    """``forward`` for w and w+, ``backward`` for their inverses, in whichever order the two are written."""
    backward = False
    while node.operator in ("plus", "inverse") and node.operands[0] is not None:
        backward ^= node.operator == "inverse"
        node = node.operands[0]
    if not node.is_base(witness):
        return None
    return "backward" if backward else "forward"
