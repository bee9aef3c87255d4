"""The concrete carrier: sets and relations over the events 0 .. n-1 of one execution, as integers used as bitsets.

A set is an integer with bit i set for each member i. A relation is one integer too, an n*n bit matrix: bit a*n + b is
set for each pair (a, b). Boolean operations are then single machine-coded operations on integers, and one row is added
to many rows at once by a multiplication: a column of the matrix, spread n bits apart, times a row of n bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import and_, or_

_LARGE = 64
"""With more events than this it pays to take relations apart."""


class Concrete:
    """The algebra of sets (``int``) and relations (``int``) over ``n`` events; implements ``algebra.Algebra``."""

    __slots__ = ("_all", "_blocks", "_column", "_diagonal", "_inverses", "_row", "_shifts", "_spread", "n")

    def __init__(self, n: int) -> None:
        self.n = n
        self._row = (1 << n) - 1
        self._column = sum(1 << (i * n) for i in range(n))
        self._diagonal = sum(1 << (i * n + i) for i in range(n))
        self._all = (1 << (n * n)) - 1
        self._shifts = tuple((i, i * n) for i in range(n))
        self._blocks = tuple(16**k * n for k in range(4) if n and (not k or 16**k < n))
        self._spread: dict[int, int] = {0: 0}
        self._inverses: dict[int, int] = {0: 0}

    # Building and reading.

    def set_of(self, events: Iterable[int]) -> int:
        """The set of the given events."""
        result = 0
        for e in events:
            result |= 1 << e
        return result

    def relation(self, pairs: Iterable[tuple[int, int]]) -> int:
        """The relation of the given pairs."""
        rows = [0] * self.n
        for a, b in pairs:
            rows[a] |= 1 << b
        return self.from_rows(rows)

    def from_rows(self, rows: Sequence[int]) -> int:
        """The relation in which event i has the set ``rows[i]`` of successors."""
        shift = self.n
        while True:  # sixteen neighbours are joined, then sixteen of those, ...
            joined = []
            for first in range(0, len(rows), 16):
                block = 0
                for row in reversed(rows[first : first + 16]):
                    block = block << shift | row
                joined.append(block)
            if len(joined) < 2:
                return joined[0] if joined else 0
            rows, shift = joined, 16 * shift

    def rows(self, a: int) -> list[int]:
        """The set of successors of each event."""
        n, parts = self.n, [a]
        for size in reversed(self._blocks):  # large blocks of rows, then parts of those, ...
            mask = (1 << size) - 1
            parts = [part >> shift & mask for part in parts for shift in range(0, min(16 * size, n * n), size)]
        return parts[:n]

    def members(self, a: int) -> Iterator[int]:
        """The members of a set, ascending."""
        while a:
            low = a & -a
            yield low.bit_length() - 1
            a ^= low

    def pairs(self, a: int) -> Iterator[tuple[int, int]]:
        """The pairs of a relation, in lexicographic order."""
        n = self.n
        while a:
            low = a & -a
            yield divmod(low.bit_length() - 1, n)
            a ^= low

    def has(self, a: int, x: int, y: int) -> bool:
        """Whether the relation relates ``x`` to ``y``."""
        return bool(a >> (x * self.n + y) & 1)

    def successors(self, a: int, x: int) -> int:
        """The set of the events that the relation relates ``x`` to."""
        return a >> (x * self.n) & self._row

    # The algebra. Unions and intersections are those of integers.

    set_union = union = staticmethod(or_)
    set_intersection = intersection = staticmethod(and_)

    def universe(self) -> int:
        """Every event."""
        return self._row

    def empty_set(self) -> int:
        """The empty set."""
        return 0

    def empty_relation(self) -> int:
        """The empty relation."""
        return 0

    def set_difference(self, a: int, b: int) -> int:
        """``a \\ b`` of sets."""
        return a & ~b

    def difference(self, a: int, b: int) -> int:
        """``a \\ b``."""
        return a & ~b

    def sequence(self, a: int, b: int) -> int:
        """``a ; b``."""
        if not a or not b:
            return 0
        if self.n > _LARGE:
            following = self.rows(b)
            domain = self.set_of(i for i, row in enumerate(following) if row)
            return self.from_rows([self._union_of(following, row & domain) for row in self.rows(a)])
        result = 0
        row_mask, column = self._row, self._column
        for i, shift in self._shifts:
            row = b >> shift & row_mask
            if row:
                result |= (a >> i & column) * row
        return result

    def _union_of(self, rows: Sequence[int], chosen: int) -> int:
        result = 0
        for i in self.members(chosen):
            result |= rows[i]
        return result

    def plus(self, a: int) -> int:
        """``a+``: in topological order, or (Warshall) paths through event 0, then 0 and 1, ..."""
        rows = self.rows(a) if self.n > _LARGE else []
        order = self._sorted(rows) if rows else None
        if order is not None:
            for x in order:
                found = rest = rows[x]
                while rest:
                    y = rest.bit_length() - 1
                    found |= rows[y]
                    rest &= ~(rows[y] | 1 << y)
                rows[x] = found
            return self.from_rows(rows)
        row_mask, column = self._row, self._column
        for i, shift in self._shifts:
            row = a >> shift & row_mask
            if row:
                a |= (a >> i & column) * row
        return a

    def _sorted(self, rows: Sequence[int]) -> list[int] | None:
        """The events, each after all that it is related to; None if there is a cycle."""
        order: list[int] = []
        done = path = 0
        for start in range(self.n):
            stack = [] if done >> start & 1 else [start]
            while stack:
                x = stack[-1]
                path |= 1 << x
                if rows[x] & path:
                    return None
                rest = rows[x] & ~done
                if rest:
                    stack.append(rest.bit_length() - 1)
                else:
                    order.append(stack.pop())
                    path ^= 1 << x
                    done |= 1 << x
        return order

    def star(self, a: int) -> int:
        """``a*``."""
        return self.plus(a) | self._diagonal

    def optional(self, a: int) -> int:
        """``a?``."""
        return a | self._diagonal

    def inverse(self, a: int) -> int:
        """``a^-1``."""
        result = self._inverses.get(a)
        if result is None:
            if self.n > _LARGE and a.bit_count() < 4 * self.n:
                result = self.relation((y, x) for x, row in enumerate(self.rows(a)) for y in self.members(row))
            else:
                result = 0
                for i, shift in self._shifts:
                    row = a >> shift & self._row
                    if row:
                        result |= self._spread_of(row) << i
            if len(self._inverses) > 4096:
                self._inverses.clear()
            self._inverses[a] = result
        return result

    def identity(self, a: int) -> int:
        """``[a]``."""
        return self._spread_of(a) * self._row & self._diagonal

    def product(self, a: int, b: int) -> int:
        """``a * b``."""
        return self._spread_of(a) * b

    def domain(self, a: int) -> int:
        """The events that ``a`` relates to something."""
        result = 0
        for i, shift in self._shifts:
            if a >> shift & self._row:
                result |= 1 << i
        return result

    def range(self, a: int) -> int:
        """The events that ``a`` relates something to."""
        result = 0
        for _, shift in self._shifts:
            result |= a >> shift & self._row
        return result

    def restrict(self, left: int | None, a: int, right: int | None) -> int:
        """``[left]; a; [right]``."""
        if right is not None:
            a &= self._column * right
        if left is not None:
            a &= self._spread_of(left) * self._row
        return a

    def same(self, a: int, b: int) -> bool:
        """Whether two relations are equal."""
        return a == b

    def fixpoint_bound(self) -> int:
        """A growing sequence of relations has at most one step for each pair."""
        return self.n * self.n + 1

    # Predicates, and what shows that they fail.

    def irreflexive(self, a: int) -> bool:
        """Whether no event is related to itself."""
        return not a & self._diagonal

    def acyclic(self, a: int) -> bool:
        """Whether ``a+`` is irreflexive."""
        if self.n > _LARGE:
            return self._sorted(self.rows(a)) is not None
        return not self.plus(a) & self._diagonal

    def satisfies(self, kind: str, negated: bool, a: int) -> bool:
        """Whether a check (``empty``, ``acyclic`` or ``irreflexive``; ``negated``: its ``~`` form) holds of ``a``."""
        if kind == "empty":
            return (not a) is not negated
        return (self.acyclic(a) if kind == "acyclic" else self.irreflexive(a)) is not negated

    def _spread_of(self, a: int) -> int:
        """The set ``a`` as a column: bit i at i*n."""
        result = self._spread.get(a)
        if result is None:
            result = self.from_rows([a >> i & 1 for i in range(self.n)])
            if len(self._spread) > 4096:
                self._spread.clear()
            self._spread[a] = result
        return result
