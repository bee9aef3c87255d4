"""What the makers of several families share: functions from a qualified instruction to its operation."""

from __future__ import annotations

from collections.abc import Container
from itertools import zip_longest
from typing import Any, NamedTuple, cast

from ptxmm.ptx import operands, ops, syntax
from ptxmm.ptx.ops import Op, Type
from ptxmm.ptx.ops.record import Slot, slots
from ptxmm.ptx.qualified import Maker, Names, Qualified, at


class Limit(NamedTuple):
    """What an operand may be if it is a constant: ``what`` is ``shape``, which is in ``legal``."""

    what: str
    legal: Container[int]
    shape: str
    hint: str | None = None

    def constant(self, operand: syntax.Operand) -> int:
        """The constant that ``operand`` must be."""
        return operands.constant_of(operand, self.what, self.legal, self.shape)

    def value(self, q: Qualified, names: Names, operand: syntax.Operand, typ: Type) -> ops.Operand:
        """A source operand of type ``typ``."""
        found = operands.value(q, names, operand, typ)
        if isinstance(found, ops.Imm) and found.value not in self.legal:
            raise at(operand.span, f"{self.what} is {self.shape}, not {found.value}", hint=self.hint)
        return found


MAP_SIZE = Limit("the size of a tensor map", (128,), "128")


def made(kind: type[Any], **limits: Limit) -> Maker:
    """What makes an operation of ``kind`` by its ``roles``: its operands in the order of the text, with ``limits`` of
    constants (``_``: of a number that is always there), and every other field by the qualifiers of its name, or by
    what the row has as ``fixed``."""

    def operand(q: Qualified, names: Names, slot: Slot, given: syntax.Operand) -> object:
        limit = limits.get("_" if slot.field.isdecimal() else slot.field)
        if slot.mark == "[":
            return operands.address(q, names, given)
        if slot.mark == "#" or slot.field.isdecimal():
            assert limit is not None
            return limit.constant(given)
        assert isinstance(slot.type, Type)
        take = operands.value if limit is None else limit.value
        return take(q, names, given, slot.type)

    def make(q: Qualified, names: Names) -> Op:
        form, given = q.form, q.instruction.operands
        operands.check_count(q, sum(not slot.endswith("?") for slot in form.slots), len(form.slots))
        fields: dict[str, Any] = {
            name: name in q.chosen if form.groups.get(name) == (name,) else q.get(name) or form.fixed.get(name)
            for name in kind.__struct_fields__
            if name in form.groups or name in form.fixed
        }
        for slot, item in zip_longest(slots(kind.roles), given):
            found = None if item is None else operand(q, names, slot, item)
            if not slot.field.isdecimal():
                fields[slot.field] = found
        return cast("Op", kind(**fields, source=source(q), guard=guard(q, names)))

    return make


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


def numbered(q: Qualified, operand: syntax.Operand) -> tuple[syntax.Operand, ...]:
    """The elements of a vector, as many as ``.num`` says."""
    num = q.chosen["num"]
    return operands.vector(operand, int(num[1:]), f"`{q.form.opcode}.{num}`")


def check_sign(q: Qualified) -> None:
    """``.xorsign.abs`` is one modifier (9.7.3.11, 9.7.4.7)."""
    for one, other in (("xorsign", "abs"), ("abs", "xorsign")):
        if one in q.chosen and other not in q.chosen:
            raise at(q.span(one), f"`.{one}` needs `.{other}`", hint="write .xorsign.abs")
