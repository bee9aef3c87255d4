"""What was made of the tests that were looked at last: most are checked under several models and readings."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

from ptxmm.program.test import Test

V = TypeVar("V")


class Latest(Generic[V]):
    """Up to ``most`` values, each of one test and of what else it was made of; the oldest goes first.

    A test is known by what it is, not by what it holds: one that is read again is another.
    """

    __slots__ = ("_kept",)

    def __init__(self, most: int) -> None:
        self._kept: deque[tuple[Test, object, V]] = deque(maxlen=most)

    def get(self, test: Test, other: object) -> V | None:
        """The value of ``test`` and ``other``, None if it is not there."""
        return next((value for one, two, value in tuple(self._kept) if one is test and two == other), None)

    def keep(self, test: Test, other: object, value: V) -> V:
        """Keep ``value``, and return it."""
        self._kept.append((test, other, value))
        return value
