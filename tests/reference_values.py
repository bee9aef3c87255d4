"""Which values a read may return at all: an over-approximation for the reference, so that it gives up early."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from math import prod

from tests.reference_events import Cell, Event
from tests.reference_expressions import Expr, Leaf, compute, evaluate, mask, result_bits

Values = frozenset[int] | None
MOST = 256


def product(sets: Sequence[Values]) -> list[tuple[int, ...]] | None:
    known = [s for s in sets if s is not None]
    if len(known) < len(sets) or prod(map(len, known)) > MOST:
        return None
    return list(itertools.product(*known))


def values(expr: Expr, leaf: dict[Leaf, Values]) -> Values:
    """The values that ``expr`` may have when reads have values in ``leaf``; None for any."""
    match expr[0]:
        case "const":
            return frozenset({expr[1]})
        case "read":
            return leaf[expr[1]]
        case "token":
            return None
        case "bytes":
            columns = product([values(e, leaf) for e, _, _ in expr[1]])
            if columns is None:
                return None
            parts = [(("const", 0), first, count) for _, first, count in expr[1]]
            return frozenset(
                evaluate(("bytes", tuple((("const", v), f, n) for v, (_, f, n) in zip(c, parts, strict=True))), {})
                for c in columns
            )
        case "call":
            called = product([values(a, leaf) for a in expr[2:]])
            return None if called is None else frozenset(expr[1](*c) for c in called)
        case "joined":
            return values(expr[1], leaf)
        case "extend" | "saturate":
            inner = values(expr[3], leaf)
            key = (0, 0)
            return None if inner is None else frozenset(evaluate((*expr[:3], ("read", key)), {key: v}) for v in inner)
        case "select":
            arms = [values(a, leaf) if a[0] != "absent" else frozenset() for a in expr[3:]]
            one, other = arms
            return None if one is None or other is None else one | other
    args = product([values(a, leaf) for a in expr[2:]])
    if args is None:
        return None
    bits = result_bits(expr[0], expr[1])
    return frozenset(mask(compute(expr[0], expr[1], list(a)), bits) for a in args)


def torn(inner: Values, size: int) -> Values:
    """All mixtures of bytes of values in ``inner``."""
    if inner is None:
        return None
    columns = [frozenset(v >> (8 * i) & 255 for v in inner) for i in range(size)]
    mixed = product(columns)
    return None if mixed is None else frozenset(sum(b << (8 * i) for i, b in enumerate(m)) for m in mixed)


def piece(inner: Values, first: int, size: int) -> Values:
    """Some bytes of the values in ``inner``."""
    return None if inner is None else frozenset(mask(v >> 8 * first, 8 * size) for v in inner)


def possible_values(
    events: dict[Leaf, Event], initial: dict[Cell, int], tear: bool
) -> tuple[dict[Leaf, Values], dict[Cell, Values]]:
    """For each read and each cell the values that it may have; cells are what no access divides.

    A value that is not out of thin air is made by a chain of at most as many writes as there are.
    """
    cells: dict[Cell, Values] = {c: frozenset({v}) for c, v in initial.items()}
    inside = {
        e.cell: sorted(c for c in cells if c[0] == e.cell[0] and e.cell[1] <= c[1] < e.cell[1] + e.cell[2])
        for e in events.values()
        if e.cell
    }

    def readable(cell: Cell) -> Values:
        """What a read of ``cell`` may return."""
        parts = [torn(cells[c], c[2]) if tear else cells[c] for c in inside[cell]]
        mixed = product(parts)
        if mixed is None:
            return None
        return frozenset(sum(v << 8 * (c[1] - cell[1]) for v, c in zip(m, inside[cell], strict=True)) for m in mixed)

    leaf: dict[Leaf, Values] = {}
    rounds = sum(e.kind == "W" for e in events.values()) + 1
    for _ in range(rounds):
        leaf = {k: readable(e.cell) for k, e in events.items() if e.kind == "R" and e.cell}
        new = dict(cells)
        for e in events.values():
            if e.kind == "W" and e.cell and e.value is not None:
                whole = values(e.value, leaf)
                for c in inside[e.cell]:
                    old, more = new[c], piece(whole, c[1] - e.cell[1], c[2])
                    both = None if old is None or more is None else old | more
                    new[c] = both if both is not None and len(both) <= MOST else None
        if new == cells:
            break
        cells = new
    return leaf, cells
