"""When a check of the model language holds of a symbolic relation: emptiness, irreflexivity, acyclicity."""

from __future__ import annotations

from ptxmm.relations.closures import bits, closure
from ptxmm.relations.formula import FALSE, TRUE, Formula
from ptxmm.relations.symbolic import EventSet, Relation, SymbolicAlgebra


def non_empty(algebra: SymbolicAlgebra, a: Relation | EventSet) -> Formula:
    """When ``a`` has a member."""
    if isinstance(a, EventSet):
        return TRUE if a.must else algebra.formulas.any(a.may.values())
    if any(a.must):
        return TRUE
    return algebra.formulas.any([f for row in a.may.values() for f in row.values()])


def reflexive(algebra: SymbolicAlgebra, a: Relation) -> Formula:
    """When ``a`` relates some event to itself."""
    if any(row >> x & 1 for x, row in enumerate(a.must)):
        return TRUE
    return algebra.formulas.any([row[x] for x, row in a.may.items() if x in row])


def cyclic(algebra: SymbolicAlgebra, a: Relation) -> Formula:
    """When ``a`` has a cycle."""
    return reflexive(algebra, algebra.plus(within_cycles(algebra, a)))


def within_cycles(algebra: SymbolicAlgebra, a: Relation) -> Relation:
    """The pairs of ``a`` that lie on some cycle of what may hold."""
    reach = _reach(a)
    back = [0] * algebra.size
    for x, row in enumerate(reach):
        for y in bits(row):
            if reach[y] >> x & 1:
                back[x] |= 1 << y
    must = [row & back[x] for x, row in enumerate(a.must)]
    may: dict[int, dict[int, Formula]] = {}
    for x, entries in a.may.items():
        kept = {y: f for y, f in entries.items() if back[x] >> y & 1}
        if kept:
            may[x] = kept
    return Relation(must, may)


def _reach(a: Relation) -> list[int]:
    """For each event those that a path of what may hold leads to."""
    rows = list(a.must)
    for x, entries in a.may.items():
        for y in entries:
            rows[x] |= 1 << y
    return closure(rows)


FEW = 20
"""Of up to so many events a total order is written out."""


def acyclicity(
    algebra: SymbolicAlgebra, a: Relation, left: list[dict[int, dict[int, Formula]]] | None = None
) -> list[Formula]:
    """Formulas that all hold, for some value of the fresh variables in them, iff ``a`` has no cycle.

    Each strongly connected part of what may hold gets a total order on its events, one variable for each pair,
    that contains the part. With ``left`` a part of more than ``FEW`` events goes there, and the formulas exclude its
    cycles of two events only.
    """
    core = within_cycles(algebra, a)
    reach = _reach(core)
    result: list[Formula] = []
    seen = 0
    for x in range(algebra.size):
        if seen >> x & 1 or not reach[x] >> x & 1:
            continue
        part = reach[x] & _column(reach, x)
        seen |= part
        if left is not None and part.bit_count() > FEW:
            result += _short(algebra, core, part, left)
        else:
            result += _ordered(algebra, core, list(bits(part)))
    return result


def _short(
    algebra: SymbolicAlgebra, a: Relation, part: int, left: list[dict[int, dict[int, Formula]]]
) -> list[Formula]:
    """No cycle of one or two events; all pairs of ``part`` are ``left``."""
    pairs: dict[int, dict[int, Formula]] = {}
    for x in bits(part):
        row = {y: f for y, f in a.may.get(x, {}).items() if part >> y & 1}
        pairs[x] = dict.fromkeys(bits(a.must[x] & part), TRUE) | row
    left.append(pairs)
    both = algebra.formulas.both
    return [
        -both(f, pairs[y].get(x, FALSE)) for x, row in pairs.items() for y, f in row.items() if x <= y and x in pairs[y]
    ]


def _ordered(algebra: SymbolicAlgebra, a: Relation, events: list[int]) -> list[Formula]:
    formulas = algebra.formulas
    result: list[Formula] = []
    if len(events) == 1:
        return [-algebra.get(a, events[0], events[0])]
    if len(events) == 2:
        x, y = events
        return [
            -formulas.both(algebra.get(a, x, y), algebra.get(a, y, x)),
            -algebra.get(a, x, x),
            -algebra.get(a, y, y),
        ]
    before: dict[tuple[int, int], Formula] = {}
    for i, x in enumerate(events):
        result.append(-algebra.get(a, x, x))
        for y in events[i + 1 :]:
            forth, back = algebra.get(a, x, y), algebra.get(a, y, x)
            if TRUE in (forth, back):
                result.append(-formulas.both(forth, back))
                order = forth if forth == TRUE else FALSE
            else:
                order = formulas.helper()
                result += [formulas.either(-forth, order), formulas.either(-back, -order)]
            before[x, y], before[y, x] = order, -order
    for i, x in enumerate(events):
        for j in range(i + 1, len(events)):
            for k in range(j + 1, len(events)):
                y, z = events[j], events[k]
                result.append(formulas.any([-before[x, y], -before[y, z], -before[z, x]]))
                result.append(formulas.any([-before[x, z], -before[z, y], -before[y, x]]))
    return result


def _column(rows: list[int], y: int) -> int:
    return sum(1 << x for x, row in enumerate(rows) if row >> y & 1)
