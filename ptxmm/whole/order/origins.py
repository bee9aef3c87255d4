"""Values that depend on what a read found, as functions of that.

Of what an atomic operation returns one execution tells one result of several. Registers that are computed from it have
an *origin* beside their value: what they would be if the read had found something else (``Derived.given``). A branch on
such a register is followed as it is in this execution, and noted as a ``Decision``: others must decide alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from msgspec import Struct

Key: TypeAlias = tuple[int, int]
"""A read: the thread, and the number of the read among those of the thread. Or an election: ``ELECTED``, and the number
of the leader."""
ELECTED = -1
_FIRST_BIT = 1 << 31

Words: TypeAlias = tuple[int | None, ...]
"""Numbers, None where they are not known."""


class Result(Struct, frozen=True, eq=False):
    """What a read found: in this execution, the ``word``."""

    key: Key
    word: int

    def given(self, found: Mapping[Key, int]) -> int | None:
        """The value if reads had found something else."""
        return found[self.key]

    def reads(self) -> Iterator[Key]:
        """The reads that it depends on."""
        yield self.key

    def leaves(self) -> Iterator[Result]:
        """What it is computed from at last."""
        yield self


class Derived(Struct, frozen=True, eq=False):
    """What is computed from ``parts``: in this execution, the ``word``."""

    function: Callable[[Words], int | None]
    parts: Inputs
    word: int

    def given(self, found: Mapping[Key, int]) -> int | None:
        """The value if reads had found something else."""
        return self.function(given(self.parts, found))

    def reads(self) -> Iterator[Key]:
        """The reads that it depends on."""
        for part in self.parts:
            if isinstance(part, Result | Derived):
                yield from part.reads()

    def leaves(self) -> Iterator[Result]:
        """What it is computed from at last."""
        for part in self.parts:
            if isinstance(part, Result | Derived):
                yield from part.leaves()


Origin: TypeAlias = Result | Derived
Inputs: TypeAlias = tuple[Origin | int | None, ...]
"""What some registers are: None where that is not known."""


def concrete(parts: Inputs) -> Words:
    """The values in this execution."""
    return tuple(part.word if isinstance(part, Result | Derived) else part for part in parts)


def given(parts: Inputs, found: Mapping[Key, int]) -> Words:
    """The values if reads had found something else."""
    return tuple(part.given(found) if isinstance(part, Result | Derived) else part for part in parts)


def deciding(origin: Origin, thread: int) -> frozenset[Key]:
    """The reads of a thread on which it depends whether ``origin`` is 0: another value does make it so, or not."""
    words = {leaf.key: leaf.word for leaf in origin.leaves()}
    found = set()
    for key, word in words.items():
        others = (origin.given({**words, key: other}) for other in (0, word ^ 1, word ^ 2, word ^ _FIRST_BIT))
        if key[0] == thread and any(other is not None and (other != 0) != (origin.word != 0) for other in others):
            found.add(key)
    return frozenset(found)


class Decision(Struct, frozen=True):
    """Whether a thread executes the instruction ``at``, as it was decided by a register with an origin."""

    origin: Origin
    holds: bool
    at: int
    thread: int
