"""Operations on values that are given by their bits: as circuits, which Z3 makes of operations on bit vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import z3

from ptxmm.errors import PtxmmError
from ptxmm.events.symbolic.values.bitvectors import WIDE, vector
from ptxmm.events.symbolic.values.computation import Computation
from ptxmm.events.symbolic.values.domain import Domain, bits_of, differ, of_bits, width_of
from ptxmm.events.symbolic.values.expressions import TWO_STEPS
from ptxmm.ptx.ops import Type
from ptxmm.relations.formula import FALSE, TRUE, Formula, Formulas


def circuit(
    formulas: Formulas, definitions: list[Formula], how: Computation, operands: Sequence[Domain]
) -> Domain | None:
    """What ``how`` gives for values of ``operands``, None for an operation that is not one on bit vectors;
    ``definitions`` gets what holds of the variables of its result."""
    if how.name in TWO_STEPS:
        first = Computation(how.name.replace("mad", "mul"), how.type, (), how.function)
        wide = Type(how.type.kind, 2 * how.type.bits) if how.name == "mad.wide" else how.type
        product = circuit(formulas, definitions, first, operands[:2])
        add = Computation("add", wide, (), how.function)
        return None if product is None else circuit(formulas, definitions, add, [product, operands[2]])
    if how.name == "cut":
        shift, width = how.arguments
        return of_bits(formulas, bits_of(formulas, operands[0], shift + width)[shift:])
    if how.name == "join":
        return _joined(formulas, how.arguments[0], *operands)
    integer = how.type.kind in ("u", "s", "b", "pred") or how.name in _MOVES
    if not how.name or not integer or max(map(width_of, operands)) > WIDE:
        return None
    made = _Circuit(formulas)
    inputs = [made.vector(bits_of(formulas, operand, width_of(operand))) for operand in operands]
    try:
        result = vector(how, inputs)
    except PtxmmError:  # such as one with carry
        return None
    bits = made.bits(z3.simplify(result))
    definitions += made.definitions()
    return of_bits(formulas, bits)


_MOVES = ("mov", "select", "extend")
"""What is the same for every type."""


def _joined(formulas: Formulas, shift: int, low: Domain, high: Domain) -> Domain:
    """``high`` from bit ``shift`` on, above ``low``."""
    width = max(width_of(low), shift + width_of(high))
    upper = [*[FALSE] * shift, *bits_of(formulas, high, width - shift)]
    return of_bits(formulas, list(map(formulas.either, bits_of(formulas, low, width), upper)))


class _Circuit:
    """Vectors made of formulas, and formulas of vectors; Z3 calls the formula ``n`` ``f{n}``."""

    def __init__(self, formulas: Formulas) -> None:
        self._formulas = formulas
        self._named: dict[str, Formula] = {}
        self._goal = z3.Goal()

    def vector(self, bits: Sequence[Formula]) -> Any:
        """The vector, as wide as all are, of ``bits``."""
        parts = [z3.BitVecVal(0, WIDE - len(bits))] if len(bits) < WIDE else []
        parts += [self._bit(bit) for bit in reversed(bits)]
        return z3.Concat(*parts) if len(parts) > 1 else parts[0]

    def bits(self, result: Any) -> list[Formula]:
        """The bits of a vector, the lowest first: constants, or variables that have definitions."""
        bits: list[Formula] = []
        for i in range(WIDE):
            bit = z3.simplify(z3.Extract(i, i, result))
            if z3.is_bv_value(bit):
                bits.append(TRUE if bit.as_long() else FALSE)
            else:
                bits.append(self._formulas.variable())
                self._goal.add(self._truth(bits[-1]) == (bit == 1))
        while bits and bits[-1] == FALSE:
            bits.pop()
        return bits

    def definitions(self) -> list[Formula]:
        """What holds of the bits that were made."""
        known: dict[int, Formula] = {}
        (goal,) = z3.Then("simplify", "bit-blast", "simplify")(self._goal)
        return [self._formula(part, known) for part in goal]

    def _bit(self, bit: Formula) -> Any:
        if abs(bit) == TRUE:
            return z3.BitVecVal(int(bit == TRUE), 1)
        values = z3.BitVecVal(1, 1), z3.BitVecVal(0, 1)
        return z3.If(self._truth(abs(bit)), *(values if bit > 0 else values[::-1]))

    def _truth(self, node: Formula) -> Any:
        name = f"f{node}"
        self._named[name] = node
        return z3.Bool(name)

    def _formula(self, root: Any, known: dict[int, Formula]) -> Formula:
        """The formula that a term of Z3 without vectors is; ``known``: those of terms, by their numbers."""
        stack: list[tuple[Any, list[Any] | None]] = [(root, None)]
        while stack:
            term, inner = stack.pop()
            if term.get_id() in known:
                continue
            if inner is None:
                inner = term.children()
                stack.append((term, inner))
                stack += [(part, None) for part in inner]
                continue
            gate = _GATES.get(term.decl().kind())
            given = [known[part.get_id()] for part in inner]
            known[term.get_id()] = self._leaf(term) if gate is None else gate(self._formulas, given)
        return known[root.get_id()]

    def _leaf(self, term: Any) -> Formula:
        match term.decl().kind():
            case z3.Z3_OP_TRUE:
                return TRUE
            case z3.Z3_OP_FALSE:
                return FALSE
        name = term.decl().name()
        if name not in self._named:  # one that Z3 has added
            self._named[name] = self._formulas.variable()
        return self._named[name]


_GATES: Mapping[int, Callable[[Formulas, list[Formula]], Formula]] = MappingProxyType(
    {
        z3.Z3_OP_NOT: lambda formulas, given: -given[0],
        z3.Z3_OP_AND: lambda formulas, given: formulas.all(given),
        z3.Z3_OP_OR: lambda formulas, given: formulas.any(given),
        z3.Z3_OP_XOR: lambda formulas, given: differ(formulas, *given),
        z3.Z3_OP_EQ: lambda formulas, given: -differ(formulas, *given),
        z3.Z3_OP_DISTINCT: lambda formulas, given: differ(formulas, *given),
        z3.Z3_OP_IMPLIES: lambda formulas, given: formulas.either(-given[0], given[1]),
        z3.Z3_OP_ITE: lambda formulas, given: formulas.either(
            formulas.both(given[0], given[1]), formulas.both(-given[0], given[2])
        ),
    }
)
