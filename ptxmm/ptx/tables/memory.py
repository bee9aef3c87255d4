"""Rows of loads, stores, atomics and reductions (PTX ISA 9.7.10.8 to .13, 9.7.14.5 to .7)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import cast

from ptxmm.ptx import operands, ops, syntax
from ptxmm.ptx.ops import BULK_UNIT, MOST_BULK, Op, Type
from ptxmm.ptx.ops.basic import S64, U32
from ptxmm.ptx.qualified import Form, Names, Qualified, at
from ptxmm.ptx.tables.accesses import check_access, check_atomic, check_multimem, check_vector
from ptxmm.ptx.tables.common import Limit, guard, made, scope_of, source, without_policy
from ptxmm.ptx.tables.form import (
    CLUSTER,
    COMPLETE_TX,
    EVICT,
    HINT,
    MEMORY_TYPES,
    PREFETCH,
    SCOPES,
    SHARED,
    SM100,
    STRONG_SPACES,
    V1,
    Version,
    union,
    words,
)

_HALVES = words("f16 f16x2 bf16 bf16x2")
_MINMAX = (*words("u32 s32 u64 s64"), *_HALVES)

ATOMIC_TYPES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "add": (*words("u32 s32 u64 f32 f64"), *_HALVES),
        "inc": ("u32",),
        "dec": ("u32",),
        "and": words("b32 b64"),
        "or": words("b32 b64"),
        "xor": words("b32 b64"),
        "min": _MINMAX,
        "max": _MINMAX,
        "exch": words("b32 b64 b128"),
        "cas": words("b16 b32 b64 b128"),
    }
)
REDUCTION_TYPES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {op: types for op, types in ATOMIC_TYPES.items() if op not in ("exch", "cas")}
)
_ASYNC_REDUCTIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "inc": ("u32",),
        "dec": ("u32",),
        "min": words("u32 s32"),
        "max": words("u32 s32"),
        "and": ("b32",),
        "or": ("b32",),
        "xor": ("b32",),
        "add": words("u32 s32 u64"),
    }
)
_REAL_TYPES = (*_HALVES, *words("f32 f64"))
_MULTIMEM_STORES = (*words("b32 b64 u32 u64 s32 s64"), *_REAL_TYPES)
_MULTIMEM_BITS: Mapping[str, tuple[str, ...]] = {op: words("b32 b64") for op in words("and or xor")}
_MULTIMEM_ADD = (*words("u32 u64 s32"), *_REAL_TYPES)
_MULTIMEM_LOADS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"add": _MULTIMEM_ADD, **_MULTIMEM_BITS, "min": _MINMAX, "max": _MINMAX}
)
_MULTIMEM_REDUCTIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"add": _MULTIMEM_ADD, **_MULTIMEM_BITS, **{op: words("u32 s32 u64 s64") for op in ("min", "max")}}
)
_SMALL_FLOATS = "e4m3 e4m3x2 e4m3x4 e5m2 e5m2x2 e5m2x4"
_MULTIMEM_LATER = {"ld_reduce": f"acc::f16 {_SMALL_FLOATS}", "st": _SMALL_FLOATS}
_V87 = Version((8, 7), 90)
_WIDE = {
    Version((8, 8), 100): " ".join(f"{vec}+{t}{bits}" for vec, bits in (("v8", 32), ("v4", 64)) for t in "busf"),
}  # fmt: skip
_ATOMIC_NEWER = {
    Version((8, 3), 90): "b128",
    Version((5, 0), 60): f"{' '.join(SCOPES)} f64",
    Version((3, 1), 32): " ".join(f"{op}+{t}64" for op in words("and or xor min max") for t in "bus"),
    Version((6, 3), 70): "cas+b16 f16",
    Version((2, 0), 20): "f32",
    Version((6, 2), 60): "f16x2",
    CLUSTER: "bf16 bf16x2",
    Version((8, 1), 90): "v2 v4 v8",
}
_ADDRESS_NEWER = {Version((8, 3), 70): "param::entry", Version((7, 7), 70): "param", Version((3, 1), 20): "const"}


def _multimem_row(which: str, orders: str, types: Mapping[str, tuple[str, ...]] | None, slots: str) -> Form:
    groups = {"sem": words(orders), "scope": SCOPES, "space": ("global",)}
    if types is not None:
        groups["op"] = tuple(types)
    if which == "ld_reduce":
        groups["acc"] = ("acc::f32",)
    groups |= {"vec": words("v2 v4 v8"), "type": _MULTIMEM_STORES if types is None else union(types)}
    required = ("type",) if types is None else ("op", "type")
    types_by = None if types is None else ("op", types)
    later = dict.fromkeys(words(_MULTIMEM_LATER.get(which, "")), SM100)
    return Form(
        f"multimem.{which}", _multimem, groups, words(slots), Version((8, 1), 90), required, types_by, later,
        {"kind": which}, check_multimem, {Version((8, 2), 90): "acc::f32"},
    )  # fmt: skip


def _memory_row(opcode: str, orders: str, spaces: str, cop: str, slots: str) -> Form:
    groups = {
        "sem": words(orders),
        "mmio": ("mmio",),
        "scope": SCOPES,
        "space": words(spaces) + SHARED,
        "cop": words(cop),
        "evict": EVICT,
        "hint": HINT,
    }
    if opcode == "ld":
        groups["prefetch"] = PREFETCH
    groups |= {"vec": words("v2 v4 v8"), "type": MEMORY_TYPES}
    make = load if opcode == "ld" else store
    later = dict.fromkeys(words("L2::evict_last L2::evict_normal L2::evict_first"), Version((8, 8), 100))
    newer = {Version((1, 1)): "volatile", **_WIDE}
    return Form(opcode, make, groups, words(slots), V1, ("type",), later=later, rule=check_access, newer=newer)


def _atomic_row(opcode: str, orders: str, types: Mapping[str, tuple[str, ...]], slots: str, since: Version) -> Form:
    groups = {
        "sem": words(orders),
        "scope": SCOPES,
        "space": STRONG_SPACES,
        "op": tuple(types),
        "noftz": ("noftz",),
        "hint": HINT,
        "vec": words("v2 v4 v8"),
        "type": union(types),
    }
    return Form(
        opcode, atomic, groups, words(slots), since, ("op", "type"), ("op", types), rule=check_atomic,
        newer=_ATOMIC_NEWER,
    )  # fmt: skip


_BULK_SIZE = Limit(
    "the size of `st.bulk`", range(0, MOST_BULK + 1, BULK_UNIT), f"a multiple of {BULK_UNIT} up to {MOST_BULK}"
)
_READ_ONLY = {"vec": words("v2 v4 v8"), "type": MEMORY_TYPES}
_UNIFORM = {"space": ("global",), "vec": words("v2 v4"), "type": MEMORY_TYPES}
_CLUSTER_SHARED = {"space": ("shared::cluster",), "completion": (COMPLETE_TX,)}


def _access(q: Qualified) -> tuple[Type, str, ops.Scope | None, bool, bool]:
    """Type, memory order, scope, volatile, mmio of a load or store (A23: volatile is relaxed.sys)."""
    typ = S64 if q.dialect else q.types[0]
    sem = q.get("sem") or "weak"
    if sem == "volatile":
        return typ, "relaxed", "sys", True, False
    return typ, sem, cast("ops.Scope | None", q.get("scope")), False, "mmio" in q.chosen


def _proxy(q: Qualified) -> ops.Proxy:
    return cast("ops.Proxy", q.form.fixed.get("proxy", "generic"))


def load(q: Qualified, names: Names) -> Op:
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


def store(q: Qualified, names: Names) -> Op:
    address, stored = without_policy(q, names, 2, 2)
    typ, sem, scope, volatile, mmio = _access(q)
    place, values = operands.address(q, names, address), operands.values(q, names, stored, typ)
    return ops.Store(
        place, values, typ, sem, scope, q.get("space"), source(q), guard(q, names), _proxy(q),
        volatile=volatile, mmio=mmio,
    )  # fmt: skip


def atomic(q: Qualified, names: Names) -> Op:
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


FORMS = (
    _memory_row("ld", "weak relaxed acquire volatile", "const global local param param::entry param::func",
                "ca cg cs lu cv", "d [a] policy?"),
    _memory_row("st", "weak relaxed release volatile", "global local param param::func", "wb cg cs wt",
                "[a] b policy?"),
    Form("st.bulk", made(ops.StoreBulk, size=_BULK_SIZE, _=Limit("what `st.bulk` writes", (0,), "0")),
         {"sem": ("weak",), "space": ("shared::cta",)}, words("[a] size initval"), SM100),
    Form("ld.nc", load,
         {"space": ("global",), "cop": words("ca cg cs"), "evict": EVICT, "hint": HINT, "prefetch": PREFETCH,
          **_READ_ONLY}, words("d [a] policy?"), Version((3, 1), 32), ("space", "type"), fixed={"nc": "nc"},
         rule=check_access, newer=_WIDE),
    Form("ldu", load, _UNIFORM, words("d [a]"), Version((2, 0)), ("type",), fixed={"nc": "nc"}, rule=check_access),
    _atomic_row("atom", "relaxed acquire release acq_rel", ATOMIC_TYPES, "d [a] b c? policy?", Version((1, 1), 11)),
    _atomic_row("red", "relaxed release", REDUCTION_TYPES, "[a] b policy?", Version((1, 2), 11)),
    Form("st.async", _async_store,
         {"sem": ("weak",), **_CLUSTER_SHARED, "vec": words("v2 v4"), "type": words("b32 b64 u32 u64 s32 s64 f32 f64")},
         words("[a] b [mbar]"), Version((8, 1), 90), ("completion", "type"),
         later=dict.fromkeys(words("mmio release global cta cluster gpu sys b8 b16 u8 u16 s8 s16"), _V87),
         rule=check_vector),
    Form("red.async", _async_store,
         {"sem": ("relaxed",), "scope": ("cluster",), **_CLUSTER_SHARED, "op": tuple(_ASYNC_REDUCTIONS),
          "type": union(_ASYNC_REDUCTIONS)},
         words("[a] b [mbar]"), Version((8, 1), 90), ("sem", "scope", "completion", "op", "type"),
         ("op", _ASYNC_REDUCTIONS), later=dict.fromkeys(words("mmio release global cta gpu sys s64 b64"), _V87),
         rule=check_vector),
    _multimem_row("ld_reduce", "weak relaxed acquire", _MULTIMEM_LOADS, "d [a]"),
    _multimem_row("st", "weak relaxed release", None, "[a] b"),
    _multimem_row("red", "relaxed release", _MULTIMEM_REDUCTIONS, "[a] b"),
    # The address of a variable of another CTA of the cluster, and what an address is.
    Form("mapa", _mapa, {"space": ("shared::cluster",), "type": words("u32 u64")}, words("d a rank"), CLUSTER,
         ("type",)),
    Form("getctarank", _cta_rank, {"space": ("shared::cluster",), "type": words("u32 u64")}, words("rank a"),
         CLUSTER, ("type",)),
    Form("isspacep", _is_space, {"space": (*words("const global local param param::entry"), *SHARED)}, words("p a"),
         Version((2, 0), 20), ("space",), newer=_ADDRESS_NEWER),
    Form("cvta", _convert_address, {"to": ("to",), "space": (*words("const global local param param::entry"), *SHARED),
                          "type": words("u32 u64")}, words("d a"), Version((2, 0), 20), ("space", "type"),
         newer=_ADDRESS_NEWER),
)  # fmt: skip
