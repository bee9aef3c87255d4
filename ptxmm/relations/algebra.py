"""The relation algebra that the model language is evaluated in: one interface, two carriers.

A carrier has its own types for sets of events and for relations on events. ``concrete`` uses bitsets over the events
of one execution; ``symbolic`` maps each possible member to a formula over all executions at once.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

S = TypeVar("S")
R = TypeVar("R")


class Algebra(Protocol[S, R]):
    """Operations of herd's cat on sets ``S`` and relations ``R``."""

    def universe(self) -> S:
        """``_``: every (executed) event."""

    def empty_set(self) -> S: ...

    def empty_relation(self) -> R: ...

    def set_union(self, a: S, b: S) -> S: ...

    def set_intersection(self, a: S, b: S) -> S: ...

    def set_difference(self, a: S, b: S) -> S: ...

    def union(self, a: R, b: R) -> R: ...

    def intersection(self, a: R, b: R) -> R: ...

    def difference(self, a: R, b: R) -> R: ...

    def sequence(self, a: R, b: R) -> R:
        """``a ; b``."""

    def plus(self, a: R) -> R:
        """``a+``, the transitive closure."""

    def star(self, a: R) -> R:
        """``a*``: reflexive over the whole universe, and transitive."""

    def optional(self, a: R) -> R:
        """``a?`` = ``a | id``."""

    def inverse(self, a: R) -> R:
        """``a^-1``."""

    def identity(self, a: S) -> R:
        """``[a]``."""

    def product(self, a: S, b: S) -> R:
        """``a * b``."""

    def domain(self, a: R) -> S: ...

    def range(self, a: R) -> S: ...

    def restrict(self, left: S | None, a: R, right: S | None) -> R:
        """``[left]; a; [right]`` without building identities (None: no restriction)."""

    def same(self, a: R, b: R) -> bool:
        """Whether ``a`` and ``b`` are known to be equal (for fixpoints of ``let rec``)."""

    def fixpoint_bound(self) -> int:
        """The number of rounds after which any Kleene iteration from the empty relation has reached its fixpoint."""
