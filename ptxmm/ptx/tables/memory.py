"""Rows of loads, stores, atomics and reductions (PTX ISA 9.7.10.8 to .13, 9.7.14.5 to .7)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ptxmm.ptx.tables.form import (
    CLUSTER,
    COMPLETE_TX,
    EVICT,
    HINT,
    MEMORY_TYPES,
    PREFETCH,
    SCOPES,
    SHARED,
    STRONG_SPACES,
    V1,
    Form,
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
# Which operations a vector of a type has, and which sizes (the tables of 9.7.14.5 and .6).
VECTOR_ATOMICS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = MappingProxyType(
    {
        "f32": (("add",), words("v2 v4")),
        "f16": (words("add min max"), words("v2 v4 v8")),
        "bf16": (words("add min max"), words("v2 v4 v8")),
        "f16x2": (words("add min max"), words("v2 v4")),
        "bf16x2": (words("add min max"), words("v2 v4")),
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
_SMALL_FLOATS = words("e4m3 e4m3x2 e4m3x4 e5m2 e5m2x2 e5m2x4")
MULTIMEM_LATER: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"multimem.ld_reduce": ("acc::f16", *_SMALL_FLOATS), "multimem.st": _SMALL_FLOATS}
)
"""Qualifiers of PTX ISA 8.6."""


def _multimem(which: str, orders: str, types: Mapping[str, tuple[str, ...]] | None, slots: str) -> Form:
    groups = {"sem": words(orders), "scope": SCOPES, "space": ("global",)}
    if types is not None:
        groups["op"] = tuple(types)
    if which == "ld_reduce":
        groups["acc"] = ("acc::f32",)
    groups |= {"vec": words("v2 v4 v8"), "type": _MULTIMEM_STORES if types is None else union(types)}
    required = ("type",) if types is None else ("op", "type")
    types_by = None if types is None else ("op", types)
    opcode, since = f"multimem.{which}", Version((8, 1), 90)
    later = MULTIMEM_LATER.get(opcode, ())
    return Form(opcode, "multimem", groups, words(slots), since, required, types_by, later, {"kind": which})


def _memory(opcode: str, orders: str, spaces: str, cop: str, slots: str) -> Form:
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
    later = words("L2::evict_last L2::evict_normal L2::evict_first")
    return Form(opcode, "load" if opcode == "ld" else "store", groups, words(slots), V1, ("type",), later=later)


def _atomic(opcode: str, orders: str, types: Mapping[str, tuple[str, ...]], slots: str, since: Version) -> Form:
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
    return Form(opcode, "atomic", groups, words(slots), since, ("op", "type"), ("op", types))


_READ_ONLY = {"vec": words("v2 v4 v8"), "type": MEMORY_TYPES}
_UNIFORM = {"space": ("global",), "vec": words("v2 v4"), "type": MEMORY_TYPES}
_CLUSTER_SHARED = {"space": ("shared::cluster",), "completion": (COMPLETE_TX,)}

FORMS = (
    _memory("ld", "weak relaxed acquire volatile", "const global local param param::entry param::func",
            "ca cg cs lu cv", "d [a] policy?"),
    _memory("st", "weak relaxed release volatile", "global local param param::func", "wb cg cs wt", "[a] b policy?"),
    Form("st.bulk", "store_bulk", {"sem": ("weak",), "space": ("shared::cta",)}, words("[a] size initval"),
         Version((8, 6), 100)),
    Form("ld.nc", "load",
         {"space": ("global",), "cop": words("ca cg cs"), "evict": EVICT, "hint": HINT, "prefetch": PREFETCH,
          **_READ_ONLY}, words("d [a] policy?"), Version((3, 1), 32), ("space", "type"), fixed={"nc": "nc"}),
    Form("ldu", "load", _UNIFORM, words("d [a]"), Version((2, 0)), ("type",), fixed={"nc": "nc"}),
    _atomic("atom", "relaxed acquire release acq_rel", ATOMIC_TYPES, "d [a] b c? policy?", Version((1, 1), 11)),
    _atomic("red", "relaxed release", REDUCTION_TYPES, "[a] b policy?", Version((1, 2), 11)),
    Form("st.async", "async_store",
         {"sem": ("weak",), **_CLUSTER_SHARED, "vec": words("v2 v4"), "type": words("b32 b64 u32 u64 s32 s64 f32 f64")},
         words("[a] b [mbar]"), Version((8, 1), 90), ("completion", "type"),
         later=words("mmio release global cta cluster gpu sys b8 b16 u8 u16 s8 s16")),
    Form("red.async", "async_store",
         {"sem": ("relaxed",), "scope": ("cluster",), **_CLUSTER_SHARED, "op": tuple(_ASYNC_REDUCTIONS),
          "type": union(_ASYNC_REDUCTIONS)},
         words("[a] b [mbar]"), Version((8, 1), 90), ("sem", "scope", "completion", "op", "type"),
         ("op", _ASYNC_REDUCTIONS), later=words("mmio release global cta gpu sys s64 b64")),
    _multimem("ld_reduce", "weak relaxed acquire", _MULTIMEM_LOADS, "d [a]"),
    _multimem("st", "weak relaxed release", None, "[a] b"),
    _multimem("red", "relaxed release", _MULTIMEM_REDUCTIONS, "[a] b"),
    # The address of a variable of another CTA of the cluster, and what an address is.
    Form("mapa", "mapa", {"space": ("shared::cluster",), "type": words("u32 u64")}, words("d a rank"), CLUSTER,
         ("type",)),
    Form("getctarank", "getctarank", {"space": ("shared::cluster",), "type": words("u32 u64")}, words("rank a"),
         CLUSTER, ("type",)),
    Form("isspacep", "isspacep", {"space": (*words("const global local param param::entry"), *SHARED)}, words("p a"),
         Version((2, 0), 20), ("space",)),
    Form("cvta", "cvta", {"to": ("to",), "space": (*words("const global local param param::entry"), *SHARED),
                          "type": words("u32 u64")}, words("d a"), Version((2, 0), 20), ("space", "type")),
)  # fmt: skip
