"""Reduced ordered binary decision diagrams, and arithmetic on vectors of them (Bryant 1986).

A diagram is a number; two diagrams of one ``Diagrams`` are the same function iff they are the same number. A vector has
its lowest bit first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

FALSE, TRUE = 0, 1
MOST_NODES = 60_000

Vector = list[int]


class TooLarge(Exception):
    """The functions have more nodes, or more variables, than ``Diagrams`` is made for."""


class Diagrams:
    """Diagrams over variables that are numbered from 0 in their order. Raises ``TooLarge`` at ``most`` nodes."""

    __slots__ = ("_cache", "_most", "_nodes", "_unique")

    def __init__(self, most: int = MOST_NODES) -> None:
        self._most = most
        last = 1 << 30
        self._nodes: list[tuple[int, int, int]] = [(last, 0, 0), (last, 1, 1)]
        self._unique: dict[tuple[int, int, int], int] = {}
        self._cache: dict[tuple[int, int, int], int] = {}

    def variable(self, index: int) -> int:
        """The variable with a number."""
        return self._node(index, FALSE, TRUE)

    def _node(self, index: int, low: int, high: int) -> int:
        if low == high:
            return low
        key = (index, low, high)
        found = self._unique.get(key)
        if found is None:
            if len(self._nodes) >= self._most:
                raise TooLarge
            found = self._unique[key] = len(self._nodes)
            self._nodes.append(key)
        return found

    def choose(self, condition: int, then: int, other: int) -> int:
        """``then`` where ``condition`` holds, else ``other``."""
        if condition == TRUE or then == other:
            return then
        if condition == FALSE:
            return other
        if then == TRUE and other == FALSE:
            return condition
        key = (condition, then, other)
        found = self._cache.get(key)
        if found is None:
            nodes = [self._nodes[f] for f in key]
            top = min(node[0] for node in nodes)
            lows, highs = (
                [node[side] if node[0] == top else f for f, node in zip(key, nodes, strict=True)] for side in (1, 2)
            )
            found = self._cache[key] = self._node(top, self.choose(*lows), self.choose(*highs))
        return found

    def support(self, roots: Sequence[int]) -> set[int]:
        """The variables that the functions depend on."""
        found: set[int] = set()
        seen = {FALSE, TRUE}
        work = list(roots)
        while work:
            root = work.pop()
            if root not in seen:
                seen.add(root)
                index, low, high = self._nodes[root]
                found.add(index)
                work += (low, high)
        return found

    # Boolean operations.

    def negate(self, a: int) -> int:
        """Not ``a``."""
        return self.choose(a, FALSE, TRUE)

    def both(self, a: int, b: int) -> int:
        """``a`` and ``b``."""
        return self.choose(a, b, FALSE)

    def either(self, a: int, b: int) -> int:
        """``a`` or ``b``."""
        return self.choose(a, TRUE, b)

    def differ(self, a: int, b: int) -> int:
        """``a`` xor ``b``."""
        return self.choose(a, self.negate(b), b)

    def some(self, bits: Sequence[int]) -> int:
        """Whether a bit of a vector is set."""
        found = FALSE
        for bit in reversed(bits):
            found = self.either(bit, found)
        return found

    # Vectors.

    def map(self, function: Callable[..., int], *vectors: Vector) -> Vector:
        """``function`` bit by bit."""
        return [function(*bits) for bits in zip(*vectors, strict=True)]

    def pick(self, condition: int, then: Vector, other: Vector) -> Vector:
        """``then`` where ``condition`` holds, else ``other``; the shorter one with zeros above."""
        width = max(len(then), len(other))
        return [self.choose(condition, a, b) for a, b in zip(cut(then, width), cut(other, width), strict=True)]

    def add(self, a: Vector, b: Vector, carry: int = FALSE) -> tuple[Vector, int]:
        """The sum of two vectors of one width, and the carry."""
        result = []
        for x, y in zip(a, b, strict=True):
            half = self.differ(x, y)
            result.append(self.differ(half, carry))
            carry = self.choose(half, carry, x)
        return result, carry

    def subtract(self, a: Vector, b: Vector) -> tuple[Vector, int]:
        """The difference of two vectors of one width, and whether a is not less than b, unsigned."""
        return self.add(a, [self.negate(bit) for bit in b], TRUE)

    def minus(self, a: Vector) -> Vector:
        """The negative of a vector."""
        return self.subtract([FALSE] * len(a), a)[0]

    def magnitude(self, a: Vector) -> Vector:
        """The absolute value of a signed vector."""
        return self.pick(a[-1], self.minus(a), a)

    def multiply(self, a: Vector, b: Vector) -> Vector:
        """The lower half of the product of two vectors of one width."""
        width = len(a)
        result = [FALSE] * width
        for i, bit in enumerate(b):
            if bit != FALSE:
                part = [FALSE] * i + [self.both(bit, x) for x in a[: width - i]]
                result = self.add(result, part)[0]
        return result

    def less(self, a: Vector, b: Vector, signed: bool) -> int:
        """Whether ``a`` is less than ``b``, of one width."""
        if signed:
            a, b = ([*v[:-1], self.negate(v[-1])] for v in (a, b))
        return self.negate(self.subtract(a, b)[1])

    def equal(self, a: Vector, b: Vector) -> int:
        """Whether two vectors of one width are the same."""
        return self.negate(self.some(self.map(self.differ, a, b)))

    def divide(self, a: Vector, b: Vector) -> tuple[Vector, Vector]:
        """Quotient and remainder of unsigned vectors of one width; by 0, all ones and ``a``."""
        width = len(a)
        divisor = [*b, FALSE]
        rest = [FALSE] * (width + 1)
        quotient = [FALSE] * width
        for i in reversed(range(width)):
            rest = [a[i], *rest[:-1]]
            difference, fits = self.subtract(rest, divisor)
            quotient[i] = fits
            rest = self.pick(fits, difference, rest)
        return quotient, rest[:width]

    def shift(self, a: Vector, amount: Vector, left: bool, fill: int = FALSE) -> Vector:
        """``a`` shifted; an amount of the width or more leaves nothing but ``fill``."""
        width = len(a)
        far = FALSE
        for k, bit in enumerate(amount):
            step = 1 << k
            if step >= width:
                far = self.either(far, bit)
            elif bit != FALSE:
                moved = [fill] * step + a[: width - step] if left else a[step:] + [fill] * step
                a = self.pick(bit, moved, a)
        return self.pick(far, [fill] * width, a)


def number(value: int, width: int) -> Vector:
    """The vector of a constant."""
    return [value >> i & 1 for i in range(width)]


def cut(vector: Vector, width: int, fill: int = FALSE) -> Vector:
    """The lower ``width`` bits; bits that there are not are ``fill``."""
    return vector[:width] + [fill] * (width - len(vector))
