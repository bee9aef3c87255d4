"""The variables that resolved instructions name: listing them and giving them their keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ptxmm.ptx.ops import (
    Address,
    Alu,
    Atomic,
    Barrier,
    Branch,
    Convert,
    Load,
    Op,
    Operand,
    Select,
    SetPredicate,
    Store,
    Sym,
)


def operands(op: Op) -> list[Operand]:
    """Every operand that ``op`` reads, the base of its address included."""
    match op:
        case Load(_, address):
            return [address.base]
        case Store(address, value):
            return [address.base, value]
        case Atomic(_, _, address, values):
            return [address.base, *values]
        case Barrier(_, barrier, count):
            return [barrier] if count is None else [barrier, count]
        case Alu(_, _, _, sources):
            return list(sources)
        case Convert(_, value):
            return [value]
        case SetPredicate(a=a, b=b) | Select(a=a, b=b):
            return [a, b]
        case Branch(_, condition):
            return [] if condition is None else [condition.a, condition.b]
        case _:
            return []


def symbols(op: Op) -> list[str]:
    """The variables that ``op`` names, in order."""
    return [item.name for item in operands(op) if isinstance(item, Sym)]


def access(op: Op) -> Address | None:
    """The address of a memory access, None for every other instruction."""
    return op.address if isinstance(op, Load | Store | Atomic) else None


def rename(op: Op, keys: Mapping[str, str]) -> Op:
    """``op`` with the name of every variable replaced by its key."""
    names = symbols(op)
    if all(keys[name] == name for name in names):
        return op

    def key(item: Operand) -> Operand:
        return Sym(keys[item.name], item.offset) if isinstance(item, Sym) else item

    def place(address: Address) -> Address:
        return Address(key(address.base), address.offset)

    match op:
        case Load(_, address):
            return replace(op, address=place(address))
        case Store(address, value):
            return replace(op, address=place(address), value=key(value))
        case Atomic(_, _, address, values):
            return replace(op, address=place(address), operands=tuple(map(key, values)))
        case Barrier(_, barrier, count):
            return replace(op, barrier=key(barrier), count=None if count is None else key(count))
        case Alu(_, _, _, sources):
            return replace(op, sources=tuple(map(key, sources)))
        case Convert(_, value):
            return replace(op, value=key(value))
        case SetPredicate(a=a, b=b) | Select(a=a, b=b):
            return replace(op, a=key(a), b=key(b))
        case Branch(_, condition) if condition is not None:
            return replace(op, condition=replace(condition, a=key(condition.a), b=key(condition.b)))
        case _:
            return op


def with_base(op: Op, base: Operand) -> Op:
    """The memory access ``op`` with another base of its address."""
    assert isinstance(op, Load | Store | Atomic)
    return replace(op, address=Address(base, op.address.offset))
