"""Loads, stores, atomics and reductions, and instructions about addresses (PTX ISA 9.7.10.8 to .13, .18, .19, .22,
.23, 9.7.14.5 to .7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from ptxmm.ptx import operands, ops, syntax
from ptxmm.ptx.makers.common import S64, U32, U64, Maker, guard, scope_of, source, without_policy
from ptxmm.ptx.operands import Names
from ptxmm.ptx.ops import BULK_UNIT, MOST_BULK, Op, Type
from ptxmm.ptx.qualifiers import Qualified, at


def _access(q: Qualified) -> tuple[Type, str, ops.Scope | None, bool, bool]:
    """Type, memory order, scope, volatile, mmio of a load or store (A23: volatile is relaxed.sys)."""
    typ = S64 if q.dialect else q.types[0]
    sem = q.get("sem") or "weak"
    if sem == "volatile":
        return typ, "relaxed", "sys", True, False
    return typ, sem, cast("ops.Scope | None", q.get("scope")), False, "mmio" in q.chosen


def _proxy(q: Qualified) -> ops.Proxy:
    return cast("ops.Proxy", q.form.fixed.get("proxy", "generic"))


def _load(q: Qualified, names: Names) -> Op:
    dst, address = without_policy(q, names, 2, 2)
    typ, sem, scope, volatile, mmio = _access(q)
    if q.dialect and isinstance(address, syntax.Number):  # a constant is no location: the dialect's move
        constant = operands.value(q, names, address, typ)
        return ops.Alu("mov", typ, operands.destination(names, dst), (constant,), source(q), guard(q, names))
    target, place = operands.destinations(q, names, dst), operands.address(q, names, address)
    return ops.Load(
        target, place, typ, sem, scope, q.get("space"), source(q), guard(q, names), _proxy(q),
        volatile=volatile, mmio=mmio, nc="nc" in q.form.fixed,
    )  # fmt: skip


def _store(q: Qualified, names: Names) -> Op:
    address, stored = without_policy(q, names, 2, 2)
    typ, sem, scope, volatile, mmio = _access(q)
    place, values = operands.address(q, names, address), operands.values(q, names, stored, typ)
    return ops.Store(
        place, values, typ, sem, scope, q.get("space"), source(q), guard(q, names), _proxy(q),
        volatile=volatile, mmio=mmio,
    )  # fmt: skip


def _store_bulk(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 3, 3)
    address, size, initial = q.instruction.operands
    number = operands.value(q, names, size, U64)
    if isinstance(number, ops.Imm) and (number.value % BULK_UNIT or not 0 <= number.value <= MOST_BULK):
        message = f"the size of `st.bulk` is a multiple of {BULK_UNIT} up to {MOST_BULK}, not {number.value}"
        raise at(size.span, message)
    operands.constant_of(initial, "what `st.bulk` writes", (0,), "0")
    return ops.StoreBulk(operands.address(q, names, address), number, source(q), guard(q, names), q.get("space"))


def _atomic(q: Qualified, names: Names) -> Op:
    returns = q.form.opcode in ("atom", "suatom")
    op = q.chosen["op"]
    count = (3 if op == "cas" else 2) + returns
    items = without_policy(q, names, count, count)
    typ = S64 if q.dialect else q.types[0]
    dst: tuple[ops.Reg | None, ...] = ()
    if returns:
        dst = (None,) * q.count if operands.sink(items[0]) else operands.destinations(q, names, items[0])
        items = items[1:]
    place = operands.address(q, names, items[0])
    values = tuple(zip(*(operands.values(q, names, item, typ) for item in items[1:]), strict=True))
    return ops.Atomic(
        dst, op, place, values, typ, q.get("sem") or "relaxed", scope_of(q, "gpu"), q.get("space"), returns, source(q),
        guard(q, names), _proxy(q), q.packed,
    )  # fmt: skip


def _multimem(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 2, 2)
    kind, sem, first = q.form.fixed["kind"], q.get("sem"), q.instruction.operands[0]
    scope = cast("ops.Scope | None", q.get("scope"))
    dst: tuple[ops.Reg | None, ...] = ()
    values: tuple[ops.Operand, ...] = ()
    if kind == "ld_reduce":
        dst, first = operands.destinations(q, names, first), q.instruction.operands[1]
    else:
        values = operands.values(q, names, q.instruction.operands[1], q.types[0])
    if kind == "red":
        sem, scope = sem or "relaxed", scope_of(q, "sys")
    return ops.Multimem(
        kind, q.get("op"), dst, operands.address(q, names, first), values, q.types[0], sem or "weak", scope,
        q.get("space"), source(q), guard(q, names), q.packed, "acc" in q.chosen,
    )  # fmt: skip


def _async_store(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 3, 3)
    place, stored, mbarrier = q.instruction.operands
    typ = q.types[0]
    return ops.AsyncStore(
        operands.address(q, names, place), operands.values(q, names, stored, typ), typ,
        operands.address(q, names, mbarrier), q.get("op"), source(q), guard(q, names), q.get("space"),
    )  # fmt: skip


def _mapa(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 3, 3)
    dst, value, rank = q.instruction.operands
    typ = q.types[0]
    return ops.Mapa(
        operands.destination(names, dst), typ, _address_value(q, names, value, typ),
        operands.value(q, names, rank, U32), q.get("space"), source(q), guard(q, names),
    )  # fmt: skip


def _address_value(q: Qualified, names: Names, operand: syntax.Operand, typ: Type) -> ops.Operand:
    """An address as a value: a register, or a variable where a state space is given."""
    if isinstance(operand, syntax.Number | syntax.Float):
        raise at(operand.span, f"`{q.form.opcode}` takes an address, found {operands.describe(operand)}")
    found = operands.value(q, names, operand, typ)
    if isinstance(found, ops.Sym) and "space" not in q.chosen:
        hint = f"{q.form.opcode}.shared::cluster takes a variable"
        raise at(operand.span, f"`{q.form.opcode}` takes a generic address in a register", hint=hint)
    return found


def _cta_rank(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 2, 2)
    dst, value = q.instruction.operands
    typ = q.types[0]
    return ops.CtaRank(
        operands.destination(names, dst), typ, _address_value(q, names, value, typ), source(q), guard(q, names),
        q.get("space"),
    )  # fmt: skip


def _is_space(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 2, 2)
    dst, value = q.instruction.operands
    address = operands.register(names, value, "a register with a generic address")
    return ops.IsSpace(operands.destination(names, dst), q.chosen["space"], address, source(q), guard(q, names))


def _convert_address(q: Qualified, names: Names) -> Op:
    """``cvta``; that of global memory, or of 32 bits, leaves the address as it is."""
    operands.check_count(q, 2, 2)
    dst, item = q.instruction.operands
    if "to" in q.chosen:
        value: ops.Operand = operands.register(names, item, "a register with a generic address")
    else:
        value = _address_value(q, names, item, q.types[0])
    typ, space = q.types[0], q.chosen["space"]
    if space != "global" and typ.bits == 64:
        target, to = operands.destination(names, dst), "to" in q.chosen
        return ops.ConvertAddress(target, typ, value, space, source(q), guard(q, names), to)
    return ops.Alu("mov", typ, operands.destination(names, dst), (value,), source(q), guard(q, names))


MAKERS: Mapping[str, Maker] = {
    "load": _load,
    "store": _store,
    "store_bulk": _store_bulk,
    "atomic": _atomic,
    "async_store": _async_store,
    "multimem": _multimem,
    "mapa": _mapa,
    "getctarank": _cta_rank,
    "isspacep": _is_space,
    "cvta": _convert_address,
}
