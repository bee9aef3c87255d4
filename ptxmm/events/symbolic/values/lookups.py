"""Functions of values that are given by their bits and have no circuit, such as those of floating-point numbers: worked
out for the operands that an assignment has, when it has another result."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from ptxmm.events.symbolic.values.domain import Bits, Domain, chosen, of_bits
from ptxmm.relations.formula import TRUE, Formula, Formulas


class Lookup(Struct, frozen=True, eq=False):
    """``function`` gives ``result`` for ``operands``."""

    function: Callable[..., int]
    operands: tuple[Domain, ...]
    result: Bits

    def lemma(self, formulas: Formulas, value: Callable[[Formula], bool]) -> Formula:
        """What any assignment has to meet and this one, by the ``value`` of formulas, does not; ``TRUE`` if it does, or
        if an operand is not defined."""
        given = [chosen(operand, value) for operand in self.operands]
        known = [number for number in given if number is not None]
        if len(known) < len(given):
            return TRUE
        result = self.function(*known)
        if result == chosen(self.result, value):
            return TRUE
        assert not result >> len(self.result.bits), "the result is wider than its bits"
        these = formulas.all(operand[number] for operand, number in zip(self.operands, known, strict=True))
        return formulas.either(-these, self.result[result])


def looked_up(
    formulas: Formulas, lookups: list[Lookup], function: Callable[..., int], operands: Sequence[Domain], width: int
) -> Domain:
    """What ``function`` gives for values of ``operands``, in ``width`` bits; it is added to ``lookups``."""
    result = Bits(formulas, [formulas.variable() for _ in range(width)])
    lookups.append(Lookup(function, tuple(operands), result))
    return of_bits(formulas, result.bits)
