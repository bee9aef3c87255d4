"""Final conditions: propositions over registers and memory at the end of an execution, and their evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

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


class Comparison(Struct, frozen=True):
    """``left op right`` with op one of ``== != < <= > >=``."""

    op: str
    left: Term
    right: Term


class Conjunction(Struct, frozen=True):
    """All items hold; the empty one is true."""

    items: tuple[Proposition, ...]


class Disjunction(Struct, frozen=True):
    """Some item holds; the empty one is false."""

    items: tuple[Proposition, ...]


class Negation(Struct, frozen=True):
    """The item does not hold."""

    item: Proposition


Proposition = Comparison | Conjunction | Disjunction | Negation


class Condition(Struct, frozen=True):
    """The quantified statement of a test; ``text`` is the proposition as written."""

    kind: Literal["exists", "~exists", "forall"]
    proposition: Proposition
    text: str


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
    match op:
        case "==":
            return left == right
        case "!=":
            return left != right
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
        case ">=":
            return left >= right
    raise ValueError(f"no comparison {op!r}")


def holds(item: Comparison, left: int, right: int, type_: Type | None) -> bool:
    """``compare`` for the values of the terms of ``item``."""
    if isinstance(item.right, AddressTerm) and left in item.right.others:
        left = item.right.address
    if isinstance(item.left, AddressTerm) and right in item.left.others:
        right = item.left.address
    return compare(item.op, left, right, type_)


def comparison_type(item: Comparison) -> Type | None:
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


def terms(item: Proposition) -> list[Term]:
    """The register and memory terms of ``item``, in order of appearance, each once."""
    found: dict[Term, None] = {}
    stack: list[Proposition] = [item]
    while stack:
        match stack.pop():
            case Comparison(_, left, right):
                for t in (left, right):
                    if isinstance(t, RegisterTerm | MemoryTerm):
                        found.setdefault(t)
            case Conjunction(items) | Disjunction(items):
                stack.extend(reversed(items))
            case Negation(inner):
                stack.append(inner)
    return list(found)
