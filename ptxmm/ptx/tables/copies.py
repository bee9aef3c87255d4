"""Rows of the asynchronous copies (PTX ISA 9.7.10.24, 9.7.14.15.15)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ptxmm.ptx.tables.form import COMPLETE_TX, HINT, PREFETCH, SHARED_CTA, SM80, SM90, Form, words

_DIMENSIONS = words("1d 2d 3d 4d 5d")
_MULTICAST = {"multicast": ("multicast::cluster",)}
_COMPLETION = {"completion": (COMPLETE_TX, "bulk_group")}
# The destination .shared::cta is of PTX ISA 8.6 (versions.py).
_DIRECTION = {"dst": words("shared::cluster global shared::cta"), "src": words("global shared::cta")}

# The legal types of cp.reduce.async.bulk by destination and operation (the table of 9.7.10.24.7).
_HALVES = words("f16 bf16")
BULK_REDUCTIONS: Mapping[tuple[str, str], tuple[str, ...]] = MappingProxyType(
    {
        ("shared::cluster", "add"): words("u32 s32 u64"),
        **{("shared::cluster", op): words("u32 s32") for op in ("min", "max")},
        **{("shared::cluster", op): ("u32",) for op in ("inc", "dec")},
        **{("shared::cluster", op): ("b32",) for op in ("and", "or", "xor")},
        ("global", "add"): (*words("u32 s32 u64 f32 f64"), *_HALVES),
        **{("global", op): (*words("u32 s32 u64 s64"), *_HALVES) for op in ("min", "max")},
        **{("global", op): ("u32",) for op in ("inc", "dec")},
        **{("global", op): words("b32 b64") for op in ("and", "or", "xor")},
    }
)
_OPERATIONS = words("and or xor add inc dec min max")
_TYPES = words("b32 u32 s32 b64 u64 s64 f16 bf16 f32 f64")

# Directions (.dst, .src) and how their copies complete (9.7.10.24.6 and .9).
BULK_DIRECTIONS: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("shared::cluster", "global"): COMPLETE_TX,
        ("shared::cta", "global"): COMPLETE_TX,
        ("shared::cluster", "shared::cta"): COMPLETE_TX,
        ("global", "shared::cta"): "bulk_group",
    }
)
REDUCTION_DIRECTIONS: Mapping[tuple[str, str], str] = MappingProxyType(
    {("shared::cluster", "shared::cta"): COMPLETE_TX, ("global", "shared::cta"): "bulk_group"}
)
TENSOR_DIRECTIONS: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("shared::cluster", "global"): COMPLETE_TX,
        ("shared::cta", "global"): COMPLETE_TX,
        ("global", "shared::cta"): "bulk_group",
    }
)

FORMS = (
    Form("cp.async", "copy_async",
         {"cop": words("ca cg"), "dst": SHARED_CTA, "src": ("global",), "hint": HINT, "prefetch": PREFETCH},
         words("[dst] [src] size fill? policy?"), SM80, ("cop", "dst", "src")),
    Form("cp.async.commit_group", "async_commit", {}, (), SM80),
    Form("cp.async.wait_group", "async_wait", {}, ("pending",), SM80),
    Form("cp.async.wait_all", "async_wait", {}, (), SM80),
    Form("cp.async.mbarrier.arrive", "copy_async_arrive",
         {"noinc": ("noinc",), "space": SHARED_CTA, "type": ("b64",)}, ("[mbar]",), SM80, ("type",)),
    Form("cp.async.bulk", "bulk_copy",
         {**_DIRECTION, **_COMPLETION, **_MULTICAST, "hint": HINT, "cp_mask": ("cp_mask",)},
         words("[dst] [src] size [mbar]? ctas? policy? byteMask?"), SM90, ("dst", "src", "completion")),
    Form("cp.reduce.async.bulk", "bulk_copy",
         {"dst": words("shared::cluster global"), "src": ("shared::cta",), **_COMPLETION, "hint": HINT,
          "op": _OPERATIONS, "noftz": ("noftz",), "type": _TYPES},
         words("[dst] [src] size [mbar]? policy?"), SM90, ("dst", "src", "completion", "op", "type")),
    Form("cp.async.bulk.prefetch", "bulk_prefetch", {"level": ("L2",), "src": ("global",), "hint": HINT},
         words("[src] size policy?"), SM90, ("level", "src")),
    Form("cp.async.bulk.tensor", "bulk_tensor",
         {"dim": _DIMENSIONS, **_DIRECTION, "load_mode": words("tile im2col im2col_no_offs"), **_COMPLETION,
          **_MULTICAST, "hint": HINT},
         words("[dst] [src] [mbar]? offsets? ctas? policy?"), SM90, ("dim", "dst", "src", "completion"),
         later=words("tile::gather4 tile::scatter4 im2col::w im2col::w::128 cta_group::1 cta_group::2")),
    Form("cp.reduce.async.bulk.tensor", "bulk_tensor",
         {"dim": _DIMENSIONS, "dst": ("global",), "src": ("shared::cta",), "op": _OPERATIONS,
          "load_mode": words("tile im2col_no_offs"), "completion": ("bulk_group",), "hint": HINT},
         words("[dst] [src] policy?"), SM90, ("dim", "dst", "src", "op", "completion")),
    Form("cp.async.bulk.prefetch.tensor", "tensor_prefetch",
         {"dim": _DIMENSIONS, "level": ("L2",), "src": ("global",), "load_mode": words("tile im2col"), "hint": HINT},
         words("[src] offsets? policy?"), SM90, ("dim", "level", "src"),
         later=words("tile::gather4 im2col::w im2col::w::128")),
    Form("cp.async.bulk.commit_group", "async_commit", {}, (), SM90),
    Form("cp.async.bulk.wait_group", "async_wait", {"read": ("read",)}, ("pending",), SM90),
)  # fmt: skip
