"""What the makers of several families share: functions from a qualified instruction to its operation."""

from __future__ import annotations

from typing import cast

from ptxmm.ptx import operands, ops, syntax
from ptxmm.ptx.ops import Type
from ptxmm.ptx.qualified import Names, Qualified, at

S64 = Type("s", 64)
U32 = Type("u", 32)
U64 = Type("u", 64)
B32 = Type("b", 32)
B64 = Type("b", 64)
PREDICATE = Type("pred", 1)
SIZE_128 = range(128, 129)


def source(q: Qualified) -> ops.Source:
    """Where the instruction stands."""
    return ops.Source(q.instruction.span, q.instruction.text)


def guard(q: Qualified, names: Names) -> ops.Guard | None:
    """The guard predicate, if there is one."""
    found = q.instruction.guard
    if found is None:
        return None
    if q.dialect:
        raise at(found.span, "the untyped dialect has no guard predicates", hint="branch around the instruction")
    return ops.Guard(operands.predicate(names, found.name).name, found.negated)


def without_policy(
    q: Qualified, names: Names, minimum: int, maximum: int, after: int = 0
) -> tuple[syntax.Operand, ...]:
    """The operands without the cache policy, which has no effect on the memory model and is only checked; ``after``:
    how many come after it."""
    given = q.instruction.operands
    if "hint" not in q.chosen:
        operands.check_count(q, minimum, maximum)
        return given
    operands.check_count(q, minimum + 1, maximum + 1)
    place = len(given) - 1 - after
    operands.register(names, given[place], "a cache policy register")
    return (*given[:place], *given[place + 1 :])


def scope_of(q: Qualified, default: ops.Scope) -> ops.Scope:
    """The scope, or ``default``."""
    return cast("ops.Scope", q.get("scope") or default)


def source_predicate(names: Names, operand: syntax.Operand) -> tuple[ops.Reg, bool]:
    """A source predicate ``p`` or ``!p``, and whether it is negated."""
    if isinstance(operand, syntax.Negated):
        return operands.predicate(names, operand.name), True
    return operands.predicate(names, operand), False
