"""Values that are worth keeping, but not at any price."""

from __future__ import annotations

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Kept(dict[K, V]):
    """Keeps values until their cost is more than ``most``; then it starts anew."""

    __slots__ = ("_left", "_most")

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = self._left = most

    def keep(self, key: K, value: V, cost: int = 1) -> V:
        """Keep ``value``, and return it."""
        self._left -= cost
        if self._left < 0:
            self.clear()
            self._left = self._most - cost
        self[key] = value
        return value
