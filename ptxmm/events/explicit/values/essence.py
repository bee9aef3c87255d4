"""Which of the values in an expression make a difference to it (reading dep=value; PTX ISA 8.10.4).

A source of an expression is what a read returns, what control flow has made of a register, or what comes of a
floating-point operation, which counts as different for different operands. A source is essential if the expression
differs for two values of it, of its full width, for some values of the other sources. A difference is looked for among
a few values first; where none is found, decision diagrams tell.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Sequence

from ptxmm.events.explicit.values.node import Node, Undecidable, apply

_TRIALS = 24
_MOST_PICKED = 24
_FLIPS = 60
_SETTINGS = 4
_FEW_NODES = 20_000
_MOST_KNOWN = 1 << 14


def opaque(node: Node) -> bool:
    """Whether ``node`` is a source: no operation on integers."""
    if not node.args:
        return not node.constant
    if node.op in ("select", "fields"):
        return False
    if node.op == "joined":
        return True
    assert node.type is not None
    if node.op == "cvt":
        assert node.modes is not None
        return "f" in node.type.kind or "f" in node.modes[0].kind
    first, *modes = node.op.split(".")
    if first == "slct":
        return modes[-1] == "f32"
    return node.type.kind in ("f", "bf") and first not in ("mov", "exch")


def inessential(node: Node) -> tuple[list[Node], list[Node]]:
    """The operations that ``node`` is made of, operands first, and those of its sources that are not essential.

    Raises ``Undecidable``.
    """
    if node.constant or not node.reads or opaque(node):
        return [], []
    order, sources = _parts(node)
    form = _form(order, sources)
    found: set[int] | None = _known.get(form)
    if found is None:
        found = _summed(order, sources)
    if found is None:
        found = _different(order, sources)
        if len(found) < len(sources):
            found = _decided(order, sources, found)
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[form] = found
    return order, [source for i, source in enumerate(sources) if i not in found]


_known: dict[Hashable, set[int]] = {}
"""Which sources are essential, by the form of an expression: every run of a thread makes the same ones again."""


def _form(order: Sequence[Node], sources: Sequence[Node]) -> Hashable:
    """What two expressions have in common that compute the same of sources of the same widths."""
    place = {id(part): i for i, part in enumerate((*sources, *order))}
    parts = []
    for part in order:
        operands = ((place[id(a)], None) if id(a) in place else (None, a.value) for a in part.args)
        parts.append((part.op, part.type, part.modes, part.fields, *operands))
    return tuple(source.bits for source in sources), tuple(parts)


def _summed(order: Sequence[Node], sources: Sequence[Node]) -> set[int] | None:
    """The indices of the sources that are essential in a sum of multiples of sources, modulo a power of 2: those whose
    factors are not 0. None where the expression is something else."""
    type_ = order[-1].type
    if type_ is None or type_.kind in ("f", "bf") or any(source.bits != type_.bits for source in sources):
        return None
    factors = {id(source): {i: 1} for i, source in enumerate(sources)}
    for part in order:
        if part.op not in ("add", "sub", "neg", "mov") or part.type is None or part.type.bits != type_.bits:
            return None
        signs = (-1,) if part.op == "neg" else (1, -1 if part.op == "sub" else 1)
        mine = factors[id(part)] = {}
        for sign, operand in zip(signs, part.args, strict=False):
            for i, factor in factors.get(id(operand), {}).items():
                mine[i] = mine.get(i, 0) + sign * factor
    return {i for i, factor in factors[id(order[-1])].items() if factor % (1 << type_.bits)}


def _decided(order: Sequence[Node], sources: Sequence[Node], found: set[int]) -> set[int]:
    """The indices of the sources that are essential, ``found`` among them.

    First for a few values of all others: then the diagrams are small, and what they show need not be shown for all.
    """
    from ptxmm.events.explicit.values import (
        circuits,  # few programs have values in them that make no difference
        diagrams,
    )

    chance = random.Random(len(order))
    for i in range(len(sources)):
        for _ in range(_SETTINGS if i not in found and len(sources) > 1 else 0):
            others = {j: chance.getrandbits(s.bits) for j, s in enumerate(sources) if j != i}
            try:
                found = found | circuits.essential(order, sources, others, _FEW_NODES)
            except diagrams.TooLarge:
                break
            if i in found:
                break
    if len(found) < len(sources):
        try:
            return circuits.essential(order, sources)
        except diagrams.TooLarge:
            raise Undecidable from None
    return found


def _parts(node: Node) -> tuple[list[Node], list[Node]]:
    """The operations that ``node`` is made of, operands first, and its sources."""
    order: list[Node] = []
    sources: list[Node] = []
    seen: set[int] = set()
    stack = [(node, False)]
    while stack:
        top, done = stack.pop()
        if done:
            order.append(top)
        elif id(top) not in seen and not top.constant:
            seen.add(id(top))
            if opaque(top):
                sources.append(top)
            else:
                stack.append((top, True))
                stack += [(a, False) for a in top.args]
    return order, sources


def _picks(order: Sequence[Node], sources: Sequence[Node], chance: random.Random) -> list[list[int]]:
    """Values of each source to try: those near constants and the ends of its range, and others."""
    constants = {a.value or 0 for part in order for a in part.args if a.constant}
    constants |= {a - b for a in constants for b in constants} if len(constants) < 6 else set()
    corners = {c + k for c in constants for k in (-1, 0, 1)} | {0, 1, 2, -1, -2}
    picks = []
    for source in sources:
        ones = (1 << source.bits) - 1
        some = sorted({c & ones for c in corners} | {ones >> 1, (ones >> 1) + 1})
        chance.shuffle(some)
        picks.append([*some[:_MOST_PICKED], *(chance.getrandbits(source.bits) for _ in range(6))])
    return picks


def _different(order: Sequence[Node], sources: Sequence[Node]) -> set[int]:
    """The indices of sources for which two values are found that the last of ``order`` differs for."""
    chance = random.Random(len(order))
    picks = _picks(order, sources, chance)
    found: set[int] = set()
    for _ in range(_TRIALS):
        values = [chance.choice(options) for options in picks]
        result = _evaluate(order, sources, values)
        for i, options in enumerate(picks):
            if i in found:
                continue
            for other in options if len(sources) < 4 else chance.sample(options, 2):
                if _evaluate(order, sources, [*values[:i], other, *values[i + 1 :]]) != result:
                    found.add(i)
                    break
        if len(found) == len(sources):
            return found
    for i, source in enumerate(sources):
        for _ in range(_FLIPS if i not in found else 0):
            values = [chance.getrandbits(s.bits) for s in sources]
            flipped = [*values[:i], values[i] ^ 1 << chance.randrange(source.bits), *values[i + 1 :]]
            if _evaluate(order, sources, values) != _evaluate(order, sources, flipped):
                found.add(i)
                break
    return found


def _evaluate(order: Sequence[Node], sources: Sequence[Node], values: Sequence[int]) -> int | None:
    known: dict[int, int | None] = {id(s): v for s, v in zip(sources, values, strict=True)}
    for part in order:
        known[id(part)] = apply(part, [known.get(id(a), a.value) for a in part.args])
    return known[id(order[-1])]
