"""Which of the leaves of an expression make a difference to it (reading dep=value; PTX ISA 8.10.4).

A leaf is what an event returns, what control flow has made of a register, or what comes of an operation on
floating-point numbers. A few values are tried first: most leaves make a difference. Z3 tells of the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product

from ptxmm.events.symbolic.values.computation import Computation, dependents

_TRIED = 400


def essential(
    root: int, made: Mapping[int, Computation], constants: Mapping[int, int], widths: Mapping[int, int]
) -> frozenset[int]:
    """The leaves of the expression ``root`` for two values of which it differs, whatever the others are.

    ``made``: the expressions that are no leaves; ``widths`` of the leaves. Raises ``PtxmmError`` (kind ``unsupported``)
    where that is too hard to tell.
    """
    order = _order(root, made)
    if not order:
        return frozenset((root,)) - constants.keys()
    leaves = sorted({o for n in order for o in made[n].operands if o not in made and o not in constants})
    found = _seen(order, leaves, made, constants, widths)
    if len(found) < len(leaves):
        from ptxmm.events.symbolic.values.bitvectors import proved  # Z3 takes time to load

        given = {leaf: widths.get(leaf, 64) for leaf in leaves}
        found |= proved(order, made, constants, given, [leaf for leaf in leaves if leaf not in found])
    return frozenset(found)


def _order(root: int, made: Mapping[int, Computation]) -> list[int]:
    """The expressions that are made of others, operands first."""
    order: list[int] = []
    seen: set[int] = set()
    stack = [root]
    while stack:
        top = stack[-1]
        if top in seen or top not in made:
            stack.pop()
            continue
        waiting = [o for o in made[top].operands if o in made and o not in seen]
        if waiting:
            stack += waiting
        else:
            seen.add(stack.pop())
            order.append(top)
    return order


def _seen(
    order: Sequence[int],
    leaves: Sequence[int],
    made: Mapping[int, Computation],
    constants: Mapping[int, int],
    widths: Mapping[int, int],
) -> set[int]:
    """The leaves that a few values show to make a difference."""
    fixed = {o: constants[o] for n in order for o in made[n].operands if o in constants}
    around = [c + k for c in sorted(set(fixed.values()))[:6] for k in (0, 1, -1)]
    users = {leaf: dependents(leaf, order, made) for leaf in leaves}

    def values(leaf: int) -> list[int]:
        ones = (1 << widths.get(leaf, 64)) - 1
        corners = (0, 1, -1, ones >> 1, 0x5A3C_96F1_D2B4_87E6, 2, *around, 3, 0xFF, -256)
        return list(dict.fromkeys(v & ones for v in corners))

    def evaluated(known: dict[int, int]) -> dict[int, int]:
        """What all expressions are for these values of the leaves, which are added to."""
        for n in order:
            known[n] = made[n].function(*[known[o] for o in made[n].operands])
        return known

    options = {leaf: values(leaf) for leaf in leaves}

    def settings(leaf: int) -> Iterator[dict[int, int]]:
        """Values of the others, which take them in step, and each its own value at another time."""
        others = [other for other in leaves if other != leaf]
        for i, k in islice(product(range(8), (0, 1, 3)), _TRIED if others else 1):
            yield {o: options[o][(i + k * j) % len(options[o])] for j, o in enumerate(others)}

    def changes(leaf: int, value: int, known: Mapping[int, int]) -> bool:
        """Whether another ``value`` of ``leaf`` makes a difference; only what it makes a difference to is evaluated."""
        other = {leaf: value}
        for n in users[leaf]:
            operands = made[n].operands
            if any(o in other for o in operands):
                result = made[n].function(*[other[o] if o in other else known[o] for o in operands])
                if result != known[n]:
                    other[n] = result
        return order[-1] in other

    def differs(leaf: int, setting: dict[int, int]) -> bool:
        first, *rest = options[leaf]
        known = evaluated({**fixed, **setting, leaf: first})
        return any(changes(leaf, value, known) for value in rest)

    return {leaf for leaf in leaves if any(differs(leaf, setting) for setting in settings(leaf))}
