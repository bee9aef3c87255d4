"""The variables that resolved instructions name: listing them and giving them their keys."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import cache
from typing import Any, cast

from msgspec.structs import replace

from ptxmm.ptx.ops import Address, Atomic, Compare, Imm, Load, Op, Operand, Store, Sym

_NO_OPERANDS = frozenset(("source", "guard", "type", "sem", "scope", "space", "proxy"))


def symbols(op: Op) -> list[str]:
    """The variables that ``op`` names, in the order of its operands."""
    return [item.name for field in _fields(op) for item in _operands_in(getattr(op, field)) if isinstance(item, Sym)]


def constants(op: Op) -> list[int]:
    """The integer constants among the operands of ``op``."""
    return [item.value for field in _fields(op) for item in _operands_in(getattr(op, field)) if isinstance(item, Imm)]


def _fields(op: Op) -> tuple[str, ...]:
    """The fields of ``op`` that may hold operands: all but those that never do."""
    return _operand_fields(cast("Hashable", type(op)))


@cache
def _operand_fields(kind: type[Any]) -> tuple[str, ...]:
    return tuple(name for name in kind.__struct_fields__ if name not in _NO_OPERANDS)


def _operands_in(value: object) -> Sequence[Sym | Imm]:
    match value:
        case Sym() | Imm():
            return (value,)
        case Address(Sym() | Imm() as base):
            return (base,)
        case tuple():
            return [found for item in value for found in _operands_in(item)]
        case Compare(a=a, b=b):
            return _operands_in((a, b))
    return ()


def access(op: Op) -> Address | None:
    """The address of a memory access by ``ld``, ``st``, ``atom`` or ``red``, None for every other instruction."""
    return op.address if isinstance(op, Load | Store | Atomic) else None


def addresses(op: Op) -> list[Address]:
    """Every address operand of ``op``."""
    return [item for field in _fields(op) for item in _addresses_in(getattr(op, field))]


def _addresses_in(value: object) -> Sequence[Address]:
    match value:
        case Address():
            return (value,)
        case tuple():
            return [found for item in value for found in _addresses_in(item)]
    return ()


def rename(op: Op, keys: Mapping[str, str]) -> Op:
    """``op`` with the name of every variable replaced by its key."""
    if all(keys[name] == name for name in symbols(op)):
        return op
    changed = {field: _renamed(getattr(op, field), keys) for field in _fields(op)}
    return replace(op, **changed)


def _renamed(value: object, keys: Mapping[str, str]) -> object:
    match value:
        case Sym(name, offset):
            return Sym(keys[name], offset)
        case Address(Sym(name, inner), offset):
            return Address(Sym(keys[name], inner), offset)
        case Compare():
            return Compare(value.cmp, value.type, *(_operand(item, keys) for item in (value.a, value.b)))
        case tuple():
            return tuple(_renamed(item, keys) for item in value)
        case _:
            return value


def _operand(item: Operand, keys: Mapping[str, str]) -> Operand:
    return Sym(keys[item.name], item.offset) if isinstance(item, Sym) else item


def with_base(op: Op, base: Operand) -> Op:
    """The memory access ``op`` with another base of its address."""
    assert isinstance(op, Load | Store | Atomic)
    return replace(op, address=Address(base, op.address.offset))
