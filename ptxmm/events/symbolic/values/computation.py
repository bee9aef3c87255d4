"""How an expression is made of others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from ptxmm.ptx.ops import Type


class Computation(Struct, frozen=True):
    """How an expression is made: ``operands`` by number; ``function`` computes it from their values.

    ``name`` and ``type`` say what it is: an operation of ``values.arithmetic``, or ``cut`` (``arguments``: lowest bit,
    width), ``join`` (the shift of the second operand), ``extend`` (from a type to a width), ``cvt`` (two types, and
    whether it saturates), ``inc`` and ``dec``.
    """

    name: str
    type: Type
    operands: tuple[int, ...]
    function: Callable[..., int]
    arguments: tuple[Any, ...] = ()


def dependents(leaf: int, order: Sequence[int], made: Mapping[int, Computation]) -> list[int]:
    """The expressions of ``order`` that ``leaf`` is in."""
    found = {leaf: None}
    for n in order:
        if not found.keys().isdisjoint(made[n].operands):
            found[n] = None
    return list(found)[1:]
