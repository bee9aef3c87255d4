"""Final conditions: propositions over registers and memory at the end of an execution, and their evaluation."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Generic, Literal, TypeVar

from msgspec import Struct

from ptxmm.ptx.ops import Type


class RegisterTerm(Struct, frozen=True):
    """The final value of a register of the thread with index ``thread``."""

    thread: int
    register: str
    type: Type


class MemoryTerm(Struct, frozen=True):
    """The final value of element ``index`` of the object with ``key``."""

    key: str
    index: int
    type: Type


class IntegerTerm(Struct, frozen=True):
    """A constant; it is taken modulo 2**width of what it is compared with."""

    value: int


class AddressTerm(Struct, frozen=True):
    """The address ``&name+offset``; ``address`` is its value, and what is equal to it is equal to ``others``, the
    addresses of the same byte in windows, too."""

    key: str
    offset: int
    address: int
    others: tuple[int, ...] = ()


Term = RegisterTerm | MemoryTerm | IntegerTerm | AddressTerm


_COMPARISONS: Mapping[str, Callable[[int, int], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip

T = TypeVar("T")
U = TypeVar("U")


class Comparison(Struct, Generic[T], frozen=True):
    """``left op right`` with op one of ``== != < <= > >=``."""

    op: str
    left: T
    right: T


class Conjunction(Struct, Generic[T], frozen=True):
    """All items hold; the empty one is true."""

    items: tuple[Formula[T], ...]


class Disjunction(Struct, Generic[T], frozen=True):
    """Some item holds; the empty one is false."""

    items: tuple[Formula[T], ...]


class Negation(Struct, Generic[T], frozen=True):
    """The item does not hold."""

    item: Formula[T]


Formula = Comparison[T] | Conjunction[T] | Disjunction[T] | Negation[T]
"""A proposition over terms of one kind; nesting is bounded by the parsers."""
Proposition = Formula[Term]


class Condition(Struct, frozen=True):
    """The quantified statement of a test; ``text`` is the proposition as written."""

    kind: Literal["exists", "~exists", "forall"]
    proposition: Proposition
    text: str

    def __str__(self) -> str:
        return f"{self.kind} ({self.text})"


class State(Struct, frozen=True):
    """A final state: unsigned values by (thread index, register) and by (object key, element index)."""

    registers: Mapping[tuple[int, str], int]
    memory: Mapping[tuple[str, int], int]


def compare(op: str, left: int, right: int, type_: Type | None) -> bool:
    """``left op right`` on values of ``type_`` given as any integers modulo its width; None compares plain integers."""
    if type_ is not None:
        mask = (1 << type_.bits) - 1
        left, right = left & mask, right & mask
        if type_.signed:
            sign = 1 << (type_.bits - 1)
            left, right = (left ^ sign) - sign, (right ^ sign) - sign
    return _COMPARISONS[op](left, right)


def holds(item: Comparison[Term], left: int, right: int, type_: Type | None) -> bool:
    """``compare`` for the values of the terms of ``item``."""
    if isinstance(item.right, AddressTerm) and left in item.right.others:
        left = item.right.address
    if isinstance(item.left, AddressTerm) and right in item.left.others:
        right = item.left.address
    return compare(item.op, left, right, type_)


def comparison_type(item: Comparison[Term]) -> Type | None:
    """The type in which ``item`` compares: of its wider register or memory term, the left one on a tie."""
    types = [t.type for t in (item.left, item.right) if isinstance(t, RegisterTerm | MemoryTerm)]
    return max(types, key=lambda t: t.bits) if types else None


def term_value(term: Term, state: State) -> int:
    """The value of ``term`` in ``state``."""
    match term:
        case RegisterTerm(thread, register, _):
            return state.registers[thread, register]
        case MemoryTerm(key, index, _):
            return state.memory[key, index]
        case IntegerTerm(value):
            return value
        case AddressTerm(address=address):
            return address


def evaluate(item: Proposition, state: State) -> bool:
    """Whether ``item`` holds in ``state``."""
    match item:
        case Comparison(_, left, right):
            return holds(item, term_value(left, state), term_value(right, state), comparison_type(item))
        case Conjunction(items):
            return all(evaluate(i, state) for i in items)
        case Disjunction(items):
            return any(evaluate(i, state) for i in items)
        case Negation(inner):
            return not evaluate(inner, state)


def comparisons(*items: Formula[T] | None) -> Iterator[Comparison[T]]:
    """The comparisons in ``items``, in order of appearance."""
    stack = [item for item in reversed(items) if item is not None]
    while stack:
        match stack.pop():
            case Comparison() as found:
                yield found
            case Conjunction(parts) | Disjunction(parts):
                stack.extend(reversed(parts))
            case Negation(inner):
                stack.append(inner)


def mapped(item: Formula[T], change: Callable[[Comparison[T]], Formula[U]]) -> Formula[U]:
    """``item`` with what ``change`` makes of each comparison in its place."""
    match item:
        case Comparison():
            return change(item)
        case Conjunction(items):
            return Conjunction(tuple([mapped(i, change) for i in items]))
        case Disjunction(items):
            return Disjunction(tuple([mapped(i, change) for i in items]))
        case Negation(inner):
            return Negation(mapped(inner, change))


def map_terms(item: Proposition, change: Callable[[Term], Term]) -> Proposition:
    """``item`` with ``change`` applied to each term."""
    return mapped(item, lambda found: Comparison(found.op, change(found.left), change(found.right)))


def terms(*items: Proposition) -> list[Term]:
    """The register and memory terms in ``items``, in order of appearance, each once."""
    sides = (term for found in comparisons(*items) for term in (found.left, found.right))
    return list(dict.fromkeys(term for term in sides if isinstance(term, RegisterTerm | MemoryTerm)))
