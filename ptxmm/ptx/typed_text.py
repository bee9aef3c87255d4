"""Resolved instructions as canonical PTX: every default written out, nothing that has no effect on the memory model."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from msgspec.structs import replace

from ptxmm.ptx import ops
from ptxmm.ptx.ops import Op, Type
from ptxmm.ptx.ops.record import Slot, slots, spelled
from ptxmm.ptx.ops.signatures import CARRY
from ptxmm.ptx.spelling import Spelling, refuse
from ptxmm.ptx.table import ATOMIC_TYPES, FORMS

_S64 = Type("s", 64)


def mnemonic(op: Op) -> str:
    """The opcode of ``op`` with its qualifiers."""
    return spelled(op, op.opcode)


def typed_text(op: Op, spell: Spelling) -> str:
    """``op`` as PTX without its guard; resolving the text gives ``op`` again up to its source.

    Raises ``PtxmmError`` (kind ``unsupported``) for what only the untyped dialect has.
    """
    op = _of_ptx(op)
    name = mnemonic(op)
    if isinstance(op, ops.Branch):
        return f"{name} {spell.label(op.target)}"
    operands: list[str] = []
    for slot in slots(op.roles):
        if slot.mark != "|":
            operands += _texts(op, slot, spell)
        elif slot.item(op) not in (None, ops.Reg(CARRY)):
            operands[-1] += f"|{spell.register(slot.item(op))}"
    return f"{name} {', '.join(operands)}" if operands else name


def _texts(op: Op, slot: Slot, spell: Spelling) -> list[str]:
    """The operands in ``slot``."""
    item = slot.item(op)
    if slot.mark == "(" or (item is None and slot.mark != "="):
        return []
    if slot.mark == "[":
        return [_place(item, slot, spell)]
    if slot.type == "":
        return [str(number) for number in (item if isinstance(item, tuple) else (item,))]
    if slot.mark == "=" and item != () and (item is None or not any(item if isinstance(item, tuple) else (item,))):
        return ["_"]
    return [_value(op, slot, one, typ, spell) for one, typ in slot.typed(op) if one != ops.Reg(CARRY)]


def _place(item: ops.Address | ops.Place, slot: Slot, spell: Spelling) -> str:
    if isinstance(item, ops.Place):
        return f"[{spell.address(item.map)}, {{{', '.join(spell.operand(c) for c in item.coordinates)}}}]"
    return spell.place(replace(item, offset=item.offset // ops.COLUMN_BYTES) if slot.end == "/" else item)


def _value(op: Op, slot: Slot, item: Any, typ: Type, spell: Spelling) -> str:
    """A register, a constant, or a vector of them."""
    if isinstance(item, tuple):
        texts = [spell.sink(one) if one is None else spell.operand(one, typ) for one in item]
        return texts[0] if len(texts) == 1 and slot.end != "*" else "{" + ", ".join(texts) + "}"
    negated = slot.negated and typ.kind == "pred" and getattr(op, slot.negated)
    return ("!" if negated else "") + spell.operand(item, typ)


def _of_ptx(op: Op) -> Op:
    """``op``, or the instruction of typed PTX that does the same; refuses what only the untyped dialect has."""
    match op:
        case ops.Load() | ops.Store() | ops.Atomic() if op.proxy != "generic":
            raise refuse(op, f"a {op.proxy} access has no counterpart in typed PTX here")
        case ops.Atomic():
            return _atomic(op)
        case ops.Alu() if op.type == _S64:
            first = op.op.partition(".")[0]
            row = FORMS.get(f"{first}.{op.type.name}") or FORMS[first]
            return replace(op, type=_legal(op, op.op, row.groups["type"]))
        case ops.ProxyFence(kind) if kind not in FORMS["fence.proxy"].groups["kind"]:
            raise refuse(op, f"`fence.proxy.{kind}` is not PTX")
        case ops.Barrier() if op.instance is not None:
            raise refuse(op, "a barrier of the untyped dialect has no exact counterpart in PTX")
        case ops.Barrier("arrive", count=None):
            raise refuse(op, "`bar.arrive` needs the number of threads")
        case ops.Branch() if op.condition is not None:
            raise refuse(op, "PTX has no compare-and-branch instruction")
    return op


def _atomic(op: ops.Atomic) -> ops.Atomic:
    opcode = "atom" if op.returns else "red"
    groups = FORMS[opcode].groups
    if op.op not in groups["op"]:
        raise refuse(op, f"PTX has no `{opcode}.{op.op}`")
    if op.sem not in groups["sem"]:
        raise refuse(op, f"PTX has no `{opcode}.{op.sem}`")
    return op if op.packed == 2 else replace(op, type=_legal(op, f"{opcode}.{op.op}", ATOMIC_TYPES[op.op]))


def _legal(op: ops.Alu | ops.Atomic, name: str, legal: Collection[str]) -> Type:
    """The type of ``op``, or for the dialect's s64 the 64-bit type with which it exists and gives the same bits."""
    candidates = [op.type, Type("b", 64), Type("u", 64)] if op.type == _S64 else [op.type]
    found = next((t for t in candidates if t.name in legal), None)
    if found is None:
        raise refuse(op, f"`{name}` has no type .{op.type.name}")
    return found
