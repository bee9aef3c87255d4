"""Relations of the reference, as sets of pairs."""

from __future__ import annotations

from collections.abc import Iterable

Pairs = set[tuple[int, int]]


def seq(*relations: Iterable[tuple[int, int]]) -> Pairs:
    """``r ; s ; ...``"""
    result = set(relations[0])
    for relation in relations[1:]:
        after: dict[int, list[int]] = {}
        for b, c in relation:
            after.setdefault(b, []).append(c)
        result = {(a, c) for a, b in result for c in after.get(b, ())}
    return result


def inv(relation: Iterable[tuple[int, int]]) -> Pairs:
    """``r^-1``"""
    return {(b, a) for a, b in relation}


def closure(relation: Iterable[tuple[int, int]]) -> Pairs:
    """``r+``"""
    after: dict[int, set[int]] = {}
    for a, b in relation:
        after.setdefault(a, set()).add(b)
    result = set()
    for a in after:
        seen: set[int] = set()
        todo = list(after[a])
        while todo:
            b = todo.pop()
            if b not in seen:
                seen.add(b)
                todo.extend(after.get(b, ()))
        result |= {(a, b) for b in seen}
    return result


def irreflexive(relation: Iterable[tuple[int, int]]) -> bool:
    return all(a != b for a, b in relation)


def acyclic(relation: Iterable[tuple[int, int]]) -> bool:
    after: dict[int, set[int]] = {}
    degree: dict[int, int] = {}
    for a, b in set(relation):
        after.setdefault(a, set()).add(b)
        degree[b] = degree.get(b, 0) + 1
    ready = [a for a in after if a not in degree]
    while ready:
        for b in after.get(ready.pop(), ()):
            degree[b] -= 1
            if not degree[b]:
                ready.append(b)
    return not any(degree.values())
